#include "agent/doctor/run_doctor.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "agent/doctor/checks.h"
#include "common/status/status.h"

namespace assay {

absl::StatusOr<int> WriteDoctorReport(const DoctorReport& report, int fd) {
  const std::string text = WriteDoctorJson(report);
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot write the report");
    done += static_cast<size_t>(written);
  }
  return report.Worst() == CheckState::kBad ? kExitBadNode : 0;
}

absl::StatusOr<int> RunDoctor(const GatherOptions& options, Nvml* nvml, int fd) {
  return WriteDoctorReport(Diagnose(GatherFacts(options, nvml)), fd);
}

}  // namespace assay
