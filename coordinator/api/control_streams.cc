// The streaming calls of ControlService. A stream is owned by gRPC until OnDone and by whoever
// holds a shared_ptr to it: a task of the work thread, a watch of the state thread.
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/net/grpc_options.h"
#include "common/status/status.h"
#include "common/sync/mutex.h"
#include "common/wire/wire.h"
#include "coordinator/api/access.h"
#include "coordinator/api/assay_file.h"
#include "coordinator/api/control_service.h"
#include "coordinator/api/run_answers.h"

namespace assay {
namespace {

constexpr uint32_t kCellsAPage = 200;
constexpr size_t kChunkBytes = 512 << 10;

// A stream of answers with one write in flight. Subclasses put messages in; when all are written,
// Drained asks for more.
template <class Message>
class AnswerStream : public grpc::ServerWriteReactor<Message>,
                     public std::enable_shared_from_this<AnswerStream<Message>> {
 public:
  explicit AnswerStream(ControlService& service) : call_(service) {}

  // gRPC's own reference, until OnDone.
  void Keep(std::shared_ptr<AnswerStream> self) { self_ = std::move(self); }

  void Put(Message message) {
    MutexLock lock(mutex_);
    if (finished_) return;
    queue_.push_back(std::move(message));
    WriteNext();
  }
  // After what was put before.
  void End(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (!end_.has_value()) end_ = status;
    WriteNext();
  }
  bool Idle() {
    MutexLock lock(mutex_);
    return queue_.empty() && !writing_ && !finished_;
  }
  bool Finished() {
    MutexLock lock(mutex_);
    return finished_;
  }

  void OnWriteDone(bool ok) override {
    bool drained = false;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      if (finished_) return;
      if (!ok) return FinishLocked(grpc::Status::OK);
      queue_.pop_front();
      WriteNext();
      drained = !writing_ && !finished_;
    }
    if (drained) Drained();
  }
  void OnCancel() override {
    MutexLock lock(mutex_);
    FinishLocked(grpc::Status::CANCELLED);
  }
  void OnDone() override { self_.reset(); }

 protected:
  virtual void Drained() {}

 private:
  void WriteNext() ASSAY_REQUIRES(mutex_) {
    if (writing_ || finished_) return;
    if (!queue_.empty()) {
      writing_ = true;
      this->StartWrite(&queue_.front());
    } else if (end_.has_value()) {
      FinishLocked(*end_);
    }
  }
  void FinishLocked(const grpc::Status& status) ASSAY_REQUIRES(mutex_) {
    if (finished_) return;
    finished_ = true;
    this->Finish(status);
  }

  ControlService::Call call_;
  std::shared_ptr<AnswerStream> self_;
  Mutex mutex_;
  std::deque<Message> queue_ ASSAY_GUARDED_BY(mutex_);  // the front one is gRPC's while writing
  std::optional<grpc::Status> end_ ASSAY_GUARDED_BY(mutex_);
  bool writing_ ASSAY_GUARDED_BY(mutex_) = false;
  bool finished_ ASSAY_GUARDED_BY(mutex_) = false;
};

class WatchStream final : public AnswerStream<v1::RunUpdate> {
 public:
  using AnswerStream::AnswerStream;
};

// What the state thread holds of a watch.
class StreamSink final : public WatchSink {
 public:
  StreamSink(std::shared_ptr<AnswerStream<v1::RunUpdate>> stream, WorkThread& work,
             ResultReader& reader, std::string run)
      : stream_(std::move(stream)), work_(work), reader_(reader), run_(std::move(run)) {}

  bool Ready() override { return stream_->Idle(); }
  bool Gone() override { return stream_->Finished(); }
  void Update(const RunView& view) override {
    for (v1::RunUpdate& update : UpdatesOf(view)) stream_->Put(std::move(update));
    if (view.final) stream_->End(grpc::Status::OK);
  }
  void End(const absl::Status& status) override {
    if (status.code() != absl::StatusCode::kNotFound) return stream_->End(ToGrpcStatus(status));
    // It ended a while ago: the store knows it.
    work_.Post([stream = stream_, &reader = reader_, run = run_] {
      const absl::StatusOr<std::vector<RunOverview>> runs = reader.ListRuns();
      if (!runs.ok()) return stream->End(ToGrpcStatus(runs.status()));
      for (const RunOverview& overview : *runs) {
        if (overview.run.id != run) continue;
        stream->Put(FinalUpdate(overview));
        return stream->End(grpc::Status::OK);
      }
      stream->End(
          grpc::Status(grpc::StatusCode::NOT_FOUND, fmt::format("there is no run {}", run)));
    });
  }

 private:
  const std::shared_ptr<AnswerStream<v1::RunUpdate>> stream_;
  WorkThread& work_;
  ResultReader& reader_;
  const std::string run_;
};

class ResultStream final : public AnswerStream<v1::ResultPage> {
 public:
  ResultStream(ControlService& service, WorkThread& work, ResultReader& reader, std::string run)
      : AnswerStream(service), work_(work), reader_(reader), asked_(std::move(run)) {}

  void Drained() override {
    work_.Post([this, self = shared_from_this()] {
      if (Finished()) return;
      absl::StatusOr<bool> more = NextPage();
      if (!more.ok() || !*more) End(ToGrpcStatus(more.status()));
    });
  }

 private:
  absl::StatusOr<bool> NextPage() {
    if (run_.id.empty()) {
      ASSAY_ASSIGN_OR_RETURN(const std::string id, reader_.ResolveRun(asked_));
      ASSAY_ASSIGN_OR_RETURN(run_, reader_.GetRun(id));
      ASSAY_ASSIGN_OR_RETURN(specs_, reader_.ListSpecs(id));
      ASSAY_ASSIGN_OR_RETURN(comparands_, ComparandsOf(reader_, run_, specs_, nullptr));
    }
    ASSAY_ASSIGN_OR_RETURN(const std::vector<CellResult> cells,
                           reader_.ListCells(run_.id, after_, kCellsAPage));
    if (cells.empty()) return false;
    v1::ResultPage page;
    page.set_baseline(wire::CleanText(run_.baseline, wire::kMaxNameBytes));
    size_t bytes = 0;
    for (const CellResult& result : cells) {
      after_ = result.cell.cell;
      if (result.cell.spec_index >= specs_.size()) {
        return absl::DataLossError(fmt::format("cell {} of run {} has no spec", after_, run_.id));
      }
      const AttemptRow* attempt = result.attempt.has_value() ? &*result.attempt : nullptr;
      v1::Record* record = page.add_records();
      wire::ToProto(
          JudgedRecord(run_, specs_[result.cell.spec_index], result.cell, attempt, comparands_),
          record);
      bytes += record->ByteSizeLong();
      if (bytes > static_cast<size_t>(kMessageBudgetBytes)) {
        Put(std::move(page));
        page.Clear();
        bytes = 0;
      }
    }
    Put(std::move(page));
    return true;
  }

  WorkThread& work_;
  ResultReader& reader_;
  const std::string asked_;
  // Of the work thread.
  RunRow run_;
  std::vector<Spec> specs_;
  Comparands comparands_;
  uint64_t after_ = 0;
};

class ExportStream final : public AnswerStream<v1::ExportChunk> {
 public:
  ExportStream(ControlService& service, WorkThread& work, ResultReader& reader, std::string run)
      : AnswerStream(service), work_(work), reader_(reader), asked_(std::move(run)) {}

  void Drained() override {
    work_.Post([this, self = shared_from_this()] {
      if (Finished()) return;
      absl::StatusOr<std::string> piece = NextPiece();
      if (!piece.ok() || piece->empty()) return End(ToGrpcStatus(piece.status()));
      v1::ExportChunk chunk;
      chunk.set_data(*std::move(piece));
      Put(std::move(chunk));
    });
  }

 private:
  absl::StatusOr<std::string> NextPiece() {
    if (writer_ == nullptr) {
      ASSAY_ASSIGN_OR_RETURN(const std::string id, reader_.ResolveRun(asked_));
      writer_ = std::make_unique<AssayFileWriter>(reader_, id);
    }
    return writer_->Next(kChunkBytes);
  }

  WorkThread& work_;
  ResultReader& reader_;
  const std::string asked_;
  std::unique_ptr<AssayFileWriter> writer_;  // of the work thread
};

template <class Stream>
bool AllowView(const Access& access, Stream& stream) {
  const absl::Status status = access.Check(Role::kView);
  if (!status.ok()) stream.End(ToGrpcStatus(status));
  return status.ok();
}

// Reads a file on the work thread; the next piece is read when the one before was taken in.
class MergeStream final : public grpc::ServerReadReactor<v1::ExportChunk>,
                          public std::enable_shared_from_this<MergeStream> {
 public:
  MergeStream(ControlService& service, StateLoop& loop, WorkThread& work, Access access,
              v1::MergeReply* response)
      : call_(service), loop_(loop), work_(work), access_(std::move(access)), response_(response) {}

  void Begin(std::shared_ptr<MergeStream> self, const absl::Status& allowed) {
    self_ = std::move(self);
    if (!allowed.ok()) return End(ToGrpcStatus(allowed));
    StartRead(&chunk_);
  }

  void OnReadDone(bool ok) override {
    work_.Post([this, self = shared_from_this(), ok] { ok ? Feed() : Import(); });
  }
  void OnCancel() override { End(grpc::Status::CANCELLED); }
  void OnDone() override { self_.reset(); }

 private:
  void Feed() {
    const absl::Status status = file_.Feed(chunk_.data());
    if (!status.ok()) return End(ToGrpcStatus(status));
    MutexLock lock(mutex_);
    if (!finished_) StartRead(&chunk_);
  }

  void Import() {
    absl::StatusOr<Batch::Import> rows = file_.Finish();
    if (!rows.ok()) return End(ToGrpcStatus(rows.status()));
    auto import = std::make_shared<event::ImportRows>();
    import->rows = *std::move(rows);
    loop_.Call(
        [import](ReplyToken token) -> Event {
          import->token = token;
          return std::move(*import);
        },
        [this, self = shared_from_this()](const Reply& reply) {
          if (const auto* body = std::get_if<ImportReply>(&reply.body); body != nullptr) {
            for (const std::string& run : body->runs) access_.Log(run, reply.status);
            MutexLock lock(mutex_);
            if (!finished_) {
              for (const std::string& run : body->runs) response_->add_runs(run);
              response_->set_attempts_new(body->attempts_new);
              response_->set_attempts_known(body->attempts_known);
            }
          }
          End(ToGrpcStatus(reply.status));
        });
  }

  void End(const grpc::Status& status) {
    MutexLock lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(status);
  }

  ControlService::Call call_;
  StateLoop& loop_;
  WorkThread& work_;
  const Access access_;
  v1::MergeReply* const response_;
  std::shared_ptr<MergeStream> self_;
  v1::ExportChunk chunk_;
  AssayFileReader file_;  // of the work thread
  Mutex mutex_;
  bool finished_ ASSAY_GUARDED_BY(mutex_) = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::RunUpdate>* ControlService::Watch(grpc::CallbackServerContext* context,
                                                               const v1::WatchRequest* request) {
  auto stream = std::make_shared<WatchStream>(*this);
  stream->Keep(stream);
  if (!AllowView(Access(parts_.peers, *context, "watch"), *stream)) return stream.get();
  parts_.work.Post([this, stream, asked = request->run()] {
    const absl::StatusOr<std::string> run = parts_.reader.ResolveRun(asked);
    if (!run.ok()) return stream->End(ToGrpcStatus(run.status()));
    parts_.loop.Watch(*run, std::make_shared<StreamSink>(stream, parts_.work, parts_.reader, *run));
  });
  return stream.get();
}

grpc::ServerWriteReactor<v1::ResultPage>* ControlService::GetResults(
    grpc::CallbackServerContext* context, const v1::GetResultsRequest* request) {
  auto stream = std::make_shared<ResultStream>(*this, parts_.work, parts_.reader, request->run());
  stream->Keep(stream);
  if (AllowView(Access(parts_.peers, *context, "read results"), *stream)) stream->Drained();
  return stream.get();
}

grpc::ServerWriteReactor<v1::ExportChunk>* ControlService::Export(
    grpc::CallbackServerContext* context, const v1::ExportRequest* request) {
  auto stream = std::make_shared<ExportStream>(*this, parts_.work, parts_.reader, request->run());
  stream->Keep(stream);
  if (AllowView(Access(parts_.peers, *context, "export"), *stream)) stream->Drained();
  return stream.get();
}

grpc::ServerReadReactor<v1::ExportChunk>* ControlService::Merge(
    grpc::CallbackServerContext* context, v1::MergeReply* response) {
  Access access(parts_.peers, *context, "merge");
  const absl::Status allowed = access.Check(Role::kAdmin);
  auto stream =
      std::make_shared<MergeStream>(*this, parts_.loop, parts_.work, std::move(access), response);
  stream->Begin(stream, allowed);
  return stream.get();
}

}  // namespace assay
