// GrpcControl: Control over gRPC. The only file of the CLI that sees gRPC and protobuf.
#ifndef ASSAY_CLI_GRPC_CONTROL_H_
#define ASSAY_CLI_GRPC_CONTROL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/control.h"

namespace assay::cli {

// A control for `address` (common/net/address.h); does not connect yet. InvalidArgument for an
// address that cannot be used.
absl::StatusOr<std::unique_ptr<Control>> MakeGrpcControl(const std::string& address);

}  // namespace assay::cli

#endif  // ASSAY_CLI_GRPC_CONTROL_H_
