// How many nodes a job can get where a step ran: advice on more than those never starts.
//
// Slurm is asked when a report would advise more nodes than the step had, and only then: nobody waits for it when a job
// starts, and lbfd may be where Slurm is not.
#pragma once

#include <memory>
#include <span>

#include "advisor/candidate/cluster_source.h"
#include "base/units.h"
#include "report/step.h"

namespace lbf::tools {

// Sets usable_nodes of the STEPS whose fastest prediction is on more nodes than they had: nodes of their partition that
// take jobs, or the most that it gives to one job. Where Slurm does not answer, or is another cluster's, they stay
// unknown.
void find_usable_nodes(std::span<report::Step> steps, advisor::ClusterSource& slurm);
// From this machine's Slurm; PATIENCE_S at most.
void find_usable_nodes(std::span<report::Step> steps, Seconds patience_s);

}  // namespace lbf::tools
