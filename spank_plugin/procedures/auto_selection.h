// AutoSelection: which procedures are worth measuring, found by sampling (`--lbf-procedures=auto`).
//
// Place in the event's way: sampler -> *auto selection* -> names -> patch. Hollingsworth & Miller's Performance
// Consultant starts from what costs nothing to know: here from where the threads spend their processor time. The
// procedures with the largest exclusive shares are measured; the limit of what that may cost is the measuring's
// own (procedures.h, limit_cost). What it finds to be called too often is worked up from: its caller is measured in its
// place. docs/procedures.md, "Automatic selection".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "spank_plugin/procedures/procedures.h"
#include "spank_plugin/procedures/sampler.h"

namespace lbf::procedures {

struct Chosen {
  // Each begins with a procedure to be measured; behind it stands what calls it most, and what calls that: to be
  // measured in its place if it is called too often. Names as a user would write them. Empty: nothing is worth it.
  std::vector<std::vector<std::string>> chains;
  std::vector<std::uint64_t> samples;  // in each chain's first one itself
  std::uint64_t own_samples = 0;       // in the program's own procedures
  std::vector<std::string> notes;      // lines for people: shares, what was left out
  // All names of the first kMostChosen chains, as a list of --lbf-procedures.
  std::string list() const;
};

// The best of PROFILE: procedures of the program and its own libraries, not of the system's nor of MPI's, with at
// least `kLeastShare` of the samples that are in those.
inline constexpr std::size_t kMostChosen = 5;       // that a process measures of its own choice: the first ones
inline constexpr std::size_t kMostCandidates = 16;  // that are told for the list of all ranks
inline constexpr double kLeastShare = 0.02;
inline constexpr std::size_t kMostCallers = 4;  // in a chain
Chosen choose_candidates(const SampleProfile& profile, const LoadedSymbols& symbols);

class AutoSelection {
 public:
  // Sampling begins. Errors: Sampler::start's.
  static Result<std::unique_ptr<AutoSelection>> begin();
  ~AutoSelection();
  AutoSelection(const AutoSelection&) = delete;
  AutoSelection& operator=(const AutoSelection&) = delete;

  // Enough samples for a choice, or so long ago that there will be no more. Cheap; any thread.
  bool is_due() const noexcept;
  // Ends the sampling. Reads files, once for this and for what ALL opens later, and uses the heap.
  Chosen choose(Procedures& all);

 private:
  AutoSelection() = default;
  std::int64_t began_ns_ = 0;
};

}  // namespace lbf::procedures
