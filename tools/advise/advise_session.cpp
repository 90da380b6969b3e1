#include "tools/advise/advise_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iterator>
#include <numeric>
#include <utility>

#include "advisor/candidate/layout.h"
#include "advisor/candidate/node_choice.h"
#include "advisor/mapping/load.h"
#include "advisor/mapping/local_search.h"
#include "advisor/mapping/partition.h"
#include "protocol/step_fields.h"
#include "tools/whatif/replay_trust.h"

namespace lbf::tools {
namespace {

// Of the budget: computing mappings must leave time for replaying them.
constexpr double kShareOfMappings = 0.4;
// A message takes this on the target that counts the longest chain: far longer than any program runs.
constexpr Seconds kChainMessageS = 1e6;

Seconds processor_time_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<Seconds>(now.tv_sec) + 1e-9 * static_cast<Seconds>(now.tv_nsec);
}

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
    std::vector<advisor::Candidate> candidates = make_candidates(*sets);
    if (candidates.empty())
      return invalid_input("no candidate fits: no distribution that was asked for can place the ranks");
    if (Result<void> done = rank_all(std::move(candidates)); !done) return done.error();
    judge_memory();
    if (!options_.rank_counts.empty()) join_other_counts();
    if (Result<void> asked = ask_for_starts(); !asked) return asked.error();
    result_.advice = advisor::advise(result_.ranking, result_.baseline, result_.trust, graph_, options_.objective,
                                     result_.schedule ? &*result_.schedule : nullptr);
    return std::move(result_);
  }

 private:
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
      as_it_ran = outcomes(*pass);
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
    result_.ranking.spent_s = processor_time_s() - start_s_;
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

  std::vector<advisor::Replayed> outcomes(const ReplayedTrace& pass) const {
    std::vector<advisor::Replayed> replayed;
    for (const engine::Prediction& prediction : pass.predictions) {
      // In a partial trace everybody waits for what is missing; only a whole one, as judge() has found it, can be stuck.
      const bool stuck = result_.trust.why_partial.empty() && !prediction.complete;
      replayed.push_back({prediction.lbf_s, stuck ? prediction.why_stuck : std::string(), prediction.exchange_percent});
    }
    return replayed;
  }

  // --- candidates
  struct Prospect {
    const advisor::NodeSet* set;
    double value;  // of the objective, as far as the estimate of its distributions says
  };

  std::vector<advisor::Candidate> make_candidates(const std::vector<advisor::NodeSet>& sets) {
    std::vector<advisor::Candidate> candidates;
    std::vector<Prospect> prospects;
    for (const advisor::NodeSet& set : sets) {
      double best = std::numeric_limits<double>::infinity();
      for (advisor::Candidate& made : advisor::distributed_candidates(cluster_, set, options_.candidates)) {
        const Seconds estimate_s = advisor::bound_of(made.target, graph_, result_.chain_messages).estimate_s;
        best = std::min(best, options_.objective.value(estimate_s, made.node_hours(estimate_s)));
        candidates.push_back(std::move(made));
      }
      if (set.nodes.size() > 1) prospects.push_back({&set, best});
    }
    if (options_.maps) add_mappings(std::move(prospects), candidates);
    return candidates;
  }

  void add_mappings(std::vector<Prospect> prospects, std::vector<advisor::Candidate>& candidates) {
    std::stable_sort(prospects.begin(), prospects.end(),
                     [](const Prospect& a, const Prospect& b) { return a.value < b.value; });
    const Seconds start_s = processor_time_s();
    Seconds longest_s = 0;
    for (const Prospect& prospect : prospects) {
      const Seconds before_s = processor_time_s();
      if (before_s - start_s + longest_s > kShareOfMappings * options_.budget_s && result_.mappings_computed > 0) {
        ++result_.mappings_deferred;
        continue;
      }
      const advisor::MappingProblem problem(graph_, advisor::bare_target(cluster_, *prospect.set, options_.candidates),
                                            advisor::mapping_capacities(cluster_, *prospect.set, options_.candidates));
      const bool balance = advisor::load_matters(problem);
      if (problem.is_uniform() && !balance) {
        result_.why_no_mapping = graph_.pairs() == 0
                                     ? "the ranks exchange no messages: no mapping is better than another"
                                     : "all ranks exchange about the same with all others: no mapping is better "
                                       "than another";
        return;
      }
      if (balance) add_mapping(*prospect.set, advisor::balanced(problem), candidates);
      if (!problem.is_uniform()) {
        Result<std::vector<std::uint32_t>> mapping = advisor::partition(problem);
        if (!mapping) {
          result_.why_no_mapping = mapping.error().message;
          return;
        }
        advisor::improve(problem, *mapping);
        add_mapping(*prospect.set, std::move(*mapping), candidates);
      }
      longest_s = std::max(longest_s, processor_time_s() - before_s);
    }
  }

  // Unless a distribution of srun, or another mapping, is the same.
  void add_mapping(const advisor::NodeSet& set, std::vector<std::uint32_t> mapping,
                   std::vector<advisor::Candidate>& candidates) {
    ++result_.mappings_computed;
    advisor::Candidate made = advisor::mapped_candidate(cluster_, set, options_.candidates, std::move(mapping));
    const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const advisor::Candidate& other) {
      return other.target.node_of_rank == made.target.node_of_rank && other.set.nodes == made.set.nodes &&
             other.set.network == made.set.network && other.set.partition == made.set.partition;
    });
    if (!known) candidates.push_back(std::move(made));
  }

  // --- ranking
  Result<void> rank_all(std::vector<advisor::Candidate> candidates) {
    const advisor::ReplayBatch replay =
        [&](const std::vector<engine::Target>& targets) -> Result<std::vector<advisor::Replayed>> {
      Result<ReplayedTrace> pass = trace_.replay(targets);
      if (!pass) return pass.error();
      return outcomes(*pass);
    };
    advisor::RankingOptions ranking;
    ranking.objective = options_.objective;
    ranking.budget_s = std::max(0.0, options_.budget_s - (processor_time_s() - start_s_));
    ranking.chain_messages = result_.chain_messages;
    ranking.processor_time_s = processor_time_s;
    Result<advisor::Ranking> ranked = advisor::rank(std::move(candidates), graph_, replay, ranking);
    if (!ranked) return ranked.error();
    result_.ranking = std::move(*ranked);
    if (options_.maps && result_.why_no_mapping.empty()) {
      const advisor::SearchSpace space{cluster_, options_.candidates};
      if (Result<void> done = advisor::search_by_replay(result_.ranking, space, graph_, replay, ranking); !done)
        return done;
    }
    result_.ranking.spent_s = processor_time_s() - start_s_;
    return {};
  }

  // Candidates by laws among those that were replayed, if that count was asked for, too.
  void join_other_counts() {
    std::vector<advisor::Ranked>& ranked = result_.ranking.ranked;
    const auto ran = static_cast<std::uint32_t>(trace_.ranks());
    if (std::ranges::find(options_.rank_counts, ran) == options_.rank_counts.end()) ranked.clear();
    std::ranges::move(options_.other_counts, std::back_inserter(ranked));
    advisor::put_in_order(ranked, options_.objective);
    result_.has_several_counts = true;
    result_.counts_not_known = std::move(options_.counts_not_known);
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
  AdviseResult result_;
};

}  // namespace

Result<AdviseResult> advise(AdviseTrace& trace, const advisor::Cluster& cluster, AdviseOptions options) {
  return Session(trace, cluster, std::move(options)).run();
}

}  // namespace lbf::tools
