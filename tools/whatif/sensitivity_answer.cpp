#include "tools/whatif/sensitivity_answer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/number.h"
#include "event/mpi_function_table.h"
#include "tools/whatif/procedure_output.h"

namespace lbf::tools {
namespace {

using engine::Parameter;
using engine::SensitivityCurve;
using engine::Term;

constexpr double kLeastShownShare = 0.01;
constexpr std::array kPercentsLonger{1, 2, 5};
constexpr std::size_t kMostPathEntries = 5;
constexpr std::size_t kMostPathEntriesInJson = 32;

struct TermName {
  Term term;
  const char* key;
};
constexpr std::array<TermName, engine::kTerms> kTermNames{{{Term::kWork, "work_s"},
                                                           {Term::kLocal, "copies_and_reductions_s"},
                                                           {Term::kOverhead, "overhead_s"},
                                                           {Term::kOtherPrograms, "other_programs_s"},
                                                           {Term::kLatencyInside, "latency_inside_s"},
                                                           {Term::kLatencyBetween, "latency_between_s"},
                                                           {Term::kBytesInside, "bytes_inside_s"},
                                                           {Term::kBytesBetween, "bytes_between_s"},
                                                           {Term::kFirstContact, "first_contact_s"},
                                                           {Term::kBlocked, "blocked_s"},
                                                           {Term::kNotCaptured, "not_captured_s"}}};

// Between nodes where the target has several: what dominates there.
const engine::PathCost& main_path(const engine::Target& target) {
  if (target.nodes == 1) return target.network->path(0);
  return target.network->path(target.topology == nullptr ? engine::kUnknownHops : 1);
}

std::string percent_text(double share) {
  return format_number(100 * share, share < 0.1 ? "%.2g" : "%.0f") + " %";
}

std::optional<engine::FactorRange> parse_range(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto low = parse_number<double>(text.substr(0, colon));
  const auto high = colon == text.size() ? std::nullopt : parse_number<double>(text.substr(colon + 1));
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 1e6;
  if (!low || !high || !(*low >= kLeast && *low < 1 && 1 < *high && *high <= kMost)) return std::nullopt;
  return engine::FactorRange{*low, *high};
}

std::string path_name(const SensitivityAnswer& answer, engine::PathBy by, std::int64_t id) {
  if (by == engine::PathBy::kCall)
    return id == 0 ? "(not said)" : std::string(mpi_function_name(static_cast<std::uint16_t>(id)));
  if (by == engine::PathBy::kCommunicator && id == 0) return "MPI_COMM_WORLD";
  if (by == engine::PathBy::kProcedure) return answer.procedures.at(static_cast<std::size_t>(id));
  return std::to_string(id);
}

// "MPI_Allreduce 12 %, MPI_Wait 3 %"; empty: nothing to be shown.
std::string path_text(const TargetSensitivity& of, engine::PathBy by) {
  std::string text;
  for (const auto& row : of.path_rows(by, kMostPathEntries)) {
    if (!(row.seconds > kLeastShownShare * of.seen_s())) continue;
    text += (text.empty() ? "" : ", ") + shown_name(row.name) + " " + percent_text(row.seconds / of.seen_s());
  }
  return text;
}

nlohmann::ordered_json path_json(const TargetSensitivity& of, engine::PathBy by) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto& row : of.path_rows(by, kMostPathEntriesInJson)) {
    nlohmann::ordered_json& entry = entries.emplace_back();
    entry["name"] = row.name;
    entry["seconds"] = row.seconds;
    for (const TermName& name : kTermNames) {
      const Seconds seconds = row.terms[static_cast<std::size_t>(name.term)];
      if (seconds != 0) entry[name.key] = seconds;
    }
  }
  return entries;
}

std::string target_rows(const TargetSensitivity& of) {
  const std::vector<Parameter>& parameters = of.answer.asked.parameters;
  std::vector<std::vector<std::string>> rows{{"PARAMETER", "NOW", "SHARE", "UNTIL"}};
  for (const int percent : kPercentsLonger) rows[0].push_back("+" + std::to_string(percent) + "%_FROM");
  rows[0].emplace_back("BREAKPOINTS");
  std::string notes;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const SensitivityCurve& curve = of.curves[p];
    const auto shown = [&](const std::optional<double>& factor) {
      return factor ? shown_value(of.target, parameters[p], *factor) : std::string("-");
    };
    std::vector<std::string>& row = rows.emplace_back();
    row = {std::string(engine::parameter_name(parameters[p])), shown(1), percent_text(of.share(parameters[p])),
           shown(curve.next_breakpoint(1))};
    for (const int percent : kPercentsLonger)
      row.push_back(shown(curve.reaches(of.prediction.composition->value + of.seen_s() * percent / 100, 1)));
    row.push_back(std::to_string(curve.points.size() - 2));
    for (const engine::FactorRange& range : curve.not_convex) {
      notes += "  " + row.front() + " from " + shown(range.low) + " to " + shown(range.high) +
               ": the time depends on the order of events there; what is told of it is approximate\n";
    }
    if (curve.most_above_s > 0) {
      notes += "  " + row.front() + ": more breakpoints than were looked for; times between them are up to " +
               percent_text(curve.most_above_s / of.seen_s()) + " too long\n";
    }
  }
  return text_table(rows, 1) + notes;
}

}  // namespace

void add_sensitivity_options(CLI::App& command, SensitivityOptions& options) {
  std::vector<std::string> names;
  for (const Parameter parameter : engine::kParameters) names.emplace_back(engine::parameter_name(parameter));
  CLI::Option* const asked =
      command
          .add_option_function<std::vector<std::string>>(
              "--sensitivity",
              [&options](const std::vector<std::string>& given) {
                for (const std::string& name : given) {
                  const auto parameter = engine::parameter_named(name);
                  auto& list = options.parameters;
                  if (parameter && std::find(list.begin(), list.end(), *parameter) == list.end())
                    list.push_back(*parameter);
                }
              },
              "how the time depends on latency, gap (time per byte), overhead, speed: the critical path's shares, "
              "breakpoints and tolerance")
          ->allow_extra_args(false)
          ->delimiter(',')
          ->check(CLI::IsMember(names));
  command
      .add_option_function<std::string>(
          "--range", [&options](const std::string& text) { options.range = parse_range(text).value_or(options.range); },
          "how far each of --sensitivity is followed, as factors of what it is (default 0.1:10)")
      ->needs(asked)
      ->check([](const std::string& text) {
        return parse_range(text) ? std::string()
                                 : "'" + text + "' is not LOW:HIGH, factors from 1e-6 to 1e6 with 1 between them";
      });
}

Result<SensitivityAnswer> find_sensitivity(const SensitivityOptions& asked, const std::vector<engine::Target>& targets,
                                           const std::vector<engine::Prediction>& predictions,
                                           const ReplayTargets& replay) {
  struct Searched {
    std::size_t target;
    Parameter parameter;
  };
  std::vector<Searched> searched;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (!predictions[t].complete) continue;
    for (const Parameter parameter : asked.parameters) searched.push_back({t, parameter});
  }
  const auto replay_probes =
      [&](std::span<const engine::ProbeRequest> requests) -> Result<std::vector<engine::Tangent>> {
    std::vector<engine::Target> probed;
    for (const engine::ProbeRequest& request : requests) {
      const auto& [target, parameter] = searched[request.search];
      probed.push_back(engine::scaled(targets[target], parameter, request.factor));
    }
    const Result<std::vector<engine::Prediction>> replayed = replay(probed);
    if (!replayed) return replayed.error();
    std::vector<engine::Tangent> tangents;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      tangents.push_back(
          engine::tangent_of((*replayed)[i], searched[requests[i].search].parameter, requests[i].factor));
    }
    return tangents;
  };
  Result<std::vector<SensitivityCurve>> found =
      engine::find_curves(std::vector(searched.size(), engine::CurveSearch(asked.range)), replay_probes);
  if (!found) return found.error();
  SensitivityAnswer answer{asked, std::vector<std::vector<SensitivityCurve>>(targets.size()), {}};
  for (std::size_t i = 0; i < searched.size(); ++i) answer.curves[searched[i].target].push_back(std::move((*found)[i]));
  return answer;
}

Seconds TargetSensitivity::seen_s() const {
  return prediction.composition->value - prediction.composition->of(Term::kNotCaptured);
}

double TargetSensitivity::share(Parameter parameter) const {
  return seen_s() > 0 ? engine::scaled_s(*prediction.composition, parameter) / seen_s() : 0;
}

double TargetSensitivity::percent_longer(const SensitivityCurve& curve, double factor) const {
  return seen_s() > 0 ? 100 * (curve.time_s(factor) - prediction.composition->value) / seen_s() : 0;
}

std::string TargetSensitivity::bound_by() const {
  struct Part {
    std::string name;
    Seconds seconds;
    std::optional<Parameter> parameter;
  };
  const engine::Composed& all = *prediction.composition;
  std::vector<Part> parts{{"work", all.of(Term::kWork), {}},
                          {"latency", engine::scaled_s(all, Parameter::kLatency), Parameter::kLatency},
                          {"bytes", engine::scaled_s(all, Parameter::kGap), Parameter::kGap},
                          {"overhead", engine::scaled_s(all, Parameter::kOverhead), Parameter::kOverhead},
                          {"copies and reductions", all.of(Term::kLocal), {}},
                          {"other programs", all.of(Term::kOtherPrograms), {}},
                          {"first contacts", all.of(Term::kFirstContact), {}},
                          {"blocked", all.of(Term::kBlocked), {}}};
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  std::string text;
  for (const Part& part : parts) {
    if (!(part.seconds > kLeastShownShare * seen_s())) continue;
    text += (text.empty() ? "" : ", ") + part.name + " " + percent_text(part.seconds / seen_s());
    const auto& asked = answer.asked.parameters;
    const auto at = part.parameter ? std::find(asked.begin(), asked.end(), *part.parameter) : asked.end();
    if (at == asked.end()) continue;
    const auto until = curves[static_cast<std::size_t>(at - asked.begin())].next_breakpoint(1);
    if (until) text += " until " + shown_value(target, *part.parameter, *until);
  }
  return text.empty() ? "nothing" : text;
}

std::string TargetSensitivity::imbalance() const {
  const Seconds more_s = prediction.path->imbalance_s();
  if (!(more_s > kLeastShownShare * seen_s())) return {};
  return "work " + percent_text(prediction.composition->of(Term::kWork) / seen_s()) + ", of which " +
         percent_text(more_s / seen_s()) + " imbalance: a rank has " +
         percent_text(prediction.path->mean_work_s / seen_s()) + " on average";
}

std::vector<TargetSensitivity::PathRow> TargetSensitivity::path_rows(engine::PathBy by, std::size_t most) const {
  std::vector<PathRow> rows;
  PathRow others{"others", {}, 0};
  const auto put_to_others = [&](const auto& each, Seconds seconds) {
    others.seconds += seconds;
    for (std::size_t term = 0; term < engine::kTerms; ++term) others.terms[term] += each.terms[term];
  };
  for (const engine::PathShare& each : engine::path_shares(*prediction.path, by)) {
    const Seconds seconds = each.seconds - each.terms[static_cast<std::size_t>(Term::kNotCaptured)];
    if (each.id == engine::PathShare::kNone || !(seconds > 0)) continue;
    if (each.id == engine::PathShare::kOthers) {
      put_to_others(each, seconds);
    } else {
      rows.push_back({path_name(answer, by, each.id), each.terms, seconds});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const PathRow& a, const PathRow& b) { return a.seconds > b.seconds; });
  for (; rows.size() > most; rows.pop_back()) put_to_others(rows.back(), rows.back().seconds);
  if (others.seconds > 0) rows.push_back(std::move(others));
  return rows;
}

std::string shown_value(const engine::Target& target, Parameter parameter, double factor) {
  const engine::PathCost& path = main_path(target);
  const Seconds latency_s = path.flight.at(0);
  const Seconds byte_s = path.flight.tail_slope_s_per_byte();
  if (parameter == Parameter::kLatency && latency_s > 0) return format_number(1e6 * latency_s * factor, "%.3g") + " us";
  if (parameter == Parameter::kGap && byte_s > 0) return format_number(1e-6 / (byte_s * factor), "%.3g") + " MB/s";
  if (parameter == Parameter::kSpeed && target.speed_of_node.empty())
    return format_number(target.speed / factor, "%.3g");
  return "x " + format_number(factor, "%.3g");
}

std::string sensitivity_table(const SensitivityAnswer& answer, const std::vector<engine::Target>& targets,
                              const std::vector<engine::Prediction>& predictions) {
  std::string text;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (!predictions[t].complete) continue;
    const TargetSensitivity of{answer, targets[t], predictions[t], answer.curves[t]};
    text += "\nsensitivity of " + target_name(targets[t]) + "\n  bound by: " + of.bound_by() + "\n";
    if (const std::string imbalance = of.imbalance(); !imbalance.empty()) text += "  " + imbalance + "\n";
    for (const PathGrouping& grouping : kPathGroupings) {
      const std::string shares = path_text(of, grouping.by);
      if (!shares.empty()) text += std::string("  by ") + grouping.words + ": " + shares + "\n";
    }
    text += target_rows(of);
  }
  return text;
}

nlohmann::ordered_json sensitivity_json(const TargetSensitivity& of) {
  nlohmann::ordered_json root;
  root["bound_by"] = of.bound_by();
  for (const TermName& name : kTermNames) root["critical_path"][name.key] = of.prediction.composition->of(name.term);
  if (of.target.topology == nullptr) {  // with one, their latencies differ
    const std::array<std::pair<const char*, std::pair<Term, std::uint32_t>>, 2> paths{
        {{"latencies_inside", {Term::kLatencyInside, 0}},
         {"latencies_between", {Term::kLatencyBetween, engine::kUnknownHops}}}};
    for (const auto& [key, path] : paths) {
      const Seconds latency_s = of.target.network->path(path.second).flight.at(0);
      root["critical_path"][key] = latency_s > 0 ? of.prediction.composition->of(path.first) / latency_s : 0;
    }
  }
  root["critical_path"]["mean_work_s"] = of.prediction.path->mean_work_s;
  root["critical_path"]["imbalance_s"] = of.prediction.path->imbalance_s();
  for (const PathGrouping& grouping : kPathGroupings) root["critical_path"][grouping.key] = path_json(of, grouping.by);
  root["parameters"] = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < of.curves.size(); ++p) {
    const Parameter parameter = of.answer.asked.parameters[p];
    const SensitivityCurve& curve = of.curves[p];
    nlohmann::ordered_json entry;
    entry["name"] = engine::parameter_name(parameter);
    entry["share"] = of.share(parameter);
    entry["curve"] = nlohmann::ordered_json::array();
    for (const SensitivityCurve::Point& point : curve.points)
      entry["curve"].push_back({{"factor", point.factor}, {"seconds", point.time_s}});
    entry["tolerance"] = nlohmann::ordered_json::array();
    for (const int percent : kPercentsLonger) {
      const auto factor = curve.reaches(of.prediction.composition->value + of.seen_s() * percent / 100, 1);
      entry["tolerance"].push_back(
          {{"percent", percent}, {"factor", factor ? nlohmann::ordered_json(*factor) : nlohmann::ordered_json()}});
    }
    entry["not_convex"] = nlohmann::ordered_json::array();
    for (const engine::FactorRange& range : curve.not_convex) entry["not_convex"].push_back({range.low, range.high});
    entry["most_above_s"] = curve.most_above_s;
    root["parameters"].push_back(std::move(entry));
  }
  return root;
}

}  // namespace lbf::tools
