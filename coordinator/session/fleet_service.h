// FleetService: the gRPC service of the agents. One reactor a session; callbacks only copy and
// post.
//
// Each session has one message under way to the state thread: it is read on when that was handled,
// so that a peer that floods is slowed by its own stream.
//
// Owner: main; outlives the server. Thread rule: any thread.
#ifndef ASSAY_COORDINATOR_SESSION_FLEET_SERVICE_H_
#define ASSAY_COORDINATOR_SESSION_FLEET_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "assay/v1/fleet_service.grpc.pb.h"
#include "common/sync/mutex.h"
#include "coordinator/cell/actions.h"
#include "coordinator/cell/events.h"
#include "coordinator/session/peer.h"

namespace assay {

class FleetSession;

class FleetService final : public v1::Fleet::CallbackService {
 public:
  // Takes an event; calls `after`, where given, when it was handled.
  using Post = std::function<void(Event event, std::function<void()> after)>;
  // Admission is ours: gRPC limits streams a connection, not in all.
  static constexpr size_t kMostSessions = 4096;

  FleetService(Post post, PeerReader peers) : post_(std::move(post)), peers_(peers) {}
  ~FleetService() override;

  grpc::ServerBidiReactor<v1::AgentMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;

  // A session that is gone is passed over.
  void Send(SendToAgent send);
  // After what was sent before.
  void Close(SessionHandle session);
  // Before the server's Shutdown: ends every session, and refuses new ones.
  void CloseAll();

 private:
  friend class FleetSession;
  void Forget(SessionHandle session);
  std::shared_ptr<FleetSession> Find(SessionHandle session) const;

  const Post post_;
  const PeerReader peers_;
  mutable Mutex mutex_;
  SessionHandle last_ ASSAY_GUARDED_BY(mutex_) = 0;
  bool closed_ ASSAY_GUARDED_BY(mutex_) = false;
  std::map<SessionHandle, std::shared_ptr<FleetSession>> sessions_ ASSAY_GUARDED_BY(mutex_);
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SESSION_FLEET_SERVICE_H_
