// Random schedules of everything that can go wrong, against a small model of agents: crashes of
// either side, cut connections, slow commits, refusals, cancels. Each schedule is a seed, named on
// failure.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "tests/unit/coordinator/core/bench.h"

namespace assay {
namespace {

using std::chrono::seconds;

struct Job {
  message::Prepare prepare;
  std::vector<uint32_t> ranks;
  bool running = false;
  BootTime since{};
  BootTime ends{};
};

// An agent as the protocol asks it to be.
struct SimAgent {
  NodeInventory inventory;
  int instance = 0;
  SessionHandle session = 0;
  bool welcomed = false;
  std::deque<Event> up;
  std::deque<CoordinatorMessage> down;
  std::map<std::string, Job> jobs;
  std::map<std::string, event::AttemptReport> spool;  // survives a crash
  std::map<uint64_t, BootTime> beats;                 // sent and not acknowledged
  uint64_t beat = 0;
  BootTime last_beat{}, lease_from{}, hello_at{};
  bool fresh = true;          // said no Hello yet
  bool vouches = false;       // saw all of former instances end
  bool knows_folder = false;  // its folder was used in this boot before
  // Runners of a crashed instance, until their lifeline ends them.
  std::map<std::string, std::pair<message::Prepare, BootTime>> dying;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    for (const auto& [name, card] : {std::pair{"n1", "A"}, {"n2", "A"}, {"n3", "B"}}) {
      SimAgent agent;
      agent.inventory = MakeNode(name, card, 1 + Roll(2));
      agents_.push_back(std::move(agent));
    }
    Boot();
  }

  void Run() {
    const int runs = 1 + Roll(3);
    for (int i = 0; i < runs; ++i) Submit(i);
    for (int i = 0; i < 120; ++i) Fault();
    faults_ = false;
    for (int i = 0; i < 1500 && !Finished(); ++i) Step(seconds(2));
    Check();
  }

 private:
  int Roll(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  void Boot() {
    CoordinatorDeps deps;
    deps.card_of = [](const Device& device) { return device.raw_name; };
    deps.choose_stack = &Bench::ChooseByModel;
    deps.new_id = [this](WallTime) { return fmt::format("{:026}", ++last_id_); };
    deps.new_seed = [this] { return random_(); };
    state_ = std::make_unique<CoordinatorState>(times_, deps);
    state_->Load(rows_.Snapshot(), clock_.Now());
    uncommitted_.clear();
    gone_.clear();
    for (SimAgent& agent : agents_) Drop(agent, false);
  }

  void Submit(int i) {
    event::SubmitRun submit;
    submit.token = static_cast<ReplyToken>(i + 1);
    submit.request_id = fmt::format("r{}", i);
    submit.digest = submit.request_id;
    submit.matrix.repeat = 2;
    submit.matrix.select.wait_seconds = Roll(2) * 30;
    Spec wide = MakeSpec(1);
    wide.nodes = 2;
    submit.matrix.specs = {MakeSpec(0), wide, MakeSpec(2, "alexnet")};
    submit.matrix.specs[2].index = 2;
    Post(submit);
  }

  void Post(const Event& event) {
    const Actions actions = state_->Step(event, clock_.Now(), clock_.WallNow());
    if (actions.persist.has_value()) uncommitted_.push_back(*actions.persist);
    for (const Reply& reply : actions.replies) {
      if (const auto* body = std::get_if<SubmitReply>(&reply.body)) {
        EXPECT_TRUE(rows_.runs.contains(body->run)) << "answered before it was durable";
      }
    }
    for (const SendToAgent& send : actions.sends) CheckDurable(send);
    for (const SendToAgent& send : actions.sends) {
      for (SimAgent& agent : agents_) {
        if (agent.session == send.session) agent.down.push_back(send.message);
      }
    }
    for (const CloseSession& close : actions.closes) {
      for (SimAgent& agent : agents_) {
        if (agent.session == close.session) Drop(agent, true);
      }
    }
  }

  void CheckDurable(const SendToAgent& send) {
    if (const auto* start = std::get_if<message::Start>(&send.message)) {
      EXPECT_TRUE(rows_.attempts.contains(start->attempt)) << "started before it was durable";
    }
    if (const auto* ack = std::get_if<message::ReportAck>(&send.message)) {
      const auto it = rows_.attempts.find(ack->attempt);
      if (ran_.contains(ack->attempt)) {
        ASSERT_TRUE(it != rows_.attempts.end()) << "acknowledged and not stored";
        EXPECT_EQ(it->second.state, AttemptState::kEnded) << "acknowledged before it was durable";
      }
    }
  }

  void Commit(size_t most) {
    while (!uncommitted_.empty() && most-- > 0) {
      const Persist persist = uncommitted_.front();
      uncommitted_.pop_front();
      for (const CellRow& row : persist.batch.cells) {
        const auto it = rows_.cells.find({row.run, row.cell});
        if (it == rows_.cells.end() || !it->second.outcome.has_value()) continue;
        EXPECT_EQ(it->second.outcome, row.outcome) << "a terminal state changed";
        EXPECT_EQ(it->second.counted_attempt, row.counted_attempt);
      }
      rows_.Apply(persist.batch);
      Post(event::CommitDone{persist.n, 0, 0});
    }
  }

  void Drop(SimAgent& agent, bool tell) {
    if (agent.session != 0 && tell) gone_.push_back(agent.session);
    agent.session = 0;
    agent.welcomed = false;
    agent.up.clear();
    agent.down.clear();
    agent.beats.clear();
  }

  void Connect(SimAgent& agent) {
    agent.session = ++last_session_;
    agent.hello_at = clock_.Now();
    event::AgentHello hello;
    hello.session = agent.session;
    hello.instance = fmt::format("{}-{}", agent.inventory.node, agent.instance);
    hello.inventory = agent.inventory;
    for (const auto& [id, job] : agent.jobs) hello.held_attempts.push_back(id);
    for (const auto& [id, report] : agent.spool) hello.spooled_attempts.push_back(id);
    // A new instance kills what is left before its first Hello; a driver may hold a process, and
    // then it must not vouch.
    if (std::exchange(agent.fresh, false) && Roll(3) > 0) agent.dying.clear();
    agent.vouches = agent.vouches || (agent.knows_folder && agent.dying.empty());
    hello.former_gangs_ended = agent.vouches;
    agent.up.push_back(hello);
  }

  void Crash(SimAgent& agent) {
    for (auto& [id, job] : agent.jobs) {
      if (job.running) agent.dying[id] = {job.prepare, clock_.Now() + seconds(Roll(10))};
    }
    agent.jobs.clear();
    ++agent.instance;
    agent.fresh = true;
    agent.vouches = false;
    agent.knows_folder = true;
    if (Roll(6) == 0) {  // with its machine
      agent.inventory.boot_id += "+";
      agent.dying.clear();
      agent.knows_folder = false;
    }
    Drop(agent, true);
  }

  void Finish(SimAgent& agent, const std::string& id, Outcome outcome, std::string_view why) {
    const Job job = agent.jobs.at(id);
    agent.jobs.erase(id);
    event::AttemptReport report;
    report.attempt = id;
    report.run = job.prepare.run;
    report.cell = job.prepare.cell;
    report.node = agent.inventory.node;
    for (const uint32_t rank : job.ranks) {
      event::RankReport each;
      each.rank = rank;
      each.outcome = outcome;
      each.reason = why;
      report.ranks.push_back(each);
    }
    agent.spool[id] = report;
    if (agent.welcomed) {
      report.session = agent.session;
      agent.up.push_back(report);
    }
  }

  void Handle(SimAgent& agent, const CoordinatorMessage& message) {
    const BootTime now = clock_.Now();
    if (const auto* welcome = std::get_if<message::Welcome>(&message)) {
      agent.welcomed = true;
      agent.lease_from = agent.hello_at;
      for (const std::string& id : welcome->unknown_attempts) agent.jobs.erase(id);
      for (const auto& [id, job] : agent.jobs) {
        if (!job.running) agent.up.push_back(event::GangReady{agent.session, id, "host:1"});
      }
      for (auto& [id, report] : agent.spool) {
        report.session = agent.session;
        agent.up.push_back(report);
      }
    } else if (std::holds_alternative<message::Refuse>(message)) {
      Drop(agent, true);
    } else if (const auto* ack = std::get_if<message::HeartbeatAck>(&message)) {
      if (agent.beats.contains(ack->number)) agent.lease_from = agent.beats[ack->number];
    } else if (const auto* prepare = std::get_if<message::Prepare>(&message)) {
      HandlePrepare(agent, *prepare);
    } else if (const auto* start = std::get_if<message::Start>(&message)) {
      const auto it = agent.jobs.find(start->attempt);
      if (it == agent.jobs.end() || it->second.running) return;
      it->second.running = true;
      it->second.ends = now + seconds(1 + Roll(40));
      ran_.insert(start->attempt);
      CheckAlone(it->second.prepare);
      agent.up.push_back(event::RanksJoined{agent.session, start->attempt, it->second.ranks});
    } else if (const auto* abort = std::get_if<message::Abort>(&message)) {
      const auto it = agent.jobs.find(abort->attempt);
      if (it == agent.jobs.end()) return;
      if (it->second.running) {
        Finish(agent, abort->attempt, abort->outcome, abort->reason);
      } else {
        agent.jobs.erase(it);
      }
    } else if (const auto* done = std::get_if<message::ReportAck>(&message)) {
      agent.spool.erase(done->attempt);
    }
  }

  void HandlePrepare(SimAgent& agent, const message::Prepare& prepare) {
    if (!agent.jobs.empty() || !agent.dying.empty() || (faults_ && Roll(10) == 0)) {
      agent.up.push_back(event::GangRefused{agent.session, prepare.attempt,
                                            Roll(2) ? "gpu_busy" : "disk_full", ""});
      return;
    }
    Job job;
    job.prepare = prepare;
    job.since = clock_.Now();
    for (uint32_t rank = 0; rank < prepare.members.size(); ++rank) {
      if (prepare.members[rank].node == agent.inventory.node) job.ranks.push_back(rank);
    }
    EXPECT_FALSE(job.ranks.empty());
    agent.jobs[prepare.attempt] = job;
    agent.up.push_back(event::GangReady{agent.session, prepare.attempt, "host:1"});
  }

  // No two attempts of one cell are ever alive at once, on any machine.
  void CheckAlone(const message::Prepare& mine) {
    for (const SimAgent& agent : agents_) {
      for (const auto& [id, job] : agent.jobs) {
        if (!job.running || id == mine.attempt) continue;
        EXPECT_FALSE(job.prepare.run == mine.run && job.prepare.cell == mine.cell)
            << id << " still runs on " << agent.inventory.node;
      }
      for (const auto& [id, dead] : agent.dying) {
        if (id == mine.attempt) continue;
        EXPECT_FALSE(dead.first.run == mine.run && dead.first.cell == mine.cell) << id << " dies";
      }
    }
  }

  void Live(SimAgent& agent) {
    const BootTime now = clock_.Now();
    std::erase_if(agent.dying, [&](const auto& entry) { return entry.second.second <= now; });
    std::vector<std::string> ids;
    for (const auto& [id, job] : agent.jobs) ids.push_back(id);
    for (const std::string& id : ids) {
      Job& job = agent.jobs.at(id);
      if (now >= agent.lease_from + times_.lease) {
        if (job.running) {
          Finish(agent, id, Outcome::kLost, reason::kAgentLost);
        } else {
          agent.jobs.erase(id);
        }
      } else if (!job.running && now >= job.since + times_.prepare) {
        if (agent.welcomed) {
          agent.up.push_back(event::GangRefused{agent.session, id, "disk_full", "no start"});
        }
        agent.jobs.erase(id);
      } else if (job.running && now >= job.ends) {
        const int dice = faults_ ? Roll(8) : 0;
        Finish(agent, id,
               dice == 7   ? Outcome::kMemLimit
               : dice == 6 ? Outcome::kHung
               : dice == 5 ? Outcome::kFail
                           : Outcome::kOk,
               dice == 5 ? reason::kStartFailed : "");
      }
    }
    if (agent.welcomed && now >= agent.last_beat + times_.heartbeat) {
      agent.last_beat = now;
      event::Heartbeat beat;
      beat.session = agent.session;
      beat.number = ++agent.beat;
      for (const auto& [id, job] : agent.jobs) beat.held_attempts.push_back(id);
      agent.beats[beat.number] = now;
      agent.up.push_back(beat);
    }
    if (agent.session == 0 && (!faults_ || Roll(3) == 0)) Connect(agent);
  }

  bool Deliver(SimAgent& agent) {
    bool any = false;
    if (!agent.up.empty()) {
      const Event event = agent.up.front();
      agent.up.pop_front();
      Post(event);
      any = true;
    }
    if (!agent.down.empty()) {
      const CoordinatorMessage message = agent.down.front();
      agent.down.pop_front();
      Handle(agent, message);
      any = true;
    }
    return any;
  }

  void DeliverGone() {
    while (!gone_.empty()) {
      const SessionHandle session = gone_.front();
      gone_.pop_front();
      Post(event::AgentGone{session});
    }
  }

  void Fault() {
    SimAgent& agent = agents_[static_cast<size_t>(Roll(3))];
    switch (Roll(24)) {
      case 0:
        return Crash(agent);
      case 1:
        return Drop(agent, true);
      case 2:
        return Roll(3) == 0 ? Boot() : void();
      case 3:
        if (Roll(6) == 0 && !rows_.runs.empty())
          Post(event::CancelRun{99, rows_.runs.begin()->first});
        return;
      case 4:
      case 5:
        return DeliverGone();
      case 6:
      case 7:
      case 8:
        return Commit(1);
      case 9:
      case 10:
      case 11:
      case 12: {
        clock_.Advance(seconds(1 + Roll(Roll(5) == 0 ? 40 : 4)));
        Post(event::Tick{});
        for (SimAgent& each : agents_) Live(each);
        return;
      }
      default:
        Commit(static_cast<size_t>(Roll(3)));
        for (int i = 0; i < 4; ++i) Deliver(agents_[static_cast<size_t>(Roll(3))]);
    }
  }

  // Time without faults: all is delivered and committed at once.
  void Step(seconds by) {
    clock_.Advance(by);
    for (SimAgent& agent : agents_) Live(agent);
    bool any = true;
    while (any) {
      DeliverGone();
      Commit(1000);
      any = false;
      for (SimAgent& agent : agents_) any = Deliver(agent) || any;
    }
    Post(event::Tick{});
    Commit(1000);
  }

  bool Finished() const { return !state_->HasUnfinishedRuns() && uncommitted_.empty(); }

  void Check() {
    EXPECT_FALSE(state_->HasUnfinishedRuns()) << "a run never ends";
    std::map<std::pair<std::string, uint64_t>, int> counted;
    for (const auto& [id, row] : rows_.attempts) {
      EXPECT_EQ(row.state, AttemptState::kEnded) << id;
      if (row.counted) ++counted[{row.run, row.cell}];
    }
    for (const auto& [key, cell] : rows_.cells) {
      EXPECT_TRUE(cell.outcome.has_value()) << "cell " << key.second << " never ended";
      EXPECT_EQ(counted[key], cell.counted_attempt.empty() ? 0 : 1);
      EXPECT_FALSE(cell.outcome == Outcome::kOk && cell.counted_attempt.empty());
      if (!cell.counted_attempt.empty()) {
        EXPECT_EQ(rows_.attempts.at(cell.counted_attempt).outcome, cell.outcome);
      }
      if (cell.spec_index == 2 && cell.outcome != Outcome::kCancelled) {
        EXPECT_NE(cell.outcome, Outcome::kOk);
      }
    }
    for (const auto& [id, run] : rows_.runs) EXPECT_TRUE(IsEnded(run.state));
  }

  std::mt19937_64 random_;
  CoordinatorTimes times_;
  FakeClock clock_;
  MemoryRows rows_;
  std::unique_ptr<CoordinatorState> state_;
  std::deque<Persist> uncommitted_;
  std::deque<SessionHandle> gone_;
  std::vector<SimAgent> agents_;
  std::set<std::string> ran_;
  bool faults_ = true;
  uint64_t last_id_ = 0;
  SessionHandle last_session_ = 0;
};

TEST(Schedules, EveryRunEndsNothingAcknowledgedIsLostAndNoCellRunsTwiceAtOnce) {
  const char* most = std::getenv("ASSAY_SCHEDULES");
  const char* first = std::getenv("ASSAY_SCHEDULE_SEED");
  const uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const uint64_t count =
      most != nullptr ? std::strtoull(most, nullptr, 10) : (ASSAY_SANITIZED ? 100 : 1000);
  for (uint64_t seed = begin; seed < begin + count; ++seed) {
    SCOPED_TRACE(fmt::format("ASSAY_SCHEDULE_SEED={} ASSAY_SCHEDULES=1", seed));
    World(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace assay
