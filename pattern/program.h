// Program: what was learnt, as rules that hold at any number of ranks; and its execution there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event_sink.h"
#include "pattern/formula.h"
#include "pattern/grid.h"
#include "pattern/power_law.h"
#include "pattern/rank_tree.h"
#include "pattern/relation.h"
#include "pattern/work.h"

namespace lbf::pattern {

// Something that holds for some ranks.
struct Predicate {
  enum class Kind : std::uint8_t {
    kInside,  // the statement's shift stays inside of the grid
    kFirst,   // the coordinate is 0
    kNotFirst,
    kLast,
    kNotLast,
    kEven,
    kOdd,
    kEdge,     // the coordinate is the first or the last one
    kInner,    // it is neither
    kWide,     // the dimension has several coordinates
    kNotSelf,  // the statement's peer is another rank
    kCoarse,   // each coordinate is the first one of 1/value of its dimension, as on a coarse level of a multigrid
    kCoarseLast,
  };
  Kind kind = Kind::kInside;
  GridRule rule = GridRule::kLine;
  std::uint8_t dimension = 0;
  std::int32_t value = 0;
};

// Who a statement's messages are to or from, and which ranks execute it.
struct Way {
  Relation relation;
  std::vector<Predicate> conditions;  // all of them hold
};

struct Instruction {
  enum class Kind : std::uint8_t { kStatement, kLoop, kSteps, kStepsBack };
  Kind kind = Kind::kStatement;
  std::vector<Instruction> body;
  Formula count;  // of a loop
  // A statement; its way's relation also of steps, which are as many as it has.
  Key key;
  std::int32_t tag_per_step = 0;
  Way way;
  std::vector<Way> other_ways;  // that are as simple, and hold in all runs
  Formula bytes;
  Formula root;
  Formula value;  // of v-collectives: each of them
  WaitForm wait_form = kWaitsForAll;
  std::vector<std::uint32_t> positions;
  std::uint32_t number = 0;   // of its first work in the program
  std::vector<Work> process;  // time before it; of each step in its turn, further ones are as the last
  PowerLaw idle;
};

// A communicator of each rank: the ranks that differ from it in some coordinates.
struct Subgrid {
  GridRule rule = GridRule::kLine;
  std::array<bool, kDimensions> varies{};
  // In rank order. REQUIRES (all): RANKS was added to GRIDS, the rule has a grid for it.
  std::vector<Rank> members_of(const Grids& grids, Rank ranks, Rank me) const;
  Rank first_member_of(const Grids& grids, Rank ranks, Rank me) const;
  Rank size(const Grids& grids, Rank ranks) const;
  // Of ME among the members.
  Rank place_of(const Grids& grids, Rank ranks, Rank me) const;
};

struct Program {
  std::vector<Instruction> instructions;
  std::vector<Subgrid> communicators;  // by CommVariables number, but for the world: [0] is number 1
  std::vector<std::string> notes;      // what is not exact
  std::uint32_t works = 0;
  GridRule layout = GridRule::kLine;  // the grid that explains most
  Grid largest;                       // the largest run's
  // The laws of work without the largest run, at its rank count: percent that they are off together, of its work.
  // Nothing: two rank counts ran.
  std::optional<double> miss_percent;
  double miss_factor = 2;  // its rank count to the next smaller one's
  // How far the work with RANKS ranks may be off, in percent: by that miss, in steps of that factor, and by what laws
  // that fit as well differ by. Nothing: two rank counts ran.
  std::optional<double> work_percent(Rank ranks) const;
  Rank ranks_of_largest() const { return largest.size[0] * largest.size[1] * largest.size[2]; }

  bool is_exact() const { return notes.empty(); }
  // Errors (kInvalidInput): a rule has no grid for so many ranks; rules that hold in all runs differ there, with the
  // rank count of a run that would settle it.
  Result<void> check(Rank ranks) const;
  // Hands the events of a run of so many ranks to SINK, some of each rank in turn; `progress` gets the share done now
  // and then. Errors: check()'s; those of the sink.
  Result<void> run(Rank ranks, const EventSink& sink, const std::function<void(double)>& progress) const;
};

// The statements that ME executes, one by one.
class Execution {
 public:
  // REQUIRES: the arguments outlive this; RANKS was added to GRIDS.
  Execution(const Program& program, const Grids& grids, Rank ranks, Rank me);
  // nullptr: it has ended. Valid until the next call.
  const Step* next();

 private:
  struct Frame {
    const std::vector<Instruction>* body;
    std::size_t at;
    std::uint64_t iteration;
    std::uint64_t iterations;
    Instruction::Kind kind;
    std::uint32_t step() const;
  };
  void enter(const Instruction& instruction);
  bool has_part_in(const Instruction& instruction) const;
  bool meets_conditions(const Instruction& instruction) const;
  bool execute(const Instruction& instruction);
  bool find_requests(const Instruction& instruction);

  const Program& program_;
  const Grids& grids_;
  Rank ranks_;
  Rank me_;
  std::vector<Frame> frames_;
  Rank like_;                            // Work::at
  std::vector<std::uint32_t> executed_;  // by work: how often
  std::vector<bool> active_;             // requests, in the order in which they were started: whether it is a receive
  Step step_;
};

// The grid of so many ranks; a line where the rule has none.
const Grid& layout_of(GridRule layout, const Grids& grids, Rank ranks);

// "MPI_Send with tag 3"
std::string call_of(const Key& key);

bool holds(const Predicate& predicate, const Relation& relation, const Grids& grids, Rank ranks, Rank me);

}  // namespace lbf::pattern
