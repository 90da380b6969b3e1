#include "report/procedures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/times.h"
#include "report/text.h"

namespace lbf::report {
namespace {

constexpr std::size_t kMaxNameWidth = 40;
constexpr std::size_t kMaxPathEntries = 5;

std::string shown_seconds(const std::optional<Seconds>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

std::string shown_percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.1f}%", *value) : "-";
}

std::string shown_count(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "-";
}

// Of what measuring costs: most are small.
std::string cost_percent(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}%", *value) : "-";
}

// Where nothing is known of it: what it may cost at most.
std::string predicted_percent(const Procedure& procedure) {
  return (procedure.predicted_cost_percent && procedure.predicted_from == "limit" ? "<=" : "") +
         cost_percent(procedure.predicted_cost_percent);
}

// Of what there was to move, what had no message to go with.
std::string stayed(const std::optional<Seconds>& stayed_s) {
  return stayed_s && *stayed_s > 0 ? fmt::format("{:.3g}", *stayed_s) : "";
}

struct ProcedureColumn {
  std::string_view name;
  bool left;
  std::string (*value)(const ProcedureTimes&, const Procedure&);
};

constexpr std::array<ProcedureColumn, 16> kProcedureColumns{{
    {"Procedure", true, [](const ProcedureTimes&, const Procedure& p) { return p.name; }},
    {"State", true, [](const ProcedureTimes&, const Procedure& p) { return shown_state(p); }},
    {"Calls", false, [](const ProcedureTimes&, const Procedure& p) { return shown_count(p.calls); }},
    {"Time_s", false, [](const ProcedureTimes&, const Procedure& p) { return shown_seconds(shown_time_s(p)); }},
    {"Self_s", false,
     [](const ProcedureTimes&, const Procedure& p) { return p.is_sampled() ? "-" : shown_seconds(p.exclusive_s); }},
    {"OnPath", false, [](const ProcedureTimes& t, const Procedure& p) { return shown_percent(on_path_percent(t, p)); }},
    {"ToReceiver_s", false, [](const ProcedureTimes&, const Procedure& p) { return shown_seconds(p.receiver_s); }},
    {"Gain", false,
     [](const ProcedureTimes& t, const Procedure& p) { return shown_percent(gain_percent(t, p.receiver_s)); }},
    {"Stayed_s", false, [](const ProcedureTimes&, const Procedure& p) { return stayed(p.stayed_receiver_s); }},
    {"ToSender_s", false, [](const ProcedureTimes&, const Procedure& p) { return shown_seconds(p.sender_s); }},
    {"Gain", false,
     [](const ProcedureTimes& t, const Procedure& p) { return shown_percent(gain_percent(t, p.sender_s)); }},
    {"Stayed_s", false, [](const ProcedureTimes&, const Procedure& p) { return stayed(p.stayed_sender_s); }},
    {"Zeroed_s", false, [](const ProcedureTimes&, const Procedure& p) { return shown_seconds(p.zeroed_s); }},
    {"Gain", false,
     [](const ProcedureTimes& t, const Procedure& p) { return shown_percent(gain_percent(t, p.zeroed_s)); }},
    {"CostPred", false, [](const ProcedureTimes&, const Procedure& p) { return predicted_percent(p); }},
    {"Cost", false, [](const ProcedureTimes&, const Procedure& p) { return cost_percent(p.observed_cost_percent); }},
}};

std::string head_line(const Step& step, const ProcedureTimes& times) {
  std::string line = "job " + job_id(step);
  if (const std::string command = command_line(step); !command.empty()) line += ", " + shorten(command, 60);
  if (step.measured_s) line += fmt::format(": measured {:.6g} s", *step.measured_s);
  if (times.path) line += fmt::format(", replayed {:.6g} s", times.path->as_it_ran_s);
  if (times.path && times.path->partial) line += step.running() ? " (so far)" : " (a part of the run)";
  return line + '\n';
}

std::string path_lines(const CriticalPath& path) {
  const auto share = [&](Seconds part_s) {
    return fmt::format("{:.6g} s ({:.1f} %)", part_s, path.length_s > 0 ? 100 * part_s / path.length_s : 0);
  };
  std::string out =
      fmt::format("critical path {:.6g} s to the end of rank {}: process time in none of these {}, MPI {}",
                  path.length_s, path.ends_at, share(path.other_work_s), share(path.mpi_s));
  if (path.blocked_s > 0) out += ", blocked " + share(path.blocked_s);
  if (path.unseen_s > 0) out += ", not captured " + share(path.unseen_s);
  out += '\n';
  const auto list = [&](std::string_view what, const auto& entries, const auto& name_of) {
    if (entries.empty()) return;
    out += fmt::format("  {}:", what);
    for (std::size_t i = 0; i < std::min(kMaxPathEntries, entries.size()); ++i) {
      out += (i > 0 ? ", " : " ") + name_of(entries[i].first) + " " + share(entries[i].second);
    }
    out += entries.size() > kMaxPathEntries ? ", ...\n" : "\n";
  };
  list("ranks", path.ranks,
       [](const std::optional<std::uint64_t>& rank) { return rank ? std::to_string(*rank) : "others"; });
  list("MPI functions", path.functions, [](const std::string& name) { return name.empty() ? "(not said)" : name; });
  return out;
}

bool has_row(const Procedure& procedure) {
  return procedure.state != "refused" || procedure.is_sampled();
}

using Row = std::vector<std::string>;

Row row_of(const ProcedureTimes& times, const Procedure& procedure) {
  Row row;
  for (const ProcedureColumn& column : kProcedureColumns) row.push_back(column.value(times, procedure));
  return row;
}

std::string aligned(std::vector<Row> rows, bool header) {
  for (Row& row : rows) row.front() = shorten(row.front(), kMaxNameWidth);
  Row names;
  for (const ProcedureColumn& column : kProcedureColumns) names.emplace_back(column.name);
  rows.insert(rows.begin(), names);
  std::vector<std::size_t> widths(kProcedureColumns.size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  // A column that says nothing of anybody.
  std::vector<bool> shown(kProcedureColumns.size(), true);
  for (std::size_t i = 0; i < kProcedureColumns.size(); ++i) {
    if (kProcedureColumns[i].name != "Stayed_s" && !kProcedureColumns[i].name.starts_with("Cost")) continue;
    shown[i] =
        std::any_of(rows.begin() + 1, rows.end(), [&](const Row& row) { return !row[i].empty() && row[i] != "-"; });
  }
  std::string out;
  for (std::size_t r = header ? 0 : 1; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < kProcedureColumns.size(); ++i) {
      if (shown[i]) line += (line.empty() ? "" : " ") + fit(rows[r][i], widths[i], kProcedureColumns[i].left);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string render_step_procedures(const Step& step, const ProcedureTimes& times, const TableStyle& style) {
  std::string out = head_line(step, times);
  std::vector<Row> rows;
  for (const Procedure* const procedure : ranked(times)) {
    if (has_row(*procedure)) rows.push_back(row_of(times, *procedure));
  }
  if (!rows.empty()) out += aligned(std::move(rows), style.header);
  if (times.path) out += path_lines(*times.path);
  if (const std::string line = seen_part_line(step); !line.empty()) out += line + '\n';
  if (const std::string best = best_move_line(times); !best.empty()) {
    out += "best move: " + best + '\n';
  } else if (times.path && !times.path->partial) {
    out += "no move of one of these makes the run shorter\n";
  }
  for (const Procedure* const procedure : ranked(times)) {
    if (!procedure->note.empty()) out += procedure->state + ": " + procedure->name + ": " + procedure->note + '\n';
  }
  if (!times.why_deferred.empty()) out += "not replayed to the end: " + times.why_deferred + '\n';
  return out;
}

}  // namespace

std::optional<double> on_path_percent(const ProcedureTimes& times, const Procedure& procedure) {
  if (!times.path || !procedure.critical_path_s || !(times.path->seen_s() > 0)) return std::nullopt;
  return 100 * *procedure.critical_path_s / times.path->seen_s();
}

std::string seen_part_line(const Step& step) {
  if (!step.cost || !step.cost->seen_in_part()) return {};
  return fmt::format(
      "{:.3g} % of the run was captured: calls, times and the path's parts (OnPath, too) are of that, {}",
      100 * *step.cost->seen_share,
      step.seen().is_too_little() ? "which is too little to predict from"
                                  : "what is predicted is extrapolated from it");
}

std::optional<double> gain_percent(const ProcedureTimes& times, const std::optional<Seconds>& changed_s) {
  if (!times.path || !changed_s || !(times.path->as_it_ran_s > 0)) return std::nullopt;
  return 100 * (1 - *changed_s / times.path->as_it_ran_s);
}

std::optional<BestMove> best_move(const ProcedureTimes& times) {
  constexpr double kLeastGainPercent = 0.1;
  std::optional<BestMove> best;
  for (const Procedure& procedure : times.procedures) {
    for (const bool to_receiver : {true, false}) {
      const std::optional<Seconds>& predicted_s = to_receiver ? procedure.receiver_s : procedure.sender_s;
      const auto gain = gain_percent(times, predicted_s);
      if (!gain || *gain < kLeastGainPercent || (best && best->gain_percent >= *gain)) continue;
      best = BestMove{&procedure, to_receiver, *predicted_s, *gain};
    }
  }
  return best;
}

std::string best_move_line(const ProcedureTimes& times) {
  const auto best = best_move(times);
  if (!best) return {};
  return fmt::format("{} in the {} of its messages: {:.6g} s instead of {:.6g} s, {:.1f} % shorter{}",
                     shorten(best->procedure->name, kMaxNameWidth), best->to_receiver ? "receiver" : "sender",
                     best->predicted_s, times.path->as_it_ran_s, best->gain_percent,
                     best->procedure->is_sampled() ? " (its time is sampled)" : "");
}

std::string shown_state(const Procedure& procedure) {
  return procedure.is_sampled() ? "sampled" : procedure.state;
}

std::optional<Seconds> shown_time_s(const Procedure& procedure) {
  return procedure.is_sampled() ? procedure.sampled_s : procedure.inclusive_s;
}

std::vector<const Procedure*> ranked(const ProcedureTimes& times) {
  std::vector<const Procedure*> out;
  for (const Procedure& procedure : times.procedures) out.push_back(&procedure);
  std::stable_sort(out.begin(), out.end(), [](const Procedure* a, const Procedure* b) {
    const bool a_is_measured = has_row(*a);
    const bool b_is_measured = has_row(*b);
    if (a_is_measured != b_is_measured) return a_is_measured;
    return a->critical_path_s.value_or(0) > b->critical_path_s.value_or(0);
  });
  return out;
}

std::string render_procedures(const std::vector<Step>& steps, const TableStyle& style) {
  std::string out;
  if (!style.parsable) {
    for (const Step& step : steps) {
      if (!step.procedures) continue;
      out += (out.empty() ? "" : "\n") + render_step_procedures(step, *step.procedures, style);
    }
    return out;
  }
  const auto line = [&](const std::string& job, const auto& cell_of) {
    std::string text = shown_cell(job, 0, true, style);
    for (std::size_t i = 0; i < kProcedureColumns.size(); ++i)
      text += style.delimiter + shown_cell(cell_of(i), 0, true, style);
    out += text + (style.trailing ? style.delimiter : "") + '\n';
  };
  const bool any =
      std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.procedures.has_value(); });
  if (!any) return out;
  if (style.header) line("JobID", [](std::size_t i) { return std::string(kProcedureColumns[i].name); });
  for (const Step& step : steps) {
    if (!step.procedures) continue;
    for (const Procedure* const procedure : ranked(*step.procedures)) {
      const Row row = row_of(*step.procedures, *procedure);
      line(job_id(step), [&](std::size_t i) { return row[i]; });
    }
  }
  return out;
}

}  // namespace lbf::report
