#include "agent/session/doctor_child.h"

#include <fmt/format.h>

#include <utility>

#include "common/status/status.h"
#include "common/text/utf8.h"

namespace assay {
namespace {

// A report has at most 512 checks of two sentences.
constexpr size_t kMostReportBytes = 8 << 20;
// It has told all it knows; only a driver that hangs keeps it.
constexpr std::chrono::seconds kTimeToLeave{2};

std::string LastLineOf(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t at = text.rfind('\n');
  return ScrubForTerminal(at == std::string::npos ? text : text.substr(at + 1));
}

}  // namespace

DoctorChild::DoctorChild(EventLoop& loop, OrphanReaper& reaper, DoctorChildOptions options,
                         std::function<void(absl::StatusOr<DoctorReport>)> done)
    : loop_(loop), reaper_(reaper), options_(std::move(options)), done_(std::move(done)) {}

DoctorChild::~DoctorChild() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void DoctorChild::Ask(bool measuring) {
  if (std::exchange(asked_, true)) return;
  measuring_ = measuring;
  timer_ = loop_.RunAt(BootClock::now() + options_.limit, [this] {
    Tell(absl::DeadlineExceededError(
        fmt::format("the checks did not end within {:.0f} s: the driver or a program hangs there",
                    std::chrono::duration<double>(options_.limit).count())));
  });
  // One that has told and does not end is waited for, up to the limit.
  if (child_ == nullptr) Start();
}

void DoctorChild::Start() {
  text_.clear();
  ChildSpec spec;
  spec.program = options_.program;
  spec.arguments = options_.arguments;
  if (measuring_) spec.arguments.emplace_back("--measuring");
  spec.environment = options_.environment;
  spec.mark = "doctor";
  absl::Status failed = absl::NotFoundError("this agent does not know where its program is");
  if (!options_.program.empty()) {
    auto child = ChildProcess::Spawn(loop_, reaper_, spec, *this);
    if (child.ok()) {
      child_ = *std::move(child);
      started_ = true;
      return;
    }
    failed = child.status();
  }
  loop_.Post([this, alive = alive_, failed] {
    if (*alive) Tell(failed);
  });
}

void DoctorChild::OnRecords(std::string_view bytes) {
  if (!started_ || text_.size() > kMostReportBytes) return;
  text_ += bytes;
  // The last line of a report: a thread that hangs in the driver may keep the pipe open.
  if (text_.ends_with("\n}\n")) TellReport();
}

void DoctorChild::OnRecordsClosed() { TellReport(); }

void DoctorChild::OnGone(const ChildExit&) {
  TellReport();
  child_.reset();
  if (asked_) Start();
}

void DoctorChild::TellReport() {
  if (!started_) return;
  absl::StatusOr<DoctorReport> report = ParseDoctorJson(text_);
  if (!report.ok()) {
    const std::string said = LastLineOf(child_->LogTail());
    report = absl::InternalError(
        fmt::format("assay-agent --doctor gave no report{}{}", said.empty() ? "" : ": ", said));
  }
  Tell(std::move(report));
}

void DoctorChild::Tell(absl::StatusOr<DoctorReport> result) {
  loop_.Cancel(timer_);
  started_ = false;
  if (child_ != nullptr) child_->Stop(kTimeToLeave);
  if (std::exchange(asked_, false)) done_(std::move(result));
}

}  // namespace assay
