// GrpcFleet: FleetDialer over gRPC's callback API, and the wire form of a report.
//
// The only files of the agent that see gRPC and protobuf. gRPC's threads only copy and post; all
// else happens on the loop's thread.
#ifndef ASSAY_AGENT_SESSION_GRPC_FLEET_H_
#define ASSAY_AGENT_SESSION_GRPC_FLEET_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/process/event_loop.h"
#include "agent/session/fleet_stream.h"
#include "common/net/address.h"
#include "common/net/transport.h"

namespace assay {

// v1.AttemptReport, serialized.
std::string EncodeReport(const AttemptReport& report);

// `loop` must outlive the dialer and its streams, and the streams end before the dialer, whose
// destructor waits until gRPC is done with them. InvalidArgument where the address may not be
// dialled. Where no connection comes about, a stream's OnClosed says why in plain words
// (common/certs/tls_probe.h), found out on a thread of the dialer's own.
absl::StatusOr<std::unique_ptr<FleetDialer>> MakeGrpcFleet(EventLoop& loop, const Address& address,
                                                           const Transport& transport = {});

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_GRPC_FLEET_H_
