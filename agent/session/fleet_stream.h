// FleetStream: one session's stream to the coordinator, without saying what carries it. GrpcFleet
// is the real one; tests use a fake.
//
// Thread rule: all calls and all callbacks on the loop's thread.
#ifndef ASSAY_AGENT_SESSION_FLEET_STREAM_H_
#define ASSAY_AGENT_SESSION_FLEET_STREAM_H_

#include <memory>
#include <string>
#include <variant>

#include "agent/session/messages.h"

namespace assay {

using CoordinatorMessage = std::variant<Welcome, Refuse, HeartbeatAck, PrepareOrder, StartOrder,
                                        AbortOrder, ReportAck, Drain, DoctorQuestion>;

class FleetStreamObserver {
 public:
  virtual ~FleetStreamObserver() = default;
  virtual void OnReceived(CoordinatorMessage message) = 0;
  // The last Write has left; the next may be given.
  virtual void OnWritten() = 0;
  // `why` is one sentence. The last call.
  virtual void OnClosed(const std::string& why) = 0;
};

class FleetStream {
 public:
  // Gives the stream up, as Detach does. Not from within one of its callbacks.
  virtual ~FleetStream() = default;
  // No callback comes after it. May be called from within one.
  virtual void Detach() = 0;
  // One at a time: not again before OnWritten. False: the message cannot be sent as it is (a report
  // that the wire does not take) and is dropped; OnWritten does not follow.
  virtual bool Write(const AgentMessage& message) = 0;
};

class FleetDialer {
 public:
  virtual ~FleetDialer() = default;
  // Never null; a stream that cannot be opened says so by OnClosed. Callbacks never come from
  // within Dial.
  virtual std::unique_ptr<FleetStream> Dial(FleetStreamObserver& observer) = 0;
};

}  // namespace assay

#endif  // ASSAY_AGENT_SESSION_FLEET_STREAM_H_
