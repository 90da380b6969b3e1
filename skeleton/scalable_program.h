// ScalableProgram: what an application does as a function of the number of ranks, found from runs at two or
// more rank counts (docs/skeletons.md, "Scalable skeletons").
//
// Place in the skeleton's way: operations of several runs -> *scalable program* -> skeleton. It is made rank
// by rank, not of exchanges: loops that all ranks of all runs have alike stay loops; what lies between them
// is a phase, a list of terms that each rank goes through.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "skeleton/operation.h"
#include "skeleton/rank_formula.h"
#include "skeleton/rank_law.h"

namespace lbf::skeleton {

// An operation that the ranks of `guard` do for which there is a peer (messages) or a request under way
// (waits); collectives and the program's end all of them.
struct Term {
  OperationKind kind = OperationKind::kEnd;
  std::uint8_t flags = 0;  // kFlagSync, kFlagBuffered
  CollectiveOp op = CollectiveOp::kBarrier;
  std::uint32_t comm = 0;  // index of ScalableProgram::comms
  Guard guard = Guard::kAll;
  PeerFormula peer;
  NumberFormula tag, root;
  RankLaw bytes;                     // of v-collectives: for each peer
  std::vector<std::uint32_t> waits;  // kWait: for the requests that these terms of the phase started
  // Seconds before it on every rank of `guard` that has such a peer or stands at a border (has_borders): at a
  // block's first step, and at each further one.
  RankLaw computation_s, computation_again_s, idle_s, idle_again_s;
  std::vector<double> shape;  // as SpmdOperation::shape
};

struct Block {
  StepRange range = StepRange::kOnce;
  std::vector<Term> terms;
};
struct Phase {
  std::vector<Block> blocks;  // terms are numbered through all of them
};

// A phase, or a loop.
struct ScalablePart {
  bool is_loop = false;
  Phase phase;
  RankLaw count;
  std::vector<ScalablePart> body;
};

struct ScalableProgram {
  Geometry geometry;
  std::vector<CommFormula> comms;  // 0: the world
  std::vector<ScalablePart> parts;
  std::vector<Rank> counts;            // of the runs, rising
  std::vector<Seconds> application_s;  // of the runs
  // What the user should know: other formulas that fit as well, times that no law met.
  std::vector<std::string> warnings;
};

// A formula pairs ranks by their bits, and all recorded runs had a power of two of ranks.
bool needs_power_of_two(const ScalableProgram& program);
// Whether the formulas hold for so many ranks; why not.
Result<void> check_ranks(const ScalableProgram& program, Rank ranks);

// Goes through a phase as one rank does. `visit` is called at each term whose guard holds, with its number,
// the index of the step, and whether the rank does it (a message without a peer is not done; waits are always
// said to be done: whether a request is under way is the caller's to know).
using VisitTerm = std::function<bool(std::uint32_t number, const Term& term, const Standpoint& at,
                                     Rank step_index, Rank peer)>;
// Ends early, with false, where `visit` returns false. Of messages `peer` is -1 where there is none.
bool visit_phase(const Phase& phase, Standpoint at, const VisitTerm& visit);

// What the program does with so many ranks, without times: for tests, and to compare rank counts. Errors:
// those of check_ranks.
Result<ProgramTrace> expand(const ScalableProgram& program, Rank ranks);

bool starts_request(OperationKind kind);

}  // namespace lbf::skeleton
