// FleetWorld: one coordinator, its store, some agents and the wires between them, under faults.
//
// The coordinator's state, and the agents' session and gang machines, are the real ones. Time moves
// when the world moves it. What must hold is checked as it happens; a failure is one of GoogleTest.
#ifndef ASSAY_TESTS_UNIT_FLEET_MODEL_FLEET_WORLD_H_
#define ASSAY_TESTS_UNIT_FLEET_MODEL_FLEET_WORLD_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock/clock.h"
#include "coordinator/scheduler/coordinator_state.h"
#include "tests/unit/coordinator/core/memory_rows.h"
#include "tests/unit/fleet_model/agent_model.h"
#include "tests/unit/fleet_model/coverage.h"
#include "tests/unit/fleet_model/dice.h"

namespace assay::model {

class FleetWorld final : public Surroundings {
 public:
  FleetWorld(uint64_t seed, Coverage& coverage);
  ~FleetWorld() override;

  // Not started yet. A guest has a name that is another's, and leaves when it is calm.
  AgentModel& AddAgent(const NodeInventory& inventory, bool guest = false);
  // Answered or not, as a user's command would be: again with the same request until it is taken.
  void Submit(event::SubmitRun submit);

  // One thing happens: a message arrives, a commit ends, time passes, or something breaks.
  void Disturb();
  // From now on nothing breaks; what is broken heals, and who was stopped is started again.
  void Calm();
  // Time without faults: all is delivered and committed at once.
  void Pass(std::chrono::milliseconds by);
  // Until every run has ended, at most `most` of model time; whether they did.
  bool PassUntilDone(std::chrono::seconds most);
  // What must hold when all runs have ended.
  void CheckEnd();
  // Marks every state that a machine is in now, with `kind` before its name.
  void NoteStates(const std::string& kind);
  std::string Waiting() const;  // what unfinished runs wait for, in words

  BootTime Now() const { return clock_.Now(); }
  const MemoryRows& rows() const { return rows_; }
  Dice& dice() { return dice_; }
  // When each attempt was first offered, and of which cell.
  struct Offer {
    std::string run;
    uint64_t cell = 0;
    BootTime at{};
    size_t nodes = 0;
  };
  const std::map<std::string, Offer>& offers() const { return offers_; }

 private:
  // One direction may be cut while the other goes on; an end that is closed stays so.
  struct Stream {
    AgentModel* agent = nullptr;
    std::deque<Event> up;
    std::deque<CoordinatorMessage> down;
    bool agent_open = true, coordinator_open = true;
    bool cut_up = false, cut_down = false;
    bool greeted = false;
  };

  // Surroundings
  SessionHandle Dial(AgentModel& agent) override;
  void HangUp(SessionHandle stream) override;
  void Up(SessionHandle stream, Event event) override;
  void Spawned(const RunnerProcess& process) override;
  void Ended(const RunnerProcess& process) override;
  void Finished(const AttemptReport& report) override;
  void Forgot(const std::string& attempt, const std::string& node) override;

  void Boot();
  void CrashCoordinator();
  void Post(const Event& event);
  void Take(const Actions& actions);
  void TakeSend(const SendToAgent& send);
  void TakeReply(const Reply& reply);
  void Commit(size_t most);
  void CheckBatch(const Batch& batch) const;
  void CheckOk(const CellRow& row, const Batch& batch) const;
  bool PumpUp(SessionHandle handle);
  bool PumpDown(SessionHandle handle);
  bool PumpOne();
  bool PumpAll();
  void TellGone();
  void Advance(std::chrono::milliseconds by);

  void BreakProgram();
  void BreakWire();
  void BreakStore();
  void BreakTime();
  void User();
  void Resubmit(event::SubmitRun submit);
  void RerunSomething();
  AgentModel& AnyAgent();
  ReplyToken NewToken(const char* what);
  void NoteAttempt(const std::string& attempt, const char* phase);

  Dice dice_;
  Coverage& coverage_;
  CoordinatorTimes times_;
  FakeClock clock_;
  MemoryRows rows_;
  std::unique_ptr<CoordinatorState> state_;  // null while the coordinator is down
  std::deque<Persist> uncommitted_;
  std::vector<std::unique_ptr<AgentModel>> agents_;
  std::set<const AgentModel*> guests_;
  std::map<SessionHandle, Stream> streams_;
  std::deque<SessionHandle> gone_;  // AgentGone is to be said of these
  std::vector<Event> repeats_;      // to be delivered once more, later
  std::vector<event::SubmitRun> submitted_;
  std::map<ReplyToken, std::string> awaiting_;
  std::map<std::string, std::string> phases_;  // of attempts, by what their agents were told
  std::map<std::string, Offer> offers_;
  std::set<std::pair<std::string, uint32_t>> said_ok_;       // attempt and rank
  std::set<std::pair<std::string, std::string>> forgotten_;  // attempt and node
  std::set<std::string> ran_;                                // attempts of which a process began
  std::set<const AgentModel*> unplugged_;
  bool faults_ = true;
  uint64_t last_id_ = 0;
  SessionHandle last_session_ = 0;
  ReplyToken last_token_ = 0;
};

}  // namespace assay::model

#endif  // ASSAY_TESTS_UNIT_FLEET_MODEL_FLEET_WORLD_H_
