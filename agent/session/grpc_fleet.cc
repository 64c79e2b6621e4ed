#include "agent/session/grpc_fleet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "assay/v1/fleet_service.grpc.pb.h"
#include "common/certs/tls_probe.h"
#include "common/clock/clock.h"
#include "common/log/log.h"
#include "common/net/grpc_options.h"
#include "common/status/status.h"
#include "common/sync/mutex.h"
#include "common/wire/wire.h"

namespace assay {
namespace {

// Of members of a gang and of rank lists; more is no gang of ours.
constexpr int kMostMembers = 4096;

std::string Name(const std::string& text) { return wire::CleanText(text, wire::kMaxNameBytes); }
std::string SentenceOf(const std::string& text) {
  return wire::CleanText(text, wire::kMaxSentenceBytes);
}

// --- out

void Fill(const Hello& hello, v1::AgentMessage* out) {
  v1::Hello* to = out->mutable_hello();
  to->set_protocol(hello.protocol);
  to->set_instance(hello.instance);
  wire::ToProto(hello.inventory, to->mutable_inventory());
  for (const std::string& attempt : hello.held_attempts) to->add_held_attempts(attempt);
  for (const std::string& attempt : hello.spooled_attempts) to->add_spooled_attempts(attempt);
  to->set_draining(hello.draining);
  to->set_former_gangs_ended(hello.former_gangs_ended);
  to->set_answers_doctor(hello.answers_doctor);
  to->set_ordinal(hello.ordinal);
}

void Fill(const Heartbeat& heartbeat, v1::AgentMessage* out) {
  v1::Heartbeat* to = out->mutable_heartbeat();
  to->set_number(heartbeat.number);
  for (const std::string& attempt : heartbeat.held_attempts) to->add_held_attempts(attempt);
  to->set_draining(heartbeat.draining);
  to->set_wall_unix_ms(heartbeat.sent_at.time_since_epoch().count());
}

void Fill(const GangReady& ready, v1::AgentMessage* out) {
  out->mutable_ready()->set_attempt(ready.attempt);
  out->mutable_ready()->set_endpoint(ready.endpoint);
}

void Fill(const GangRefused& refused, v1::AgentMessage* out) {
  v1::GangRefused* to = out->mutable_refused();
  to->set_attempt(Name(refused.attempt));
  to->set_reason(refused.reason);
  to->set_message(SentenceOf(refused.message));
}

void Fill(const RanksJoined& joined, v1::AgentMessage* out) {
  out->mutable_joined()->set_attempt(joined.attempt);
  for (const uint32_t rank : joined.ranks) out->mutable_joined()->add_ranks(rank);
}

void Fill(const GangProgress& progress, v1::AgentMessage* out) {
  v1::Progress* to = out->mutable_progress();
  to->set_attempt(progress.attempt);
  to->set_phase(progress.phase);
  to->set_step(progress.step);
  to->set_throughput(progress.throughput);
  to->set_seconds_left(progress.seconds_left);
}

void Fill(const Leave& leave, v1::AgentMessage* out) {
  out->mutable_leave()->set_reason(leave.reason);
}

void Fill(const DoctorAnswer& answer, v1::AgentMessage* out) {
  v1::DoctorAnswer* to = out->mutable_doctor();
  to->set_number(answer.number);
  to->set_error(SentenceOf(answer.error));
  if (answer.error.empty()) wire::ToProto(answer.report, to->mutable_report());
}

bool ToWire(const AgentMessage& message, v1::AgentMessage* out) {
  if (const auto* report = std::get_if<SpooledReport>(&message)) {
    return out->mutable_report()->ParseFromString(report->bytes);
  }
  std::visit(
      [out](const auto& m) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(m)>, SpooledReport>) Fill(m, out);
      },
      message);
  return true;
}

// --- in

PrepareOrder From(const v1::Prepare& from) {
  PrepareOrder order;
  order.attempt = Name(from.attempt());
  order.run = Name(from.run());
  order.cell = from.cell();
  order.repeat = from.repeat();
  order.spec = wire::FromProto(from.spec());
  order.stack = Name(from.stack());
  for (const v1::GangMember& member : from.members()) {
    if (order.members.size() == kMostMembers) break;
    order.members.push_back({Name(member.node()), Name(member.gpu_uuid()), member.local_rank()});
  }
  order.endpoint = Name(from.endpoint());
  order.seed = from.seed();
  order.prepare_seconds = from.prepare_seconds();
  order.closing = from.closing();
  return order;
}

Welcome From(const v1::Welcome& from) {
  Welcome welcome{from.session_epoch(),
                  from.protocol(),
                  from.heartbeat_seconds(),
                  from.lease_seconds(),
                  from.lifeline_seconds(),
                  from.kill_grace_seconds(),
                  {}};
  for (const std::string& attempt : from.unknown_attempts()) {
    if (welcome.unknown_attempts.size() == kMostMembers) break;
    welcome.unknown_attempts.push_back(Name(attempt));
  }
  return welcome;
}

std::optional<CoordinatorMessage> FromWire(const v1::CoordinatorMessage& from) {
  switch (from.body_case()) {
    case v1::CoordinatorMessage::kWelcome:
      return From(from.welcome());
    case v1::CoordinatorMessage::kRefuse:
      return Refuse{Name(from.refuse().reason()), SentenceOf(from.refuse().message()),
                    from.refuse().retry()};
    case v1::CoordinatorMessage::kHeartbeatAck:
      return HeartbeatAck{from.heartbeat_ack().number()};
    case v1::CoordinatorMessage::kPrepare:
      return From(from.prepare());
    case v1::CoordinatorMessage::kStart:
      return StartOrder{Name(from.start().attempt()), Name(from.start().endpoint()),
                        from.start().join_seconds()};
    case v1::CoordinatorMessage::kAbort:
      return AbortOrder{Name(from.abort().attempt()),
                        wire::FromProto(from.abort().outcome()).value_or(Outcome::kFail),
                        Name(from.abort().reason())};
    case v1::CoordinatorMessage::kReportAck:
      return ReportAck{Name(from.report_ack().attempt())};
    case v1::CoordinatorMessage::kDrain:
      return Drain{from.drain().on()};
    case v1::CoordinatorMessage::kDoctor:
      return DoctorQuestion{from.doctor().number()};
    case v1::CoordinatorMessage::BODY_NOT_SET:
      break;
  }
  return std::nullopt;  // of a newer coordinator
}

// --- the stream

// Between gRPC's threads, which outlive the stream's user by a moment, and the loop. The observer
// is read on the loop's thread only.
class Bridge {
 public:
  Bridge(EventLoop& loop, FleetStreamObserver& observer) : loop_(&loop), observer_(&observer) {}

  // Any thread. `call` runs on the loop's thread if the observer is still there.
  static void Post(const std::shared_ptr<Bridge>& self,
                   std::function<void(FleetStreamObserver&)> call) {
    MutexLock lock(self->mutex_);
    if (self->loop_ == nullptr) return;
    self->loop_->Post([self, call = std::move(call)] {
      if (self->observer_ != nullptr) call(*self->observer_);
    });
  }
  // Loop's thread.
  void Detach() {
    observer_ = nullptr;
    MutexLock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  Mutex mutex_;
  EventLoop* loop_ ASSAY_GUARDED_BY(mutex_);
  FleetStreamObserver* observer_;
};

// Says why a connection does not come about, since gRPC's own words cannot be read: at the first
// failure of an outage, and in the log again where the reason has become another one.
class Explainer {
 public:
  // Between two looks of one outage.
  static constexpr std::chrono::seconds kLookAgain{20};

  Explainer(Address address, Transport transport)
      : address_(std::move(address)), transport_(std::move(transport)) {}
  // Within kProbeLimit and a name's look-up.
  ~Explainer() {
    if (thread_.joinable()) thread_.join();
  }

  void Connected() { outage_ = false; }
  // Once, after the coordinator said that the certificate of this connection has ended: its file
  // may have been renewed long ago, and only another connection shows the new one.
  bool TakeWantsNewConnection() { return wants_new_connection_.exchange(false); }
  // Any of gRPC's threads; one stream at a time. Calls `tell` once, here or on its own thread.
  void Explain(const grpc::Status& status, std::function<void(const std::string&)> tell) {
    const std::string why =
        status.ok() ? "the coordinator closed the stream" : Message(FromGrpcStatus(status));
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) wants_new_connection_ = true;
    const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (!unreachable || address_.kind != Address::Kind::kTcp) return tell(why);
    const bool known = outage_.exchange(true);
    if (known && BootClock::now() - looked_at_ < kLookAgain) return tell(why);
    if (thread_.joinable()) thread_.join();  // it told long ago, so it has ended
    looked_at_ = BootClock::now();
    thread_ = std::thread([this, known, why, tell = std::move(tell)] {
      const absl::Status found = ExplainConnection(address_, transport_, Identity::Kind::kAgent);
      const std::string words = found.ok() ? why : Message(found);
      if (known && !found.ok() && words != said_) {
        spdlog::warn("still no session with the coordinator: {}", words);
      }
      said_ = words;
      tell(words);
    });
  }

 private:
  const Address address_;
  const Transport transport_;
  std::atomic<bool> outage_{false};
  std::atomic<bool> wants_new_connection_{false};
  BootTime looked_at_;
  std::string said_;  // of the thread
  std::thread thread_;
};

// Counts what is alive and lets somebody wait until nothing is.
class LiveCount {
 public:
  class Ticket {
   public:
    explicit Ticket(std::shared_ptr<LiveCount> of) : of_(std::move(of)) {
      MutexLock lock(of_->mutex_);
      ++of_->count_;
    }
    ~Ticket() {
      MutexLock lock(of_->mutex_);
      if (--of_->count_ == 0) of_->none_.NotifyAll();
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    std::shared_ptr<LiveCount> of_;
  };

  void WaitForNone() {
    MutexLock lock(mutex_);
    while (count_ > 0) none_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar none_;
  int count_ ASSAY_GUARDED_BY(mutex_) = 0;
};

// Keeps itself alive until OnDone, which gRPC calls once all operations have ended. A hold keeps
// OnDone away while writes may be started from the loop's thread; it goes with the failed read.
class Reactor final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::CoordinatorMessage> {
 public:
  static std::shared_ptr<Reactor> Start(v1::Fleet::Stub& stub, std::shared_ptr<Bridge> bridge,
                                        std::shared_ptr<Explainer> explainer,
                                        std::shared_ptr<LiveCount> live) {
    std::shared_ptr<Reactor> reactor(
        new Reactor(std::move(bridge), std::move(explainer), std::move(live)));
    reactor->self_ = reactor;
    stub.async()->Session(&reactor->context_, reactor.get());
    reactor->AddHold();
    reactor->StartRead(&reactor->incoming_);
    reactor->StartCall();
    return reactor;
  }

  void Write(v1::AgentMessage message) {
    MutexLock lock(mutex_);
    if (ended_) return;
    outgoing_ = std::move(message);
    StartWrite(&outgoing_);
  }

  void Cancel() { context_.TryCancel(); }

 private:
  Reactor(std::shared_ptr<Bridge> bridge, std::shared_ptr<Explainer> explainer,
          std::shared_ptr<LiveCount> live)
      : live_(std::move(live)), bridge_(std::move(bridge)), explainer_(std::move(explainer)) {}

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(mutex_);
        ended_ = true;
      }
      RemoveHold();
      return;
    }
    explainer_->Connected();
    if (std::optional<CoordinatorMessage> message = FromWire(incoming_)) {
      Bridge::Post(bridge_, [message = *std::move(message)](FleetStreamObserver& observer) {
        observer.OnReceived(message);
      });
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    // A failed write is followed by a failed read, which ends the stream.
    if (ok) Bridge::Post(bridge_, [](FleetStreamObserver& observer) { observer.OnWritten(); });
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<Reactor> self = std::move(self_);
    explainer_->Explain(status, [bridge = bridge_](const std::string& why) {
      Bridge::Post(bridge, [why](FleetStreamObserver& observer) { observer.OnClosed(why); });
    });
  }

  // First, so that it goes last, after the context and its hold on the channel.
  LiveCount::Ticket live_;
  std::shared_ptr<Reactor> self_;
  std::shared_ptr<Bridge> bridge_;
  std::shared_ptr<Explainer> explainer_;
  grpc::ClientContext context_;
  v1::CoordinatorMessage incoming_;
  v1::AgentMessage outgoing_;
  Mutex mutex_;
  bool ended_ ASSAY_GUARDED_BY(mutex_) = false;
};

class GrpcStream final : public FleetStream {
 public:
  GrpcStream(v1::Fleet::Stub& stub, EventLoop& loop, FleetStreamObserver& observer,
             std::shared_ptr<Explainer> explainer, std::shared_ptr<LiveCount> live)
      : bridge_(std::make_shared<Bridge>(loop, observer)),
        reactor_(Reactor::Start(stub, bridge_, std::move(explainer), std::move(live))) {}
  ~GrpcStream() override { Detach(); }

  bool Write(const AgentMessage& message) override {
    v1::AgentMessage out;
    if (!ToWire(message, &out) || out.ByteSizeLong() > size_t{kMaxMessageBytes}) return false;
    // After the end of the stream the message is lost and OnClosed is on its way.
    if (reactor_ != nullptr) reactor_->Write(std::move(out));
    return true;
  }

  void Detach() override {
    bridge_->Detach();
    if (reactor_ == nullptr) return;
    reactor_->Cancel();
    // Let go of here and not with the stream, which may wait for its end in a loop that has
    // stopped, while the dialer waits for the reactor.
    reactor_.reset();
  }

 private:
  std::shared_ptr<Bridge> bridge_;
  std::shared_ptr<Reactor> reactor_;
};

class GrpcFleet final : public FleetDialer {
 public:
  using NewChannel = std::function<absl::StatusOr<std::shared_ptr<grpc::Channel>>()>;
  GrpcFleet(EventLoop& loop, const std::shared_ptr<grpc::Channel>& channel, NewChannel new_channel,
            std::shared_ptr<Explainer> explainer)
      : loop_(loop),
        new_channel_(std::move(new_channel)),
        explainer_(std::move(explainer)),
        stub_(v1::Fleet::NewStub(channel)) {}

  std::unique_ptr<FleetStream> Dial(FleetStreamObserver& observer) override {
    if (explainer_->TakeWantsNewConnection()) {
      if (auto channel = new_channel_(); channel.ok()) {
        // Kept, since a reactor of it may be ending yet. The one before it has ended: there is one
        // stream at a time. What lies between may answer so for ever, so there is no list.
        former_ = std::exchange(stub_, v1::Fleet::NewStub(*channel));
      }
    }
    return std::make_unique<GrpcStream>(*stub_, loop_, observer, explainer_, live_);
  }

  // A reactor holds the channel, too. gRPC's threads must not let go of it last: they would wait
  // for themselves to end, in vain, and go on with a queue that is gone.
  ~GrpcFleet() override { live_->WaitForNone(); }

 private:
  EventLoop& loop_;
  const NewChannel new_channel_;
  std::shared_ptr<Explainer> explainer_;
  std::shared_ptr<LiveCount> live_ = std::make_shared<LiveCount>();
  std::unique_ptr<v1::Fleet::Stub> stub_;
  std::unique_ptr<v1::Fleet::Stub> former_;
};

}  // namespace

std::string EncodeReport(const AttemptReport& report) {
  v1::AttemptReport out;
  out.set_attempt(report.attempt);
  out.set_run(report.run);
  out.set_cell(report.cell);
  out.set_node(report.node);
  for (const RankReport& rank : report.ranks) {
    v1::RankReport* to = out.add_ranks();
    to->set_rank(rank.rank);
    to->set_gpu_uuid(rank.gpu_uuid);
    to->set_outcome(wire::ToProto(rank.outcome));
    to->set_reason(rank.reason);
    to->set_message(SentenceOf(rank.message));
    to->set_exit_code(rank.exit_code);
    to->set_signal(rank.signal);
    wire::ToProto(rank.fields, to->mutable_fields());
    to->set_log_tail(wire::CleanTail(rank.log_tail, wire::kMaxLogTailBytes));
    to->set_joined(rank.joined);
  }
  wire::ToProto(report.telemetry, out.mutable_telemetry());
  out.set_started_at_unix_ms(report.started_at.time_since_epoch().count());
  out.set_seconds(report.seconds);
  return out.SerializeAsString();
}

absl::StatusOr<std::unique_ptr<FleetDialer>> MakeGrpcFleet(EventLoop& loop, const Address& address,
                                                           const Transport& transport) {
  const auto connect = [address, transport] {
    return MakeChannel(address, ChannelUse::kAgent, transport);
  };
  ASSAY_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, connect());
  return std::unique_ptr<FleetDialer>(std::make_unique<GrpcFleet>(
      loop, channel, connect, std::make_shared<Explainer>(address, transport)));
}

}  // namespace assay
