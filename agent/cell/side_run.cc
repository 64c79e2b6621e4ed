#include "agent/cell/side_run.h"

#include <algorithm>
#include <utility>

#include "common/runner_protocol/record_parser.h"
#include "common/status/status.h"

namespace assay {

class SideRun::Rank final : public ChildObserver {
 public:
  explicit Rank(const Clock& clock) : clock_(clock), last_sign_(clock.Now()) {}

  void OnRecords(std::string_view bytes) override {
    lines_.Append(bytes, [this](std::string_view line) {
      record::ParseResult parsed = record::ParseRecordLine(line);
      if (!parsed.record) return;
      last_sign_ = clock_.Now();
      std::visit([this](const auto& record) { On(record); }, *parsed.record);
    });
  }
  void OnRecordsClosed() override {}
  void OnGone(const ChildExit&) override { gone_ = true; }

  bool measuring() const { return measuring_; }
  bool gone() const { return gone_; }
  BootTime last_sign() const { return last_sign_; }
  const std::optional<double>& throughput() const { return throughput_; }

  std::unique_ptr<ChildProcess> child;

 private:
  void On(const record::Phase& phase) { measuring_ = phase.phase == "measure"; }
  void On(const record::Result& result) {
    if (result.outcome != "ok") return;
    for (const auto& [name, value] : result.fields) {
      if (name != "throughput") continue;
      const auto* number = std::get_if<double>(&value);
      const auto* whole = std::get_if<int64_t>(&value);
      const double figure = number ? *number : whole ? static_cast<double>(*whole) : 0;
      if (figure > 0) throughput_ = figure;
    }
  }
  template <class Other>
  void On(const Other&) {}

  const Clock& clock_;
  RecordLines lines_;
  bool measuring_ = false;
  bool gone_ = false;
  BootTime last_sign_;
  std::optional<double> throughput_;
};

SideRun::SideRun(EventLoop& loop, OrphanReaper& reaper, const Clock& clock)
    : loop_(loop), reaper_(reaper), clock_(clock) {}
SideRun::~SideRun() = default;

absl::Status SideRun::Spawn(const ChildSpec& spec) {
  auto rank = std::make_unique<Rank>(clock_);
  ASSAY_ASSIGN_OR_RETURN(rank->child, ChildProcess::Spawn(loop_, reaper_, spec, *rank));
  ranks_.push_back(std::move(rank));
  return absl::OkStatus();
}

void SideRun::Stop(std::chrono::nanoseconds grace) {
  for (const auto& rank : ranks_) {
    if (!rank->gone()) rank->child->Stop(grace);
  }
}

SettleLoad SideRun::load() const {
  SettleLoad load{!ranks_.empty(), ranks_.empty(), clock_.Now()};
  for (const auto& rank : ranks_) {
    load.measuring = load.measuring && rank->measuring();
    load.gone = load.gone || rank->gone();
    load.last_sign = std::min(load.last_sign, rank->last_sign());
  }
  return load;
}

bool SideRun::Gone() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->gone(); });
}

std::optional<double> SideRun::throughput() const {
  double sum = 0;
  for (const auto& rank : ranks_) {
    if (!rank->throughput()) return std::nullopt;
    sum += *rank->throughput();
  }
  return ranks_.empty() ? std::nullopt : std::optional(sum);
}

std::vector<pid_t> SideRun::pids() const {
  std::vector<pid_t> pids;
  for (const auto& rank : ranks_) pids.push_back(rank->child->pid());
  return pids;
}

}  // namespace assay
