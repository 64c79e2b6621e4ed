#include "agent/cell/held_gang.h"

#include "agent/cell/cgroup_memory.h"
#include "common/runner_protocol/record_parser.h"

namespace assay {

void HeldRank::OnRecords(std::string_view bytes) {
  if (broken_) return;
  lines_.Append(bytes, [this](std::string_view line) { OnLine(line, false); });
}

void HeldRank::OnLine(std::string_view line, bool last) {
  if (broken_) return;
  record::ParseResult parsed = record::ParseRecordLine(line);
  if (parsed.record) {
    post_(gang_event::RankRecord{attempt_, place_.rank, *std::move(parsed.record)});
  } else if (!last) {
    // The last line of a process that died in mid-write is no garbage: how it died says more.
    broken_ = true;
    post_(gang_event::RankBroke{attempt_, place_.rank, std::move(parsed.error)});
  }
}

void HeldRank::OnRecordsClosed() {
  if (const std::string rest = lines_.TakeRest(); !rest.empty()) OnLine(rest, true);
  post_(gang_event::RecordsClosed{attempt_, place_.rank});
}

void HeldRank::OnGone(const ChildExit& exit) {
  if (const std::string rest = lines_.TakeRest(); !rest.empty()) OnLine(rest, true);
  exit_ = exit;
  gang_event::RankGone gone;
  gone.attempt = attempt_;
  gone.rank = place_.rank;
  gone.exit_code = exit.code;
  gone.signal = exit.signal;
  gone.log_tail = child->LogTail();
  gone.oom_killed = OomKillCount() > oom_kills_before;
  gone.device_is_cpu = device_.kind == "cpu";
  post_(std::move(gone));
}

}  // namespace assay
