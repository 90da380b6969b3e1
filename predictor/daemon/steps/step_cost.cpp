// StreamCost, see step_cost.h.
#include "predictor/daemon/steps/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lbf::daemon {
namespace {

// Known of all, or of none.
void add_to(std::optional<Seconds>& sum, const std::optional<Seconds>& part) {
  if (sum) sum = part ? std::optional<Seconds>(*sum + *part) : std::nullopt;
}

// How little a capture in this state records.
int closedness(const std::string& state) {
  return state == "off" ? 2 : state == "counting" ? 1 : 0;
}

}  // namespace

StreamCost stream_cost_of(const protocol::CostRecord& record, std::uint32_t node, Rank ranks) {
  StreamCost cost;
  cost.limit_percent = record.limit_percent;
  cost.predicted_percent = record.predicted_percent;
  cost.corrected_percent = record.corrected_percent;
  cost.recording_s = record.recording_s.value_or(0);
  cost.procedures_s = record.procedures_s.value_or(0);
  cost.recording_said = record.recording_s.has_value();
  cost.watched_s = record.watched_s;
  cost.recorded_calls = record.recorded_calls.value_or(0);
  cost.counted_calls = record.counted_calls.value_or(0);
  cost.disbelieved = record.disbelieved.value_or(0);
  db::NodeCostRecord& of_node = cost.node;
  of_node.node = node;
  of_node.state = record.state == "counting" || record.state == "off" ? *record.state : "open";
  of_node.program_cpu_s = record.program_cpu_s.value_or(0);
  of_node.direct_s = record.direct_s.value_or(0);
  of_node.ideal_s = record.ideal_s.value_or(0);
  of_node.relay_cpu_s = record.relay_cpu_s.value_or(0);
  of_node.held_up_s = record.held_up_s.value_or(0);
  of_node.open_s = record.open_s.value_or(0);
  of_node.regulated_s = record.regulated_s.value_or(0);
  of_node.pressed_s = record.pressed_s.value_or(0);
  of_node.windows = record.windows.value_or(0);
  of_node.once_capture_s = record.once_capture_s;
  of_node.once_relay_s = record.once_relay_s;
  if (!record.ranks) return cost;
  for (const protocol::RankCost& one : *record.ranks) {
    if (cost.ranks.size() == static_cast<std::size_t>(ranks)) break;
    if (one.rank >= static_cast<std::uint64_t>(ranks)) continue;
    cost.ranks.push_back({static_cast<Rank>(one.rank), one.direct_s, one.ideal_s, one.recorded_calls, one.counted_calls,
                          one.program_cpu_s});
  }
  return cost;
}

engine::CaptureCost capture_cost_of(const std::vector<StreamCost>& streams) {
  engine::CaptureCost cost;
  for (const StreamCost& stream : streams) {
    cost.recording_s += stream.recording_s;
    cost.counting_s += std::max(stream.node.direct_s - stream.recording_s - stream.procedures_s, 0.0);
  }
  return cost;
}

protocol::SeenRun seen_run_of(const engine::Prediction& prediction, const std::vector<StreamCost>& streams) {
  const db::CostRecord cost = cost_of_step(streams, prediction.seen_share, true);
  return {prediction.seen_share, prediction.high_s != kNeverS, cost.limit_percent, cost.corrected_percent};
}

db::CostRecord cost_of_step(const std::vector<StreamCost>& streams, double seen_share, bool to_the_end) {
  db::CostRecord out;
  out.seen_share = std::isfinite(seen_share) ? std::clamp(seen_share, 0.0, 1.0) : 1;
  out.once_capture_s = out.once_relay_s = out.recording_s = 0;
  double predicted = 0;
  double corrected = 0;
  std::size_t predictions = 0;
  for (const StreamCost& stream : streams) {
    const db::NodeCostRecord& node = stream.node;
    if (stream.limit_percent) out.limit_percent = std::min(out.limit_percent.value_or(100), *stream.limit_percent);
    if (stream.predicted_percent) {
      ++predictions;
      predicted += *stream.predicted_percent;
      corrected += stream.corrected_percent.value_or(*stream.predicted_percent);
    }
    if (closedness(node.state) > closedness(out.state)) out.state = node.state;
    out.program_cpu_s += node.program_cpu_s;
    out.direct_s += node.direct_s;
    out.ideal_s += node.ideal_s;
    out.relay_cpu_s += node.relay_cpu_s;
    out.held_up_s += node.held_up_s;
    add_to(out.once_capture_s, node.once_capture_s);
    add_to(out.once_relay_s, node.once_relay_s);
    add_to(out.recording_s, stream.recording_said ? std::optional<Seconds>(stream.recording_s) : std::nullopt);
    out.recorded_calls += stream.recorded_calls;
    out.counted_calls += stream.counted_calls;
    out.disbelieved += stream.disbelieved;
    out.windows = std::max(out.windows, node.windows);
    out.nodes.push_back(node);
    out.ranks.insert(out.ranks.end(), stream.ranks.begin(), stream.ranks.end());
  }
  if (predictions > 0) {
    out.predicted_percent = predicted / static_cast<double>(predictions);
    out.corrected_percent = corrected / static_cast<double>(predictions);
  }
  if (out.state == "off" && !to_the_end) {
    Seconds open_s = 0;
    Seconds regulated_s = 0;
    for (const db::NodeCostRecord& node : out.nodes) {
      open_s += node.open_s;
      regulated_s += node.regulated_s;
    }
    if (regulated_s > 0) out.seen_share = std::min(out.seen_share, open_s / regulated_s);
  }
  std::sort(out.ranks.begin(), out.ranks.end(),
            [](const db::RankCostRecord& a, const db::RankCostRecord& b) { return a.rank < b.rank; });
  return out;
}

std::vector<std::string> cost_notes(const db::CostRecord& cost, Seconds run_s) {
  std::vector<std::string> notes;
  if (cost.seen_share < 0.9995) {
    notes.push_back(fmt::format(
        "{:.1f} % of the run was captured, in {} {}, so that the overhead stays below its limit{}: predictions are "
        "extrapolated from them",
        100 * cost.seen_share, cost.windows, cost.windows == 1 ? "window" : "windows",
        cost.limit_percent ? fmt::format(" ({:g} %)", *cost.limit_percent) : std::string()));
  }
  if (cost.state == "off") {
    const std::string limit = cost.limit_percent ? fmt::format(" ({:g} %)", *cost.limit_percent) : std::string();
    const auto ended =
        std::count_if(cost.nodes.begin(), cost.nodes.end(), [](const auto& node) { return node.state == "off"; });
    if (cost.limit_percent && *cost.limit_percent == 0) {
      notes.push_back("the overhead limit is 0: nothing is captured");
    } else if (run_s > 0 && cost.seen_share > 0) {
      notes.push_back(
          fmt::format("the capture ended after {:.3g} s of {:.3g} on {} of {} nodes, because even counting the "
                      "program's calls costs "
                      "more than the overhead limit{}: the rest is taken to behave like it",
                      cost.seen_share * run_s, run_s, ended, cost.nodes.size(), limit));
    } else {
      notes.push_back(
          fmt::format("the capture ended before the program on {} of {} nodes: even counting its calls costs more than "
                      "the overhead "
                      "limit{}",
                      ended, cost.nodes.size(), limit));
    }
  }
  if (cost.disbelieved > 0) {
    notes.push_back(fmt::format(
        "the capture's own counts could not be true {} {}: the observed overhead is too low by what they hid",
        cost.disbelieved, cost.disbelieved == 1 ? "time" : "times"));
  }
  return notes;
}

}  // namespace lbf::daemon
