// The inside of CoordinatorState; see coordinator_state.h. Spread over state_*.cc by subject.
#ifndef ASSAY_COORDINATOR_SCHEDULER_STATE_IMPL_H_
#define ASSAY_COORDINATOR_SCHEDULER_STATE_IMPL_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "coordinator/scheduler/coordinator_state.h"
#include "coordinator/scheduler/fleet.h"
#include "coordinator/scheduler/gang.h"
#include "coordinator/scheduler/run.h"

namespace assay {

inline double Seconds(std::chrono::nanoseconds d) {
  return std::chrono::duration<double>(d).count();
}

class CoordinatorState::Impl {
 public:
  Impl(CoordinatorTimes times, CoordinatorDeps deps) : times_(times), deps_(std::move(deps)) {}

  void Load(StateSnapshot snapshot, BootTime now);
  Actions Step(const Event& event, BootTime now, WallTime wall);
  std::optional<RunView> ViewOf(std::string_view run, uint64_t since, BootTime now) const;
  std::vector<AgentView> Agents() const;
  bool HasUnfinishedRuns() const { return !runs_.empty(); }
  uint64_t CommitsInFlight() const { return issued_ - durable_; }
  uint64_t IssuedCommit() const { return issued_; }
  uint64_t DurableCommit() const { return durable_; }

 private:
  // --- state_runs.cc: users' events, binding, the end of a run
  void On(const event::SubmitRun& e);
  void AnswerAgain(const event::SubmitRun& e, const std::string& id);
  void Continue(const event::SubmitRun& e, const Run& run);
  void Resume(const event::SubmitRun& e);
  absl::Status CheckSliceIsNew(const event::SubmitRun& e) const;
  void On(const event::Rerun& e);
  void On(const event::ImportRows& e);
  absl::Status CheckRerun(const event::Rerun& e) const;
  std::unique_ptr<Run> LoadRun(RunSnapshot snapshot);
  void AdoptGang(Run& run, AttemptRow row);
  bool BindingOver(const Run& run) const;
  // New targets become cells, and every pending cell finds its places.
  void Bind(Run& run);
  void CloseBinding(Run& run);
  bool ListComplete(const Run& run) const;
  void ReviewPlaceless(Run& run);
  void ReviewRun(Run& run);  // binding, placeless cells and the end; may erase the run
  void EndRun(Run& run);
  void PersistRun(const Run& run) { batch_.runs.push_back(run.row); }

  // --- state_cancel.cc: runs that end early
  void On(const event::CancelRun& e);
  // Every cell that has not ended: those that wait as `waiting` says, those that run are aborted
  // with the same outcome and reason and the sentence `running`.
  void EndCells(Run& run, const Decision& waiting, const std::string& running);
  void CheckRunLimit(Run& run);

  // --- state_agents.cc: sessions, leases, nodes
  void On(const event::DrainNode& e);
  void On(const event::AgentHello& e);
  void On(const event::AgentGone& e);
  void On(const event::Heartbeat& e);
  void On(const event::InventoryChanged& e);
  void On(const event::Leave& e);
  std::optional<message::Refuse> RefusalOf(const event::AgentHello& e) const;
  std::vector<std::string> ReconcileHello(Node& node, const event::AgentHello& e,
                                          bool same_instance, bool vouched);
  void SetInventory(Node& node, NodeInventory inventory);
  void PersistNode(const Node& node);
  absl::Status NoSuchNode(const std::string& name) const;  // NotFound, with the nearest
  void LoseSession(Node& node);
  void CheckNode(Node& node);
  void RestAfterRefusal(Rest& rest, std::string why);

  // --- state_gangs.cc: offers and the life of a gang
  void On(const event::GangReady& e);
  void On(const event::GangRefused& e);
  void On(const event::RanksJoined& e);
  void On(const event::Progress& e);
  void StartGang(Gang& gang);
  void SendStart(const Gang& gang, const GangPart& part);
  // Never started: back to the queue. By value, since what names it may be cleared here.
  void ReleaseGang(std::string attempt);
  // Without a decision the ranks that failed decide.
  void AbortGang(Gang& gang, std::optional<Decision> decision);
  void CheckGang(const std::string& attempt);  // deadlines
  void NoteBeside(Gang& gang, std::string_view phase);
  void RefuseOffer(Gang& gang, const std::string& node, const std::string& reason,
                   const std::string& message);
  void SendAbort(const GangPart& part, const std::string& attempt, Outcome outcome,
                 std::string_view reason);
  void FreeNodes(const Gang& gang);

  // --- state_reports.cc: the end of a gang
  void On(const event::AttemptReport& e);
  void LateReport(const event::AttemptReport& e);
  void GonePart(Gang& gang, GangPart& part, std::string_view why);
  void FinishIfSettled(const std::string& attempt);
  void FinishGang(Gang& gang);
  void RestFaultyGpus(const Gang& gang);
  void EndAttempt(Run& run, Cell& cell, Gang& gang, const MergedResult& merged);

  // --- state_offers.cc: who gets the free nodes
  void Schedule();
  // Runs in the order in which they are asked; places in rotation_.
  std::vector<std::list<std::string>::iterator> Turns();
  int64_t PriorityOf(std::string_view run) const;
  bool Outranks(const Run& run) const;  // whoever holds the reservation
  bool OfferFrom(Run& run);
  struct Share {  // one node's part of an offer
    Node* node;
    const Candidate* candidate;
    std::vector<size_t> devices;
  };
  std::vector<Share> PickNodes(const Run& run, const QueueKey& key);
  std::vector<size_t> FreeDevices(const Node& node, const Candidate& candidate, int64_t gpus) const;
  bool MayTake(const Node& node) const;
  void Reserve(const Run& run, const QueueKey& key);
  void RenewReservation();
  bool Reserved(const Node& node, const Run& run, const QueueKey& key) const;
  void Offer(Run& run, Cell& cell, std::vector<Share> shares);
  // True where no more cells are pending than other GPUs could take.
  bool IsClosing(const Run& run, const Gang& gang) const;
  void SendPrepare(Gang& gang, GangPart& part);

  // --- state_doctor.cc: questions about nodes
  void On(const event::AskDoctor& e);
  void On(const event::DoctorAnswer& e);
  void ReviewDoctorQuestions();  // deadlines, and sessions that ended

  // --- coordinator_state.cc: commits and the outbox
  void On(const event::CommitDone& e);
  void On(const event::CommitFailed& e);
  void On(const event::Tick& e);
  void Send(SessionHandle session, CoordinatorMessage message);
  void SendToNode(std::string_view node, CoordinatorMessage message);
  void Answer(ReplyToken token, absl::Status status, ReplyBody body = {});
  void CloseNow(SessionHandle session);
  void Flush();
  void FindAllPlaces();
  Run* FindRun(std::string_view id);
  const Run* FindRun(std::string_view id) const;
  int64_t WallMs() const { return wall_.time_since_epoch().count(); }
  void Notify(const std::string& run) { notify_.insert(run); }

  // --- state_view.cc
  RunView MakeView(const Run& run, uint64_t since, BootTime now) const;
  std::string WaitingFor(const Run& run, BootTime now) const;
  double SecondsLeft(const Run& run, BootTime now) const;
  std::string StateOf(const Node& node) const;
  std::vector<HeldCell> HeldBy(const Node& node) const;

  const CoordinatorTimes times_;
  const CoordinatorDeps deps_;

  // Of the step in hand.
  BootTime now_{};
  WallTime wall_{};
  Actions actions_;
  Batch batch_;
  std::set<std::string> notify_;
  bool schedule_ = false;

  Fleet fleet_;
  std::map<std::string, std::unique_ptr<Run>, std::less<>> runs_;
  std::list<std::string> rotation_;  // of runs: the longest unserved first
  std::unordered_map<std::string, Gang> gangs_;
  std::map<std::string, EndedRun, std::less<>> ended_runs_;
  std::unordered_map<std::string, std::string> run_of_request_;
  std::list<RunView> lately_ended_;  // newest first

  // A gang over several nodes would starve while small ones keep taking each node that comes free;
  // so one gang at a time may hold nodes back until it has them all. It has its place in line by
  // its cell, so that neither nodes that come and go nor a lost one of its own send it to the end.
  struct Reservation {
    std::string run;
    uint64_t cell = 0;
    QueueKey key;  // of the cell's queue
    std::set<std::string> nodes;
  };
  std::optional<Reservation> reservation_;

  // Places are found again at most once a second: a fleet that dials in after a restart would
  // otherwise cost (nodes x specs) for each node.
  bool places_dirty_ = false;
  BootTime places_found_{};

  struct DoctorQuestion {
    ReplyToken token = 0;
    std::string node;
    SessionHandle session = 0;
    BootTime until{};
  };
  std::map<uint64_t, DoctorQuestion> doctor_questions_;  // by number
  uint64_t last_doctor_question_ = 0;

  // What waits for its commit, in order.
  struct Held {
    uint64_t after = 0;
    std::variant<SendToAgent, Reply> what;
  };
  std::deque<Held> outbox_;
  std::vector<Held> fresh_;  // of the step in hand, `after` not known yet
  uint64_t issued_ = 0;
  uint64_t durable_ = 0;
  std::unordered_set<SessionHandle> sessions_;
  bool halted_ = false;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_SCHEDULER_STATE_IMPL_H_
