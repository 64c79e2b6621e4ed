// A bench for CoordinatorState: clock, store in memory, and agents that the test plays by hand.
#ifndef ASSAY_TESTS_UNIT_COORDINATOR_CORE_BENCH_H_
#define ASSAY_TESTS_UNIT_COORDINATOR_CORE_BENCH_H_

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock/clock.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "tests/unit/coordinator/core/memory_rows.h"

namespace assay {

inline Spec MakeSpec(uint32_t index, std::string model = "resnet50") {
  Spec spec;
  spec.index = index;
  spec.key = fmt::format("{:016x}", index + 1);
  spec.model = std::move(model);
  spec.batch = 64 + index;
  return spec;
}

inline Device MakeDevice(const std::string& uuid, const std::string& card) {
  Device device;
  device.uuid = uuid;
  device.raw_name = card;
  device.memory_total_bytes = uint64_t{24} << 30;
  return device;
}

inline Stack MakeStack(const std::string& version = "2.11.0") {
  Stack stack;
  stack.name = "libtorch-" + version;
  stack.runner = "assay-train";
  stack.versions = {{"libtorch", version}};
  stack.models = {"resnet50"};
  return stack;
}

// A node with `gpus` of one card, UUIDs GPU-<node>-<i>.
inline NodeInventory MakeNode(const std::string& node, const std::string& card = "RTX 3090",
                              int gpus = 1) {
  NodeInventory inventory;
  inventory.node = node;
  inventory.machine_id = "machine-" + node;
  inventory.boot_id = "boot";
  for (int i = 0; i < gpus; ++i) {
    inventory.devices.push_back(MakeDevice(fmt::format("GPU-{}-{}", node, i), card));
  }
  inventory.stacks = {MakeStack()};
  return inventory;
}

class Bench {
 public:
  explicit Bench(CoordinatorTimes t = {}) : times(t) { Boot(); }

  // A new coordinator from what is durable, as after kill -9.
  void Boot() {
    CoordinatorDeps deps;
    deps.card_of = [](const Device& device) { return device.raw_name; };
    deps.choose_stack = &ChooseByModel;
    deps.new_id = [this](WallTime) { return fmt::format("{:026}", ++last_id); };
    deps.new_seed = [] { return uint64_t{7}; };
    state = std::make_unique<CoordinatorState>(times, deps);
    state->Load(rows.Snapshot(), clock.Now());
    uncommitted.clear();
    sends.clear();
  }

  // Newest of the list that has the model.
  static StackChoice ChooseByModel(const Spec& spec, const Device&, std::string_view card,
                                   std::span<const Stack> stacks) {
    StackChoice choice;
    for (const Stack& stack : stacks) {
      if (std::find(stack.models.begin(), stack.models.end(), spec.model) == stack.models.end()) {
        continue;
      }
      if (choice.stack == nullptr || stack.name > choice.stack->name) choice.stack = &stack;
    }
    if (choice.stack == nullptr) {
      choice.infeasible =
          Infeasible{reason::kUnknownModel, fmt::format("no stack of {} has {}", card, spec.model)};
    }
    return choice;
  }

  Actions Do(const Event& event) {
    Actions actions = state->Step(event, clock.Now(), clock.WallNow());
    for (const SendToAgent& send : actions.sends) sends.push_back(send);
    for (const CloseSession& close : actions.closes) closed.push_back(close.session);
    for (const Reply& reply : actions.replies) replies[reply.token] = reply;
    if (actions.halt.has_value()) halt = actions.halt;
    if (actions.persist.has_value()) {
      uncommitted.push_back(*actions.persist);
      if (auto_commit) Commit();
    }
    return actions;
  }

  void Commit() {
    while (!uncommitted.empty()) {
      const Persist persist = uncommitted.front();
      uncommitted.pop_front();
      rows.Apply(persist.batch);
      Do(event::CommitDone{persist.n, 0, 0});
    }
  }

  // Time passes with a tick each second; connected agents that beat keep their leases.
  void Pass(std::chrono::seconds time, const std::vector<SessionHandle>& beating = {}) {
    for (int64_t i = 0; i < time.count(); ++i) {
      clock.Advance(std::chrono::seconds(1));
      for (const SessionHandle session : beating) Beat(session);
      Do(event::Tick{});
    }
  }

  void Beat(SessionHandle session) {
    event::Heartbeat beat;
    beat.session = session;
    if (held.contains(session)) beat.held_attempts = held[session];
    Do(beat);
  }

  SessionHandle Hello(NodeInventory inventory, std::string instance = "",
                      std::vector<std::string> held_attempts = {},
                      std::vector<std::string> spooled = {}) {
    event::AgentHello hello;
    hello.session = ++last_session;
    hello.address = fmt::format("10.0.0.{}:5000", last_session);
    hello.instance = instance.empty() ? "instance-" + inventory.node : std::move(instance);
    hello.inventory = std::move(inventory);
    hello.held_attempts = held_attempts;
    hello.spooled_attempts = std::move(spooled);
    hello.former_gangs_ended = former_gangs_ended;
    held[hello.session] = std::move(held_attempts);
    Do(hello);
    return hello.session;
  }

  std::string Submit(std::vector<Spec> specs, int repeat = 1,
                     const std::function<void(event::SubmitRun&)>& change = {}) {
    event::SubmitRun submit;
    submit.token = ++last_token;
    submit.request_id = fmt::format("request-{}", last_token);
    submit.digest = fmt::format("digest-{}", last_token);
    submit.matrix.name = "m";
    submit.matrix.specs = std::move(specs);
    submit.matrix.repeat = repeat;
    submit.matrix.select.wait_seconds = 0;
    if (change) change(submit);
    Do(submit);
    return RunOf(submit.token);
  }
  std::string RunOf(ReplyToken token) {
    if (!replies.contains(token)) return "";
    const auto* body = std::get_if<SubmitReply>(&replies[token].body);
    return body == nullptr ? "" : body->run;
  }

  // Takes all sends of one kind to a session, oldest first.
  template <typename M>
  std::vector<M> Take(SessionHandle session) {
    std::vector<M> taken;
    for (auto it = sends.begin(); it != sends.end();) {
      if (it->session == session && std::holds_alternative<M>(it->message)) {
        taken.push_back(std::get<M>(it->message));
        it = sends.erase(it);
      } else {
        ++it;
      }
    }
    return taken;
  }

  // Prepare to Start on a single agent; the attempt, or "" where nothing was offered.
  std::string StartOn(SessionHandle session) {
    const auto prepares = Take<message::Prepare>(session);
    if (prepares.empty()) return "";
    const std::string attempt = prepares.back().attempt;
    last_prepare = prepares.back();
    Do(event::GangReady{session, attempt, "127.0.0.1:4000"});
    if (Take<message::Start>(session).empty()) return "";
    held[session] = {attempt};
    return attempt;
  }

  event::AttemptReport MakeReport(SessionHandle session, const std::string& attempt,
                                  const std::vector<uint32_t>& ranks = {0},
                                  Outcome outcome = Outcome::kOk, std::string_view why = "") {
    event::AttemptReport report;
    report.session = session;
    report.attempt = attempt;
    if (last_prepare.attempt == attempt) {
      report.run = last_prepare.run;
      report.cell = last_prepare.cell;
    }
    for (const uint32_t r : ranks) {
      event::RankReport rank;
      rank.rank = r;
      rank.outcome = outcome;
      rank.reason = why;
      if (outcome != Outcome::kOk) rank.message = "as the test wants";
      rank.joined = true;
      rank.fields.Set(Field::kThroughput, 800.0).IgnoreError();
      rank.fields.Set(Field::kSamples, int64_t{8000}).IgnoreError();
      rank.fields.Set(Field::kSeconds, 10.0).IgnoreError();
      rank.fields.SetText(Field::kUnit, "img/s");
      report.ranks.push_back(std::move(rank));
    }
    report.started_at_unix_ms = 1767225600000;
    report.seconds = 12;
    return report;
  }
  void Report(SessionHandle session, const std::string& attempt, Outcome outcome = Outcome::kOk,
              std::string_view why = "") {
    held[session].clear();
    Do(MakeReport(session, attempt, {0}, outcome, why));
  }

  // Runs whatever is offered on one agent until nothing is; how many cells that were.
  int Drain(SessionHandle session, Outcome outcome = Outcome::kOk, std::string_view why = "") {
    int count = 0;
    for (std::string attempt = StartOn(session); !attempt.empty(); attempt = StartOn(session)) {
      Report(session, attempt, outcome, why);
      sends.erase(sends.begin(), sends.end() - std::min<size_t>(sends.size(), 8));
      ++count;
    }
    return count;
  }

  CellRow CellOf(const std::string& run, uint64_t cell) const { return rows.cells.at({run, cell}); }
  RunView View(const std::string& run) const {
    return state->ViewOf(run, 0, clock.Now()).value_or(RunView{});
  }
  std::vector<AttemptRow> AttemptsOf(const std::string& run) const {
    return rows.Run(run).attempts;
  }

  CoordinatorTimes times;
  FakeClock clock;
  MemoryRows rows;
  std::unique_ptr<CoordinatorState> state;
  bool auto_commit = true;
  bool former_gangs_ended = false;  // of the next Hello
  std::deque<Persist> uncommitted;
  std::vector<SendToAgent> sends;
  std::vector<SessionHandle> closed;
  std::map<ReplyToken, Reply> replies;
  std::optional<std::string> halt;
  std::map<SessionHandle, std::vector<std::string>> held;
  message::Prepare last_prepare;
  uint64_t last_id = 0;
  SessionHandle last_session = 0;
  ReplyToken last_token = 0;
};

}  // namespace assay

#endif  // ASSAY_TESTS_UNIT_COORDINATOR_CORE_BENCH_H_
