#include "coordinator/session/message_codec.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "common/wire/wire.h"

namespace assay {
namespace {

// Attempts that one agent can hold or spool; more of them are a broken peer.
constexpr int kMaxAttempts = 4096;
constexpr int kMaxRanks = 4096;

std::string Name(const std::string& text) { return wire::CleanText(text, wire::kMaxNameBytes); }
std::string Sentence(const std::string& text) {
  return wire::CleanText(text, wire::kMaxSentenceBytes);
}
// Within what can be set beside our own clock without an overflow.
int64_t WallOf(int64_t unix_ms) {
  constexpr int64_t kFarAway = int64_t{1} << 50;  // 35,000 years
  return std::clamp(unix_ms, -kFarAway, kFarAway);
}
double Finite(double value) { return std::isfinite(value) ? value : 0; }

std::vector<std::string> Names(const google::protobuf::RepeatedPtrField<std::string>& texts) {
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    if (static_cast<int>(names.size()) == kMaxAttempts) break;
    names.push_back(Name(text));
  }
  return names;
}

event::AgentHello HelloOf(SessionHandle session, const std::string& peer, const v1::Hello& hello) {
  event::AgentHello event;
  event.session = session;
  event.address = peer;
  event.protocol = hello.protocol();
  event.instance = Name(hello.instance());
  event.inventory = wire::FromProto(hello.inventory());
  event.held_attempts = Names(hello.held_attempts());
  event.spooled_attempts = Names(hello.spooled_attempts());
  event.draining = hello.draining();
  event.former_gangs_ended = hello.former_gangs_ended();
  event.answers_doctor = hello.answers_doctor();
  event.ordinal = hello.ordinal();
  return event;
}

event::RankReport RankOf(const v1::RankReport& report) {
  event::RankReport rank;
  rank.rank = report.rank();
  rank.gpu_uuid = Name(report.gpu_uuid());
  // An outcome that this version does not know is none that it can call a success.
  rank.outcome = wire::FromProto(report.outcome()).value_or(Outcome::kFail);
  rank.reason = Name(report.reason());
  rank.message = Sentence(report.message());
  rank.exit_code = report.exit_code();
  rank.signal = report.signal();
  rank.fields = wire::FromProto(report.fields());
  rank.log_tail = wire::CleanTail(report.log_tail(), wire::kMaxLogTailBytes);
  rank.joined = report.joined();
  return rank;
}

event::AttemptReport ReportOf(SessionHandle session, const v1::AttemptReport& report) {
  event::AttemptReport event;
  event.session = session;
  event.attempt = Name(report.attempt());
  event.run = Name(report.run());
  event.cell = report.cell();
  event.node = Name(report.node());
  for (const v1::RankReport& rank : report.ranks()) {
    if (static_cast<int>(event.ranks.size()) == kMaxRanks) break;
    event.ranks.push_back(RankOf(rank));
  }
  event.telemetry = wire::FromProto(report.telemetry());
  event.started_at_unix_ms = report.started_at_unix_ms();
  event.seconds = Finite(report.seconds());
  return event;
}

event::Progress ProgressOf(SessionHandle session, const v1::Progress& progress) {
  event::Progress event;
  event.session = session;
  event.attempt = Name(progress.attempt());
  event.phase = Name(progress.phase());
  event.step = progress.step();
  event.throughput = Finite(progress.throughput());
  event.seconds_left = Finite(progress.seconds_left());
  return event;
}

struct Writer {
  v1::CoordinatorMessage& out;

  void operator()(const message::Welcome& m) const {
    v1::Welcome* welcome = out.mutable_welcome();
    welcome->set_session_epoch(m.session_epoch);
    welcome->set_protocol(m.protocol);
    welcome->set_heartbeat_seconds(m.heartbeat_seconds);
    welcome->set_lease_seconds(m.lease_seconds);
    welcome->set_lifeline_seconds(m.lifeline_seconds);
    welcome->set_kill_grace_seconds(m.kill_grace_seconds);
    for (const std::string& id : m.unknown_attempts) welcome->add_unknown_attempts(id);
  }
  void operator()(const message::Refuse& m) const {
    out.mutable_refuse()->set_reason(m.reason);
    out.mutable_refuse()->set_message(Sentence(m.message));
    out.mutable_refuse()->set_retry(m.retry);
  }
  void operator()(const message::HeartbeatAck& m) const {
    out.mutable_heartbeat_ack()->set_number(m.number);
  }
  void operator()(const message::Prepare& m) const {
    v1::Prepare* prepare = out.mutable_prepare();
    prepare->set_attempt(m.attempt);
    prepare->set_run(m.run);
    prepare->set_cell(m.cell);
    prepare->set_repeat(m.repeat);
    wire::ToProto(m.spec, prepare->mutable_spec());
    prepare->set_stack(Name(m.stack));
    for (const MemberRow& row : m.members) {
      v1::GangMember* member = prepare->add_members();
      member->set_node(Name(row.node));
      member->set_gpu_uuid(Name(row.gpu_uuid));
      member->set_local_rank(row.local_rank);
    }
    prepare->set_endpoint(Name(m.endpoint));
    prepare->set_seed(m.seed);
    prepare->set_prepare_seconds(m.prepare_seconds);
    prepare->set_closing(m.closing);
  }
  void operator()(const message::Start& m) const {
    out.mutable_start()->set_attempt(m.attempt);
    out.mutable_start()->set_endpoint(Name(m.endpoint));
    out.mutable_start()->set_join_seconds(m.join_seconds);
  }
  void operator()(const message::Abort& m) const {
    out.mutable_abort()->set_attempt(m.attempt);
    out.mutable_abort()->set_outcome(wire::ToProto(m.outcome));
    out.mutable_abort()->set_reason(m.reason);
  }
  void operator()(const message::ReportAck& m) const {
    out.mutable_report_ack()->set_attempt(m.attempt);
  }
  void operator()(const message::Drain& m) const { out.mutable_drain()->set_on(m.on); }
  void operator()(const message::DoctorQuestion& m) const {
    out.mutable_doctor()->set_number(m.number);
  }
};

}  // namespace

std::optional<Event> EventOf(SessionHandle session, const std::string& peer,
                             const v1::AgentMessage& message) {
  switch (message.body_case()) {
    case v1::AgentMessage::kHello:
      return HelloOf(session, peer, message.hello());
    case v1::AgentMessage::kHeartbeat:
      return event::Heartbeat{
          session, message.heartbeat().number(), Names(message.heartbeat().held_attempts()),
          message.heartbeat().draining(), WallOf(message.heartbeat().wall_unix_ms())};
    case v1::AgentMessage::kReady:
      return event::GangReady{session, Name(message.ready().attempt()),
                              Name(message.ready().endpoint())};
    case v1::AgentMessage::kRefused:
      return event::GangRefused{session, Name(message.refused().attempt()),
                                Name(message.refused().reason()),
                                Sentence(message.refused().message())};
    case v1::AgentMessage::kJoined: {
      event::RanksJoined joined{session, Name(message.joined().attempt()), {}};
      for (const uint32_t rank : message.joined().ranks()) {
        if (static_cast<int>(joined.ranks.size()) == kMaxRanks) break;
        joined.ranks.push_back(rank);
      }
      return joined;
    }
    case v1::AgentMessage::kProgress:
      return ProgressOf(session, message.progress());
    case v1::AgentMessage::kReport:
      return ReportOf(session, message.report());
    case v1::AgentMessage::kLeave:
      return event::Leave{session, Sentence(message.leave().reason())};
    case v1::AgentMessage::kInventory:
      return event::InventoryChanged{session, wire::FromProto(message.inventory())};
    case v1::AgentMessage::kDoctor:
      return event::DoctorAnswer{session, message.doctor().number(),
                                 wire::FromProto(message.doctor().report()),
                                 Sentence(message.doctor().error())};
    case v1::AgentMessage::BODY_NOT_SET:
      break;
  }
  return std::nullopt;
}

v1::CoordinatorMessage MessageOf(const CoordinatorMessage& message) {
  v1::CoordinatorMessage out;
  std::visit(Writer{out}, message);
  return out;
}

}  // namespace assay
