// How a candidate is run: flags of srun, and the host file of a computed mapping.
#pragma once

#include <string>
#include <vector>

#include "advisor/candidate/candidate.h"

namespace lbf::advisor {

// "-p batch -N4 -n16 --distribution=cyclic --ntasks-per-node=4", words without blanks. `host_file`: a path
// without blanks and with a '/', which srun then takes for a file; used where the candidate needs one.
std::string srun_flags(const Candidate& candidate, const std::string& host_file);

// Of a run whose nodes nobody knows any more: what needs a host file cannot be asked for by their names.
std::string srun_flags_of_what_ran(const Candidate& candidate);

// For SLURM_HOSTFILE and --distribution=arbitrary: one line per rank with the name of its node; empty for
// candidates that srun can spread itself.
std::string host_file_of(const Candidate& candidate);

// "4 nodes of batch, computed mapping, hdr"; briefly, without partition and network: "4 nodes, computed
// mapping".
std::string describe(const Candidate& candidate);
std::string describe_briefly(const Candidate& candidate);

// "0-3,7": ascending numbers, at most `most` ranges, then "...".
std::string ranges(const std::vector<Rank>& ascending, std::size_t most);

}  // namespace lbf::advisor
