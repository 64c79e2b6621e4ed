// Random schedules over the real machines of coordinator and agents: whatever breaks, in whatever
// order, once it stops every run ends, and nothing that must hold was ever untrue. Each schedule is
// a seed, named on failure: ASSAY_SCHEDULE_SEED=n ASSAY_SCHEDULES=1.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/unit/coordinator/core/bench.h"
#include "tests/unit/fleet_model/fleet_world.h"

namespace assay::model {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Spec Shaped(uint32_t index, int64_t nodes, int64_t gpus, const char* model = "resnet50") {
  Spec spec = MakeSpec(index, model);
  spec.nodes = nodes;
  spec.gpus = gpus;
  spec.limits.cell_seconds = 120;
  spec.limits.no_step_seconds = 20;
  spec.thermal = "cold";
  return spec;
}

event::SubmitRun RandomRun(Dice& dice, int number) {
  event::SubmitRun submit;
  submit.request_id = fmt::format("r{}", number);
  submit.digest = submit.request_id;
  submit.matrix.repeat = 1 + dice.Roll(2);
  submit.matrix.select.wait_seconds = dice.Roll(2) * 20;
  submit.matrix.select.include_late = dice.OneIn(2);
  if (dice.OneIn(3)) submit.matrix.select.placement = Placement::kPerGpu;
  if (dice.OneIn(5)) submit.matrix.select.run_limit_seconds = 30;
  submit.matrix.select.priority = dice.Roll(3);
  if (dice.OneIn(6)) {
    submit.matrix.select.all_cards = false;
    submit.matrix.select.cards = {"A", "a card that nobody has"};
  }
  std::vector<Spec>& specs = submit.matrix.specs;
  specs.push_back(Shaped(0, 1, 1));
  specs.push_back(Shaped(1, 2, 1));
  if (dice.OneIn(2)) specs.push_back(Shaped(static_cast<uint32_t>(specs.size()), 1, 2));
  if (dice.OneIn(3)) specs.push_back(Shaped(static_cast<uint32_t>(specs.size()), 1, 9));
  if (dice.OneIn(3)) specs.push_back(Shaped(static_cast<uint32_t>(specs.size()), 1, 1, "alexnet"));
  for (Spec& spec : specs) {
    if (dice.OneIn(3)) spec.thermal = "settled";
  }
  return submit;
}

// Three nodes and a late one, two cards, and a machine that was cloned from the first.
void Populate(FleetWorld& world) {
  Dice& dice = world.dice();
  for (const char* name : {"n1", "n2", "n3", "late"}) {
    AgentModel& agent =
        world.AddAgent(MakeNode(name, name == std::string("n3") ? "B" : "A", 1 + dice.Roll(2)));
    if (agent.name() != "late") agent.Start(world.Now());
  }
  NodeInventory clone = MakeNode("n1", "A");
  clone.devices[0].uuid = "GPU-of-the-clone";
  world.AddAgent(clone, true);
}

void Play(uint64_t seed, Coverage& coverage) {
  FleetWorld world(seed, coverage);
  Populate(world);
  const int runs = 1 + world.dice().Roll(2);
  for (int i = 0; i < runs; ++i) world.Submit(RandomRun(world.dice(), i));
  // Some break early, some when much has happened.
  const int faults = 20 + world.dice().Roll(400);
  for (int i = 0; i < faults; ++i) {
    world.Disturb();
    if (i % 5 == 0) world.NoteStates("");
  }
  world.NoteStates("stopped in ");
  world.Calm();
  // An hour: the longest patience is the 10 minutes for a node that left, and a cell that is tried
  // thrice at its limits is done by then.
  EXPECT_TRUE(world.PassUntilDone(seconds(3600))) << world.Waiting();
  if (!testing::Test::HasFailure()) world.CheckEnd();
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// `when`: "" for at any time, "stopped in " for when the faults stopped, so that each was the
// beginning of a calm that had to end well.
void ExpectStates(const Coverage& coverage, const std::string& when) {
  const auto missing = [&](const char* kind, std::initializer_list<std::string_view> all) {
    return coverage.Missing(when + kind, all);
  };
  EXPECT_EQ(missing("gang", {"prepare_first", "prepare_others", "started", "joined", "ending",
                             "released", "ended"}),
            "");
  EXPECT_EQ(missing("run", {"waiting", "running", "cancelling", "done", "cancelled"}), "");
  EXPECT_EQ(missing("cell", {"pending", "prepare", "settle", "sentinel", "start", "load", "measure",
                             "stop"}),
            "");
  EXPECT_EQ(missing("node", {"up", "draining", "drained", "lost", "resting"}), "");
  EXPECT_EQ(missing("coordinator", {"down"}), "");
  EXPECT_EQ(missing("session", {"waiting", "greeting", "up", "refused", "stopped", "not_running"}),
            "");
  EXPECT_EQ(missing("agent_gang", {"acquiring", "ready", "settle", "sentinel", "running"}), "");
}

void ExpectEvents(const Coverage& coverage) {
  EXPECT_EQ(coverage.Missing("agent_gang", {"released", "stopping", "side_stopped", "finished"}),
            "");
  EXPECT_EQ(coverage.Missing("session", {"closed_by_agent", "lease_ended", "refused"}), "");
  EXPECT_EQ(coverage.Missing("refuse", {"duplicate_node", "duplicate_node retry"}), "");
  EXPECT_EQ(coverage.Missing("outcome", {"ok", "mem_limit", "fail", "unsupported", "hung",
                                         "timeout", "lost", "cancelled"}),
            "");
  EXPECT_EQ(coverage.Missing(
                "reason", {"crash", "bad_output", "start_failed", "join_timeout", "gpu_gone",
                           "out_of_memory", "cell_limit", "run_limit", "no_progress", "agent_lost",
                           "user_cancelled", "model_not_in_stack", "too_few_gpus"}),
            "");
  EXPECT_EQ(coverage.Missing("refusal", {"gpu_busy", "gpu_gone", "disk_full",
                                         "unreachable_endpoint", "bad_offer"}),
            "");
  EXPECT_EQ(coverage.Missing("attempt", {"tried_again", "late"}), "");
  EXPECT_EQ(coverage.Missing("user", {"cancel", "rerun"}), "");
  EXPECT_EQ(coverage.Missing("coordinator", {"halted"}), "");
}

TEST(FleetModel, WhateverBreaksEveryRunEndsAndEveryStateWasReached) {
  const uint64_t first = FromEnvironment("ASSAY_SCHEDULE_SEED", 1);
  // Seconds, in either build; the long form is behind the label `long`.
  const uint64_t usual = ASSAY_SANITIZED ? 60 : 1000;
  const uint64_t count = FromEnvironment("ASSAY_SCHEDULES", usual);
  Coverage coverage;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(fmt::format("ASSAY_SCHEDULE_SEED={} ASSAY_SCHEDULES=1", seed));
    Play(seed, coverage);
    if (HasFailure()) return;
  }
  if (std::getenv("ASSAY_COVERAGE") != nullptr) {
    for (const auto& [name, times] : coverage.seen()) fmt::print("{:>8} {}\n", times, name);
  }
  if (count < usual) return;
  ExpectStates(coverage, "");
  ExpectEvents(coverage);
  if (count < 1000) return;
  ExpectStates(coverage, "stopped in ");
  EXPECT_EQ(coverage.Missing("refusal", {"draining"}), "");
}

// The longest that a sound runner of the model holds its node, with the messages around it.
constexpr seconds kLongestHold{40};

event::SubmitRun RunOf(const char* name, std::vector<Spec> specs, int repeat) {
  event::SubmitRun submit;
  submit.request_id = submit.digest = name;
  submit.matrix.specs = std::move(specs);
  submit.matrix.repeat = repeat;
  submit.matrix.select.wait_seconds = 0;
  return submit;
}

// How long a gang of `nodes` waited at most: from its run's beginning or the gang before it.
std::chrono::nanoseconds LongestWait(const FleetWorld& world, BootTime begun, size_t nodes) {
  std::vector<BootTime> offered;
  for (const auto& [attempt, offer] : world.offers()) {
    if (offer.nodes == nodes) offered.push_back(offer.at);
  }
  std::sort(offered.begin(), offered.end());
  std::chrono::nanoseconds longest{0};
  for (const BootTime at : offered) {
    longest = std::max(longest, at - begun);
    begun = at + kLongestHold;
  }
  return longest;
}

// A gang that waits is offered at the latest when the cells that ran on its nodes when its turn
// came have ended, whatever else would like those nodes, and though agents come and go meanwhile.
TEST(FleetModel, AGangOfManyNodesWaitsForOneCellOfEachNodeAndNoMore) {
  const uint64_t seeds = ASSAY_SANITIZED ? 2 : 20;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Coverage coverage;
    FleetWorld world(seed, coverage);
    std::vector<AgentModel*> agents;
    for (const char* name : {"n1", "n2", "n3", "n4"}) {
      agents.push_back(&world.AddAgent(MakeNode(name, "A")));
    }
    agents.push_back(&world.AddAgent(MakeNode("comes-and-goes", seed % 2 == 0 ? "A" : "B")));
    for (AgentModel* agent : agents) agent->Start(world.Now());
    world.Calm();
    world.Pass(seconds(2));
    world.Submit(RunOf("small", {Shaped(0, 1, 1)}, 60));
    world.Submit(RunOf("also-small", {Shaped(0, 1, 1)}, 60));
    for (int i = 0; i < 20; ++i) world.Pass(milliseconds(500));
    const BootTime begun = world.Now();
    world.Submit(RunOf("wide", {Shaped(0, 4, 1)}, 3));
    for (int i = 0; i < 400; ++i) {
      world.Pass(milliseconds(500));
      if (i % 6 == 0) agents.back()->Kill();  // and is started anew at once
    }
    const auto wide = std::count_if(world.offers().begin(), world.offers().end(),
                                    [](const auto& each) { return each.second.nodes == 4; });
    EXPECT_GE(wide, 3) << "in 200 s, beside runs that take longer";
    EXPECT_LE(LongestWait(world, begun, 4), kLongestHold);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace assay::model
