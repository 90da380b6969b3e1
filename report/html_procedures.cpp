// The page's section about procedures; see html_parts.h.
#include <fmt/format.h>

#include <algorithm>

#include "report/html_parts.h"
#include "report/procedures.h"
#include "report/text.h"

namespace lbf::report::html {
namespace {

std::string cell(const std::optional<Seconds>& seconds) {
  return fmt::format("<td>{}</td>", seconds ? fmt::format("{:.6g}", *seconds) : "-");
}

std::string percent_cell(const std::optional<double>& percent) {
  return fmt::format("<td>{}</td>", percent ? fmt::format("{:.1f} %", *percent) : "-");
}

std::string cost_cell(const std::optional<double>& percent) {
  return fmt::format("<td>{}</td>", percent ? fmt::format("{:.3g} %", *percent) : "-");
}

// Where nothing is known of it: what it may cost at most.
std::string predicted_cell(const Procedure& procedure) {
  if (!procedure.predicted_cost_percent || procedure.predicted_from != "limit")
    return cost_cell(procedure.predicted_cost_percent);
  return fmt::format("<td>&le; {:.3g} %</td>", *procedure.predicted_cost_percent);
}

}  // namespace

std::string procedures_body(const Step& step) {
  const ProcedureTimes& times = *step.procedures;
  std::string out;
  if (const std::string best = best_move_line(times); !best.empty()) {
    out += "<p>Best move: " + escaped(best) + "</p>";
  } else if (times.path && !times.path->partial) {
    out += "<p>No move of one of these procedures makes the run shorter.</p>";
  }
  std::string rows;
  for (const Procedure* const procedure : ranked(times)) {
    if (procedure->state == "refused" && !procedure->is_sampled()) continue;
    rows += fmt::format("<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td>",
                        escaped(shorten(procedure->name, 60)), escaped(shown_state(*procedure)),
                        procedure->calls ? std::to_string(*procedure->calls) : "-") +
            cell(shown_time_s(*procedure)) + (procedure->is_sampled() ? cell({}) : cell(procedure->exclusive_s)) +
            predicted_cell(*procedure) + cost_cell(procedure->observed_cost_percent) +
            percent_cell(on_path_percent(times, *procedure)) + cell(procedure->receiver_s) +
            percent_cell(gain_percent(times, procedure->receiver_s)) + cell(procedure->sender_s) +
            percent_cell(gain_percent(times, procedure->sender_s)) + cell(procedure->zeroed_s) +
            percent_cell(gain_percent(times, procedure->zeroed_s)) + "</tr>";
  }
  if (!rows.empty()) {
    out += "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\" class=\"text\">Procedure</th>";
    for (const char* const name :
         {"State", "Calls", "Time, s", "Self, s", "Cost, predicted", "Cost", "On the critical path",
          "In the receiver, s", "Shorter", "In the sender, s", "Shorter", "Not needed, s", "Shorter"}) {
      out += fmt::format("<th scope=\"col\">{}</th>", name);
    }
    out += "</tr></thead><tbody>" + rows + "</tbody></table></div>";
  }
  if (times.path) {
    const CriticalPath& path = *times.path;
    const auto share = [&](Seconds part_s) {
      return fmt::format("{:.6g} s ({:.1f} %)", part_s, path.length_s > 0 ? 100 * part_s / path.length_s : 0);
    };
    out += fmt::format(
        "<p>Replayed {:.6g} s{}. Critical path to the end of rank {}: process time in none of these {}, MPI "
        "{}{}{}.</p>",
        path.as_it_ran_s, path.partial ? " of a part of the run" : "", path.ends_at, share(path.other_work_s),
        share(path.mpi_s), path.blocked_s > 0 ? ", blocked " + share(path.blocked_s) : std::string(),
        path.unseen_s > 0 ? ", not captured " + share(path.unseen_s) : std::string());
  }
  if (const std::string line = seen_part_line(step); !line.empty()) out += "<p>" + escaped(line) + "</p>";
  std::string notes;
  for (const Procedure* const procedure : ranked(times)) {
    if (procedure->note.empty()) continue;
    notes += "<li>" + escaped(procedure->state + ": " + procedure->name + ": " + procedure->note) + "</li>";
  }
  if (!times.why_deferred.empty())
    notes += "<li>" + escaped("not replayed to the end: " + times.why_deferred) + "</li>";
  if (!notes.empty()) out += "<ul>" + notes + "</ul>";
  return out;
}

}  // namespace lbf::report::html
