// PathNotes: on the way of which rank, call, communicator and procedure the time of a path passed.
//
// A Composed clock knows what the longest path to it is made of, and leads to the last *note* of that path. A note says
// where the time since the note before it passed, and leads to that one. Each maximum keeps the larger side whole, its
// note included, so that paths share what they have in common and nothing is copied (docs/adr/0015-sensitivity.md).
//
// Memory is O(times that are alive), however long the trace: collect() drops the notes that no clock leads to any more,
// and sums up those that only one other note leads to.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.h"
#include "predictor/engine/replay/composed.h"

namespace lbf::engine {

struct PathPlace {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Summed up, to bound the memory.
  static constexpr std::uint32_t kOthers = kNone - 1;
  static constexpr Rank kOtherRanks = -2;
  static constexpr std::uint16_t kOtherFunctions = 0xffff;

  // Whose time: a flight is its receiver's.
  Rank rank = 0;
  std::uint16_t function = 0;       // MPI function (event/mpi_functions.yml); 0: the trace does not say, or none.
                                    // Work is of the call that it comes before
  std::uint32_t comm = kNone;       // of a message, one of a collective as well; or its window
  std::uint32_t procedure = kNone;  // number of a profiled procedure (ProcedurePlan)

  friend auto operator<=>(const PathPlace&, const PathPlace&) = default;
};

// What passed in a place.
struct PathPart {
  PathPlace place;
  std::array<Seconds, kTerms> terms{};

  Seconds of(Term term) const { return terms[static_cast<std::size_t>(term)]; }
  Seconds sum_s() const;
};

// Of one replay. Copyable.
class PathNotes {
 public:
  struct Limits {
    std::size_t notes_between = std::size_t{1} << 16;  // that are new since the last collect(), before the next one
    // Notes that were summed up, with all their places. Beyond that, ranks with little time become one, then calls,
    // communicators and procedures.
    std::size_t most_parts = std::size_t{1} << 21;
    std::size_t least_parts = 16;  // of a note, whatever that makes
  };

  explicit PathNotes(Limits limits) : limits_(limits), full_at_(limits.notes_between) { notes_.emplace_back(); }

  // What CLOCK has more than at its last note passed in PLACE.
  void note(Composed& clock, const PathPlace& place) {
    if (clock.terms == notes_[clock.note].at.terms) return;
    notes_.push_back({clock, place, {}});
    clock.note = static_cast<std::uint32_t>(notes_.size() - 1);
  }
  // CLOCK as it was at its last note.
  Composed last(const Composed& clock) const {
    Composed at = notes_[clock.note].at;
    at.note = clock.note;
    return at;
  }
  // Time for collect().
  bool is_full() const { return notes_.size() >= full_at_; }
  // FOR_EACH_CLOCK calls its argument with each clock that is still to be read, by reference. Of others it may, too.
  template <typename ForEachClock>
  void collect(ForEachClock&& for_each_clock) {
    std::vector<std::uint32_t> followers(notes_.size(), 0);
    std::size_t clocks = 0;
    for_each_clock([&](Composed& clock) {
      ++clocks;
      if (clock.note >= notes_.size()) clock.note = 0;  // one that is not read any more
      followers[clock.note] = kMany;
    });
    const std::vector<std::uint32_t> moved_to = keep(std::move(followers), clocks);
    for_each_clock([&](Composed& clock) { clock.note = moved_to[clock.note]; });
  }
  // Of the path to CLOCK, which passed in PLACE since its last note; by place. They sum up to the clock's terms.
  std::vector<PathPart> parts(const Composed& clock, const PathPlace& place) const;
  Bytes memory_bytes() const { return notes_.capacity() * sizeof(Note) + parts_ * sizeof(PathPart); }

 private:
  // The path up to here: `at.note` is the note before. Once several are summed up, `parts` has what passed between
  // these two, and `place` says nothing.
  struct Note {
    Composed at;
    PathPlace place;
    std::vector<PathPart> parts;
  };
  static constexpr std::uint32_t kMany = ~std::uint32_t{0};

  // FOLLOWERS: of each note kMany, if a clock leads to it. Where each one is now.
  std::vector<std::uint32_t> keep(std::vector<std::uint32_t> followers, std::size_t clocks);
  PathPart part_of(const Note& note) const;
  void bound_parts();

  Limits limits_;
  std::size_t full_at_;
  std::vector<Note> notes_;  // [0]: the start. A note comes after the one that it leads to
  std::size_t parts_ = 0;    // of all notes
};

}  // namespace lbf::engine
