#include "tools/advise/count_ranking.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <utility>

#include "advisor/mapping/load.h"
#include "advisor/mapping/local_search.h"
#include "advisor/mapping/partition.h"

namespace lbf::tools {
namespace {

class CountRanker {
 public:
  CountRanker(const CountQuestion& question, const std::vector<advisor::NodeSet>& sets)
      : question_(question), sets_(sets), start_s_(processor_time_s()) {}

  Result<CountRanking> run() {
    std::vector<advisor::Candidate> candidates = make_candidates();
    if (candidates.empty())
      return invalid_input("no candidate fits: no distribution that was asked for can place the ranks");
    advisor::RankingOptions options;
    options.objective = question_.objective;
    options.budget_s = std::max(0.0, question_.budget_s - (processor_time_s() - start_s_));
    options.chain_messages = question_.chain_messages;
    options.processor_time_s = processor_time_s;
    Result<advisor::Ranking> ranked = advisor::rank(std::move(candidates), question_.graph, question_.replay, options);
    if (!ranked) return ranked.error();
    made_.ranking = std::move(*ranked);
    if (question_.maps && made_.why_no_mapping.empty()) {
      const advisor::SearchSpace space{question_.cluster, question_.candidates};
      if (Result<void> done =
              advisor::search_by_replay(made_.ranking, space, question_.graph, question_.replay, options);
          !done)
        return done.error();
    }
    return std::move(made_);
  }

 private:
  struct Prospect {
    const advisor::NodeSet* set;
    double value;  // of the objective, as far as the estimate of its distributions says
  };

  std::vector<advisor::Candidate> make_candidates() {
    std::vector<advisor::Candidate> candidates;
    std::vector<Prospect> prospects;
    for (const advisor::NodeSet& set : sets_) {
      double best = std::numeric_limits<double>::infinity();
      for (advisor::Candidate& made : advisor::distributed_candidates(question_.cluster, set, question_.candidates)) {
        const Seconds estimate_s = advisor::bound_of(made.target, question_.graph, question_.chain_messages).estimate_s;
        best = std::min(best, question_.objective.value(estimate_s, made.node_hours(estimate_s)));
        candidates.push_back(std::move(made));
      }
      if (set.nodes.size() > 1) prospects.push_back({&set, best});
    }
    if (question_.maps) add_mappings(std::move(prospects), candidates);
    return candidates;
  }

  void add_mappings(std::vector<Prospect> prospects, std::vector<advisor::Candidate>& candidates) {
    const advisor::Cluster& cluster = question_.cluster;
    std::stable_sort(prospects.begin(), prospects.end(),
                     [](const Prospect& a, const Prospect& b) { return a.value < b.value; });
    const Seconds start_s = processor_time_s();
    Seconds longest_s = 0;
    for (const Prospect& prospect : prospects) {
      const Seconds before_s = processor_time_s();
      if (before_s - start_s + longest_s > question_.mapping_budget_s && made_.mappings_computed > 0) {
        ++made_.mappings_deferred;
        continue;
      }
      const advisor::MappingProblem problem(question_.graph,
                                            advisor::bare_target(cluster, *prospect.set, question_.candidates),
                                            advisor::mapping_capacities(cluster, *prospect.set, question_.candidates));
      const bool balance = advisor::load_matters(problem);
      if (problem.is_uniform() && !balance) {
        made_.why_no_mapping = question_.graph.pairs() == 0
                                   ? "the ranks exchange no messages: no mapping is better than another"
                                   : "all ranks exchange about the same with all others: no mapping is better "
                                     "than another";
        return;
      }
      if (balance) add_mapping(*prospect.set, advisor::balanced(problem), candidates);
      if (!problem.is_uniform()) {
        Result<std::vector<std::uint32_t>> mapping = advisor::partition(problem);
        if (!mapping) {
          made_.why_no_mapping = mapping.error().message;
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
    ++made_.mappings_computed;
    advisor::Candidate made =
        advisor::mapped_candidate(question_.cluster, set, question_.candidates, std::move(mapping));
    const bool known = std::any_of(candidates.begin(), candidates.end(), [&](const advisor::Candidate& other) {
      return other.target.node_of_rank == made.target.node_of_rank && other.set.nodes == made.set.nodes &&
             other.set.network == made.set.network && other.set.partition == made.set.partition;
    });
    if (!known) candidates.push_back(std::move(made));
  }

  const CountQuestion& question_;
  const std::vector<advisor::NodeSet>& sets_;
  Seconds start_s_;
  CountRanking made_;
};

}  // namespace

Seconds processor_time_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<Seconds>(now.tv_sec) + 1e-9 * static_cast<Seconds>(now.tv_nsec);
}

Result<CountRanking> rank_count(const CountQuestion& question, const std::vector<advisor::NodeSet>& sets) {
  return CountRanker(question, sets).run();
}

}  // namespace lbf::tools
