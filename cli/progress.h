// Progress of a run as a person follows it: a block of a few lines that is redrawn on a terminal,
// plain lines elsewhere. Texts are made by pure functions; the views only keep what was last shown.
//
// Thread rule: one owner.
#ifndef ASSAY_CLI_PROGRESS_H_
#define ASSAY_CLI_PROGRESS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/control.h"
#include "cli/output.h"
#include "common/clock/clock.h"

namespace assay::cli {

// Lines of the block, each no wider than the terminal less one column, at most rows - 1 of them.
// `age_seconds` is the time since `update` came: what is left shrinks meanwhile.
std::vector<std::string> ProgressBlock(const RunUpdate& update, const std::optional<CellEnd>& last,
                                       double age_seconds, TerminalSize size, bool color);

// "[12/48] ok  resnet50 train fp32 b64 eager RTX 3090  812.5 img/s", or with reason and message.
std::string EndedLine(const CellEnd& end, uint64_t number, uint64_t cells);

// What goes on now, for a log: "[12/48] resnet50 ... measure, step 120, 812.5 img/s, 4 min left".
std::string HeartbeatLine(const RunUpdate& update);

// "10 ok, 1 mem_limit"; empty for none.
std::string CountsText(const CountByOutcome& counts);

// "812.5 img/s"; empty for 0 or what is no number.
std::string ThroughputText(double throughput, const std::string& unit);

class ProgressView {
 public:
  virtual ~ProgressView() = default;
  virtual void Update(const RunUpdate& update) = 0;
  // To be called at least once a second.
  virtual void Tick() = 0;
  // One sentence that stays on the screen.
  virtual void Note(const std::string& sentence) = 0;
  // Takes the block off the screen; nothing may be drawn after it.
  virtual void Finish() = 0;
};

using TextSink = std::function<void(std::string_view)>;

// Who else may write to the block's terminal (signals.h); both may be empty.
struct BlockKeeper {
  std::function<void(size_t lines)> drawn;  // so many lines stand above the cursor now
  std::function<bool()> gone;               // true once: they were taken off the screen meanwhile
};

// Redraws in place with cursor movements of VT100. Does not touch the cursor's visibility: the
// owner of the terminal's state does (signals.h).
class BlockView final : public ProgressView {
 public:
  BlockView(TextSink sink, std::function<TerminalSize()> size, bool color, const Clock& clock,
            BlockKeeper keeper = {})
      : sink_(std::move(sink)),
        size_(std::move(size)),
        color_(color),
        clock_(clock),
        keeper_(std::move(keeper)) {}
  void Update(const RunUpdate& update) override;
  void Tick() override;
  void Note(const std::string& sentence) override;
  void Finish() override;

 private:
  void Draw(const std::string& above);

  TextSink sink_;
  std::function<TerminalSize()> size_;
  bool color_;
  const Clock& clock_;
  const BlockKeeper keeper_;
  std::optional<RunUpdate> update_;
  std::optional<CellEnd> last_;
  BootTime updated_;
  BootTime drawn_;
  std::string block_;  // on the screen now
  size_t lines_ = 0;   // of it
};

// One line an ended cell, a heartbeat after 10 s of silence.
class LineView final : public ProgressView {
 public:
  static constexpr std::chrono::seconds kHeartbeat{10};
  LineView(TextSink sink, const Clock& clock)
      : sink_(std::move(sink)), clock_(clock), wrote_(clock.Now()) {}
  void Update(const RunUpdate& update) override;
  void Tick() override;
  void Note(const std::string& sentence) override;
  void Finish() override {}

 private:
  void Write(const std::string& line);

  TextSink sink_;
  const Clock& clock_;
  BootTime wrote_;
  std::optional<RunUpdate> update_;
  std::string waiting_for_;
};

// Says nothing, but of a run in which nothing goes on: once each time, after kPatience, with the
// reason; else a disk that is full or a card that is gone would look like a long measurement.
class QuietView final : public ProgressView {
 public:
  // Longer than agents take to come and targets to be bound.
  static constexpr std::chrono::seconds kPatience{45};
  QuietView(TextSink sink, const Clock& clock) : sink_(std::move(sink)), clock_(clock) {}
  void Update(const RunUpdate& update) override;
  void Tick() override;
  void Note(const std::string&) override {}
  void Finish() override {}

 private:
  TextSink sink_;
  const Clock& clock_;
  std::string waiting_for_;                // empty while something goes on
  std::optional<BootTime> waiting_since_;  // until it was told
};

}  // namespace assay::cli

#endif  // ASSAY_CLI_PROGRESS_H_
