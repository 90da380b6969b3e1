// lbf-advise --ranks: candidates of rank counts that did not run, by the laws of the runs of the program
// (docs/advisor.md, "Scaling").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "advisor/candidate/candidate.h"
#include "advisor/candidate/cluster.h"
#include "advisor/ranking/ranking.h"
#include "base/http_client.h"
#include "base/result.h"
#include "report/scaling.h"
#include "report/selection.h"

namespace lbf::tools {

// What the laws of JOBS say of COUNTS; of one job, the laws of its family in the last 7 days. Errors: those of lbfd and
// of report::scaling_of; of one job also that it has no family.
Result<report::ScalingAnswer> ask_for_scaling(HttpClient& client, const std::vector<report::JobSelector>& jobs,
                                              const std::vector<std::uint32_t>& counts);

struct RankChoices {
  std::vector<advisor::Ranked> ranked;
  std::vector<std::string> not_known;  // "64 ranks: WHY"
};
// Where CLUSTER can run the rows of ANSWER but that of RAN ranks, with as many ranks per node and threads as the runs,
// in blocks, on their network and processors as fast as theirs. OPTIONS: partitions, node counts and networks.
RankChoices other_counts(const report::ScalingAnswer& answer, const advisor::Cluster& cluster,
                         advisor::CandidateOptions options, Rank ran);

}  // namespace lbf::tools
