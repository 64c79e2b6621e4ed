// Coordinator: one running coordinator, put together from its parts and taken apart in order.
//
// Owner: main, or a test. Thread rule: one thread starts and stops it.
#ifndef ASSAY_COORDINATOR_COORDINATOR_H_
#define ASSAY_COORDINATOR_COORDINATOR_H_

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock/clock.h"
#include "common/net/address.h"
#include "common/net/transport.h"
#include "coordinator/api/control_service.h"
#include "coordinator/api/work_thread.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "coordinator/session/fleet_service.h"
#include "coordinator/state_loop.h"
#include "coordinator/store/result_store.h"
#include "coordinator/store/store_thread.h"

namespace assay {

class Coordinator {
 public:
  struct Parts {
    const Clock& clock;
    std::unique_ptr<ResultStore> store;
    std::unique_ptr<ResultReader> reader;
    CoordinatorTimes times;
    std::string state_dir;
    // Called once, on the state thread, after a commit that failed.
    std::function<void(std::string)> on_halt;
    // TLS files that CheckTlsFiles found good, or --insecure.
    Transport transport = {};
  };

  // Loads the state, starts the threads and listens. AlreadyExists, PermissionDenied or
  // InvalidArgument, with one sentence, where it cannot listen on `address`.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Start(Parts parts, Address address);
  // Answers what is open, ends every stream and thread, commits what was handed to the store.
  ~Coordinator();

  // With the port that the kernel chose.
  const Address& address() const { return address_; }
  bool HasUnfinishedRuns() const { return loop_.HasUnfinishedRuns(); }
  const ControlService& control() const { return control_; }

 private:
  Coordinator(Parts parts, Address address);
  absl::Status Begin();

  Parts parts_;
  Address address_;
  CoordinatorState state_;
  StateLoop loop_;
  StoreThread store_thread_;
  WorkThread work_;
  FleetService fleet_;
  ControlService control_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_COORDINATOR_H_
