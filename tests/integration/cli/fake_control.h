// FakeControl: a Control service on a script, in the test's process or behind fake_coordinator.
//
// Every submitted run gets one cell for each word of `outcomes`. Thread rule: any thread.
#ifndef ASSAY_TESTS_INTEGRATION_CLI_FAKE_CONTROL_H_
#define ASSAY_TESTS_INTEGRATION_CLI_FAKE_CONTROL_H_

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assay/v1/control_service.grpc.pb.h"
#include "common/labels/labels.h"
#include "common/sync/mutex.h"

namespace assay::cli {

struct FakeScript {
  std::vector<std::string> outcomes = {"ok", "ok"};
  std::string card = "RTX 3090";
  std::string message = "it broke";
  std::string log_tail = "line one\nline two\n";
  std::string runner = "assay-simulate";
  std::vector<std::string> exported = {"{\"assay_file\":1}\n{\"kind\":", "\"end\"}\n"};
  std::string cell_file;     // empty: none was given to a runner
  bool hold = false;         // a run stays unfinished until Release() or a cancel
  bool hold_cancel = false;  // a cancelled run stays `cancelling` until Release()
  int break_watches = 0;     // this many Watch calls end with UNAVAILABLE after the first message
  bool agents = true;
  int agent_pages = 0;        // of ListAgents, before that of node-1
  bool same_page = false;     // they all name one node
  int held = 0;               // node-1 holds a cell for so many calls of Drain and ListAgents
  std::string version;        // another than this program's
  std::string refuse_submit;  // INVALID_ARGUMENT with this message
};

class FakeControl final : public v1::Control::Service {
 public:
  explicit FakeControl(FakeScript script) : script_(std::move(script)) {}

  void Release();
  int submits() const;
  int cancels() const;
  int watches() const;
  std::string merged() const;  // all bytes of Merge
  // What Export gives from now on, in parts.
  void SetExported(std::vector<std::string> parts);
  // Adds a run as Submit would.
  void AddRun(const std::string& id, const std::string& name);

  grpc::Status GetInfo(grpc::ServerContext*, const v1::GetInfoRequest*, v1::Info* reply) override;
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitReply* reply) override;
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::RunUpdate>* writer) override;
  grpc::Status ListRuns(grpc::ServerContext*, const v1::ListRunsRequest*,
                        v1::ListRunsReply* reply) override;
  grpc::Status GetResults(grpc::ServerContext*, const v1::GetResultsRequest* request,
                          grpc::ServerWriter<v1::ResultPage>* writer) override;
  grpc::Status GetCell(grpc::ServerContext*, const v1::GetCellRequest* request,
                       v1::CellDetail* reply) override;
  grpc::Status Cancel(grpc::ServerContext*, const v1::CancelRequest* request,
                      v1::CancelReply* reply) override;
  grpc::Status Rerun(grpc::ServerContext*, const v1::RerunRequest* request,
                     v1::SubmitReply* reply) override;
  grpc::Status ListAgents(grpc::ServerContext*, const v1::ListAgentsRequest* request,
                          v1::ListAgentsReply* reply) override;
  grpc::Status Drain(grpc::ServerContext*, const v1::DrainRequest* request,
                     v1::DrainReply* reply) override;
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportChunk>* writer) override;
  grpc::Status Merge(grpc::ServerContext*, grpc::ServerReader<v1::ExportChunk>* reader,
                     v1::MergeReply* reply) override;

 private:
  struct Run {
    std::string name;
    Labels labels;
    bool cancelled = false;
    bool released = false;
  };

  // The id that `word` (id, unique prefix, last) means; "" for none.
  std::string Find(const std::string& word) const ASSAY_REQUIRES(mutex_);
  bool Ended(const Run& run) const ASSAY_REQUIRES(mutex_);
  std::string OutcomeOf(const Run& run, size_t cell) const ASSAY_REQUIRES(mutex_);
  void FillRecord(const Run& run, size_t cell, v1::Record* record) const ASSAY_REQUIRES(mutex_);
  v1::RunUpdate UpdateOf(const std::string& id) const ASSAY_REQUIRES(mutex_);
  // The state of node-1, and whether it holds a cell this time.
  std::string AgentState(bool* held) ASSAY_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  FakeScript script_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, Run> runs_ ASSAY_GUARDED_BY(mutex_);
  std::map<std::string, std::string> requests_ ASSAY_GUARDED_BY(mutex_);  // request id to run
  int submits_ ASSAY_GUARDED_BY(mutex_) = 0;
  int cancels_ ASSAY_GUARDED_BY(mutex_) = 0;
  int watches_ ASSAY_GUARDED_BY(mutex_) = 0;
  bool draining_ ASSAY_GUARDED_BY(mutex_) = false;
  int pages_ ASSAY_GUARDED_BY(mutex_) = 0;  // of agents, given so far
  std::string merged_ ASSAY_GUARDED_BY(mutex_);
};

// A FakeControl that listens on DIR/c.sock and is named by DIR/endpoint.json, until destruction.
class FakeServer {
 public:
  FakeServer(const std::string& state_dir, FakeScript script);
  ~FakeServer();
  FakeControl& control() { return control_; }
  const std::string& address() const { return address_; }
  bool listening() const { return server_ != nullptr; }

 private:
  std::string state_dir_;
  std::string address_;
  FakeControl control_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace assay::cli

#endif  // ASSAY_TESTS_INTEGRATION_CLI_FAKE_CONTROL_H_
