#include "tools/advise/advise_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "advisor/advice/how.h"
#include "advisor/report/text.h"
#include "advisor/report/times.h"

namespace lbf {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kMostRows = 10;

using advisor::Ranked;
using advisor::Verdict;

std::string row(const Ranked& one, const char* mark) {
  const Target& target = one.candidate.target;
  const std::string placement = target.nodes == 1        ? "-"
                                : one.candidate.is_map() ? "computed"
                                                         : target.placement;
  return fmt::format("{:1} {:>12} {:>10.4g} {:>5} {} {} {}\n", mark, report::format_duration(one.time_s),
                     one.node_hours(), target.nodes, report::fit(placement, 10, true),
                     report::fit(report::printable(one.candidate.set.partition), 12, true),
                     report::printable(target.network->name()));
}

std::string table(const AdviseResult& result) {
  std::string out = fmt::format("{:1} {:>12} {:>10} {:>5} {:10} {:12} {}\n", "", "Predicted", "Node-hours",
                                "Nodes", "Placement", "Partition", "Network");
  std::size_t rows = 0;
  for (std::size_t i = 0; i < result.ranking.ranked.size(); ++i) {
    const Ranked& one = result.ranking.ranked[i];
    if (one.verdict != Verdict::kReplayed) continue;
    if (rows >= kMostRows && !one.on_front && result.advice.chosen != i) continue;
    out += row(one, one.on_front ? "*" : "");
    ++rows;
  }
  const Ranked& now = result.baseline.now;
  if (now.verdict == Verdict::kReplayed) {
    out += row(now, "=");
    const std::string what =
        result.baseline.is_what_ran
            ? "what ran"
            : "what srun does without further flags: the trace does not say where it ran";
    out +=
        report::wrap("= " + what + ". * Nothing replayed is better in both time and node-hours.", kWidth, 0);
  }
  return out;
}

std::string counts(const AdviseResult& result, const AdvisePrint& print) {
  const advisor::Ranking& ranking = result.ranking;
  std::string out = fmt::format("{} candidates: {} replayed, {} ruled out by their bounds, {} deferred",
                                ranking.ranked.size(), ranking.count(Verdict::kReplayed),
                                ranking.count(Verdict::kRuledOut), ranking.count(Verdict::kDeferred));
  if (ranking.count(Verdict::kStuck) > 0)
    out += fmt::format(", {} on which the program would not end", ranking.count(Verdict::kStuck));
  out += fmt::format(" ({} passes, {:.1f} s of processor time", ranking.passes + 1, ranking.spent_s);
  const bool deferred = ranking.count(Verdict::kDeferred) + result.mappings_deferred > 0;
  out += deferred ? fmt::format(" of {:g} s: --budget gives more)", print.budget_s) : ")";
  std::string lines = report::wrap(out + ".", kWidth, 0);
  if (result.mappings_deferred > 0) {
    lines += report::wrap(fmt::format("Mappings computed for {} node sets, deferred for {}.",
                                      result.mappings_computed, result.mappings_deferred),
                          kWidth, 0);
  }
  std::size_t named = 0;
  for (const Ranked& one : ranking.ranked) {
    if (one.verdict != Verdict::kDeferred || ++named > 3) continue;
    lines += report::wrap(fmt::format("Deferred: {}, at least {}.", advisor::describe(one.candidate, true),
                                      report::format_duration(one.bound.at_least_s())),
                          kWidth, 2);
  }
  if (!result.why_no_mapping.empty())
    lines += report::wrap("No mapping was computed: " + result.why_no_mapping + ".", kWidth, 0);
  return lines;
}

std::string advice(const AdviseResult& result, const AdvisePrint& print) {
  const advisor::Advice& advised = result.advice;
  if (!advised.chosen)
    return report::wrap("No advice: " + report::printable(advised.why_not) + ".", kWidth, 0);
  const Ranked& chosen = result.ranking.ranked[*advised.chosen];
  std::string out = report::wrap(
      fmt::format("Advice: {}: {} and {:.3g} node-hours instead of {} and {:.3g}, a gain of {:.1f} % in {} "
                  "({:.1f} to {:.1f} %).",
                  advisor::describe(chosen.candidate, true), report::format_duration(chosen.time_s),
                  chosen.node_hours(), report::format_duration(result.baseline.time_s()),
                  result.baseline.now.candidate.node_hours(result.baseline.time_s()), advised.gain.percent,
                  print.objective, advised.gain.low_percent, advised.gain.high_percent),
      kWidth, 0);
  for (const std::string& reason : advised.reasons) out += report::wrap("- " + reason, kWidth, 2);
  out += "\n  srun " + advise_flags(result, print.host_file) + " ...\n";
  if (chosen.candidate.is_map()) {
    out += report::wrap(print.host_file_written
                            ? "The host file has one line per rank with the name of its node."
                            : "The host file has one line per rank with the name of its node; --hostfile " +
                                  print.host_file + " writes it.",
                        kWidth, 2);
  }
  const bool other_network =
      chosen.candidate.target.network->name() != result.baseline.now.candidate.target.network->name();
  if (other_network) {
    out += report::wrap(
        "The network is not chosen by a flag of srun, but by the partition, a constraint or settings of MPI.",
        kWidth, 2);
  }
  return out;
}

std::string sensitivity(const advisor::Sensitivity& curves) {
  const auto change = [&](Seconds time_s) {
    return fmt::format("{:+.1f} %", curves.time_s > 0 ? 100 * (time_s / curves.time_s - 1) : 0.0);
  };
  const auto line = [&](const char* what, const std::vector<advisor::SensitivityPoint>& points) {
    std::string text = fmt::format("  {:16}", what);
    for (const advisor::SensitivityPoint& point : points) {
      const std::string factor = std::isinf(point.factor) ? "perfect" : fmt::format("x{:g}", point.factor);
      text += fmt::format(" {:>7} {:>8}", factor, change(point.time_s));
    }
    return text + "\n";
  };
  return fmt::format("What runs now is bound by {}. Its time with other\n", curves.bound_by()) +
         line("latency", curves.latency) + line("bandwidth", curves.bandwidth) +
         line("processor speed", curves.speed);
}

// Of what runs now. A map of nobody knows which nodes cannot be asked for by their names.
std::string flags_of(const Ranked& now, const std::string& host_file) {
  if (!now.candidate.is_map()) return advisor::srun_flags(now.candidate, host_file);
  const Target& target = now.candidate.target;
  const std::string flags = fmt::format("-N{} -n{}", target.nodes, target.node_of_rank.size());
  return now.candidate.overcommits ? flags + " --overcommit" : flags;
}

nlohmann::json json_of(const Ranked& one, const std::string& host_file) {
  static const char* const kVerdicts[] = {"replayed", "ruled_out", "deferred", "stuck"};
  const Target& target = one.candidate.target;
  nlohmann::json json = {{"verdict", kVerdicts[static_cast<int>(one.verdict)]},
                         {"nodes", target.nodes},
                         {"placement", target.placement},
                         {"network", target.network->name()},
                         {"partition", one.candidate.set.partition},
                         {"bound_s", one.bound.at_least_s()},
                         {"processors_bound_s", one.bound.processors_s},
                         {"links_bound_s", one.bound.links_s},
                         {"chain_bound_s", one.bound.chain_s},
                         {"pareto", one.on_front},
                         {"searched", one.searched},
                         {"flags", advisor::srun_flags(one.candidate, host_file)}};
  if (one.verdict == Verdict::kReplayed) {
    json["lbf_s"] = one.time_s;
    json["node_hours"] = one.node_hours();
  }
  if (!one.why_stuck.empty()) json["why_stuck"] = one.why_stuck;
  return json;
}

nlohmann::json json_of(const advisor::Sensitivity& curves) {
  const auto points = [](const std::vector<advisor::SensitivityPoint>& list) {
    nlohmann::json array = nlohmann::json::array();
    for (const advisor::SensitivityPoint& point : list) {
      nlohmann::json factor =
          std::isinf(point.factor) ? nlohmann::json("perfect") : nlohmann::json(point.factor);
      array.push_back({{"factor", std::move(factor)}, {"lbf_s", point.time_s}});
    }
    return array;
  };
  return {{"lbf_s", curves.time_s},
          {"latency", points(curves.latency)},
          {"bandwidth", points(curves.bandwidth)},
          {"speed", points(curves.speed)},
          {"latency_share", curves.latency_share},
          {"bandwidth_share", curves.bandwidth_share},
          {"processor_share", curves.processor_share},
          {"bound_by", curves.bound_by()}};
}

}  // namespace

std::string advise_flags(const AdviseResult& result, const std::string& host_file) {
  if (result.advice.chosen)
    return advisor::srun_flags(result.ranking.ranked[*result.advice.chosen].candidate, host_file);
  return flags_of(result.baseline.now, host_file);
}

std::string advise_host_file(const AdviseResult& result) {
  if (!result.advice.chosen) return {};
  return advisor::host_file_of(result.ranking.ranked[*result.advice.chosen].candidate);
}

std::string advise_text(const AdviseResult& result, const AdvisePrint& print) {
  std::string out = report::wrap(
      fmt::format("{}: {} ranks, {} messages; objective: {}; cluster: {}.", report::printable(print.trace),
                  result.ranks, result.messages, print.objective, report::printable(print.cluster)),
      kWidth, 0);
  out += counts(result, print) + "\n" + table(result) + "\n" + advice(result, print) + "\n";
  if (result.sensitivity) out += sensitivity(*result.sensitivity) + "\n";
  for (const std::string& note : result.trust.notes())
    out += report::wrap("Note: " + report::printable(note) + ".", kWidth, 0);
  if (!print.mpi_note.empty())
    out += report::wrap("Note: " + report::printable(print.mpi_note) + ".", kWidth, 0);
  return out;
}

std::string advise_json(const AdviseResult& result, const AdvisePrint& print) {
  nlohmann::json json = {{"trace", print.trace},
                         {"ranks", result.ranks},
                         {"objective", print.objective},
                         {"cluster", print.cluster},
                         {"messages", result.messages},
                         {"message_bytes", result.bytes},
                         {"longest_chain_messages", result.chain_messages},
                         {"mappings_computed", result.mappings_computed},
                         {"mappings_deferred", result.mappings_deferred},
                         {"passes", result.ranking.passes + 1},
                         {"processor_s", result.ranking.spent_s},
                         {"budget_s", print.budget_s},
                         {"notes", result.trust.notes()},
                         {"error_percent", result.trust.half_width_percent()},
                         {"partial", !result.trust.why_partial.empty()}};
  constexpr std::array kBases = {"assumption", "self error", "site", "program"};
  json["error_basis"] = kBases[static_cast<std::size_t>(result.trust.basis())];
  if (result.trust.self_error_percent) json["self_error_percent"] = *result.trust.self_error_percent;
  if (!result.why_no_mapping.empty()) json["why_no_mapping"] = result.why_no_mapping;
  if (!print.mpi_note.empty()) json["notes"].push_back(print.mpi_note);
  json["now"] = json_of(result.baseline.now, print.host_file);
  json["now"]["flags"] = flags_of(result.baseline.now, print.host_file);
  json["now"]["is_what_ran"] = result.baseline.is_what_ran;
  if (result.baseline.measured_s) json["now"]["measured_s"] = *result.baseline.measured_s;
  json["candidates"] = nlohmann::json::array();
  for (const Ranked& one : result.ranking.ranked) json["candidates"].push_back(json_of(one, print.host_file));
  if (result.advice.chosen) {
    json["advice"] = {{"candidate", *result.advice.chosen},
                      {"flags", advise_flags(result, print.host_file)},
                      {"gain_percent", result.advice.gain.percent},
                      {"gain_low_percent", result.advice.gain.low_percent},
                      {"gain_high_percent", result.advice.gain.high_percent},
                      {"reasons", result.advice.reasons}};
    const Ranked& chosen = result.ranking.ranked[*result.advice.chosen];
    if (chosen.candidate.is_map()) {
      json["advice"]["host_file"] = print.host_file;
      json["advice"]["hosts"] = nlohmann::json::array();
      for (const std::uint32_t node : chosen.candidate.target.node_of_rank)
        json["advice"]["hosts"].push_back(chosen.candidate.node_names[node]);
    }
  } else {
    json["advice"] = nullptr;
    json["why_no_advice"] = result.advice.why_not;
  }
  if (result.sensitivity) json["sensitivity"] = json_of(*result.sensitivity);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lbf
