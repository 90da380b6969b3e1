// lbf-report --procedures: what if a procedure ran in the other process (docs/procedures.md), step by step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/fields.h"
#include "report/step.h"

namespace lbf::report {

// How much shorter the run would be, in percent of the run as it was; nothing where either is not known.
std::optional<double> gain_percent(const ProcedureTimes& times, const std::optional<Seconds>& changed_s);

// In percent of what is known of the critical path: how much of it runs through the procedure.
std::optional<double> on_path_percent(const ProcedureTimes& times, const Procedure& procedure);
// Of a run that was captured in part: what the table is about. Else empty.
std::string seen_part_line(const Step& step);

// Of all moves (not of zeroing, which nobody can do) the one that gains most; nothing: none gains anything.
struct BestMove {
  const Procedure* procedure = nullptr;
  bool to_receiver = true;
  Seconds predicted_s = 0;
  double gain_percent = 0;
};
std::optional<BestMove> best_move(const ProcedureTimes& times);
// "servBusy2 in the receiver of its messages: 4.33 s instead of 8.48 s, 48.9 % shorter"
std::string best_move_line(const ProcedureTimes& times);

// As tables show it: "sampled" where what is predicted of it rests on samples; then its time is the samples', too.
std::string shown_state(const Procedure& procedure);
std::optional<Seconds> shown_time_s(const Procedure& procedure);

// The measured procedures, those with most time on the critical path first; then the others.
std::vector<const Procedure*> ranked(const ProcedureTimes& times);

// For each step with procedures a table with words around it; `style.parsable`: rows of all steps alike, the job in
// front. Empty where no step has any.
std::string render_procedures(const std::vector<Step>& steps, const TableStyle& style);

}  // namespace lbf::report
