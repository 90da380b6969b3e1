#include "tools/advise/advise_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "advisor/candidate/layout.h"
#include "advisor/candidate/node_choice.h"
#include "protocol/step_fields.h"
#include "tools/advise/count_ranking.h"
#include "tools/whatif/replay_trust.h"

namespace lbf::tools {
namespace {

// Of the budget: computing mappings must leave time for replaying them.
constexpr double kShareOfMappings = 0.4;
// A message takes this on the target that counts the longest chain: far longer than any program runs.
constexpr Seconds kChainMessageS = 1e6;

// Every message takes kChainMessageS, work takes nothing: the time is the length of the longest chain.
Result<engine::Target> chain_target(Rank ranks) {
  Result<engine::Network> network =
      engine::Network::parse("name = \"chain\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1e12]]\n", "chain");
  if (!network) return network.error();
  engine::Target target;
  target.node_of_rank.assign(static_cast<std::size_t>(ranks), 0);
  target.cores_per_node = static_cast<std::uint32_t>(ranks);
  target.speed = 1e12;
  target.network = std::make_shared<const engine::Network>(std::move(*network));
  target.placement = "block";
  return target;
}

// Nodes are numbered as the job's: where mpirun used a part of them, those without a rank are none of the
// run's.
std::vector<std::uint32_t> without_empty_nodes(std::vector<std::uint32_t> node_of_rank) {
  std::vector<std::uint32_t> used = node_of_rank;
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  for (std::uint32_t& node : node_of_rank)
    node = static_cast<std::uint32_t>(std::ranges::lower_bound(used, node) - used.begin());
  return node_of_rank;
}

class Session {
 public:
  Session(AdviseTrace& trace, const advisor::Cluster& cluster, AdviseOptions options)
      : trace_(trace), cluster_(cluster), options_(std::move(options)), start_s_(processor_time_s()) {
    options_.candidates.ranks = trace.ranks();
    options_.candidates.first_partition = options_.ran.partition;
  }

  Result<AdviseResult> run() {
    result_.ranks = trace_.ranks();
    // What does not fit is known before the trace is read.
    Result<std::vector<advisor::NodeSet>> sets = advisor::node_sets(cluster_, options_.candidates);
    if (!sets) return sets.error();
    Result<advisor::CommGraph> graph = trace_.graph();
    if (!graph) return graph.error();
    graph_ = std::move(*graph);
    options_.candidates.fills_nodes = graph_.most_threads() > 0;
    result_.bytes = graph_.bytes();
    result_.messages = graph_.messages();
    for (const auto& step : {&Session::find_baseline, &Session::find_memory_demand, &Session::look_at_baseline}) {
      if (Result<void> done = (this->*step)(*sets); !done) return done.error();
    }
    if (result_.seen.is_too_little()) return unknown();
    if (Result<void> done = rank_counts(*sets); !done) return done.error();
    judge_memory();
    if (Result<void> asked = ask_for_starts(); !asked) return asked.error();
    result_.advice = advisor::advise(result_.ranking, result_.baseline, result_.trust, graph_, options_.objective,
                                     result_.schedule ? &*result_.schedule : nullptr);
    return std::move(result_);
  }

 private:
  Seconds spent_s() const { return processor_time_s() - start_s_; }

  // --- what runs now
  Result<void> find_baseline(const std::vector<advisor::NodeSet>& sets) {
    advisor::Candidate& now = result_.baseline.now.candidate;
    const RunDescription& ran = options_.ran;
    std::vector<std::uint32_t> node_of_rank = without_empty_nodes(trace_.node_of_rank());
    std::string placement = "map";
    if (ran.nodes) {
      Result<std::vector<std::uint32_t>> placed = engine::place_ranks(ran.placement, trace_.ranks(), *ran.nodes);
      if (!placed) return placed.error();
      node_of_rank = std::move(*placed);
      placement = ran.placement;
    }
    result_.baseline.is_what_ran = !node_of_rank.empty();
    if (node_of_rank.empty()) return take_plain_srun(sets);
    engine::Target& target = now.target;
    target.nodes = 1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
    std::vector<std::uint32_t> ranks_of_node(target.nodes, 0);
    for (const std::uint32_t node : node_of_rank) ++ranks_of_node[node];
    target.cores_per_node = ran.cores.value_or(*std::max_element(ranks_of_node.begin(), ranks_of_node.end()));
    target.node_of_rank = std::move(node_of_rank);
    target.placement = placement_name(target, placement);
    target.waiting = options_.candidates.waiting;
    target.threads = graph_.most_threads();
    target.network = ran.network != nullptr ? ran.network : sets.front().network;
    now.set.network = target.network;
    if (!ran.partition.empty() && cluster_.find_partition(ran.partition) != nullptr) now.set.partition = ran.partition;
    for (std::uint32_t node = 0; node < target.nodes; ++node) now.node_names.push_back("node" + std::to_string(node));
    now.overcommits = target.cores_per_node < *std::max_element(ranks_of_node.begin(), ranks_of_node.end());
    use_topology(target);
    return {};
  }

  // "block" or "cyclic" where the map is one.
  std::string placement_name(const engine::Target& target, const std::string& otherwise) const {
    for (const char* const name : {"block", "cyclic"}) {
      const Result<std::vector<std::uint32_t>> placed = engine::place_ranks(name, trace_.ranks(), target.nodes);
      if (placed && *placed == target.node_of_rank) return name;
    }
    return otherwise;
  }

  // The trace does not name the nodes: as near together as a job of that size gets them.
  void use_topology(engine::Target& target) const {
    if (cluster_.topology == nullptr) return;
    std::vector<std::uint32_t> all(cluster_.nodes.size());
    std::iota(all.begin(), all.end(), 0U);
    const std::vector<std::uint32_t> nodes = advisor::choose_nodes(cluster_, all, target.nodes);
    if (nodes.size() != target.nodes) return;
    target.topology = cluster_.topology;
    for (const std::uint32_t node : nodes) target.topology_node_of_node.push_back(cluster_.topology_node_of_node[node]);
  }

  // Nobody knows where it ran: what `srun -n` does, blocks on the fewest nodes of the default partition.
  Result<void> take_plain_srun(const std::vector<advisor::NodeSet>& sets) {
    advisor::CandidateOptions blocks = options_.candidates;
    blocks.block = true;
    blocks.cyclic = blocks.plane = false;
    const auto is_default = [&](const advisor::NodeSet& set) {
      const advisor::Partition* const partition = cluster_.find_partition(set.partition);
      return partition != nullptr && partition->is_default;
    };
    std::optional<advisor::Candidate> best;
    const auto is_better = [&](const advisor::Candidate& one) {
      if (!best) return true;
      // srun shares processors only when it is told to.
      if (one.overcommits != best->overcommits) return best->overcommits;
      if (is_default(one.set) != is_default(best->set)) return is_default(one.set);
      return one.target.nodes < best->target.nodes;
    };
    for (const advisor::NodeSet& set : sets) {
      for (advisor::Candidate& one : advisor::distributed_candidates(cluster_, set, blocks)) {
        if (is_better(one)) best = std::move(one);
      }
    }
    if (!best) return invalid_input("no candidate fits: no node set can take the ranks in blocks");
    result_.baseline.now.candidate = std::move(*best);
    return {};
  }

  // --- memory
  Result<void> find_memory_demand(const std::vector<advisor::NodeSet>& /*sets*/) {
    engine::Target& ran = result_.baseline.now.candidate.target;
    const engine::MemoryDomains& domains = ran.network->memory();
    const double bytes_per_s = trace_.memory().demand.bytes_per_s;
    if (!result_.baseline.is_what_ran || !domains.known() || !(bytes_per_s > 0)) return {};
    ran.memory = engine::memory_demand(ran, domains, bytes_per_s);
    options_.candidates.memory = ran.memory;
    result_.memory_note =
        fmt::format("memory: a rank alone in its memory domain demands {:.3g} GB/s", bytes_per_s / 1e9);
    return {};
  }

  // How far times may be off for what is not known of it. Where nobody knows how dense the run was, the worst.
  void judge_memory() {
    const engine::Target& now = result_.baseline.now.candidate.target;
    const std::uint32_t threads = graph_.most_threads();
    const engine::RanDensity ran = result_.baseline.is_what_ran
                                       ? engine::ran_density(now, threads)
                                       : engine::ran_density(1, now.network->memory(), threads);
    double most_percent = 0;
    for (advisor::Ranked& one : result_.ranking.ranked) {
      if (one.source == advisor::Source::kLaw) continue;
      one.memory_percent = engine::unknown_demand_percent(ran, one.candidate.target, trace_.memory().demand);
      most_percent = std::max(most_percent, one.memory_percent);
    }
    if (most_percent < 1) return;
    result_.memory_note +=
        result_.memory_note.empty() ? "memory: the demand of this program is not known" : ", or more";
    result_.memory_note += fmt::format(
        ": times with other numbers of ranks per memory domain may be off by up to {:.0f} % for it", most_percent);
  }

  // What ran as lbfd predicts it, where that differs: candidates, and what they are compared with, are without the
  // other programs.
  std::vector<engine::Target> what_ran_beside_others() const {
    if (!result_.baseline.is_what_ran || !trace_.has_other_programs()) return {};
    std::vector<engine::Target> ran{result_.baseline.now.candidate.target};
    engine::set_other_programs(ran.front(), ran);
    return ran;
  }

  // --- the first pass: what runs now, its sensitivity, the longest chain
  Result<void> look_at_baseline(const std::vector<advisor::NodeSet>& /*sets*/) {
    advisor::Ranked& now = result_.baseline.now;
    Result<engine::Target> chain = chain_target(trace_.ranks());
    if (!chain) return chain.error();
    const std::vector<engine::Target> beside_others = what_ran_beside_others();
    std::vector<advisor::Replayed> as_it_ran;
    const advisor::ReplayBatch first_pass =
        [&](const std::vector<engine::Target>& targets) -> Result<std::vector<advisor::Replayed>> {
      std::vector<engine::Target> all = beside_others;
      all.insert(all.end(), targets.begin(), targets.end());
      all.push_back(*chain);
      Result<ReplayedTrace> pass = trace_.replay(all);
      if (!pass) return pass.error();
      result_.chain_messages =
          static_cast<std::uint64_t>(std::llround(pass->predictions.back().lbf_s / kChainMessageS));
      judge(*pass);
      pass->predictions.pop_back();
      as_it_ran = outcomes(*pass, result_.trust.why_partial);
      return std::vector(as_it_ran.begin() + static_cast<std::ptrdiff_t>(beside_others.size()), as_it_ran.end());
    };
    Result<std::vector<advisor::Replayed>> replayed = std::vector<advisor::Replayed>{};
    if (options_.sensitivity) {
      Result<advisor::Sensitivity> curves = advisor::sensitivity(
          now.candidate.target,
          [&](const std::vector<engine::Target>& targets) { return replayed = first_pass(targets); });
      if (!curves) return curves.error();
      result_.sensitivity = std::move(*curves);
    } else {
      replayed = first_pass({now.candidate.target});
      if (!replayed) return replayed.error();
    }
    now.take(as_it_ran.front());
    result_.baseline.others_s = std::max(0.0, now.time_s - replayed->front().time_s);
    now.bound = advisor::bound_of(now.candidate.target, graph_, result_.chain_messages);
    if (result_.seen.is_too_little()) {
      now.verdict = advisor::Verdict::kUnknown;
      return {};
    }
    if (result_.baseline.measured_s && now.why_stuck.empty()) {
      result_.trust.self_error_percent =
          100 * (now.time_s - *result_.baseline.measured_s) / *result_.baseline.measured_s;
      result_.trust.is_lost_to_others =
          protocol::noticeable_loss_s(result_.baseline.others_s, *result_.baseline.measured_s) > 0;
    }
    return {};
  }

  AdviseResult unknown() {
    result_.advice.why_not = result_.seen.why_no_prediction();
    result_.sensitivity.reset();
    result_.ranking.spent_s = spent_s();
    return std::move(result_);
  }

  // What the trace does not say.
  void judge(const ReplayedTrace& pass) {
    const engine::Prediction& now = pass.predictions.front();
    const std::vector<Seconds>& measured = now.rank_measured_s;
    advisor::Trust& trust = result_.trust;
    trust = trust_of_replay(pass.stats, now, trace_.mpi_rules(), pass.why_partial);
    trust.program = options_.program;
    trust.site = options_.site;
    result_.seen = daemon::seen_run_of(now, pass.costs);
    if (now.seen_share < 1 && now.high_s != kNeverS && now.lbf_s > 0) result_.now_interval_s = {now.low_s, now.high_s};
    if (!result_.baseline.is_what_ran) return;
    trust.network = result_.baseline.now.candidate.target.network->name();
    trust.nodes = result_.baseline.now.candidate.target.nodes;
    if (options_.ran.measured_s && *options_.ran.measured_s > 0) {
      result_.baseline.measured_s = options_.ran.measured_s;
    } else if (trace_.has_measured_times()) {
      const Seconds longest_s = *std::max_element(measured.begin(), measured.end());
      if (longest_s > 0) result_.baseline.measured_s = longest_s;
    }
  }

  // In a partial trace everybody waits for what is missing: only a whole one, as judge() has found it, can be stuck.
  static std::vector<advisor::Replayed> outcomes(const ReplayedTrace& pass, const std::string& why_partial) {
    std::vector<advisor::Replayed> replayed;
    for (const engine::Prediction& prediction : pass.predictions) {
      const bool stuck = why_partial.empty() && !prediction.complete;
      replayed.push_back({prediction.lbf_s, stuck ? prediction.why_stuck : std::string(), prediction.exchange_percent});
    }
    return replayed;
  }

  // --- ranking
  // The count that ran, unless only others were asked for; then these. Each may take its part of the budget that is
  // left.
  Result<void> rank_counts(const std::vector<advisor::NodeSet>& sets) {
    const std::vector<std::uint32_t>& asked = options_.rank_counts;
    result_.has_several_counts = !asked.empty();
    const bool ranks_what_ran =
        asked.empty() || std::ranges::find(asked, static_cast<std::uint32_t>(trace_.ranks())) != asked.end();
    counts_to_replay_ =
        std::ranges::count_if(options_.other_counts, [](const OtherCount& other) { return other.trace != nullptr; }) +
        (ranks_what_ran ? 1 : 0);
    if (ranks_what_ran) {
      CountQuestion question = question_of(options_.candidates, graph_, trace_, result_.trust.why_partial);
      question.chain_messages = result_.chain_messages;
      Result<CountRanking> made = rank_count(question, sets);
      if (!made) return made.error();
      take(std::move(*made));
    }
    for (OtherCount& other : options_.other_counts) {
      const std::string why_not = replay_other_count(other);
      if (why_not.empty()) continue;
      if (other.by_law.empty()) {
        add_reason(result_.counts_not_known, other.ranks,
                   other.why_no_law.empty() ? why_not : other.why_no_law + "; " + why_not);
      } else {
        add_reason(result_.counts_by_laws, other.ranks, why_not);
        std::ranges::move(other.by_law, std::back_inserter(result_.ranking.ranked));
      }
    }
    if (result_.ranking.ranked.empty()) {
      std::string why;
      for (const CountReason& reason : result_.counts_not_known) why += (why.empty() ? "" : "; ") + reason.in_words();
      return invalid_input(why);
    }
    if (result_.has_several_counts) advisor::put_in_order(result_.ranking.ranked, options_.objective);
    result_.ranking.spent_s = spent_s();
    return {};
  }

  // Empty: it was replayed, else why it was not.
  std::string replay_other_count(OtherCount& other) {
    if (other.trace == nullptr) return other.why_no_trace;
    if (other.source == advisor::Source::kPattern && graph_.most_threads() > 0)
      return "threads of ranks are not extrapolated";
    if (spent_s() >= options_.budget_s) return "the budget was over: --budget gives more";
    advisor::CandidateOptions candidates = options_.candidates;
    candidates.ranks = other.ranks;
    if (const engine::Target& ran = result_.baseline.now.candidate.target; ran.memory.bytes_per_s > 0) {
      const engine::MemoryDomains& domains = ran.network->memory();
      candidates.memory =
          engine::memory_demand(other.ranks, engine::ranks_per_domain(ran, domains), domains, ran.memory.bytes_per_s);
    }
    const Result<std::vector<advisor::NodeSet>> sets = advisor::node_sets(cluster_, candidates);
    if (!sets) return sets.error().message;
    const Result<advisor::CommGraph> graph = other.trace->graph();
    if (!graph) return graph.error().message;
    candidates.fills_nodes = graph->most_threads() > 0;
    Result<CountRanking> made = rank_count(question_of(candidates, *graph, *other.trace, ""), *sets);
    if (!made) return made.error().message;
    const advisor::Ranking& ranking = made->ranking;
    if (ranking.count(advisor::Verdict::kStuck) > 0 && ranking.count(advisor::Verdict::kReplayed) == 0)
      return "the program would not end: " + ranking.ranked.front().why_stuck;
    for (advisor::Ranked& one : made->ranking.ranked) {
      one.source = other.source;
      one.other_ranks_percent = other.trace->other_ranks_percent();
    }
    take(std::move(*made));
    return {};
  }

  CountQuestion question_of(const advisor::CandidateOptions& candidates, const advisor::CommGraph& graph,
                            AdviseTrace& trace, const std::string& why_partial) {
    const Seconds left_s = std::max(0.0, options_.budget_s - spent_s());
    const auto counts_left = static_cast<double>(counts_to_replay_ - counts_replayed_++);
    const Seconds of_mappings_s = kShareOfMappings * options_.budget_s;
    return {.cluster = cluster_,
            .candidates = candidates,
            .objective = options_.objective,
            .graph = graph,
            .replay = [&trace, why_partial](
                          const std::vector<engine::Target>& targets) -> Result<std::vector<advisor::Replayed>> {
              Result<ReplayedTrace> pass = trace.replay(targets);
              if (!pass) return pass.error();
              return outcomes(*pass, why_partial);
            },
            .maps = options_.maps,
            .budget_s = left_s / counts_left,
            .mapping_budget_s = of_mappings_s / static_cast<double>(counts_to_replay_)};
  }

  void take(CountRanking made) {
    advisor::Ranking& all = result_.ranking;
    if (all.ranked.empty()) {
      result_.why_no_mapping = made.why_no_mapping;
    } else if (made.why_no_mapping.empty()) {
      result_.why_no_mapping.clear();  // it does not hold for all counts
    }
    std::ranges::move(made.ranking.ranked, std::back_inserter(all.ranked));
    all.passes += made.ranking.passes;
    result_.mappings_computed += made.mappings_computed;
    result_.mappings_deferred += made.mappings_deferred;
  }

  static void add_reason(std::vector<CountReason>& reasons, Rank ranks, const std::string& why) {
    auto same = std::ranges::find(reasons, why, &CountReason::why);
    if (same == reasons.end()) same = reasons.insert(same, {{}, why});
    same->ranks.push_back(ranks);
  }

  Result<void> ask_for_starts() {
    if (options_.starts.slurm == nullptr) return {};
    advisor::ScheduleOptions how;
    how.now_s = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    how.cluster = &cluster_;
    how.time_limit = options_.starts.time_limit;
    how.trust = result_.trust;
    how.progress = options_.starts.progress;
    Result<advisor::Schedule> made =
        advisor::schedule(result_.ranking, result_.baseline, options_.objective, *options_.starts.slurm, how);
    if (!made) return made.error();
    result_.schedule = std::move(*made);
    return {};
  }

  AdviseTrace& trace_;
  const advisor::Cluster& cluster_;
  AdviseOptions options_;
  Seconds start_s_;
  advisor::CommGraph graph_;
  std::ptrdiff_t counts_to_replay_ = 0;
  std::ptrdiff_t counts_replayed_ = 0;
  AdviseResult result_;
};

}  // namespace

std::string CountReason::in_words() const {
  return fmt::format("{} ranks: {}", fmt::join(ranks, ", "), why);
}

Result<AdviseResult> advise(AdviseTrace& trace, const advisor::Cluster& cluster, AdviseOptions options) {
  return Session(trace, cluster, std::move(options)).run();
}

}  // namespace lbf::tools
