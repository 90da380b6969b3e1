#include "tools/advise/advise_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "report/field_keys.h"
#include "report/text.h"
#include "tools/report/report_query.h"
#include "tools/whatif/extrapolated_trace.h"

namespace lbf::tools {
namespace {

constexpr std::time_t kFamilyWithinS = 7 * 86400;

Result<std::vector<report::Step>> ask_for_steps_of(HttpClient& client, report::Selection selection) {
  selection.rows = report::row_keys_of_scaling();
  selection.summary = true;
  std::vector<report::Step> steps;
  const auto take = [&steps](report::Step& step) { steps.push_back(std::move(step)); };
  if (!selection.jobs.empty()) {
    if (auto asked = ask_rows(client, selection, take); !asked) return asked.error();
    if (steps.empty()) return nothing_known(client, selection);
    return steps;
  }
  selection.limit = report::kMostSteps;
  if (const auto whole = ask_all_rows(client, selection, take); !whole) return whole.error();
  return steps;
}

Result<std::vector<report::Step>> family_of(HttpClient& client, const report::Step& step) {
  report::Selection selection;
  if (!step.user_name.empty()) selection.users = {step.user_name};
  selection.since = std::time(nullptr) - kFamilyWithinS;
  Result<std::vector<report::Step>> steps = ask_for_steps_of(client, selection);
  if (!steps) return steps;
  for (std::vector<report::Step>& family : report::families_of(std::move(*steps))) {
    const bool is_its =
        std::ranges::any_of(family, [&](const report::Step& one) { return key_of(one) == key_of(step); });
    if (is_its) return std::move(family);
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("--ranks: no run of the last 7 days had the program and arguments of job {} and another rank "
                  "count; name them with -j JOB,JOB, or run it once with {} ranks",
                  job_id(step), 2 * step.ranks.value_or(1))};
}

bool is_as_fast(const engine::Target& target) {
  return target.speed == 1 && std::ranges::all_of(target.speed_of_node, [](double speed) { return speed == 1; });
}

}  // namespace

Result<std::vector<report::Step>> ask_for_runs(HttpClient& client, const std::vector<report::JobSelector>& jobs) {
  report::Selection named;
  named.jobs = jobs;
  Result<std::vector<report::Step>> steps = ask_for_steps_of(client, named);
  return steps && steps->size() == 1 ? family_of(client, steps->front()) : std::move(steps);
}

void take_law(const Result<report::ScalingAnswer>& laws, const advisor::Cluster& cluster,
              advisor::CandidateOptions options, OtherCount& other) {
  if (!laws || laws->rows.empty()) {
    other.why_no_law = laws ? laws->beyond : laws.error().message;
    if (const std::string count = fmt::format("{} ranks: ", other.ranks); other.why_no_law.starts_with(count))
      other.why_no_law.erase(0, count.size());
    return;
  }
  const report::ScalingRow& row = laws->rows.front();
  const std::uint32_t nodes = row.there.nodes;
  const std::uint32_t ranks_per_node = (row.there.ranks + nodes - 1) / nodes;
  std::vector<advisor::NodeSet> sets;
  if (options.node_counts.empty() || std::ranges::find(options.node_counts, nodes) != options.node_counts.end()) {
    options.ranks = other.ranks;
    options.node_counts = {nodes};
    options.block = true;
    options.cyclic = options.plane = options.overcommit = options.fills_nodes = false;
    if (auto found = advisor::node_sets(cluster, options)) sets = std::move(*found);
  }
  for (const advisor::NodeSet& set : sets) {
    if (set.network->name() != laws->network) continue;
    for (advisor::Candidate& made : advisor::distributed_candidates(cluster, set, options)) {
      const std::uint32_t most = std::ranges::max(advisor::ranks_of_nodes(made.target));
      const std::uint32_t used = most * std::max(1U, laws->threads);
      if (!is_as_fast(made.target) || most != ranks_per_node || used > advisor::least_cores(made.target)) continue;
      advisor::Ranked& one = other.by_law.emplace_back();
      one.candidate = std::move(made);
      one.candidate.target.threads = laws->threads;
      one.verdict = advisor::Verdict::kReplayed;
      one.source = advisor::Source::kLaw;
      one.time_s = row.there.time_s;
      one.said = row.saying;
    }
  }
  if (!other.by_law.empty()) return;
  other.why_no_law =
      fmt::format("no partition has {} as fast as those that ran with {} processors each on network {}",
                  report::count_of(nodes, "node"), ranks_per_node * std::max(1U, laws->threads), laws->network);
}

std::vector<ProgramRun> runs_to_learn_from(const std::vector<report::Step>& steps, Rank ran,
                                           const std::string& server) {
  std::map<Rank, const report::Step*> last;
  for (const report::Step& step : steps) {
    if (step.running() || !step.ranks || *step.ranks == ran) continue;
    const report::Step*& known = last[*step.ranks];
    if (known == nullptr || known->start_s.value_or(0) < step.start_s.value_or(0)) known = &step;
  }
  std::vector<ProgramRun> runs;
  for (const auto& [ranks, step] : last)
    runs.push_back({"job " + job_id(*step), [step = *step, server] { return open_step_trace(step, server); }});
  return runs;
}

std::vector<std::string> take_traces(const std::string& name, WhatIfTrace& first, const std::vector<ProgramRun>& runs,
                                     const MakePasses& make_passes, std::vector<OtherCount>& others) {
  ProgramLearner learner;
  std::vector<std::string> notes;
  const auto leave_out = [&notes](const std::string& run, const Error& why) {
    notes.push_back(fmt::format("{} is left out: {}", run, why.message));
  };
  if (const Result<void> added = learner.add(name, first); !added) leave_out(name, added.error());
  for (const ProgramRun& run : runs) {
    Result<std::unique_ptr<WhatIfTrace>> trace = run.open();
    const Result<void> added = trace ? learner.add(run.name, **trace) : Result<void>(trace.error());
    if (!added) {
      leave_out(run.name, added.error());
      continue;
    }
    const auto its = std::ranges::find(others, (*trace)->ranks(), &OtherCount::ranks);
    if (its == others.end() || its->trace != nullptr) continue;
    its->trace = make_passes(std::move(*trace));
    its->source = advisor::Source::kTrace;
  }
  const auto has_trace = [](const OtherCount& other) { return other.trace != nullptr; };
  if (std::ranges::all_of(others, has_trace)) return notes;
  const Result<LearntProgram> program = learner.learn();
  for (OtherCount& other : others) {
    if (has_trace(other)) continue;
    auto trace = program ? program->with_ranks(other.ranks) : Result<std::unique_ptr<WhatIfTrace>>(program.error());
    if (trace) {
      other.trace = make_passes(std::move(*trace));
    } else {
      other.why_no_trace = "the pattern is refused: " + trace.error().message;
    }
  }
  if (program) notes.insert(notes.end(), program->notes().begin(), program->notes().end());
  return notes;
}

}  // namespace lbf::tools
