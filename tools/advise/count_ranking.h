// The ranking of one rank count: its candidates, distributions and computed mappings, replayed within a budget.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advisor/candidate/candidate.h"
#include "advisor/candidate/cluster.h"
#include "advisor/mapping/comm_graph.h"
#include "advisor/ranking/ranking.h"
#include "base/result.h"

namespace lbf::tools {

// Of this process, since some moment.
Seconds processor_time_s();

struct CountQuestion {
  const advisor::Cluster& cluster;
  const advisor::CandidateOptions& candidates;
  const advisor::Objective& objective;
  const advisor::CommGraph& graph;  // of the program with so many ranks
  advisor::ReplayBatch replay;
  std::uint64_t chain_messages = 0;  // see advisor::bound_of
  bool maps = true;                  // computed mappings, too
  Seconds budget_s = 0;              // of processor time
  Seconds mapping_budget_s = 0;      // of it, at most, for computing mappings
};

struct CountRanking {
  advisor::Ranking ranking;
  std::uint32_t mappings_computed = 0;
  std::uint32_t mappings_deferred = 0;  // node sets for which none was computed: the budget was over
  std::string why_no_mapping;           // not empty: none is worth computing
};

// One pass is always made. Errors: those of the replay; kInvalidInput: no distribution that was asked for can place the
// ranks.
Result<CountRanking> rank_count(const CountQuestion& question, const std::vector<advisor::NodeSet>& sets);

}  // namespace lbf::tools
