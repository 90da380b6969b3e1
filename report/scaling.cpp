// See scaling.h.
#include "report/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "base/network_name.h"
#include "base/times.h"
#include "report/advice.h"
#include "report/row_table.h"
#include "report/text.h"

namespace lbf::report {
namespace {

using advisor::Part;
using advisor::ScalingForecast;
using advisor::ScalingRun;

constexpr std::uint32_t kMostTimesRanks = 8;  // beyond the most that ran

std::uint32_t ranks_of(const Step& step) {
  return static_cast<std::uint32_t>(step.ranks.value_or(0));
}

std::uint32_t nodes_of(const Step& step) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, step.node_count.value_or(step.nodes.size())));
}

std::uint32_t nodes_for(std::uint32_t ranks, std::uint32_t ranks_per_node) {
  return ranks_per_node == 0 ? 1 : (ranks + ranks_per_node - 1) / ranks_per_node;
}

// Empty: it can be used.
std::string why_not(const Step& step) {
  if (step.running()) return "it is running: ask when it is over";
  if (step.state == StepState::kPartial)
    return "it is partial: " + (step.why_partial.empty() ? "lbfd gives no reason" : step.why_partial);
  if (!step.path_work_s || !step.path_rank_work_s || ranks_of(step) == 0) {
    return "lbfd has not replayed what its time is made of: it was stored by an earlier lbf, or lbfd had no room; "
           "run it again";
  }
  const TargetPrediction* const self = step.self();
  if (self != nullptr && self->seen_in_part() && (!self->predicted_s || !self->low_s || !self->high_s))
    return "too little of it was captured; raise the overhead limit";
  return {};
}

// Whether they differ in something that no law knows; empty: they do not.
std::string why_not_together(const Step& one, const Step& other) {
  const std::string jobs = fmt::format("jobs {} and {}", job_id(one), job_id(other));
  if (one.program_id != other.program_id) return jobs + " ran different programs, or it was built anew between them";
  if (one.cluster != other.cluster) return jobs + " ran on different clusters";
  if (one.network != other.network) {
    return fmt::format("{} ran on different networks, {} and {}", jobs, one.network, other.network);
  }
  if (one.threads != other.threads) {
    return fmt::format("{} had {} and {} threads a rank; run one of them as the other", jobs, one.threads.value_or(0),
                       other.threads.value_or(0));
  }
  return {};
}

double error_percent(const Step& step) {
  const TargetPrediction* const self = step.self();
  double percent = std::abs(step.self_error_percent().value_or(advisor::kAssumedErrorPercent));
  if (self != nullptr && self->seen_in_part() && self->predicted_s && *self->predicted_s > 0)
    percent +=
        100 * std::max(*self->high_s - *self->predicted_s, *self->predicted_s - *self->low_s) / *self->predicted_s;
  return percent;
}

// What was not captured is taken to be as what was.
ScalingRun run_of(const Step& step) {
  ScalingRun run;
  run.ranks = ranks_of(step);
  run.nodes = nodes_of(step);
  const auto set = [&run](Part part, Seconds value) { run.parts[static_cast<std::size_t>(part)] = value; };
  const Seconds rank_work_s = std::min(*step.path_rank_work_s, *step.path_work_s);
  set(Part::kWork, rank_work_s);
  set(Part::kImbalance, *step.path_work_s - rank_work_s);
  set(Part::kOverhead, step.path_overhead_s.value_or(0));
  set(Part::kCopies, step.path_copies_s.value_or(0));
  set(Part::kLatencyInside, step.path_latency_inside_s.value_or(0));
  set(Part::kLatencyBetween, step.path_latency_between_s.value_or(0));
  set(Part::kBytesInside, step.path_bytes_inside_s.value_or(0));
  set(Part::kBytesBetween, step.path_bytes_between_s.value_or(0));
  set(Part::kKept, step.path_kept_s.value_or(0));
  const Seconds seen_s = run.time_s();
  const double whole = seen_s > 0 ? 1 + step.path_unseen_s.value_or(0) / seen_s : 1;
  for (Seconds& part : run.parts) part *= whole;
  run.error_percent = error_percent(step);
  return run;
}

bool had_too_few_processors(const Step& step) {
  const TargetPrediction* const self = step.self();
  if (self == nullptr || !self->cores_per_node) return false;
  return std::uint64_t{nodes_of(step)} * *self->cores_per_node <
         ranks_of(step) * std::max<std::uint64_t>(1, step.threads.value_or(1));
}

// Where all ran on one node it takes more ranks as long as there are processors, and any number if it did already.
std::uint32_t ranks_per_node(const std::vector<Step>& by_ranks) {
  const Step& most = by_ranks.back();
  const std::uint32_t ran = nodes_for(std::max(1U, ranks_of(most)), nodes_of(most));
  const TargetPrediction* const self = most.self();
  if (std::ranges::any_of(by_ranks, [](const Step& step) { return nodes_of(step) > 1; })) return ran;
  if (std::ranges::any_of(by_ranks, had_too_few_processors)) return 0;
  const std::uint32_t cores = self != nullptr ? self->cores_per_node.value_or(0) : 0;
  return std::max(ran, static_cast<std::uint32_t>(cores / std::max<std::uint64_t>(1, most.threads.value_or(1))));
}

std::optional<Seconds> measured_at(const std::vector<Step>& steps, std::uint32_t ranks) {
  Seconds sum_s = 0;
  std::size_t runs = 0;
  for (const Step& step : steps) {
    if (ranks_of(step) != ranks || !step.measured_s || had_too_few_processors(step)) continue;
    sum_s += *step.measured_s;
    ++runs;
  }
  return runs > 0 ? std::optional(sum_s / static_cast<double>(runs)) : std::nullopt;
}

std::vector<std::uint32_t> counts_to_say(const std::set<std::uint32_t>& ran, const ScalingQuestion& question) {
  std::set<std::uint32_t> counts(question.ranks.begin(), question.ranks.end());
  if (counts.empty()) {
    counts = ran;
    for (std::uint32_t times = 2; times <= kMostTimesRanks; times *= 2) counts.insert(*ran.rbegin() * times);
  }
  counts.erase(0);
  return {counts.begin(), counts.end()};
}

std::string bound_in_words(const ScalingRun& run, Seconds measured_s) {
  const advisor::AmdahlBound bound = advisor::amdahl_bound(run);
  std::string out = fmt::format("Amdahl's bound with the serial part that was seen ({} of {}): at best",
                                format_duration(bound.stays_s, 3), format_duration(run.time_s(), 3));
  for (const std::uint32_t times : {2U, 4U, 8U}) {
    out += fmt::format("{} {} with {} ranks", times == 2 ? "" : ",", format_duration(bound.at(run.ranks * times), 3),
                       run.ranks * times);
  }
  out += measured_s > 0 ? fmt::format("; it ran {} with {}. ", format_duration(measured_s, 3), run.ranks) : ". ";
  return out + "This is no prediction: what is not work may grow with the ranks.";
}

std::string in_percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

// Of a law's time, as lbf says any other one. DOUBT: of the runs' predictions.
advisor::Saying saying_of(const ScalingForecast& there, std::string_view network, advisor::Doubt doubt) {
  const double nominal = there.nodes > 1 && is_nominal(network) ? advisor::kNominalPercent : 0;
  advisor::Saying out;
  out.predicted_s = there.time_s;
  out.low_s = there.low_s;
  out.high_s = there.high_s + nominal / 100 * there.time_s;
  out.half_width_percent = there.half_width_percent() + nominal;
  out.form = advisor::form_of(out.half_width_percent, network, there.nodes);
  if (out.form == advisor::Saying::Form::kAtBest) {
    out.why = "the network between nodes is not described";
    out.remedy = advisor::kMeasureNetwork;
  } else if (out.is_number() && doubt != advisor::Doubt::kNone) {
    const bool is_lost = doubt == advisor::Doubt::kLostToOthers;
    out.form = advisor::Saying::Form::kRange;
    out.why = is_lost ? "others had processors of the runs" : "the predictions of the runs are doubtful";
    out.remedy = is_lost ? "run them alone, their ranks pinned (srun --cpu-bind=cores)"
                         : "pin the ranks (srun --cpu-bind=cores) and run them again";
  } else if (out.form == advisor::Saying::Form::kRange && nominal > 0) {
    out.why = fmt::format("{} is from public figures, not measured here", network);
    out.remedy = advisor::kMeasureNetwork;
  } else if (!out.is_number()) {
    out.why = fmt::format("the law of {} is too uncertain", name_of(there.widest));
    out.remedy = fmt::format("run it once with {} ranks", there.ranks);
  }
  return out;
}

void add_counts(const std::vector<Step>& steps, const advisor::Scaling& scaling, ScalingAnswer& answer) {
  advisor::Doubt doubt = advisor::Doubt::kNone;
  for (const Step& step : steps) {
    if (doubt == advisor::Doubt::kNone) doubt = trust_of(step).doubt();
  }
  std::set<std::uint32_t> ran;
  for (const ScalingRun& run : scaling.runs()) ran.insert(run.ranks);
  const auto add_reason = [&answer](const std::string& reason) {
    answer.beyond += (answer.beyond.empty() ? "" : "; ") + reason;
  };
  for (const std::uint32_t ranks : counts_to_say(ran, answer.question)) {
    // Of counts that nobody asked for, none beyond the first that cannot be told.
    if (!answer.beyond.empty() && answer.question.ranks.empty()) break;
    const auto there = scaling.at(ranks, nodes_for(ranks, answer.ranks_per_node));
    if (!there) {
      add_reason(fmt::format("{} ranks: {}", ranks, there.error().message));
      continue;
    }
    advisor::Saying saying = saying_of(*there, answer.network, doubt);
    if (saying.form == advisor::Saying::Form::kCannotTell) {
      add_reason(fmt::format("{} ranks: cannot tell, {}: run it once with {} ranks on {}", ranks, saying.why,
                             2 * *ran.rbegin(), count_of(nodes_for(2 * *ran.rbegin(), answer.ranks_per_node), "node")));
      continue;
    }
    answer.rows.push_back(
        {*there, std::move(saying), scaling.efficiency(*there), scaling.bound_by(*there), measured_at(steps, ranks)});
  }
  if (answer.rows.empty()) return;
  std::vector<ScalingForecast> forecasts;
  for (const ScalingRow& row : answer.rows) forecasts.push_back(row.there);
  if (answer.question.problem == advisor::Problem::kSame) answer.knee = advisor::knee_of(forecasts);
  if (answer.knee && !answer.rows[*answer.knee].saying.is_number()) answer.knee.reset();
  for (std::size_t i = 0; i < advisor::kParts; ++i) {
    const auto part = static_cast<Part>(i);
    const advisor::FittedLaw* const law = scaling.law(part, forecasts.back().nodes > 1);
    if (law != nullptr && law->law.at(forecasts.back().ranks) > 0)
      answer.laws.emplace_back(key_of(part), law->law.in_words());
  }
}

// What the laws of the runs with fewer ranks say of the largest one; empty: they say nothing.
std::string trial_in_words(const std::vector<ScalingRun>& runs, advisor::Problem problem) {
  const std::uint32_t ranks = runs.back().ranks;
  std::vector<ScalingRun> fewer;
  Seconds took_s = 0;
  double largest = 0;
  for (const ScalingRun& run : runs) {
    if (run.ranks < ranks) {
      fewer.push_back(run);
    } else {
      took_s += run.time_s();
      largest += 1;
    }
  }
  if (fewer.empty()) return {};
  const auto laws = advisor::Scaling::make(std::move(fewer), problem);
  if (!laws) return {};
  const auto there = laws->at(ranks, runs.back().nodes);
  if (!there) return {};
  took_s /= largest;
  return fmt::format("The runs with fewer ranks say {} of {}, which took {}: {:+.1f} %.",
                     format_duration(there->time_s, 3), count_of(ranks, "rank"), format_duration(took_s, 3),
                     100 * (there->time_s / took_s - 1));
}

struct ScalingLine {
  const ScalingRow& row;
  bool is_knee;

  // TEXT, where the time is a number.
  std::string if_number(std::string text) const { return row.saying.is_number() ? std::move(text) : "-"; }
};

}  // namespace

std::vector<std::vector<Step>> families_of(std::vector<Step> steps) {
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::vector<Step>> by_key;
  for (Step& step : steps) {
    if (step.program_id.empty() || step.command_cut || !why_not(step).empty()) continue;
    if (trust_of(step).doubt() == advisor::Doubt::kLostToOthers) continue;
    Key key{step.cluster, step.user_name, step.program_id, step.command};
    by_key[std::move(key)].push_back(std::move(step));
  }
  std::vector<std::vector<Step>> out;
  for (auto& [key, family] : by_key) {
    const std::uint32_t ranks = ranks_of(family.front());
    if (std::ranges::any_of(family, [ranks](const Step& step) { return ranks_of(step) != ranks; }))
      out.push_back(std::move(family));
  }
  const auto latest = [](const std::vector<Step>& family) {
    double start_s = 0;
    for (const Step& step : family) start_s = std::max(start_s, step.start_s.value_or(0));
    return start_s;
  };
  std::ranges::stable_sort(out, [&](const auto& a, const auto& b) { return latest(a) > latest(b); });
  return out;
}

Result<ScalingAnswer> scaling_of(const std::vector<Step>& steps, const ScalingQuestion& question) {
  std::vector<Step> by_ranks = steps;
  std::ranges::stable_sort(by_ranks, [](const Step& a, const Step& b) { return ranks_of(a) < ranks_of(b); });
  ScalingAnswer answer;
  const Step& most = by_ranks.back();
  answer.command = command_line(most);
  answer.network = most.network;
  answer.threads = static_cast<std::uint32_t>(most.threads.value_or(0));
  answer.question = question;
  answer.ranks_per_node = ranks_per_node(by_ranks);
  std::vector<ScalingRun> runs;
  bool is_shared = false;
  for (const Step& step : by_ranks) {
    if (std::string why = why_not(step); !why.empty())
      return invalid_input(fmt::format("job {}: {}", job_id(step), why));
    if (std::string why = why_not_together(step, most); !why.empty()) return invalid_input(std::move(why));
    if (nodes_for(ranks_of(step), answer.ranks_per_node) != nodes_of(step)) {
      return invalid_input(fmt::format("job {} has {} on {}, job {} {} a node: run one of them as the other",
                                       job_id(step), count_of(ranks_of(step), "rank"), count_of(nodes_of(step), "node"),
                                       job_id(most), answer.ranks_per_node));
    }
    is_shared = is_shared || had_too_few_processors(step);
    if (command_line(step) != answer.command && answer.notes.empty() && question.problem == advisor::Problem::kSame) {
      answer.notes.push_back(
          fmt::format("The arguments of jobs {} and {} differ; that the problem is the same is taken from you.",
                      job_id(step), job_id(most)));
    }
    answer.jobs.push_back(job_id(step));
    answer.ran.push_back(ranks_of(step));
    runs.push_back(run_of(step));
  }
  if (is_shared)
    answer.notes.emplace_back("Some runs had more ranks than processors. Times are for a processor for each rank.");
  const Seconds measured_s = measured_at(by_ranks, ranks_of(most)).value_or(0);
  const std::string bound = bound_in_words(runs.back(), measured_s);
  const auto scaling = advisor::Scaling::make(std::move(runs), question.problem);
  if (!scaling) {
    if (ranks_of(by_ranks.front()) != ranks_of(most) || question.problem != advisor::Problem::kSame)
      return scaling.error();
    answer.beyond = scaling.error().message;
    answer.notes.push_back(bound);
    return answer;
  }
  add_counts(by_ranks, *scaling, answer);
  if (std::string trial = trial_in_words(scaling->runs(), question.problem); !trial.empty())
    answer.notes.push_back(std::move(trial));
  return answer;
}

std::string scaling_head(const ScalingAnswer& answer) {
  std::string jobs;
  for (const std::string& job : answer.jobs) jobs += (jobs.empty() ? "" : ", ") + job;
  const std::string place =
      answer.ranks_per_node == 0 ? "on one node" : count_of(answer.ranks_per_node, "rank") + " a node";
  return fmt::format("{}: {}, {}, network {}. From {} {}.", answer.command.empty() ? "-" : answer.command,
                     answer.question.problem == advisor::Problem::kSame ? "one problem at all rank counts"
                                                                        : "the same problem for each rank",
                     place, answer.network, answer.jobs.size() == 1 ? "job" : "jobs", jobs);
}

std::string scaling_sentences(const ScalingAnswer& answer) {
  std::string out;
  const auto say = [&out](const std::string& sentence) { out += (out.empty() ? "" : " ") + sentence; };
  const auto unsure = std::ranges::find_if(answer.rows, [](const ScalingRow& row) { return !row.saying.is_number(); });
  if (answer.knee) {
    const ScalingRow& row = answer.rows[*answer.knee];
    say(fmt::format("The knee is at {}: there efficiency over run time is largest.",
                    count_of(row.there.ranks, "rank")));
    if (row.bound_by) say(fmt::format("What bounds it there: {}.", name_of(*row.bound_by)));
  } else if (!answer.rows.empty() && answer.question.problem == advisor::Problem::kSame) {
    say(unsure == answer.rows.end()
            ? fmt::format("There is no knee up to {}.", count_of(answer.rows.back().there.ranks, "rank"))
            : std::string("Where the knee is cannot be told."));
  }
  if (unsure != answer.rows.end()) {
    say(fmt::format("Why no number with {}: {}. To get one, {}.", count_of(unsure->there.ranks, "rank"),
                    unsure->saying.why, unsure->saying.remedy));
  }
  for (const std::string& note : answer.notes) say(note);
  if (!answer.beyond.empty()) say("Not known: " + answer.beyond + ".");
  return out;
}

std::string whatif_command(const ScalingAnswer& answer) {
  const auto row = std::ranges::find_if(answer.rows, [&](const ScalingRow& one) {
    return std::ranges::find(answer.ran, one.there.ranks) == answer.ran.end();
  });
  if (row == answer.rows.end() || answer.threads > 1) return {};
  std::string runs;
  for (std::size_t i = 0; i < answer.jobs.size(); ++i) {
    if (i + 1 == answer.ran.size() || answer.ran[i + 1] != answer.ran[i]) runs += answer.jobs[i] + ' ';
  }
  const std::uint32_t nodes = row->there.nodes;
  return fmt::format("lbf-whatif {}--ranks {} --nodes {} --cores {} --network {}", runs, row->there.ranks, nodes,
                     (row->there.ranks + nodes - 1) / nodes, answer.network);
}

std::string render_scaling(const ScalingAnswer& answer, const TableStyle& style) {
  using Row = const ScalingLine&;
  static constexpr std::array<ColumnOf<ScalingLine>, 9> kColumns{
      {{"Ranks", 7, false, [](Row line) { return std::to_string(line.row.there.ranks) + (line.is_knee ? "*" : ""); }},
       {"Nodes", 6, false, [](Row line) { return std::to_string(line.row.there.nodes); }},
       {"Time", 9, false, [](Row line) { return line.if_number(format_duration(line.row.there.time_s, 3)); }},
       {"Low", 9, false, [](Row line) { return format_duration(line.row.saying.low_s, 3); }},
       {"High", 9, false,
        [](Row line) {
          return line.row.saying.has_interval() ? format_duration(line.row.saying.high_s, 3) : std::string("-");
        }},
       {"Measured", 9, false,
        [](Row line) { return line.row.measured_s ? format_duration(*line.row.measured_s, 3) : std::string("-"); }},
       {"Efficiency", 10, false, [](Row line) { return line.if_number(in_percent(line.row.efficiency)); }},
       {"NodeHours", 9, false,
        [](Row line) { return line.if_number(fmt::format("{:.3g}", line.row.there.node_hours())); }},
       {"BoundBy", 21, true,
        [](Row line) { return line.row.bound_by ? std::string(name_of(*line.row.bound_by)) : std::string("-"); }}}};
  std::vector<ScalingLine> lines;
  for (std::size_t i = 0; i < answer.rows.size(); ++i)
    lines.push_back({answer.rows[i], answer.knee == i && !style.parsable});
  return render_rows(lines, kColumns, style);
}

std::string scaling_json(const std::vector<ScalingAnswer>& answers) {
  using Json = nlohmann::json;
  Json list = Json::array();
  for (const ScalingAnswer& answer : answers) {
    Json rows = Json::array();
    for (const ScalingRow& row : answer.rows) {
      Json parts;
      for (std::size_t i = 0; i < advisor::kParts; ++i)
        parts[std::string(key_of(static_cast<Part>(i)))] = row.there.parts[i];
      rows.push_back({{"ranks", row.there.ranks},
                      {"nodes", row.there.nodes},
                      {"predicted_s", row.there.time_s},
                      {"trust", name_of(row.saying.form)},
                      {"low_s", row.saying.low_s},
                      {"high_s", row.saying.has_interval() ? Json(row.saying.high_s) : Json()},
                      {"measured_s", row.measured_s ? Json(*row.measured_s) : Json()},
                      {"efficiency", row.efficiency},
                      {"node_hours", row.there.node_hours()},
                      {"bound_by", row.bound_by ? Json(key_of(*row.bound_by)) : Json()},
                      {"parts", std::move(parts)}});
    }
    Json laws = Json::object();
    for (const auto& [part, law] : answer.laws) laws[part] = law;
    list.push_back({{"command", answer.command},
                    {"jobs", answer.jobs},
                    {"problem", answer.question.problem == advisor::Problem::kSame ? "strong" : "weak"},
                    {"ranks_per_node", answer.ranks_per_node},
                    {"network", answer.network},
                    {"rows", std::move(rows)},
                    {"knee_ranks", answer.knee ? Json(answer.rows[*answer.knee].there.ranks) : Json()},
                    {"laws", std::move(laws)},
                    {"notes", answer.notes},
                    {"not_known", answer.beyond}});
  }
  return Json{{"scaling", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace lbf::report
