#include "tools/whatif/procedure_output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/number.h"
#include "event/mpi_function_table.h"
#include "predictor/daemon/steps/step_cost.h"
#include "report/text.h"

namespace lbf::tools {
namespace {

using Kind = ProcedureScenario::Kind;
constexpr std::size_t kMaxPathEntries = 5;
constexpr std::size_t kMaxNameWidth = 48;

std::string seconds(const engine::Prediction& prediction) {
  if (!prediction.complete) return "stuck";
  return is_known(prediction) ? format_number(prediction.lbf_s, "%.6f") : "unknown";
}

std::string gain(const engine::Prediction& as_it_ran, const engine::Prediction& changed) {
  if (!is_known(changed) || !is_known(as_it_ran)) return "-";
  return format_number(gain_percent(as_it_ran, changed).value_or(0), "%.1f%%");
}

double part(Seconds of_s, Seconds all_s) {
  return all_s > 0 ? 100 * of_s / all_s : 0;
}

std::string function_name(std::int32_t function) {
  if (function == engine::PathProfile::kOthers) return "others";
  return function == 0 ? "(not said)" : std::string(mpi_function_name(static_cast<std::uint16_t>(function)));
}

std::string path_text(const ProcedureAnswer& answer) {
  const engine::PathProfile& path = answer.path;
  const auto share = [&](Seconds part_s) {
    return format_number(part_s, "%.6f") + " s (" + format_number(part(part_s, path.length_s), "%.1f") + " %)";
  };
  std::string text = "  " + format_number(path.length_s, "%.6f") + " s to the end of rank " +
                     std::to_string(path.ends_at) + ": other process time " + share(path.other_work_s) + ", MPI " +
                     share(path.mpi_s);
  if (path.blocked_s > 0) text += ", blocked " + share(path.blocked_s);
  if (path.unseen_s > 0) text += ", not captured " + share(path.unseen_s);
  text += "\n  ranks:";
  for (std::size_t i = 0; i < std::min(kMaxPathEntries, path.rank_s.size()); ++i) {
    const auto& [rank, rank_s] = path.rank_s[i];
    text += (i > 0 ? ", " : " ") + (rank == engine::PathProfile::kOthers ? "others" : std::to_string(rank)) + " " +
            share(rank_s);
  }
  if (path.rank_s.size() > kMaxPathEntries) text += ", ...";
  text += "\n";
  if (path.function_s.empty()) return text;
  text += "  MPI functions:";
  for (std::size_t i = 0; i < std::min(kMaxPathEntries, path.function_s.size()); ++i) {
    text += (i > 0 ? ", " : " ") + function_name(path.function_s[i].first) + " " + share(path.function_s[i].second);
  }
  return text + "\n";
}

const engine::Prediction& of(const ProcedureAnswer& answer, Kind kind, std::size_t procedure, int percent,
                             std::size_t t) {
  for (std::size_t v = 0; v < answer.question.scenarios.size(); ++v) {
    const ProcedureScenario& scenario = answer.question.scenarios[v];
    if (scenario.kind == kind && scenario.procedure == procedure && scenario.percent == percent) {
      return answer.predictions[v][t];
    }
  }
  static const engine::Prediction none;
  return none;
}

// A line per percent: the gain, for each curve that was asked for.
std::string curve_table(const ProcedureAnswer& answer, std::size_t t, const engine::Prediction& as_it_ran) {
  const ProcedureQuestion& question = answer.question;
  std::vector<std::vector<std::string>> rows{{"PERCENT"}};
  std::vector<std::pair<Kind, std::size_t>> columns;
  for (const ProcedureScenario& scenario : question.scenarios) {
    if (scenario.kind < Kind::kCurveMoved || scenario.percent != 100) continue;
    columns.emplace_back(scenario.kind, scenario.procedure);
    const std::string name =
        shown_name(scenario.kind == Kind::kCurveAsked ? "asked" : question.names[scenario.procedure]);
    rows[0].push_back(name + (scenario.kind == Kind::kCurveMoved    ? ":moved"
                              : scenario.kind == Kind::kCurveFaster ? ":faster"
                                                                    : ""));
  }
  if (columns.empty()) return {};
  for (const ProcedureScenario& scenario : question.scenarios) {
    const auto& [kind, procedure] = columns.front();
    if (scenario.kind != kind || scenario.procedure != procedure) continue;
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(std::to_string(scenario.percent));
    for (const auto& [each_kind, each] : columns) {
      row.push_back(gain(as_it_ran, of(answer, each_kind, each, scenario.percent, t)));
    }
  }
  return "  gain, by percent of the time (moved: to " + question.to + ")\n" + text_table(rows, 0);
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kLbf:
      return "procedure_lbf";
    case Kind::kZeroing:
      return "critical_path_zeroing";
    case Kind::kAsked:
      return "asked";
    case Kind::kCurveMoved:
      return "curve_moved";
    case Kind::kCurveFaster:
      return "curve_faster";
    case Kind::kCurveAsked:
      return "curve_asked";
  }
  return "";
}

}  // namespace

std::string shown_name(const std::string& name) {
  return report::shorten(report::printable(name), kMaxNameWidth);
}

std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t words) {
  std::vector<std::size_t> width(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(width[i] - row[i].size(), ' ');
      line += (i > 0 ? "  " : "") + (i < words ? row[i] + pad : pad + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string target_name(const engine::Target& target) {
  return std::to_string(target.nodes) + (target.nodes == 1 ? " node, " : " nodes, ") + target.placement.substr(0, 32) +
         ", network " + target.network->name();
}

bool is_known(const engine::Prediction& prediction) {
  return prediction.complete && !daemon::seen_run_of(prediction).is_too_little();
}

std::optional<double> gain_percent(const engine::Prediction& as_it_ran, const engine::Prediction& changed) {
  if (!is_known(as_it_ran) || !is_known(changed) || !(as_it_ran.lbf_s > 0)) return std::nullopt;
  return 100 * (1 - changed.lbf_s / as_it_ran.lbf_s);
}

std::string procedure_table(const ProcedureAnswer& answer, const std::vector<engine::Target>& targets,
                            const std::vector<engine::Prediction>& as_it_ran) {
  const ProcedureQuestion& question = answer.question;
  std::string text = "\nprocedures, and the critical path of " + target_name(targets.front()) + "\n";
  std::vector<std::vector<std::string>> rows{{"PROCEDURE", "CALLS", "TIME_S", "SELF_S", "ON_PATH_S", "ON_PATH"}};
  for (std::size_t p = 0; p < question.names.size(); ++p) {
    const engine::ProcedureStats& stats = answer.procedure_stats[p];
    const Seconds on_path_s = p < answer.path.procedure_s.size() ? answer.path.procedure_s[p] : 0;
    const bool is_sampled = question.sampled.contains(question.names[p]);
    rows.push_back({shown_name(question.names[p]), is_sampled ? "sampled" : std::to_string(stats.calls),
                    format_number(stats.inclusive_s, "%.6f"), format_number(stats.exclusive_s, "%.6f"),
                    format_number(on_path_s, "%.6f"), format_number(part(on_path_s, answer.path.seen_s()), "%.1f%%")});
  }
  text += text_table(rows, 1) + path_text(answer);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    text += "\n" + target_name(targets[t]) + ": " + seconds(as_it_ran[t]) + " s as it ran\n";
    rows = {{"PROCEDURE", "PROCEDURE_LBF_S", "IMPROVEMENT", "PATH_ZEROING_S", "IMPROVEMENT"}};
    for (std::size_t p = 0; p < question.names.size(); ++p) {
      const engine::Prediction& moved = of(answer, Kind::kLbf, p, 100, t);
      const engine::Prediction& zeroed = of(answer, Kind::kZeroing, p, 100, t);
      if (moved.rank_finish_s.empty()) continue;
      rows.push_back({shown_name(question.names[p]), seconds(moved), gain(as_it_ran[t], moved), seconds(zeroed),
                      gain(as_it_ran[t], zeroed)});
    }
    if (rows.size() > 1) text += text_table(rows, 1);
    for (std::size_t v = 0; v < question.scenarios.size(); ++v) {
      if (question.scenarios[v].kind != Kind::kAsked) continue;
      const engine::Prediction& changed = answer.predictions[v][t];
      text += question.asked + ": " + seconds(changed) + " s, " + gain(as_it_ran[t], changed) + " shorter\n";
      if (answer.scenario_stats[v].stayed_s > 0) {
        text += "  " + format_number(answer.scenario_stats[v].stayed_s, "%.6f") +
                " s of it stayed: no message to go with\n";
      }
    }
    text += curve_table(answer, t, as_it_ran[t]);
  }
  return text;
}

void add_procedure_json(const ProcedureAnswer& answer, const std::vector<engine::Prediction>& as_it_ran,
                        nlohmann::ordered_json& root) {
  const ProcedureQuestion& question = answer.question;
  const engine::PathProfile& path = answer.path;
  nlohmann::ordered_json procedures = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < question.names.size(); ++p) {
    const engine::ProcedureStats& stats = answer.procedure_stats[p];
    procedures.push_back({{"name", question.names[p]},
                          {"calls", stats.calls},
                          {"inclusive_s", stats.inclusive_s},
                          {"exclusive_s", stats.exclusive_s},
                          {"critical_path_s", p < path.procedure_s.size() ? path.procedure_s[p] : 0},
                          {"sampled", question.sampled.contains(question.names[p])}});
  }
  root["procedures"] = std::move(procedures);
  root["procedures_left_out"] = question.left_out;  // switched off while they ran
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (const auto& [rank, rank_s] : path.rank_s) {
    ranks.push_back({{"rank", rank == engine::PathProfile::kOthers ? nlohmann::ordered_json(nullptr)
                                                                   : nlohmann::ordered_json(rank)},
                     {"seconds", rank_s}});
  }
  nlohmann::ordered_json functions = nlohmann::ordered_json::array();
  for (const auto& [function, function_s] : path.function_s) {
    functions.push_back({{"function", function_name(function)}, {"seconds", function_s}});
  }
  root["critical_path"] = {{"length_s", path.length_s},         {"ends_at_rank", path.ends_at},
                           {"other_work_s", path.other_work_s}, {"mpi_s", path.mpi_s},
                           {"blocked_s", path.blocked_s},       {"unseen_s", path.unseen_s},
                           {"ranks", std::move(ranks)},         {"functions", std::move(functions)}};
  nlohmann::ordered_json scenarios = nlohmann::ordered_json::array();
  for (std::size_t v = 0; v < question.scenarios.size(); ++v) {
    const ProcedureScenario& scenario = question.scenarios[v];
    const bool is_asked = scenario.kind == Kind::kAsked || scenario.kind == Kind::kCurveAsked;
    for (std::size_t t = 0; t < as_it_ran.size(); ++t) {
      const engine::Prediction& changed = answer.predictions[v][t];
      const bool are_known = is_known(changed) && is_known(as_it_ran[t]);
      nlohmann::ordered_json entry;
      entry["kind"] = kind_name(scenario.kind);
      entry["what"] = is_asked ? question.asked : question.names[scenario.procedure];
      entry["percent"] = scenario.percent;
      entry["prediction"] = t;
      entry["lbf_s"] = is_known(changed) ? nlohmann::ordered_json(changed.lbf_s) : nlohmann::ordered_json(nullptr);
      entry["gain_percent"] = are_known ? nlohmann::ordered_json(gain_percent(as_it_ran[t], changed).value_or(0))
                                        : nlohmann::ordered_json(nullptr);
      entry["moved_s"] = answer.scenario_stats[v].moved_s;
      entry["removed_s"] = answer.scenario_stats[v].removed_s;
      entry["stayed_s"] = answer.scenario_stats[v].stayed_s;
      scenarios.push_back(std::move(entry));
    }
  }
  root["scenarios"] = std::move(scenarios);
}

}  // namespace lbf::tools
