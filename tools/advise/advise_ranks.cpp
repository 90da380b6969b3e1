// Candidates of other rank counts, see advise_ranks.h.
#include "tools/advise/advise_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "report/field_keys.h"
#include "report/text.h"
#include "tools/report/report_query.h"

namespace lbf::tools {
namespace {

constexpr std::time_t kFamilyWithinS = 7 * 86400;

Result<std::vector<report::Step>> ask_for_runs(HttpClient& client, report::Selection selection) {
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
  Result<std::vector<report::Step>> steps = ask_for_runs(client, selection);
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

Result<report::ScalingAnswer> ask_for_scaling(HttpClient& client, const std::vector<report::JobSelector>& jobs,
                                              const std::vector<std::uint32_t>& counts) {
  report::Selection named;
  named.jobs = jobs;
  Result<std::vector<report::Step>> steps = ask_for_runs(client, named);
  if (steps && steps->size() == 1) steps = family_of(client, steps->front());
  if (!steps) return steps.error();
  return report::scaling_of(*steps, {advisor::Problem::kSame, counts});
}

RankChoices other_counts(const report::ScalingAnswer& answer, const advisor::Cluster& cluster,
                         advisor::CandidateOptions options, Rank ran) {
  RankChoices out;
  if (!answer.beyond.empty()) out.not_known.push_back(answer.beyond);
  options.block = true;
  options.cyclic = options.plane = options.overcommit = options.fills_nodes = false;
  const std::vector<std::uint32_t> asked_nodes = options.node_counts;
  for (const report::ScalingRow& row : answer.rows) {
    const std::uint32_t nodes = row.there.nodes;
    options.ranks = static_cast<Rank>(row.there.ranks);
    if (options.ranks == ran) continue;
    if (!asked_nodes.empty() && std::ranges::find(asked_nodes, nodes) == asked_nodes.end()) continue;
    options.node_counts = {nodes};
    const std::uint32_t ranks_per_node = (row.there.ranks + nodes - 1) / nodes;
    const std::size_t before = out.ranked.size();
    std::vector<advisor::NodeSet> sets;
    if (auto found = advisor::node_sets(cluster, options)) sets = std::move(*found);
    for (const advisor::NodeSet& set : sets) {
      if (set.network->name() != answer.network) continue;
      for (advisor::Candidate& made : advisor::distributed_candidates(cluster, set, options)) {
        const std::uint32_t most = std::ranges::max(advisor::ranks_of_nodes(made.target));
        const std::uint32_t used = most * std::max(1U, answer.threads);
        if (!is_as_fast(made.target) || most != ranks_per_node || used > advisor::least_cores(made.target)) continue;
        advisor::Ranked& one = out.ranked.emplace_back();
        one.candidate = std::move(made);
        one.candidate.target.threads = answer.threads;
        one.verdict = advisor::Verdict::kReplayed;
        one.time_s = row.there.time_s;
        one.said = row.saying;
      }
    }
    if (out.ranked.size() > before) continue;
    out.not_known.push_back(
        fmt::format("{} ranks: no partition has {} as fast as those that ran with {} processors each on network {}",
                    row.there.ranks, report::count_of(nodes, "node"), ranks_per_node * std::max(1U, answer.threads),
                    answer.network));
  }
  return out;
}

}  // namespace lbf::tools
