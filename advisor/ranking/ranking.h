// Ranking: candidates in the order of what replays say of them, under a budget of processor time.
//
// Cheap bounds decide the order of the replays and which are not worth one; replays are made in batches, many
// targets in one pass over the trace (docs/engine.md); what the budget does not reach is deferred, and says
// so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "advisor/candidate/candidate.h"
#include "advisor/mapping/comm_graph.h"
#include "advisor/mapping/problem.h"
#include "advisor/ranking/bound.h"
#include "advisor/ranking/objective.h"
#include "advisor/trust/trust.h"
#include "base/result.h"

namespace lbf::advisor {

struct Replayed {
  Seconds time_s = 0;
  std::string why_stuck;        // not empty: the program would not end there
  double exchange_percent = 0;  // engine::Prediction's
};

// Replays all targets in one pass, in their order.
using ReplayBatch = std::function<Result<std::vector<Replayed>>(const std::vector<engine::Target>&)>;

enum class Verdict : std::uint8_t {
  kReplayed,
  kRuledOut,  // its bound is beyond the best that was replayed, or beyond the objective's limits
  kDeferred,  // the budget was over
  kStuck,     // the program would wait for ever there
  kUnknown,   // too little of the run was seen to predict it
};

// What a time is from.
enum class Source : std::uint8_t {
  kTrace,    // a replay of a run with so many ranks
  kPattern,  // a replay of what runs with other rank counts have in common (docs/adr/0018-pattern.md)
  kLaw,      // the laws of such runs (docs/adr/0016-scaling.md)
};

// When Slurm would start a candidate (advisor/advice/schedule.h).
struct Start {
  std::string time_limit;      // srun's --time that it was asked with and is to be run with; empty: nobody asked
  std::optional<double> at_s;  // seconds since the epoch
  std::string why_not;         // Slurm's words; empty without at_s: it was not asked
};

struct Ranked {
  Candidate candidate;
  Bound bound;
  Verdict verdict = Verdict::kDeferred;
  Source source = Source::kTrace;
  Seconds time_s = 0;  // kReplayed: predicted
  std::string why_stuck;
  bool on_front = false;  // no replayed one beats it in time and node-hours
  bool searched = false;  // its mapping comes from the search on the replay
  Start start;
  std::optional<Saying> said;      // of kLaw: how time_s is said
  double other_ranks_percent = 0;  // of kPattern: Trust's
  double memory_percent = 0;       // of time_s: how far it may be off since the memory demand is not known
  double exchange_percent = 0;     // of time_s: what exchanges would add if all of them took turns

  // What its replay says; the verdict is kReplayed or kStuck then.
  void take(const Replayed& there);

  double node_hours() const { return candidate.node_hours(time_s); }
  std::size_t ranks() const { return candidate.target.node_of_rank.size(); }
  // Seconds since the epoch; nullopt: nobody knows when it starts.
  std::optional<double> ends_at_s() const { return start.at_s ? std::optional(*start.at_s + time_s) : std::nullopt; }
};

struct RankingOptions {
  Objective objective;
  Seconds budget_s = 5;  // of processor time, replays and mapping search on the replay
  std::size_t targets_a_pass = 8;
  std::uint64_t chain_messages = 0;            // see bound_of
  std::function<Seconds()> processor_time_s;   // since some moment
  std::function<void(double share)> progress;  // of the budget; may be empty
};

struct Ranking {
  // Replayed ones that the objective allows first, by its value; then other replayed ones, stuck, deferred
  // and ruled out ones.
  std::vector<Ranked> ranked;
  Seconds spent_s = 0;
  std::uint32_t passes = 0;

  std::size_t count(Verdict verdict) const;
};

// Errors: those of `replay`.
Result<Ranking> rank(std::vector<Candidate> candidates, const CommGraph& graph, const ReplayBatch& replay,
                     const RankingOptions& options);

// Puts `ranked` into the order of Ranking and marks the front.
void put_in_order(std::vector<Ranked>& ranked, const Objective& objective);

struct SearchSpace {
  const Cluster& cluster;
  const CandidateOptions& options;
};

// Ranks that each node of the set may get in a computed mapping: as many as it can hold, with overcommit no
// more than its share of the ranks by its processors, or its processors if those are more.
std::vector<std::uint32_t> mapping_capacities(const Cluster& cluster, const NodeSet& set,
                                              const CandidateOptions& options);

// Local search on the real objective: steps that the cheap objective likes best, and such that balance the
// load where that matters (advisor/mapping/load.h), are replayed, a batch in one pass, the best one is kept;
// from the best ranked candidate on, until nothing is better or the budget is over. Adds what it finds to
// `ranking`. Errors: those of `replay`.
Result<void> search_by_replay(Ranking& ranking, const SearchSpace& space, const CommGraph& graph,
                              const ReplayBatch& replay, const RankingOptions& options);

}  // namespace lbf::advisor
