// lbf-report --scaling: the run time of a program over its number of ranks, from the steps that ran it at a few of them
// (docs/advisor.md, "Scaling"). The laws are advisor/scaling's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advisor/scaling/scaling.h"
#include "advisor/trust/trust.h"
#include "base/result.h"
#include "report/curves.h"
#include "report/fields.h"
#include "report/plot.h"
#include "report/step.h"

namespace lbf::report {

struct ScalingQuestion {
  advisor::Problem problem = advisor::Problem::kSame;
  std::vector<std::uint32_t> ranks;  // to be predicted; empty: those that ran, and up to 8 times the most, by doubling
};

// The steps of one program with the same arguments of one user on one cluster; each with two rank counts at least. The
// most recent first.
std::vector<std::vector<Step>> families_of(std::vector<Step> steps);

struct ScalingRow {
  advisor::ScalingForecast there;
  advisor::Saying saying;  // of its time; but for kCannotTell: such rows are left out
  double efficiency = 1;
  std::optional<advisor::Part> bound_by;
  std::optional<Seconds> measured_s;  // the mean of its runs, where each rank had a processor
};

struct ScalingAnswer {
  std::string command;
  std::string network;
  std::vector<std::string> jobs;     // by ranks
  std::vector<std::uint32_t> ran;    // ranks of each job
  std::uint32_t ranks_per_node = 1;  // 0: all are on one node
  std::uint32_t threads = 0;         // of each rank
  ScalingQuestion question;
  std::vector<ScalingRow> rows;
  std::optional<std::size_t> knee;  // of rows, one whose time is a number
  std::string beyond;  // why there are no more rows, or not all that were asked for; empty: nothing is missing
  std::vector<std::string> notes;                         // sentences
  std::vector<std::pair<std::string, std::string>> laws;  // of the parts on as many nodes as the last row, in words
};

// Errors (kInvalidInput): why a step cannot be used, or the steps have no law in common, with the run that would settle
// it. Of steps with one rank count it says Amdahl's bound. REQUIRES: a step.
Result<ScalingAnswer> scaling_of(const std::vector<Step>& steps, const ScalingQuestion& question);

// What stands above and below the table; without a line end.
std::string scaling_head(const ScalingAnswer& answer);
std::string scaling_sentences(const ScalingAnswer& answer);
std::string render_scaling(const ScalingAnswer& answer, const TableStyle& style);
// The lbf-whatif that replays the program itself at the first rank count that did not run; empty: there is none, or its
// ranks have threads, which are not extrapolated.
std::string whatif_command(const ScalingAnswer& answer);
// Time and efficiency over ranks, drawn; with the sentences. REQUIRES (chart): a row.
TimeChart scaling_chart(const ScalingAnswer& answer);
std::string plot_scaling(const ScalingAnswer& answer, const PlotStyle& style);
// A page that needs nothing else, with the laws of the parts. VERSION: of lbf-report.
std::string scaling_html(const std::vector<ScalingAnswer>& answers, std::string_view version);
// {"scaling":[...]}, as lbf-report(1) says.
std::string scaling_json(const std::vector<ScalingAnswer>& answers);

}  // namespace lbf::report
