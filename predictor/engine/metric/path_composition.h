// PathComposition: what the critical path of a target is made of, by kind and by place: what changes with the number
// of ranks, each part by a law of its own.
//
// Place in the event's way: replay of Composed clocks, whose paths are followed (path_notes.h) -> *composition* ->
// commands. docs/engine.md, "Sensitivity".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "predictor/engine/replay/composed.h"
#include "predictor/engine/replay/path_notes.h"

namespace lbf::engine {

struct PathComposition {
  Composed all;                 // the parts' sum, but for rounding: what the time of the last rank is made of
  std::vector<PathPart> parts;  // by place, each place once
  Seconds mean_work_s = 0;      // a rank's own work on the target, mean of all ranks

  // Work on the path beyond the mean: of ranks with more of it, or one after the other. Below 0: the path is rather
  // one of messages.
  Seconds imbalance_s() const { return all.of(Term::kWork) - mean_work_s; }
};

enum class PathBy : std::uint8_t { kCall, kRank, kCommunicator, kProcedure };

struct PathShare {
  // Ids of the parts' places that are none; in all groupings the same.
  static constexpr std::int64_t kNone = -1;    // work between calls; of no communicator; in no procedure
  static constexpr std::int64_t kOthers = -2;  // summed up (PathNotes::Limits)

  std::int64_t id = kNone;  // MPI function (0: the trace does not say which), rank, communicator, procedure's number
  std::array<Seconds, kTerms> terms{};
  Seconds seconds = 0;  // their sum
};
// Longest first. Each time they sum up to all of the path.
std::vector<PathShare> path_shares(const PathComposition& composition, PathBy by);

}  // namespace lbf::engine
