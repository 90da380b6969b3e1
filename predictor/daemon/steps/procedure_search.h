// ProcedureSearch: which procedures all ranks of a step measure (`--lbf-procedures=auto`), from what all of them say.
//
// Place in the event's way, backwards: control records -> StepProcedures, *ProcedureSearch* (with the critical path of
// the replay) -> answer to a batch -> relay -> ring -> capture. Hollingsworth & Miller's Performance Consultant:
// hypotheses ("the critical path runs through F") are tested where evidence is cheap first (samples of each rank,
// weighted by the rank's part of the critical path), then by measuring, as many at once as the overhead limit allows by
// what they are known to cost. One that is wrong is taken off, and the next one tested; one that costs too much is
// given up for its caller. docs/procedures.md, "One list for all ranks". No clock of its own: the caller passes the
// time in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "protocol/procedure_list.h"

namespace lbf::daemon {

// From one rank, of its own samples.
struct ProcedureCandidate {
  std::vector<std::string> names;  // the procedure, what calls it most, what calls that ...
  std::uint64_t samples = 0;       // in the procedure itself
};

class ProcedureSearch {
 public:
  static constexpr std::size_t kMostMeasured = 5;
  static constexpr double kLeastShare = 0.02;      // of the critical path
  static constexpr Seconds kPatienceS = 2;         // for ranks that have no samples yet
  static constexpr Seconds kTestS = 5;             // of the critical path, until a hypothesis can be called wrong
  static constexpr std::size_t kMostBytes = 4000;  // of a list: what a ring has room for (spank_plugin/capture/ring.h)
  static constexpr std::size_t kMostNames = 512;   // a hostile rank could say any number
  static constexpr std::uint64_t kMostLists = 16;

  // What is known besides. Shares are of a rank's time.
  struct Evidence {
    Seconds now_s = 0;  // of a clock that only grows
    std::size_t ranks = 0;
    Seconds path_s = 0;  // length of the critical path so far; 0: not known
    std::span<const std::pair<std::int32_t, Seconds>> path_of_rank{};  // PathProfile::rank_s; -1: all others
    std::map<std::string, Seconds> path_of_procedure{};                // of those that are measured
    double cost_limit = 1;  // share of a rank's time that measured calls may cost
    // What measuring a procedure will cost; nothing: nobody knows. Such a one is tried: all that is measured together
    // costs the limit at most, because the measuring in the program ends there by itself, and then it is known.
    std::function<std::optional<double>(const std::string& name)> known_cost{};
  };

  // `number` of `of`; `own_samples`: of the rank, in the program's own procedures. What comes twice counts once.
  void take_candidate(std::int32_t rank, std::uint64_t number, std::uint64_t of, std::uint64_t own_samples,
                      ProcedureCandidate candidate);
  // A rank says that it does not measure it (any more): too expensive, or it cannot be patched there.
  void take_off(const std::string& name);
  // What a relay gave to its ranks: after lbfd was started anew all that is left of the search.
  void take_list(const protocol::ProcedureList& list, Seconds now_s);

  std::size_t memory_bytes() const;

  bool is_active() const { return !told_.empty() || list_.generation > 0; }
  // Whether decide() could find anything new now. Cheap.
  bool is_due(Seconds now_s, std::size_t ranks) const;
  // True: list() is another one.
  bool decide(const Evidence& evidence);
  const protocol::ProcedureList& list() const { return list_; }  // generation 0: none yet

 private:
  struct Told {
    std::map<std::uint64_t, ProcedureCandidate> candidates;  // by number
    std::uint64_t of = 0;
    std::uint64_t own_samples = 0;
    bool is_whole() const { return candidates.size() >= of; }
  };
  struct Hypothesis {
    std::vector<std::string> names;
    double share = 0;            // of the critical path, as samples say
    double weight_of_chain = 0;  // of the rank whose callers these are
  };
  // When a procedure came onto the list, in lengths of the critical path.
  struct Test {
    Seconds path_s = 0;
    Seconds own_s = 0;
  };
  void take_candidate(Told& told, std::uint64_t number, std::uint64_t of, std::uint64_t own_samples,
                      ProcedureCandidate candidate);
  std::vector<Hypothesis> ranked(const Evidence& evidence) const;
  bool is_wrong(const std::string& name, const Evidence& evidence) const;

  std::map<std::int32_t, Told> told_;  // by rank
  std::size_t candidates_ = 0;         // of all of them
  std::size_t whole_ = 0;              // ranks that have told all
  std::size_t name_bytes_ = 0;         // of the candidates
  std::optional<Seconds> first_told_s_;
  std::set<std::string> off_;
  std::set<std::string> wrong_;        // tested
  std::map<std::string, Test> tests_;  // of what is on the list
  protocol::ProcedureList list_;
  bool changed_ = false;   // something was said since the last decision
  Seconds decided_s_ = 0;  // when that was
};

}  // namespace lbf::daemon
