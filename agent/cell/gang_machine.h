// GangMachine: this agent's part of every gang it takes part in, as a pure state machine.
//
//   Offered -> [acquiring] -> Prepared -> [ready] -> Started -> [beside] -> [running] ->
//   all ranks gone -> [closing] -> Finish
//
// Beside (gang_machine_side.cc): where the cell asks for it, a load settles a cold GPU and the
// sentinel is run where one is due, before the ranks are started. Closing: the sentinel behind the
// last cell of a session. No limit of the cell runs meanwhile; what runs has its own.
//
// The first local rank that fails ends the others (kPeerGrace), so that nobody waits in a
// collective for a rank that left. What a rank came to is decided once: by its result record, else
// by what ended it (limit, abort, lease), else by how it exited and what it said last.
//
// Thread rule: one owner. No I/O, no clock: `now` is the boot clock.
#ifndef ASSAY_AGENT_CELL_GANG_MACHINE_H_
#define ASSAY_AGENT_CELL_GANG_MACHINE_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/cell/failure_text.h"
#include "agent/cell/gang_events.h"
#include "agent/cell/heat_book.h"
#include "agent/cell/sentinel.h"
#include "common/clock/clock.h"

namespace assay {

// Time for the other local ranks to notice and to write results of their own, once one has failed.
// Under the 10 s in which a whole cell has to end.
inline constexpr std::chrono::seconds kPeerGrace{5};
// From a result record to the end of the process: tearing down a CUDA context takes a second or
// two. The result stands; the process is ended.
inline constexpr std::chrono::seconds kExitGrace{10};
// From the end of the records, without a result, to the end of the process: an exit closes them a
// moment before it can be seen.
inline constexpr std::chrono::seconds kRecordsClosedGrace{5};
// Progress of an attempt: at most two a second.
inline constexpr std::chrono::milliseconds kProgressInterval{500};
// The same of what runs beside: it tells the coordinator that the gang's limits stand still.
inline constexpr std::chrono::seconds kSideProgressInterval{2};
// Until a Welcome says otherwise.
inline constexpr std::chrono::seconds kDefaultKillGrace{5};

class GangMachine {
 public:
  explicit GangMachine(std::string node) : node_(std::move(node)) {}

  // Whatever comes, in whatever order, is answered or ignored; nothing throws.
  std::vector<GangAction> Step(const GangEvent& event, BootTime now);

  // When to send Tick next; nullopt: nothing to wait for.
  std::optional<BootTime> NextDeadline() const;
  std::vector<std::string> HeldAttempts() const;
  bool draining() const { return draining_; }

 private:
  enum class State { kAcquiring, kReady, kBeside, kRunning, kClosing };

  struct Rank {
    LocalRank place;
    bool greeted = false;  // a hello that fits was there
    bool joined = false;
    bool gone = false;
    bool broken = false;                                 // nothing it says counts any more
    bool stopped = false;                                // we asked it to end
    BootTime last_sign{};                                // of life: Start or the newest record
    std::optional<BootTime> result_at;                   // of the result record
    std::optional<BootTime> closed_at;                   // end of file without a result
    std::optional<BootTime> measured_from, measured_to;  // its window, by its records
    std::optional<Diagnosis> decided;                    // by us, before it was gone
    std::optional<RankReport> result;                    // from its result record
    RankReport report;                                   // final, once gone
  };

  struct Gang {
    PrepareOrder order;
    State state = State::kAcquiring;
    std::string endpoint;
    std::string stack;        // what the sentinel's readings are of: a name keeps no build
    std::vector<Rank> ranks;  // local ones, lowest first
    BootTime give_up{};       // kAcquiring, kReady: no Start came
    BootTime started{};
    BootTime cell_limit{};
    std::optional<size_t> first_failed;  // index into ranks
    std::optional<Diagnosis> first_cause;
    std::optional<BootTime> end_peers;
    bool window_open = false;
    GangProgress progress;
    bool progress_waits = false;
    BootTime next_progress{};
    std::string start_endpoint;           // of Started, while something runs beside
    std::optional<Diagnosis> ended_by;    // while something runs beside
    bool settled_here = false;            // a load ran, or was tried, for this attempt
    bool sentinel_here = false;           // the same of the sentinel
    bool nothing_beside = false;          // the host can run none on these devices
    Record telemetry;                     // what this machine knows for the report
    std::optional<AttemptReport> report;  // kClosing: waits for the sentinel
  };

  using Gangs = std::map<std::string, Gang>;

  void On(const gang_event::Offered& event);
  void On(const gang_event::Prepared& event);
  void On(const gang_event::PrepareFailed& event);
  void On(const gang_event::Started& event);
  void On(const gang_event::Aborted& event);
  void On(const gang_event::SpawnFailed& event);
  void On(const gang_event::RankRecord& event);
  void On(const gang_event::RankBroke& event);
  void On(const gang_event::RecordsClosed& event);
  void On(const gang_event::RankGone& event);
  void On(const gang_event::SideEnded& event);
  void On(const gang_event::Welcomed& event);
  void On(const gang_event::LeaseEnded& event);
  void On(const gang_event::DrainSet& event);
  void On(const gang_event::Shutdown& event);
  void On(const gang_event::Tick& event);

  void OnRecord(Gang& gang, size_t index, const record::Hello& hello);
  void OnRecord(Gang& gang, size_t index, const record::Joined& joined);
  void OnRecord(Gang& gang, size_t index, const record::Phase& phase);
  void OnRecord(Gang& gang, size_t index, const record::Progress& progress);
  void OnRecord(Gang& gang, size_t index, const record::Result& result);

  Gang* FindGang(const std::string& attempt);
  // Null for a rank that is unknown or gone.
  Rank* FindRank(const std::string& attempt, uint32_t rank, Gang** gang, size_t* index);
  void Refuse(const std::string& attempt, const std::string& reason, const std::string& message);
  std::string FaultOf(const PrepareOrder& order) const;
  // The next step of a gang that was started: the load, the sentinel, or its ranks.
  void Proceed(Gang& gang);
  bool MayRunBeside(const Gang& gang) const;
  bool NeedsSettling(const Gang& gang) const;
  bool NeedsSentinel(const Gang& gang) const;
  bool NeedsClosing(const Gang& gang, const AttemptReport& report) const;
  void RunBeside(Gang& gang, Side side, State state);
  void OnSettled(Gang& gang, const SideResult& result);
  void OnSentinel(Gang& gang, const SideResult& result);
  void NoteSettled(Gang& gang) const;
  void NoteSentinel(Gang& gang) const;
  void StartRanks(Gang& gang);
  void TickSide(Gang& gang);
  void Stop(Gang& gang, size_t index, const Diagnosis& cause);
  void StopAll(Gang& gang, const Diagnosis& cause);
  // Ends a gang in any state: releases one that does not run yet.
  void EndGang(const std::string& attempt, const Diagnosis& cause);
  void Fail(Gang& gang, size_t index, const Diagnosis& cause);
  void Broke(Gang& gang, size_t index, const std::string& message);
  void Conclude(Gang& gang, size_t index, const Diagnosis& by_exit);
  void FinishWhenAllGone(Gang& gang);
  void TickGang(Gang& gang);
  void TickRank(Gang& gang, size_t index);
  void NoteProgress(Gang& gang);
  void SendProgress(Gang& gang);
  void CloseWindow(Gang& gang);
  void NoteWindow(Rank& rank, bool measuring);
  // Of cells that run on all GPUs at once: the share of the longest window that all had in common.
  static void NoteTogether(const Gang& gang, Record& telemetry);
  static std::vector<std::string> GpusOf(const Gang& gang);
  std::chrono::nanoseconds SilenceLimit(const Gang& gang) const;
  void Emit(GangAction action) { actions_.push_back(std::move(action)); }

  std::string node_;
  Gangs gangs_;
  HeatBook heat_;
  SentinelBook sentinels_;
  bool draining_ = false;
  bool shutting_down_ = false;
  std::chrono::nanoseconds kill_grace_ = kDefaultKillGrace;
  BootTime now_{};
  std::vector<GangAction> actions_;
};

}  // namespace assay

#endif  // ASSAY_AGENT_CELL_GANG_MACHINE_H_
