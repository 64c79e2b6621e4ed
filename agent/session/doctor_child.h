// DoctorChild: `assay-agent --doctor` as a child of the agent, so that a driver or a program that
// hangs in a check holds up nothing here, and no library of the checks stays loaded.
//
// One at a time: a question while one runs gets the same report. Owner: NodeAgent. Thread rule: the
// loop's thread.
#ifndef ASSAY_AGENT_SESSION_DOCTOR_CHILD_H_
#define ASSAY_AGENT_SESSION_DOCTOR_CHILD_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/process/child_process.h"
#include "agent/process/event_loop.h"
#include "agent/process/orphan_reaper.h"
#include "common/doctor/doctor_report.h"

namespace assay {

struct DoctorChildOptions {
  std::string program;  // empty: there is none, and a question is answered so
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  // The driver has 15 s, each stack 10 s; a report that takes longer is of a node that hangs.
  std::chrono::nanoseconds limit = std::chrono::seconds(90);
};

class DoctorChild final : private ChildObserver {
 public:
  // `done` is called once for each question or for several that came while one ran, never from
  // within Ask. `loop` and `reaper` outlive this.
  DoctorChild(EventLoop& loop, OrphanReaper& reaper, DoctorChildOptions options,
              std::function<void(absl::StatusOr<DoctorReport>)> done);
  ~DoctorChild() override;

  // `measuring`: a cell runs here, beside which no program may be started.
  void Ask(bool measuring);

 private:
  void OnRecords(std::string_view bytes) override;
  void OnRecordsClosed() override;
  void OnGone(const ChildExit& exit) override;

  void Start();
  void Tell(absl::StatusOr<DoctorReport> result);
  void TellReport();

  EventLoop& loop_;
  OrphanReaper& reaper_;
  const DoctorChildOptions options_;
  const std::function<void(absl::StatusOr<DoctorReport>)> done_;
  std::unique_ptr<ChildProcess> child_;
  std::string text_;
  bool asked_ = false;    // somebody waits for a report
  bool started_ = false;  // child_ is the one that makes it
  bool measuring_ = false;
  EventLoop::TimerId timer_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_DOCTOR_CHILD_H_
