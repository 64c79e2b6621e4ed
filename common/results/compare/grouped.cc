#include "common/results/compare/grouped.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "common/text/did_you_mean.h"

namespace assay::compare {
namespace {

constexpr char kSeparator = '\x1f';  // in no name
constexpr size_t kLane = PlaceOf("lane"), kLayout = PlaceOf("layout");
constexpr size_t kPrecision = PlaceOf("precision");
constexpr std::array kPooledApart = {kPrecision, kLane, PlaceOf("gpus"), PlaceOf("nodes")};
constexpr std::array<std::string_view, 4> kOtherFields = {"card", "node", "run", "batch"};

std::string UnknownField(std::string_view flag, std::string_view name, bool with_others) {
  std::vector<std::string> known;
  for (const FingerprintField& field : kFingerprint) known.emplace_back(field.name);
  if (with_others) known.insert(known.end(), kOtherFields.begin(), kOtherFields.end());
  return fmt::format("{}: there is no field '{}'{}; it takes {}", flag, name,
                     DidYouMean(std::string(name), std::span<const std::string>(known)),
                     fmt::join(known, ", "));
}

class Grouper {
 public:
  Grouper(const Cells& cells, const Options& options) : cells_(cells), options_(options) {}

  absl::StatusOr<Grouped> Run() {
    if (absl::Status status = TakeFields(); !status.ok()) return status;
    Select();
    LetUnknownDiffer();
    Place();
    for (Cluster& cluster : clusters_) ChooseVariant(cluster);
    for (const Cluster& cluster : clusters_) {
      for (const auto& [cell, side] : cluster.cells) Insert(cluster, *cell, side);
    }
    if (!ambiguous_.empty()) return absl::InvalidArgumentError(ambiguous_);
    FillLabels();
    for (auto& [key, count] : left_out_) {
      auto& [side, workload, reason] = key;
      grouped_.left_out.push_back({side, workload, reason, count});
    }
    return std::move(grouped_);
  }

 private:
  // Cells of one workload, before it is known which of them are alike.
  struct Cluster {
    size_t group = 0, workload = 0;
    std::vector<std::pair<const Cell*, uint32_t>> cells;  // with their side
    std::vector<size_t> differing;  // places in which its measured cells differ
    std::vector<uint32_t> variant;  // and the values that are compared
  };

  absl::Status TakeFields() {
    in_key_.fill(true);
    const auto remove = [&](std::string_view name) { in_key_[*FingerprintPlace(name)] = false; };
    for (size_t i = 0; i < kFingerprintSize; ++i) in_key_[i] = kFingerprint[i].part != Part::kStack;
    stack_in_key_ = options_.by != By::kStack;
    if (options_.by == By::kLane) remove("lane");
    if (options_.by == By::kPrecision) {
      // TF32 is what the precision is made of.
      for (const char* name : {"precision", "allow_tf32_matmul", "allow_tf32_cudnn"}) remove(name);
    }
    if (options_.score == Score::kTuned) {
      remove("lane");
      remove("layout");
    }
    for (const std::string& name : options_.across) {
      const auto place = FingerprintPlace(name);
      if (!place) return absl::InvalidArgumentError(UnknownField("--across", name, false));
      if (name == "model" || name == "mode" || name == "unit") {
        return absl::InvalidArgumentError(fmt::format(
            "--across {}: samples of another {} are other samples, and no ratio of them means "
            "anything",
            name, name));
      }
      if (kFingerprint[*place].part == Part::kStack) stack_in_key_ = false;
      in_key_[*place] = false;
      across_.push_back(*place);
    }
    for (const auto& [name, value] : options_.where) {
      const bool other =
          std::find(kOtherFields.begin(), kOtherFields.end(), name) != kOtherFields.end();
      if (!other && !FingerprintPlace(name)) {
        return absl::InvalidArgumentError(UnknownField("--where", name, true));
      }
    }
    return absl::OkStatus();
  }

  bool Matches(const Cell& cell) const {
    return std::all_of(options_.where.begin(), options_.where.end(), [&](const auto& condition) {
      const auto& [name, value] = condition;
      if (name == "card") return cells_.Text(cell.card) == value;
      if (name == "node") return cells_.Text(cell.node) == value;
      if (name == "run") return cells_.Text(cell.run) == value;
      if (name == "batch") {
        return (cell.batch == kBatchMax ? "max" : fmt::format("{}", cell.batch)) == value;
      }
      return cells_.Text(cell, *FingerprintPlace(name)) == value;
    });
  }

  void Select() {
    for (const Cell& cell : cells_.cells()) {
      if (!Matches(cell)) continue;
      selected_.push_back(&cell);
      any_measured_ = any_measured_ || (cell.throughput > 0 && !cell.Has(kSimulated));
      if (options_.by == By::kStack && cell.throughput > 0) {
        versions_[cell.fingerprint[PlaceOf("stack")]].insert(VersionsOf(cell));
      }
    }
  }

  // What a published figure does not say cannot be asked of a measured one beside it.
  void LetUnknownDiffer() {
    if (std::find(options_.across.begin(), options_.across.end(), "published") ==
        options_.across.end()) {
      return;
    }
    for (size_t place = 0; place < kFingerprintSize; ++place) {
      const std::string_view name = kFingerprint[place].name;
      if (!IsAsked(place) || name == "model" || name == "mode") continue;
      const bool unknown = std::any_of(selected_.begin(), selected_.end(), [&](const Cell* cell) {
        return cell->Has(kPublished) && cell->fingerprint[place] == 0;
      });
      if (!unknown) continue;
      in_key_[place] = false;
      across_.push_back(place);
    }
  }

  std::string VersionsOf(const Cell& cell) const {
    return fmt::format(
        "LibTorch {}, CUDA {}, cuDNN {}", cells_.Text(cell, PlaceOf("libtorch_version")),
        cells_.Text(cell, PlaceOf("cuda_version")), cells_.Text(cell, PlaceOf("cudnn_version")));
  }

  std::string SideOf(const Cell& cell) const {
    switch (options_.by) {
      case By::kCard:
        return cells_.Text(cell.card);
      case By::kNode:
        return cells_.Text(cell.node);
      case By::kRun:
        return cells_.Text(cell.run);
      case By::kLane:
        return cells_.Text(cell, kLane);
      case By::kPrecision:
        return cells_.Text(cell, kPrecision);
      case By::kStack: {
        // A stack keeps its name when it is built anew.
        const uint32_t name = cell.fingerprint[PlaceOf("stack")];
        const auto versions = versions_.find(name);
        const bool several = versions != versions_.end() && versions->second.size() > 1;
        return several ? fmt::format("{} ({})", cells_.Text(name), VersionsOf(cell))
                       : cells_.Text(name);
      }
    }
    return "";
  }

  // "" where the cell's figure counts.
  std::string WhyNot(const Cell& cell) const {
    if (cell.throughput == 0) return cells_.Text(cell.reason);
    if (cell.Has(kSimulated) && any_measured_) return "simulated, among measured ones";
    if (cell.Has(kMixed) && options_.by == By::kCard) return "mixed: a gang of several cards";
    if (cell.Has(kSuspect)) return "suspect";
    if (cell.Has(kHostBound) && !options_.host_bound) return "host_bound (--host-bound takes it)";
    return "";
  }

  bool IsAsked(size_t place) const {
    return in_key_[place] && kFingerprint[place].part == Part::kAsked;
  }

  void Place() {
    std::unordered_map<std::string, size_t> groups, clusters;
    std::set<uint32_t> known_sides;
    for (const Cell* cell : selected_) {
      const std::string side_text = SideOf(*cell);
      if (side_text.empty()) {
        LeaveOut("", LabelOf(*cell), fmt::format("{} not known", ByName(options_.by)));
        continue;
      }
      if (cell->Has(kOtherMetric)) {
        LeaveOut(side_text, LabelOf(*cell), cells_.Text(cell->reason));
        continue;
      }
      const uint32_t side = grouped_.words.Number(side_text);
      if (known_sides.insert(side).second) grouped_.sides.push_back(side);
      std::string key, workload_key;
      const auto add = [](std::string& to, uint32_t word) {
        to.append(reinterpret_cast<const char*>(&word), sizeof word);
      };
      if (options_.by != By::kCard) add(key, cell->card);
      for (const size_t place : kPooledApart) {
        if (in_key_[place]) add(key, cell->fingerprint[place]);
      }
      const auto [group, is_new] = groups.try_emplace(key, grouped_.groups.size());
      if (is_new) AddGroup(*cell);
      workload_key = key;
      for (size_t place = 0; place < kFingerprintSize; ++place) {
        if (IsAsked(place)) add(workload_key, cell->fingerprint[place]);
      }
      const auto [at, new_cluster] = clusters.try_emplace(workload_key, clusters_.size());
      if (new_cluster) AddCluster(group->second, *cell);
      clusters_[at->second].cells.emplace_back(cell, side);
    }
  }

  void AddGroup(const Cell& cell) {
    Group head;
    const auto text = [&](size_t place) { return in_key_[place] ? cells_.Text(cell, place) : ""; };
    if (options_.by != By::kCard) head.card = cells_.Text(cell.card);
    head.precision = text(kPrecision);
    head.lane = text(kLane);
    head.gpus = text(PlaceOf("gpus"));
    head.nodes = text(PlaceOf("nodes"));
    grouped_.groups.push_back({head, {}});
  }

  // " fp32 eager": in which of a workload's groups.
  std::string HeadOf(size_t group) const {
    std::string text;
    for (const std::string* part :
         {&grouped_.groups[group].head.precision, &grouped_.groups[group].head.lane}) {
      if (!part->empty()) text += " " + *part;
    }
    return text;
  }

  void AddCluster(size_t group, const Cell& cell) {
    std::vector<Workload>& workloads = grouped_.groups[group].workloads;
    Workload workload;
    workload.label = LabelOf(cell);
    for (size_t place = 0; place < kFingerprintSize; ++place) {
      if (IsAsked(place)) workload.fingerprint[place] = cell.fingerprint[place];
    }
    clusters_.push_back({group, workloads.size(), {}, {}, {}});
    workloads.push_back(std::move(workload));
  }

  std::string LabelOf(const Cell& cell) const {
    return fmt::format("{} {}", cells_.Text(cell, PlaceOf("model")),
                       cells_.Text(cell, PlaceOf("mode")));
  }

  // What is not known agrees with anything, so only places with two known values tell cells apart.
  // Compared is the variant that most sides have; of equal ones that with most cells.
  void ChooseVariant(Cluster& cluster) {
    std::array<uint32_t, kFingerprintSize> seen{};
    std::array<bool, kFingerprintSize> differs{};
    const auto each = [&](auto visit) {
      for (const auto& [cell, side] : cluster.cells) {
        if (WhyNot(*cell).empty()) visit(*cell, side);
      }
    };
    each([&](const Cell& cell, uint32_t) {
      for (size_t place = 0; place < kFingerprintSize; ++place) {
        const uint32_t value = cell.fingerprint[place];
        if (!in_key_[place] || kFingerprint[place].part == Part::kAsked || value == 0) continue;
        differs[place] = differs[place] || (seen[place] != 0 && seen[place] != value);
        seen[place] = value;
      }
    });
    for (size_t place = 0; place < kFingerprintSize; ++place) {
      if (differs[place]) cluster.differing.push_back(place);
    }
    std::map<std::vector<uint32_t>, std::pair<std::set<uint32_t>, size_t>> variants;
    each([&](const Cell& cell, uint32_t side) {
      auto& [sides, count] = variants[VariantOf(cluster, cell)];
      sides.insert(side);
      ++count;
    });
    std::pair<size_t, size_t> most;
    for (const auto& [variant, who] : variants) {
      const std::pair size(who.first.size(), who.second);
      if (size > most) cluster.variant = variant;
      most = std::max(most, size);
    }
    Workload& workload = grouped_.groups[cluster.group].workloads[cluster.workload];
    for (size_t place = 0; place < kFingerprintSize; ++place) {
      if (in_key_[place] && kFingerprint[place].part != Part::kAsked && !differs[place]) {
        workload.fingerprint[place] = seen[place];
      }
    }
    for (size_t i = 0; i < cluster.differing.size() && i < cluster.variant.size(); ++i) {
      workload.fingerprint[cluster.differing[i]] = cluster.variant[i];
    }
  }

  static std::vector<uint32_t> VariantOf(const Cluster& cluster, const Cell& cell) {
    std::vector<uint32_t> variant;
    for (const size_t place : cluster.differing) variant.push_back(cell.fingerprint[place]);
    return variant;
  }

  // "" or "ecc_enabled false, where true is compared".
  std::string OtherVariant(const Cluster& cluster, const Cell& cell) const {
    std::string text;
    for (size_t i = 0; i < cluster.differing.size() && i < cluster.variant.size(); ++i) {
      const size_t place = cluster.differing[i];
      if (cell.fingerprint[place] == cluster.variant[i]) continue;
      const auto value = [&](uint32_t word) {
        return word == 0 ? std::string("not known") : cells_.Text(word);
      };
      text += fmt::format("{}{} {}, where {} is compared", text.empty() ? "" : "; ",
                          kFingerprint[place].name, value(cell.fingerprint[place]),
                          value(cluster.variant[i]));
    }
    return text;
  }

  void Insert(const Cluster& cluster, const Cell& cell, uint32_t side) {
    Workload& workload = grouped_.groups[cluster.group].workloads[cluster.workload];
    SideCells& to = workload.sides[side];
    Choice choice{cell.batch, 0, 0};
    if (options_.score == Score::kTuned) {
      choice.lane = cell.fingerprint[kLane];
      choice.layout = cell.fingerprint[kLayout];
    }
    std::string why = WhyNot(cell);
    if (why.empty()) why = OtherVariant(cluster, cell);
    if (!why.empty()) {
      to.failed.emplace(choice, grouped_.words.Number(why));
      LeaveOut(grouped_.words.Text(side), workload.label + HeadOf(cluster.group), why);
      return;
    }
    uint32_t stack = 0;
    if (stack_in_key_) {
      stack = grouped_.words.Number(
          fmt::format("{}{}{}{}{}{}{}", cells_.Text(cell, PlaceOf("libtorch_version")), kSeparator,
                      cells_.Text(cell, PlaceOf("cuda_version")), kSeparator,
                      cells_.Text(cell, PlaceOf("cudnn_version")), kSeparator,
                      cells_.Text(cell, PlaceOf("stack"))));
    }
    for (const size_t place : across_) {
      const uint32_t value = cell.fingerprint[place];
      const auto [at, is_new] = to.across.try_emplace(static_cast<uint32_t>(place), value);
      if (!is_new && at->second != value && ambiguous_.empty()) {
        ambiguous_ = fmt::format(
            "--across {0}: {1} has {2} with {0} {3} and with {4}; choose one by --where {0}=VALUE",
            kFingerprint[place].name, grouped_.words.Text(side), workload.label,
            cells_.Text(at->second), cells_.Text(value));
      }
    }
    auto& processes = to.measured[stack][choice][cell.gpu];
    processes.push_back({cell.repeat, cell.throughput, cell.watts, cell.driver, cell.marks});
  }

  void LeaveOut(const std::string& side, const std::string& workload, const std::string& reason) {
    ++left_out_[{side, workload, reason}];
  }

  // Where two workloads of a group have one label, what tells them apart is added.
  void FillLabels() {
    for (GroupCells& group : grouped_.groups) {
      std::array<std::set<uint32_t>, kFingerprintSize> values;
      for (const Workload& workload : group.workloads) {
        for (size_t i = 0; i < kFingerprintSize; ++i) values[i].insert(workload.fingerprint[i]);
      }
      for (Workload& workload : group.workloads) {
        for (size_t i = 0; i < kFingerprintSize; ++i) {
          if (!IsAsked(i) || i <= PlaceOf("mode") || values[i].size() < 2) continue;
          workload.label +=
              fmt::format(" {}={}", kFingerprint[i].name, cells_.Text(workload.fingerprint[i]));
        }
      }
      for (Workload& workload : group.workloads) {
        for (auto& [side, side_cells] : workload.sides) SortByRepeat(side_cells);
      }
    }
  }

  static void SortByRepeat(SideCells& cells) {
    for (auto& [stack, choices] : cells.measured) {
      for (auto& [choice, gpus] : choices) {
        for (auto& [gpu, processes] : gpus) {
          std::stable_sort(processes.begin(), processes.end(),
                           [](const Process& a, const Process& b) { return a.repeat < b.repeat; });
        }
      }
    }
  }

  const Cells& cells_;
  const Options& options_;
  std::array<bool, kFingerprintSize> in_key_{};
  bool stack_in_key_ = true;
  std::vector<size_t> across_;
  std::vector<const Cell*> selected_;
  bool any_measured_ = false;
  std::map<uint32_t, std::set<std::string>> versions_;  // by stack
  std::vector<Cluster> clusters_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> left_out_;
  std::string ambiguous_;  // why --across does not say what to compare
  Grouped grouped_;
};

}  // namespace

absl::StatusOr<Grouped> GroupCellsOf(const Cells& cells, const Options& options) {
  return Grouper(cells, options).Run();
}

bool NewerStack(const std::string& a, const std::string& b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const size_t i_begin = i, j_begin = j;
      while (i < a.size() && is_digit(a[i])) ++i;
      while (j < b.size() && is_digit(b[j])) ++j;
      const std::string_view x = std::string_view(a).substr(i_begin, i - i_begin);
      const std::string_view y = std::string_view(b).substr(j_begin, j - j_begin);
      if (x != y) return std::pair(x.size(), x) > std::pair(y.size(), y);
    } else if (a[i] != b[j]) {
      return a[i] > b[j];
    } else {
      ++i;
      ++j;
    }
  }
  return a.size() - i > b.size() - j;
}

std::string StackName(const std::string& stack) {
  return stack.substr(stack.rfind(kSeparator) + 1);
}

}  // namespace assay::compare
