// UnaryCall: the reactor of gRPC for one answer; counts as a call until it is done.
//
// Owner: itself, until OnDone. Thread rule: any thread.
#ifndef ASSAY_COORDINATOR_API_UNARY_CALL_H_
#define ASSAY_COORDINATOR_API_UNARY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include "coordinator/api/control_service.h"

namespace assay {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(ControlService& service) : call_(service) {}
  void OnDone() override { delete this; }

 private:
  ControlService::Call call_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_UNARY_CALL_H_
