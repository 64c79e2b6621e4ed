// GrpcControl: Control over gRPC. The only file of the CLI that sees gRPC and protobuf.
#ifndef ASSAY_CLI_GRPC_CONTROL_H_
#define ASSAY_CLI_GRPC_CONTROL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/control.h"
#include "common/net/transport.h"

namespace assay::cli {

// A control for `address` (common/net/address.h); does not connect yet. InvalidArgument for an
// address that cannot be used, FailedPrecondition (common/certs/tls_check.h) for TLS
// files that are no good. GetInfo says in plain words why no connection came about.
absl::StatusOr<std::unique_ptr<Control>> MakeGrpcControl(const std::string& address,
                                                         const Transport& transport = {});

}  // namespace assay::cli

#endif  // ASSAY_CLI_GRPC_CONTROL_H_
