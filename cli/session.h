// Session: one command's hold on a coordinator, made again where it breaks.
//
// Every call of Control may be repeated (a Submit carries its request id), so a call that finds the
// coordinator gone is tried once more after a new connection. Thread rule: one owner.
#ifndef ASSAY_CLI_SESSION_H_
#define ASSAY_CLI_SESSION_H_

#include <chrono>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/connection.h"
#include "cli/control.h"

namespace assay::cli {

// The coordinator went away, as opposed to an answer that says no.
inline bool IsLost(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kUnknown ||
         status.code() == absl::StatusCode::kCancelled;
}

class Session {
 public:
  explicit Session(Connection connection) : connection_(std::move(connection)) {}

  absl::Status Open() {
    auto control = connection_.Connect();
    if (!control.ok()) return control.status();
    control_ = std::move(*control);
    return absl::OkStatus();
  }

  // As Connection's.
  void GoOnAfterInterrupt(std::chrono::seconds start_limit) {
    connection_.GoOnAfterInterrupt(start_limit);
  }

  // After Open() only.
  Control& control() { return *control_; }
  const Connection& connection() const { return connection_; }

  // `call` takes a Control& and gives a StatusOr.
  template <class F>
  auto Call(F call) -> decltype(call(std::declval<Control&>())) {
    auto result = call(*control_);
    if (result.ok() || result.status().code() != absl::StatusCode::kUnavailable) return result;
    if (absl::Status status = Open(); !status.ok()) return status;
    return call(*control_);
  }

 private:
  Connection connection_;
  std::unique_ptr<Control> control_;
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_SESSION_H_
