// lbf-advise --ranks: other rank counts than the one that is advised from, by traces, pattern and laws of the program's
// runs (docs/advisor.md, "Rank counts in the ranking").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "advisor/candidate/candidate.h"
#include "advisor/candidate/cluster.h"
#include "base/http_client.h"
#include "base/result.h"
#include "report/scaling.h"
#include "report/selection.h"
#include "tools/advise/advise_session.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::tools {

// The steps of JOBS; of one job those of its family in the last 7 days. Errors: those of lbfd; of one job also that it
// has no family.
Result<std::vector<report::Step>> ask_for_runs(HttpClient& client, const std::vector<report::JobSelector>& jobs);

// What LAWS, asked for OTHER's rank count alone, say of it where CLUSTER can run it, with as many ranks per node and
// threads as the runs, in blocks, on their network and processors as fast as theirs. OPTIONS: partitions, node counts
// and networks.
void take_law(const Result<report::ScalingAnswer>& laws, const advisor::Cluster& cluster,
              advisor::CandidateOptions options, OtherCount& other);

// A run of the program.
struct ProgramRun {
  std::string name;  // of messages
  std::function<Result<std::unique_ptr<WhatIfTrace>>()> open;
};
// The last run of each rank count but that of RAN ranks.
std::vector<ProgramRun> runs_to_learn_from(const std::vector<report::Step>& steps, Rank ran, const std::string& server);

using MakePasses = std::function<std::shared_ptr<AdviseTrace>(std::unique_ptr<WhatIfTrace>)>;
// Gives OTHERS their traces: those of RUNS, and of the program that FIRST, called NAME, and RUNS have in common. Gives
// back what is to be known of it: sentences without a full stop.
std::vector<std::string> take_traces(const std::string& name, WhatIfTrace& first, const std::vector<ProgramRun>& runs,
                                     const MakePasses& make_passes, std::vector<OtherCount>& others);

}  // namespace lbf::tools
