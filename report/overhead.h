// The site summary of `lbf-report --overhead`: what the capture cost, per program and in all.
#pragma once

#include <string>
#include <vector>

#include "report/fields.h"
#include "report/step.h"

namespace lbf::report {

// One program, by the base name of its command's first word; or all.
struct OverheadSummary {
  std::string program;
  std::size_t steps = 0;
  std::size_t over_limit = 0;    // of them: C_obs_high above the limit
  std::size_t seen_in_part = 0;  // of them: captured in windows
  std::uint64_t deferred = 0;    // targets of these steps that were not replayed for want of room
  std::uint64_t taken_up = 0;    // targets that were not when their step ended, and were later
  // Means over the steps, each weighing as much as it used processor time; limit: the lowest and the highest.
  std::optional<double> lowest_limit_percent;
  std::optional<double> highest_limit_percent;
  std::optional<double> predicted_percent;
  std::optional<double> low_percent;
  std::optional<double> high_percent;
  std::optional<Seconds> once_s;             // spent once in each step: mean of the steps that know
  std::optional<double> total_high_percent;  // high with what was spent once
  std::optional<double> seen_percent;
};

// Programs by their names, then all of them together under "(all)". Steps without known costs are left out.
std::vector<OverheadSummary> summarize_overhead(const std::vector<Step>& steps);

// {"overhead":[{"program":...}, ...]}, as lbf-report(1) says; what is not known is null.
std::string overhead_json(const std::vector<OverheadSummary>& summaries);

// A line for each; empty where no step has known costs.
std::string render_overhead(const std::vector<OverheadSummary>& summaries, const TableStyle& style);

// `lbf-report --overhead -j`: a line for each of these steps, its nodes and its ranks; empty where no costs are known.
std::string render_overhead_of_steps(const std::vector<Step>& steps, const TableStyle& style);

}  // namespace lbf::report
