#include "tools/advise/advise_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "advisor/advice/how.h"
#include "base/quoted.h"
#include "base/times.h"
#include "report/text.h"
#include "tools/advise/probe.h"
#include "tools/whatif/replay_trust.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kMostRows = 10;

using advisor::Ranked;
using advisor::Verdict;

std::string placement_of(const Ranked& one) {
  if (one.candidate.target.nodes == 1) return "-";
  return one.candidate.is_map() ? "computed" : one.candidate.target.placement;
}

// "   16.01 s   14.1 s   17.9 s": predicted, Low and High. A range, or a bound, has no prediction.
std::string time_cells(const advisor::Saying& saying) {
  const bool is_told = saying.form != advisor::Saying::Form::kCannotTell;
  return fmt::format("{:>11} {:>8} {:>8}", saying.is_number() || !is_told ? saying.in_words() : "",
                     is_told ? format_duration(saying.low_s, 3) : "",
                     saying.has_interval() ? format_duration(saying.high_s, 3) : "");
}

constexpr std::array kSources = {"trace", "pattern", "laws"};

const char* source_of(const Ranked& one) {
  return kSources[static_cast<std::size_t>(one.source)];
}

// "4 nodes of batch, cyclic, hdr"; with its ranks where the candidates differ in them.
std::string describe(const AdviseResult& result, const Ranked& one) {
  const std::string place = advisor::describe(one.candidate);
  return result.has_several_counts ? fmt::format("{} ranks on {}", one.ranks(), place) : place;
}

std::string row(const Ranked& one, const char* mark, const advisor::Saying& saying) {
  const engine::Target& target = one.candidate.target;
  const std::string node_hours = saying.is_number() ? fmt::format("{:.4g}", one.node_hours()) : "-";
  return fmt::format("{:1} {} {:>10} {:>5} {} {} {}\n", mark, time_cells(saying), node_hours, target.nodes,
                     report::fit(placement_of(one), 10, true),
                     report::fit(report::printable(one.candidate.set.partition), 12, true),
                     report::printable(target.network->name()));
}

// "12:00:00" of today, else "11-23 12:00"; "-" where it is not known.
std::string moment(std::optional<double> at_s) {
  if (!at_s) return "-";
  const auto at = static_cast<std::time_t>(std::ceil(*at_s));
  const std::time_t now = std::time(nullptr);
  const bool today = start_of_day(at) == start_of_day(now);
  std::tm local{};
  std::array<char, 32> text{};
  ::localtime_r(&at, &local);
  const std::size_t length = std::strftime(text.data(), text.size(), today ? "%H:%M:%S" : "%m-%d %H:%M", &local);
  return {text.data(), length};
}

std::string row_with_start(const Ranked& one, const char* mark, const advisor::Saying& saying) {
  const engine::Target& target = one.candidate.target;
  return fmt::format("{:1} {:>11} {:>11} {} {:>5} {} {} {}\n", mark, moment(one.start.at_s), moment(one.ends_at_s()),
                     time_cells(saying), target.nodes, report::fit(placement_of(one), 10, true),
                     report::fit(report::printable(one.candidate.set.partition), 10, true),
                     report::printable(target.network->name()));
}

std::string table(const AdviseResult& result) {
  const bool starts = result.schedule.has_value();
  const std::string times = fmt::format("{:>11} {:>8} {:>8}", "Predicted", "Low", "High");
  std::string out = starts ? fmt::format("{:1} {:>11} {:>11} {} {:>5} {:10} {:10} {}\n", "", "Start", "End", times,
                                         "Nodes", "Placement", "Partition", "Network")
                           : fmt::format("{:1} {} {:>10} {:>5} {:10} {:12} {}\n", "", times, "Node-hours", "Nodes",
                                         "Placement", "Partition", "Network");
  if (result.has_several_counts) out = fmt::format("{:>6} {:7} ", "Ranks", "By") + out;
  const auto add = [&](const Ranked& one, const char* mark) {
    const advisor::Saying saying = result.baseline.say(result.trust, one);
    if (result.has_several_counts) out += fmt::format("{:>6} {:7} ", one.ranks(), source_of(one));
    out += starts ? row_with_start(one, mark, saying) : row(one, mark, saying);
  };
  std::size_t rows = 0;
  std::set<std::size_t> counts;  // the first row of each is shown
  for (std::size_t i = 0; i < result.ranking.ranked.size(); ++i) {
    const Ranked& one = result.ranking.ranked[i];
    if (one.verdict != Verdict::kReplayed) continue;
    const bool is_first = counts.insert(one.ranks()).second;
    if (rows >= kMostRows && !one.on_front && !is_first && result.advice.chosen != i) continue;
    add(one, one.on_front ? "*" : "");
    ++rows;
  }
  const Ranked& now = result.baseline.now;
  if (now.verdict == Verdict::kReplayed) {
    add(now, "=");
    std::string what = result.baseline.is_what_ran
                           ? "what ran"
                           : "what srun does without further flags: the trace does not say where it ran";
    if (result.baseline.others_s > 0)
      what += fmt::format(", {} of it by other programs on its processors; all else here is without them",
                          format_duration(result.baseline.others_s));
    what = "= " + what + ". * Nothing replayed is better in both time and node-hours.";
    if (result.has_several_counts) what += " By: a run's trace, the pattern that runs have in common, or their laws.";
    out += report::wrap(what, report::kTextWidth, 0);
  }
  return out;
}

// Of the first time that is no number, as the others are mostly alike. Empty: all are numbers.
std::string why_no_number(const AdviseResult& result) {
  for (const Ranked& one : result.ranking.ranked) {
    if (one.verdict != Verdict::kReplayed) continue;
    const advisor::Saying saying = result.baseline.say(result.trust, one);
    if (saying.is_number() || saying.remedy.empty()) continue;
    return report::wrap(fmt::format("Why no number: {}. To get one, {}.", report::printable(saying.why), saying.remedy),
                        report::kTextWidth, 0);
  }
  return {};
}

// What Slurm was asked, and what it did not say.
std::string questions(const AdviseResult& result) {
  if (!result.schedule) return {};
  const advisor::Schedule& asked = *result.schedule;
  std::string text = fmt::format("Slurm was asked {} times when they would start (srun --test-only)", asked.questions);
  if (asked.not_asked > 0)
    text += fmt::format("; not for {} that cannot end first, or want the nodes of a faster one", asked.not_asked);
  if (asked.beyond_bound > 0)
    text += fmt::format("; not for {} more: {} questions are the most", asked.beyond_bound, advisor::kMostQuestions);
  std::string out = report::wrap(text + ". It may change its mind: starts are estimates.", report::kTextWidth, 0);
  if (!asked.why_stopped.empty())
    out += report::wrap("Then it could not be asked any more: " + report::printable(asked.why_stopped) + ".",
                        report::kTextWidth, 2);
  std::size_t named = 0;
  const auto refused = [&](const Ranked& one, const std::string& what) {
    if (one.start.why_not.empty() || ++named > 4) return;
    out += report::wrap(fmt::format("Slurm does not start {}: {}.", what, report::printable(one.start.why_not)),
                        report::kTextWidth, 2);
  };
  refused(result.baseline.now, "what runs now");
  for (const Ranked& one : result.ranking.ranked) refused(one, describe(result, one));
  if (asked.known == 0) {
    out += report::wrap("No start is known, so what follows is by predicted time alone, as without --when.",
                        report::kTextWidth, 0);
  }
  return out;
}

std::string counts(const AdviseResult& result, const AdvisePrint& print) {
  const advisor::Ranking& ranking = result.ranking;
  const auto by_laws =
      static_cast<std::size_t>(std::ranges::count(ranking.ranked, advisor::Source::kLaw, &Ranked::source));
  std::string out = fmt::format("{} candidates: {} replayed, {} ruled out by their bounds, {} deferred",
                                ranking.ranked.size(), ranking.count(Verdict::kReplayed) - by_laws,
                                ranking.count(Verdict::kRuledOut), ranking.count(Verdict::kDeferred));
  if (ranking.count(Verdict::kStuck) > 0)
    out += fmt::format(", {} on which the program would not end", ranking.count(Verdict::kStuck));
  if (by_laws > 0) out += fmt::format(", {} of other rank counts by laws", by_laws);
  out += fmt::format(" ({} passes, {:.1f} s of processor time", ranking.passes + 1, ranking.spent_s);
  const bool deferred = ranking.count(Verdict::kDeferred) + result.mappings_deferred > 0;
  out += deferred ? fmt::format(" of {:g} s: --budget gives more)", print.budget_s) : ")";
  std::string lines = report::wrap(out + ".", report::kTextWidth, 0);
  if (result.mappings_deferred > 0) {
    lines += report::wrap(fmt::format("Mappings computed for {} node sets, deferred for {}.", result.mappings_computed,
                                      result.mappings_deferred),
                          report::kTextWidth, 0);
  }
  std::size_t named = 0;
  for (const Ranked& one : ranking.ranked) {
    if (one.verdict != Verdict::kDeferred || ++named > 3) continue;
    lines += report::wrap(
        fmt::format("Deferred: {}, at least {}.", describe(result, one), format_duration(one.bound.at_least_s())),
        report::kTextWidth, 2);
  }
  if (!result.why_no_mapping.empty())
    lines += report::wrap("No mapping was computed: " + result.why_no_mapping + ".", report::kTextWidth, 0);
  return lines;
}

std::string headline(const AdviseResult& result, const AdvisePrint& print, const Ranked& chosen) {
  const advisor::Gain& gain = result.advice.gain;
  const std::string what = "Advice: " + describe(result, chosen);
  const std::string interval = fmt::format("({:.1f} to {:.1f} %)", gain.low_percent, gain.high_percent);
  const advisor::Saying saying = result.baseline.say(result.trust, chosen);
  const Seconds now_s = result.baseline.time_s();
  const std::optional<double> now_starts_s = result.baseline.now.start.at_s;
  if (chosen.start.at_s && now_starts_s) {
    return fmt::format("{}: ends {} instead of {}, {:.1f} % sooner {}; it runs {} instead of {}.", what,
                       moment(chosen.ends_at_s()), moment(*now_starts_s + now_s), gain.percent, interval,
                       saying.in_words(), format_duration(now_s));
  }
  if (chosen.start.at_s) {
    return fmt::format("{}: ends {}; Slurm would not start what runs now. It runs {} instead of {}.", what,
                       moment(chosen.ends_at_s()), saying.in_words(), format_duration(now_s));
  }
  if (!saying.is_number()) {
    return fmt::format("{}: {} instead of {}, a gain of {:.1f} to {:.1f} % in {}. To get a number, {}.", what,
                       saying.in_words(), format_duration(now_s), gain.low_percent, gain.high_percent, print.objective,
                       saying.remedy);
  }
  return fmt::format("{}: {} and {:.3g} node-hours instead of {} and {:.3g}, a gain of {:.1f} % in {} {}.", what,
                     format_duration(chosen.time_s), chosen.node_hours(), format_duration(now_s),
                     result.baseline.now.candidate.node_hours(now_s), gain.percent, print.objective, interval);
}

// Flags without blanks, as a shell reads them: a constraint may be `a&b`, a list of nodes has brackets.
std::string pasted(const std::string& flags) {
  std::string out;
  std::istringstream words(flags);
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

std::string advice(const AdviseResult& result, const AdvisePrint& print) {
  const advisor::Advice& advised = result.advice;
  const std::string unmeasured =
      advised.unmeasured.empty()
          ? std::string()
          : report::wrap("Not advised: " + report::printable(advised.unmeasured) + ".", report::kTextWidth, 0);
  if (!advised.chosen)
    return report::wrap("No advice: " + report::printable(advised.why_not) + ".", report::kTextWidth, 0) + unmeasured;
  const Ranked& chosen = result.ranking.ranked[*advised.chosen];
  std::string out = report::wrap(headline(result, print, chosen), report::kTextWidth, 0);
  for (const std::string& reason : advised.reasons) out += report::wrap("- " + reason, report::kTextWidth, 2);
  out += "\n  srun " + pasted(advise_flags(result, print.host_file)) + " ...\n";
  if (chosen.candidate.needs_host_file()) {
    out += report::wrap(print.host_file_written
                            ? "The host file has one line per rank with the name of its node."
                            : "The host file has one line per rank with the name of its node; --hostfile " +
                                  print.host_file + " writes it.",
                        report::kTextWidth, 2);
  }
  const bool other_network =
      chosen.candidate.target.network->name() != result.baseline.now.candidate.target.network->name();
  if (other_network) {
    out += report::wrap(
        "The network is not chosen by a flag of srun, but by the partition, a constraint or settings of MPI.",
        report::kTextWidth, 2);
  }
  return out + unmeasured;
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
         line("latency", curves.latency) + line("bandwidth", curves.bandwidth) + line("processor speed", curves.speed);
}

std::string flags_of_now(const AdviseResult& result) {
  return advisor::flags_with_limit(advisor::srun_flags_of_what_ran(result.baseline.now.candidate),
                                   result.baseline.now.start);
}

// The node of each rank, by name.
std::vector<std::string> hosts_of(const advisor::Candidate& candidate) {
  std::vector<std::string> names;
  for (const std::uint32_t node : candidate.target.node_of_rank) names.push_back(candidate.node_names[node]);
  return names;
}

nlohmann::json json_of(const AdviseResult& result, const Ranked& one, const std::string& host_file) {
  static const char* const kVerdicts[] = {"replayed", "ruled_out", "deferred", "stuck", "unknown"};
  const engine::Target& target = one.candidate.target;
  const bool is_by_law = one.source == advisor::Source::kLaw;
  nlohmann::json json = {{"verdict", is_by_law ? "by_laws" : kVerdicts[static_cast<int>(one.verdict)]},
                         {"ranks", one.ranks()},
                         {"source", source_of(one)},
                         {"nodes", target.nodes},
                         {"placement", target.placement},
                         {"network", target.network->name()},
                         {"partition", one.candidate.set.partition},
                         {"bound_s", one.bound.at_least_s()},
                         {"processors_bound_s", one.bound.processors_s},
                         {"links_bound_s", one.bound.links_s},
                         {"chain_bound_s", one.bound.chain_s},
                         {"pareto", one.on_front},
                         {"searched", one.searched}};
  const advisor::Saying saying = result.baseline.say(result.trust, one);
  if (saying.form != advisor::Saying::Form::kAtBest)
    json["flags"] = advisor::flags_with_limit(advisor::srun_flags(one.candidate, host_file), one.start);
  // Asked for, or kept from being asked (neither).
  if (one.start.at_s) {
    json["start"] = *one.start.at_s;
    json["end"] = *one.ends_at_s();
  } else if (!one.start.why_not.empty()) {
    json["why_no_start"] = one.start.why_not;
  }
  if (target.threads > 0) json["threads"] = target.threads;
  if (one.verdict == Verdict::kReplayed) {
    json["lbf_s"] = one.time_s;
    json["node_hours"] = one.node_hours();
    json["error_percent"] = saying.half_width_percent;
    add_saying(saying, json);
  }
  if (!one.why_stuck.empty()) json["why_stuck"] = one.why_stuck;
  return json;
}

std::vector<std::string> in_words(const std::vector<CountReason>& reasons) {
  std::vector<std::string> lines;
  for (const CountReason& reason : reasons) lines.push_back(reason.in_words());
  return lines;
}

nlohmann::json json_of(const ProbeResult& probe) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ProbeRow& row : probe.rows) {
    nlohmann::json one = {{"where", row.where}, {"times_s", row.times_s}};
    one["candidate"] = row.candidate ? nlohmann::json(*row.candidate) : nlohmann::json();
    if (!row.times_s.empty()) one["application_s"] = row.application_s;
    if (!row.why_failed.empty()) one["error"] = row.why_failed;
    rows.push_back(std::move(one));
  }
  return {{"factor", probe.factor},
          {"budget_node_s", probe.budget_node_s},
          {"spent_node_s", probe.spent_node_s},
          {"decision", probe.decision},
          {"rows", std::move(rows)}};
}

nlohmann::json json_of(const advisor::Sensitivity& curves) {
  const auto points = [](const std::vector<advisor::SensitivityPoint>& list) {
    nlohmann::json array = nlohmann::json::array();
    for (const advisor::SensitivityPoint& point : list) {
      nlohmann::json factor = std::isinf(point.factor) ? nlohmann::json("perfect") : nlohmann::json(point.factor);
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
  if (!result.advice.chosen) return flags_of_now(result);
  const Ranked& chosen = result.ranking.ranked[*result.advice.chosen];
  return advisor::flags_with_limit(advisor::srun_flags(chosen.candidate, host_file), chosen.start);
}

std::string advise_host_file(const AdviseResult& result) {
  if (!result.advice.chosen) return {};
  return advisor::host_file_of(result.ranking.ranked[*result.advice.chosen].candidate);
}

std::string advise_text(const AdviseResult& result, const AdvisePrint& print) {
  std::string out =
      report::wrap(fmt::format("{}: {} ranks, {} messages; objective: {}{}; cluster: {}.",
                               report::printable(print.trace), result.ranks, result.messages, print.objective,
                               result.schedule && result.schedule->known > 0 ? ", by the end" : "",
                               report::printable(print.cluster)),
                   report::kTextWidth, 0);
  if (result.seen.is_too_little()) return out + "\n" + advice(result, print);
  out += counts(result, print) + questions(result) + "\n" + table(result) + why_no_number(result) + "\n" +
         advice(result, print) + "\n";
  for (const CountReason& reason : result.counts_by_laws)
    out += report::wrap("By laws: " + report::printable(reason.in_words()) + ".", report::kTextWidth, 0);
  for (const CountReason& reason : result.counts_not_known)
    out += report::wrap("Not known: " + report::printable(reason.in_words()) + ".", report::kTextWidth, 0);
  if (result.probe) out += probe_text(*result.probe) + "\n";
  if (result.sensitivity) out += sensitivity(*result.sensitivity) + "\n";
  std::vector<std::string> notes = result.trust.notes();
  for (const std::string& note : {print.mpi_note, result.memory_note}) {
    if (!note.empty()) notes.push_back(note);
  }
  for (const std::string& note : notes)
    out += report::wrap("Note: " + report::printable(note) + ".", report::kTextWidth, 0);
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
                         {"notes", result.seen.is_too_little() ? std::vector<std::string>{} : result.trust.notes()},
                         {"partial", !result.trust.why_partial.empty()}};
  constexpr std::array kBases = {"assumption", "self error", "site", "program"};
  json["error_basis"] = kBases[static_cast<std::size_t>(result.trust.basis())];
  if (result.trust.self_error_percent) json["self_error_percent"] = *result.trust.self_error_percent;
  if (!result.why_no_mapping.empty()) json["why_no_mapping"] = result.why_no_mapping;
  for (const std::string& note : {print.mpi_note, result.memory_note}) {
    if (!note.empty()) json["notes"].push_back(note);
  }
  json["now"] = json_of(result, result.baseline.now, print.host_file);
  json["now"]["flags"] = flags_of_now(result);
  if (result.seen.share < 1) {
    json["now"]["seen_share"] = result.seen.share;
    json["now"]["low_s"] = result.now_interval_s ? nlohmann::json(result.now_interval_s->first) : nlohmann::json();
    json["now"]["high_s"] = result.now_interval_s ? nlohmann::json(result.now_interval_s->second) : nlohmann::json();
  }
  json["now"]["is_what_ran"] = result.baseline.is_what_ran;
  if (result.baseline.measured_s) json["now"]["measured_s"] = *result.baseline.measured_s;
  if (result.baseline.others_s > 0) json["now"]["other_programs_s"] = result.baseline.others_s;
  json["candidates"] = nlohmann::json::array();
  for (const Ranked& one : result.ranking.ranked) {
    json["candidates"].push_back(json_of(result, one, print.host_file));
    if (one.candidate.needs_host_file()) json["candidates"].back()["hosts"] = hosts_of(one.candidate);
  }
  if (result.advice.chosen) {
    json["advice"] = {{"candidate", *result.advice.chosen},
                      {"flags", advise_flags(result, print.host_file)},
                      {"gain_percent", result.advice.gain.percent},
                      {"gain_low_percent", result.advice.gain.low_percent},
                      {"gain_high_percent", result.advice.gain.high_percent},
                      {"reasons", result.advice.reasons}};
    const Ranked& chosen = result.ranking.ranked[*result.advice.chosen];
    if (chosen.candidate.needs_host_file()) {
      json["advice"]["host_file"] = print.host_file;
      json["advice"]["hosts"] = hosts_of(chosen.candidate);
    }
  } else {
    json["advice"] = nullptr;
    json["why_no_advice"] = result.advice.why_not;
  }
  if (result.has_several_counts) {
    json["counts_by_laws"] = in_words(result.counts_by_laws);
    json["counts_not_known"] = in_words(result.counts_not_known);
  }
  if (!result.advice.unmeasured.empty()) json["not_advised"] = result.advice.unmeasured;
  if (result.schedule) {
    json["when"] = {{"asked_at", result.schedule->asked_at_s},
                    {"questions", result.schedule->questions},
                    {"starts_known", result.schedule->known},
                    {"not_asked", result.schedule->not_asked},
                    {"beyond_bound", result.schedule->beyond_bound}};
    if (!result.schedule->why_stopped.empty()) json["when"]["why_stopped"] = result.schedule->why_stopped;
  }
  if (result.sensitivity) json["sensitivity"] = json_of(*result.sensitivity);
  if (result.probe) json["probe"] = json_of(*result.probe);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lbf::tools
