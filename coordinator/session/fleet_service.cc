#include "coordinator/session/fleet_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "common/net/grpc_options.h"
#include "common/status/status.h"
#include "coordinator/session/message_codec.h"
#include "coordinator/session/outbound_queue.h"

namespace assay {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::AgentMessage, v1::CoordinatorMessage>;

class RefusedSession final : public Reactor {
 public:
  explicit RefusedSession(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

// Lives from Session to OnDone in the service's map; whoever else uses it holds a shared_ptr.
class FleetSession final : public Reactor, public std::enable_shared_from_this<FleetSession> {
 public:
  FleetSession(FleetService& service, SessionHandle handle, Peer peer)
      : service_(service), handle_(handle), peer_(std::move(peer)) {}

  void Begin() { StartRead(&incoming_); }

  void Send(CoordinatorMessage message) {
    MutexLock lock(mutex_);
    if (finished_ || closing_) return;
    if (!queue_.Push(std::move(message))) {
      FinishLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                "the agent does not read what it is sent"));
      return;
    }
    WriteNext();
  }

  void Close(const grpc::Status& status) {
    MutexLock lock(mutex_);
    closing_ = true;
    closing_status_ = status;
    WriteNext();
  }

  void OnReadDone(bool ok) override {
    std::optional<Event> event;
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      if (!ok) return FinishLocked(grpc::Status::OK);
      const bool is_hello = incoming_.has_hello();
      if (is_hello == greeted_) {
        return FinishLocked(grpc::Status(
            grpc::StatusCode::INVALID_ARGUMENT,
            greeted_ ? "a session has one Hello" : "the first message of a session is Hello"));
      }
      if (const absl::Status status = CheckPeer(); !status.ok()) {
        spdlog::warn("refused at {}: {}", peer_.address, Message(status));
        return FinishLocked(ToGrpcStatus(status));
      }
      // Once a hello was said, everything but a hello is welcome.
      event = EventOf(handle_, peer_.address, incoming_);
      if (is_hello) greeted_ = true;
      incoming_.Clear();
    }
    if (!event.has_value()) return ReadOn();
    service_.post_(*std::move(event), [self = shared_from_this()] { self->ReadOn(); });
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    if (finished_) return;
    if (!ok) return FinishLocked(grpc::Status::OK);
    WriteNext();
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    FinishLocked(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    bool greeted = false;
    {
      MutexLock lock(mutex_);
      greeted = greeted_;
    }
    if (greeted) service_.post_(event::AgentGone{handle_}, nullptr);
    service_.Forget(handle_);  // may be the end of this object
  }

 private:
  // A certificate speaks for its own node, and until it ends: an agent says something at every
  // heartbeat, so this is often enough. Later messages are believed from the session.
  absl::Status CheckPeer() const {
    ASSAY_RETURN_IF_ERROR(service_.peers_.CheckGood(peer_));
    if (incoming_.has_hello()) {
      return CheckAgentNode(peer_.identity, incoming_.hello().inventory().node());
    }
    if (incoming_.has_inventory()) {
      return CheckAgentNode(peer_.identity, incoming_.inventory().node());
    }
    return absl::OkStatus();
  }
  void ReadOn() {
    MutexLock lock(mutex_);
    // Finish is called under the same lock, and OnDone comes only after Finish: the stream is
    // alive.
    if (!finished_) StartRead(&incoming_);
  }

  void WriteNext() ASSAY_REQUIRES(mutex_) {
    if (writing_ || finished_) return;
    std::optional<CoordinatorMessage> next = queue_.Pop();
    if (!next.has_value()) {
      if (closing_) FinishLocked(closing_status_);
      return;
    }
    outgoing_ = MessageOf(*next);
    writing_ = true;
    StartWrite(&outgoing_);
  }

  void FinishLocked(const grpc::Status& status) ASSAY_REQUIRES(mutex_) {
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  FleetService& service_;
  const SessionHandle handle_;
  const Peer peer_;
  Mutex mutex_;
  v1::AgentMessage incoming_;  // gRPC's between StartRead and OnReadDone
  v1::CoordinatorMessage outgoing_;
  OutboundQueue queue_ ASSAY_GUARDED_BY(mutex_);
  bool greeted_ ASSAY_GUARDED_BY(mutex_) = false;
  bool writing_ ASSAY_GUARDED_BY(mutex_) = false;
  bool closing_ ASSAY_GUARDED_BY(mutex_) = false;
  grpc::Status closing_status_ ASSAY_GUARDED_BY(mutex_);
  bool finished_ ASSAY_GUARDED_BY(mutex_) = false;
};

FleetService::~FleetService() = default;

Reactor* FleetService::Session(grpc::CallbackServerContext* context) {
  Peer peer = peers_.Of(*context);
  absl::Status status = peers_.CheckGood(peer);
  if (status.ok()) status = CheckIsAgent(peer.identity);
  if (!status.ok()) {
    spdlog::warn("refused at {}: {}", peer.address, Message(status));
    return new RefusedSession(ToGrpcStatus(status));
  }
  std::shared_ptr<FleetSession> session;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      return new RefusedSession(
          grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"));
    }
    if (sessions_.size() >= kMostSessions) {
      return new RefusedSession(
          grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many sessions; try again later"));
    }
    session = std::make_shared<FleetSession>(*this, ++last_, std::move(peer));
    sessions_[last_] = session;
  }
  session->Begin();
  return session.get();
}

void FleetService::Send(SendToAgent send) {
  if (const auto session = Find(send.session)) session->Send(std::move(send.message));
}

void FleetService::Close(SessionHandle handle) {
  if (const auto session = Find(handle)) session->Close(grpc::Status::OK);
}

void FleetService::CloseAll() {
  std::vector<std::shared_ptr<FleetSession>> sessions;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    for (const auto& [handle, session] : sessions_) sessions.push_back(session);
  }
  for (const auto& session : sessions) {
    session->Close(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is shutting down"));
  }
}

void FleetService::Forget(SessionHandle handle) {
  std::shared_ptr<FleetSession> last;  // destroyed outside the lock
  MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end()) return;
  last = std::move(found->second);
  sessions_.erase(found);
}

std::shared_ptr<FleetSession> FleetService::Find(SessionHandle handle) const {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  return found == sessions_.end() ? nullptr : found->second;
}

}  // namespace assay
