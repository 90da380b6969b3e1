#include "advisor/report/overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "advisor/report/text.h"

namespace lbf::report {
namespace {

class WeightedMean {
 public:
  void add(const std::optional<double>& value, double weight) {
    if (!value) return;
    sum_ += *value * weight;
    weight_ += weight;
  }
  std::optional<double> value() const {
    return weight_ > 0 ? std::optional<double>(sum_ / weight_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

class Collected {
 public:
  void add(const Cost& cost) {
    ++summary_.steps;
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
    seen_.add(cost.seen_share, weight);
  }
  OverheadSummary summary(std::string program) const {
    OverheadSummary out = summary_;
    out.program = std::move(program);
    out.predicted_percent = predicted_.value();
    out.low_percent = low_.value();
    out.high_percent = high_.value();
    if (const auto seen = seen_.value()) out.seen_percent = 100 * *seen;
    return out;
  }

 private:
  OverheadSummary summary_;
  WeightedMean predicted_;
  WeightedMean low_;
  WeightedMean high_;
  WeightedMean seen_;
};

std::string program_of(const Step& step) {
  const std::string command = command_line(step);
  const std::string program = command.substr(0, command.find(' '));
  return program.empty() ? "-" : program;
}

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

struct SummaryColumn {
  std::string_view name;
  std::size_t width;
  bool left;
  std::string (*value)(const OverheadSummary&);
};

constexpr std::array<SummaryColumn, 9> kColumns{
    {{"Program", 18, true, [](const OverheadSummary& s) { return s.program; }},
     {"Steps", 6, false, [](const OverheadSummary& s) { return std::to_string(s.steps); }},
     {"Limit", 8, false, limits},
     {"Predicted", 9, false, [](const OverheadSummary& s) { return percent(s.predicted_percent); }},
     {"Low", 7, false, [](const OverheadSummary& s) { return percent(s.low_percent); }},
     {"High", 7, false, [](const OverheadSummary& s) { return percent(s.high_percent); }},
     {"Seen", 7, false,
      [](const OverheadSummary& s) { return s.seen_percent ? fmt::format("{:.1f}%", *s.seen_percent) : "-"; }},
     {"InPart", 6, false, [](const OverheadSummary& s) { return std::to_string(s.seen_in_part); }},
     {"Over", 5, false, [](const OverheadSummary& s) { return std::to_string(s.over_limit); }}}};

}  // namespace

std::vector<OverheadSummary> summarize_overhead(const std::vector<Step>& steps) {
  std::map<std::string, Collected> programs;
  Collected all;
  for (const Step& step : steps) {
    if (!step.cost) continue;
    programs[program_of(step)].add(*step.cost);
    all.add(*step.cost);
  }
  std::vector<OverheadSummary> out;
  for (const auto& [program, collected] : programs) out.push_back(collected.summary(program));
  if (!out.empty()) out.push_back(all.summary("(all)"));
  return out;
}

std::string render_overhead(const std::vector<OverheadSummary>& summaries, const TableStyle& style) {
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const std::string cell = cell_of(kColumns[i]);
      if (i > 0) text += style.parsable ? style.delimiter : " ";
      text += style.parsable ? cell : fit(cell, kColumns[i].width, kColumns[i].left);
    }
    if (style.parsable) {
      if (style.trailing) text += style.delimiter;
    } else {
      text.erase(text.find_last_not_of(' ') + 1);
    }
    out += text + '\n';
  };
  if (summaries.empty()) return out;
  if (style.header) {
    line([](const SummaryColumn& column) { return std::string(column.name); });
    if (!style.parsable) line([](const SummaryColumn& column) { return std::string(column.width, '-'); });
  }
  for (const OverheadSummary& summary : summaries) {
    line([&](const SummaryColumn& column) { return column.value(summary); });
  }
  return out;
}

}  // namespace lbf::report
