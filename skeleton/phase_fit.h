// A stretch of operations of all ranks of all recorded runs -> one Phase that explains every one of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "skeleton/rank_program.h"
#include "skeleton/scalable_program.h"

namespace lbf::skeleton {

// One rank of one run.
struct RankStretch {
  Standpoint at;
  std::size_t run = 0;                 // which of the recorded runs
  std::vector<const RankItem*> items;  // in their order
  std::vector<std::uint32_t> comms;    // by item: index of ScalableProgram::comms
};

struct PhaseFitOptions {
  double similarity = 0;  // sizes on the ranks of a run may differ by this share
  double time_tolerance = 0.05;
  // By run: computation of all ranks, of which a term must make up kSmallShare to be refused.
  std::vector<Seconds> computation_s;
};
inline constexpr double kSmallShare = 0.02;

struct PhaseFit {
  Phase phase;
  std::vector<std::string> warnings;
};

// Search, depth first: at each step the terms, and blocks of terms, are tried that take the next operation of
// some ranks and leave no rank behind, those that take most first. REQUIRES: at least two rank counts.
// Errors: kInvalidInput: no formula for a peer, no law for sizes or times; `explained` is then how many
// operations were.
Result<PhaseFit> fit_phase(const std::vector<RankStretch>& stretches, const Geometry& geometry,
                           const PhaseFitOptions& options, std::size_t& explained);

}  // namespace lbf::skeleton
