// ControlService: the gRPC service of users. Callbacks only copy and post: what reads the store or
// parses is done by the work thread, what decides by the state thread.
//
// Every call first says which role it needs (access.h); what changes something is logged with who
// asked for it.
//
// Owner: main; outlives the server. Thread rule: any thread.
#ifndef ASSAY_COORDINATOR_API_CONTROL_SERVICE_H_
#define ASSAY_COORDINATOR_API_CONTROL_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "assay/v1/control_service.grpc.pb.h"
#include "coordinator/api/work_thread.h"
#include "coordinator/session/peer.h"
#include "coordinator/state_loop.h"
#include "coordinator/store/result_store.h"

namespace assay {

class ControlService final : public v1::Control::CallbackService {
 public:
  struct Parts {
    StateLoop& loop;
    WorkThread& work;
    ResultReader& reader;  // used by the work thread alone
    const Clock& clock;
    std::string state_dir;
    PeerReader peers;
    bool insecure = false;  // plain text from other machines is taken
  };
  explicit ControlService(const Parts& parts) : parts_(parts), last_call_(parts.clock.Now()) {}

  // Calls under way, and the boot time at which the latest one began or ended.
  int calls() const { return calls_; }
  BootTime last_call() const { return last_call_; }

  // Counts one call for as long as it lives.
  class Call {
   public:
    explicit Call(ControlService& service) : service_(service) { service_.Count(1); }
    ~Call() { service_.Count(-1); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    ControlService& service_;
  };

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext*, const v1::GetInfoRequest*,
                                    v1::Info*) override;
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext*, const v1::SubmitRequest*,
                                   v1::SubmitReply*) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext*, const v1::ListRunsRequest*,
                                     v1::ListRunsReply*) override;
  grpc::ServerUnaryReactor* GetCell(grpc::CallbackServerContext*, const v1::GetCellRequest*,
                                    v1::CellDetail*) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext*, const v1::CancelRequest*,
                                   v1::CancelReply*) override;
  grpc::ServerUnaryReactor* Rerun(grpc::CallbackServerContext*, const v1::RerunRequest*,
                                  v1::SubmitReply*) override;
  grpc::ServerUnaryReactor* ListAgents(grpc::CallbackServerContext*, const v1::ListAgentsRequest*,
                                       v1::ListAgentsReply*) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext*, const v1::DrainRequest*,
                                  v1::DrainReply*) override;
  grpc::ServerUnaryReactor* Doctor(grpc::CallbackServerContext*, const v1::DoctorRequest*,
                                   v1::DoctorReply*) override;
  grpc::ServerWriteReactor<v1::RunUpdate>* Watch(grpc::CallbackServerContext*,
                                                 const v1::WatchRequest*) override;
  grpc::ServerWriteReactor<v1::ResultPage>* GetResults(grpc::CallbackServerContext*,
                                                       const v1::GetResultsRequest*) override;
  grpc::ServerWriteReactor<v1::ExportChunk>* Export(grpc::CallbackServerContext*,
                                                    const v1::ExportRequest*) override;
  grpc::ServerReadReactor<v1::ExportChunk>* Merge(grpc::CallbackServerContext*,
                                                  v1::MergeReply*) override;

 private:
  void Count(int by) {
    last_call_ = parts_.clock.Now();
    calls_ += by;
  }

  const Parts parts_;
  std::atomic<int> calls_{0};
  std::atomic<BootTime> last_call_;
};

}  // namespace assay

#endif  // ASSAY_COORDINATOR_API_CONTROL_SERVICE_H_
