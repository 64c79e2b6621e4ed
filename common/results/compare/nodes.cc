#include "common/results/compare/nodes.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "common/measure/moments.h"
#include "common/measure/percentile.h"
#include "common/results/compare/figure.h"

namespace assay::compare {
namespace {

// Of one batch on one stack: each node's figure.
using ByNode = std::map<uint32_t, Gpus>;

void AddWorkload(const Workload& workload, std::map<uint32_t, std::vector<double>>& logs) {
  std::map<std::pair<uint32_t, Choice>, ByNode> points;
  for (const auto& [node, cells] : workload.sides) {
    for (const auto& [stack, choices] : cells.measured) {
      for (const auto& [choice, gpus] : choices) points[{stack, choice}][node] = gpus;
    }
  }
  for (const auto& [point, nodes] : points) {
    if (nodes.size() < 2) continue;
    std::vector<double> middles;
    for (const auto& [node, gpus] : nodes) middles.push_back(std::log(Middle(gpus)));
    const double median = *measure::Median(middles);
    for (const auto& [node, gpus] : nodes) logs[node].push_back(std::log(Middle(gpus)) - median);
  }
}

}  // namespace

void CompareNodes(const Cells& cells, const Grouped& grouped, Comparison& comparison) {
  (void)cells;
  for (const GroupCells& group : grouped.groups) {
    std::map<uint32_t, std::vector<double>> logs;  // by node, one a workload and batch
    for (const Workload& workload : group.workloads) AddWorkload(workload, logs);
    if (logs.size() < 2) continue;
    Group out = group.head;
    out.asked = group.workloads.size();
    std::vector<double> of_nodes;
    for (const auto& [node, of_node] : logs) {
      of_nodes.push_back(measure::Moments(of_node).mean());
    }
    const std::vector<double> deviations = measure::RobustDeviations(of_nodes);
    size_t i = 0;
    for (const auto& [node, of_node] : logs) {
      SideRow row;
      row.side = grouped.words.Text(node);
      row.completed = row.pairs = of_node.size();
      row.geomean = measure::Ratio{std::exp(of_nodes[i]), std::nullopt};
      row.deviation = deviations[i];
      const bool far = std::abs(of_nodes[i]) > std::log(1 + kSameRatio);
      const bool odd = far && std::abs(deviations[i]) > kOddDeviation;
      row.verdict = logs.size() < kLeastNodes ? Standing::kIndicative
                    : !odd                    ? Standing::kSame
                    : of_nodes[i] > 0         ? Standing::kFaster
                                              : Standing::kSlower;
      out.sides.push_back(std::move(row));
      ++i;
    }
    out.ranked = true;
    std::stable_sort(out.sides.begin(), out.sides.end(), [](const SideRow& a, const SideRow& b) {
      return a.geomean->value > b.geomean->value;
    });
    comparison.groups.push_back(std::move(out));
  }
}

}  // namespace assay::compare
