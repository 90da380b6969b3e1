#include "report/overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/times.h"
#include "report/row_table.h"
#include "report/text.h"

namespace lbf::report {
namespace {

class WeightedMean {
 public:
  void add(const std::optional<double>& value, double weight) {
    if (!value) return;
    sum_ += *value * weight;
    weight_ += weight;
  }
  std::optional<double> value() const { return weight_ > 0 ? std::optional<double>(sum_ / weight_) : std::nullopt; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

class Collected {
 public:
  void add(const Step& step) {
    const Cost& cost = *step.cost;
    ++summary_.steps;
    const auto count = [&](bool (*is)(const TargetPrediction&)) {
      return static_cast<std::uint64_t>(std::count_if(step.predictions.begin(), step.predictions.end(), is));
    };
    summary_.deferred +=
        step.targets_deferred.value_or(count([](const TargetPrediction& p) { return !p.why_deferred.empty(); }));
    summary_.taken_up += step.targets_taken_up.value_or(count([](const TargetPrediction& p) { return p.taken_up; }));
    summary_.over_limit += cost.over_limit() ? 1 : 0;
    summary_.seen_in_part += cost.seen_in_part() ? 1 : 0;
    if (cost.limit_percent) {
      const double limit = *cost.limit_percent;
      summary_.lowest_limit_percent = std::min(summary_.lowest_limit_percent.value_or(limit), limit);
      summary_.highest_limit_percent = std::max(summary_.highest_limit_percent.value_or(limit), limit);
    }
    const double weight = cost.program_cpu_s.value_or(0);
    predicted_.add(cost.predicted_percent, weight);
    low_.add(cost.low_percent, weight);
    high_.add(cost.high_percent, weight);
    total_.add(cost.total_high_percent, weight);
    once_.add(cost.once_s(), 1);
    seen_.add(cost.seen_share, weight);
  }
  OverheadSummary summary(std::string program) const {
    OverheadSummary out = summary_;
    out.program = std::move(program);
    out.predicted_percent = predicted_.value();
    out.low_percent = low_.value();
    out.high_percent = high_.value();
    out.total_high_percent = total_.value();
    out.once_s = once_.value();
    if (const auto seen = seen_.value()) out.seen_percent = 100 * *seen;
    return out;
  }

 private:
  OverheadSummary summary_;
  WeightedMean predicted_;
  WeightedMean low_;
  WeightedMean high_;
  WeightedMean total_;
  WeightedMean once_;
  WeightedMean seen_;
};

std::string percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}%", *value) : "-";
}

std::string limits(const OverheadSummary& summary) {
  if (!summary.lowest_limit_percent) return "-";
  if (*summary.lowest_limit_percent == *summary.highest_limit_percent) {
    return fmt::format("{:g}%", *summary.lowest_limit_percent);
  }
  return fmt::format("{:g}-{:g}%", *summary.lowest_limit_percent, *summary.highest_limit_percent);
}

std::string milliseconds(const std::optional<Seconds>& value) {
  return value ? fmt::format("{:.1f}ms", 1e3 * *value) : "-";
}

constexpr std::array<ColumnOf<OverheadSummary>, 13> kColumns{
    {{"Program", 18, true, [](const OverheadSummary& s) { return s.program; }},
     {"Steps", 6, false, [](const OverheadSummary& s) { return std::to_string(s.steps); }},
     {"Limit", 8, false, limits},
     {"Predicted", 9, false, [](const OverheadSummary& s) { return percent(s.predicted_percent); }},
     {"Low", 7, false, [](const OverheadSummary& s) { return percent(s.low_percent); }},
     {"High", 7, false, [](const OverheadSummary& s) { return percent(s.high_percent); }},
     {"Once", 8, false, [](const OverheadSummary& s) { return milliseconds(s.once_s); }},
     {"Total", 7, false, [](const OverheadSummary& s) { return percent(s.total_high_percent); }},
     {"Seen", 7, false,
      [](const OverheadSummary& s) { return s.seen_percent ? fmt::format("{:.1f}%", *s.seen_percent) : "-"; }},
     {"InPart", 6, false, [](const OverheadSummary& s) { return std::to_string(s.seen_in_part); }},
     {"Over", 5, false, [](const OverheadSummary& s) { return std::to_string(s.over_limit); }},
     {"Deferred", 8, false, [](const OverheadSummary& s) { return std::to_string(s.deferred); }},
     {"TakenUp", 7, false, [](const OverheadSummary& s) { return std::to_string(s.taken_up); }}}};

// A step, one of its nodes, or one of its ranks.
struct PartRow {
  std::string where;
  std::optional<Seconds> program_cpu_s;
  std::optional<double> limit_percent;
  std::optional<double> predicted_percent;
  std::optional<double> low_percent;
  std::optional<double> high_percent;
  std::optional<Seconds> relay_cpu_s;
  std::optional<Seconds> held_up_s;
  std::optional<Seconds> once_s;
  std::optional<std::uint64_t> recorded_calls;
  std::optional<std::uint64_t> counted_calls;
  std::string state;
};

std::string count(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "-";
}

constexpr std::array<ColumnOf<PartRow>, 12> kPartColumns{
    {{"Where", 20, true, [](const PartRow& r) { return r.where; }, true},
     {"CPU", 10, false, [](const PartRow& r) { return r.program_cpu_s ? format_duration(*r.program_cpu_s) : "-"; }},
     {"Limit", 6, false,
      [](const PartRow& r) { return r.limit_percent ? fmt::format("{:g}%", *r.limit_percent) : "-"; }},
     {"Predicted", 9, false, [](const PartRow& r) { return percent(r.predicted_percent); }},
     {"Low", 7, false, [](const PartRow& r) { return percent(r.low_percent); }},
     {"High", 7, false, [](const PartRow& r) { return percent(r.high_percent); }},
     {"Relay", 9, false, [](const PartRow& r) { return milliseconds(r.relay_cpu_s); }},
     {"HeldUp", 9, false, [](const PartRow& r) { return milliseconds(r.held_up_s); }},
     {"Once", 8, false, [](const PartRow& r) { return milliseconds(r.once_s); }},
     {"Recorded", 11, false, [](const PartRow& r) { return count(r.recorded_calls); }},
     {"Counted", 11, false, [](const PartRow& r) { return count(r.counted_calls); }},
     {"State", 8, false, [](const PartRow& r) { return r.state; }}}};

PartRow row_of(std::string where, const CostPart& part) {
  PartRow row;
  row.where = std::move(where);
  row.program_cpu_s = part.program_cpu_s;
  row.relay_cpu_s = part.relay_cpu_s;
  row.held_up_s = part.held_up_s;
  row.once_s = part.once_s;
  row.recorded_calls = part.recorded_calls;
  row.counted_calls = part.counted_calls;
  row.state = part.state;
  if (part.program_cpu_s > 0) {
    const Seconds low_s = part.direct_s + part.relay_cpu_s.value_or(0);
    row.low_percent = 100 * low_s / part.program_cpu_s;
    row.high_percent =
        100 * (low_s + std::max(part.direct_s - part.ideal_s, 0.0) + part.held_up_s.value_or(0)) / part.program_cpu_s;
  }
  return row;
}

void add_rows(const Step& step, std::vector<PartRow>& rows) {
  const Cost& cost = *step.cost;
  PartRow all;
  all.where = job_id(step);
  all.program_cpu_s = cost.program_cpu_s;
  all.limit_percent = cost.limit_percent;
  all.predicted_percent = cost.predicted_percent;
  all.low_percent = cost.low_percent;
  all.high_percent = cost.high_percent;
  all.once_s = cost.once_s();
  all.recorded_calls = cost.recorded_calls;
  all.counted_calls = cost.counted_calls;
  all.state = cost.state;
  for (const CostPart& node : cost.nodes) {
    if (node.relay_cpu_s) all.relay_cpu_s = all.relay_cpu_s.value_or(0) + *node.relay_cpu_s;
    if (node.held_up_s) all.held_up_s = all.held_up_s.value_or(0) + *node.held_up_s;
  }
  rows.push_back(std::move(all));
  for (const CostPart& node : cost.nodes) {
    const bool named = node.number < step.nodes.size();
    rows.push_back(row_of("  " + (named ? step.nodes[node.number] : "node " + std::to_string(node.number)), node));
  }
  for (const CostPart& rank : cost.ranks) rows.push_back(row_of("  rank " + std::to_string(rank.number), rank));
}

}  // namespace

std::vector<OverheadSummary> summarize_overhead(const std::vector<Step>& steps) {
  std::map<std::string, Collected> programs;
  Collected all;
  for (const Step& step : steps) {
    if (!step.cost) continue;
    programs[program_of(step)].add(step);
    all.add(step);
  }
  std::vector<OverheadSummary> out;
  for (const auto& [program, collected] : programs) out.push_back(collected.summary(program));
  if (!out.empty()) out.push_back(all.summary("(all)"));
  return out;
}

std::string overhead_json(const std::vector<OverheadSummary>& summaries) {
  const auto known = [](const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
  };
  nlohmann::json list = nlohmann::json::array();
  for (const OverheadSummary& s : summaries) {
    list.push_back({{"program", s.program},
                    {"steps", s.steps},
                    {"lowest_limit_percent", known(s.lowest_limit_percent)},
                    {"highest_limit_percent", known(s.highest_limit_percent)},
                    {"predicted_percent", known(s.predicted_percent)},
                    {"low_percent", known(s.low_percent)},
                    {"high_percent", known(s.high_percent)},
                    {"once_s", known(s.once_s)},
                    {"total_high_percent", known(s.total_high_percent)},
                    {"seen_percent", known(s.seen_percent)},
                    {"seen_in_part", s.seen_in_part},
                    {"over_limit", s.over_limit},
                    {"targets_deferred", s.deferred},
                    {"targets_taken_up", s.taken_up}});
  }
  return nlohmann::json{{"overhead", std::move(list)}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         '\n';
}

std::string render_overhead(const std::vector<OverheadSummary>& summaries, const TableStyle& style) {
  return render_rows(summaries, kColumns, style);
}

std::string render_overhead_of_steps(const std::vector<Step>& steps, const TableStyle& style) {
  std::vector<PartRow> rows;
  for (const Step& step : steps) {
    if (step.cost) add_rows(step, rows);
  }
  return render_rows(rows, kPartColumns, style);
}

}  // namespace lbf::report
