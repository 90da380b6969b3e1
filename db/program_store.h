// ProgramStore: which program a step ran, so that it is recognised when it runs again; and what was predicted for a
// configuration beside what was measured when the program ran there (docs/lbfd.md, "Programs and outcomes").
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cost/predicted_cost.h"
#include "db/database.h"
#include "db/records.h"

namespace lbf::db {

// Two runs of one identity and number of ranks are the same program with the same kind of input where
//  - the calls per rank differ by kMostProfileDistance at most (profile_distance). They depend on the input, hardly
//    on where the program ran: iterations until a solver converges may differ by a few. Two runs of which one
//    makes 2 % more calls take about 2 % longer: what is let through here shows as an error of the prediction, so it is
//    kept near what two runs of the same job differ by anyway;
//  - so do the bytes that a rank sends, where both runs were captured as a whole;
//  - the process time of a rank differs by the factor kMostWorkRatio at most (and kLeastWorkS). Machines that others
//  share make the
//    same work take 1.6 times as long (bench/results/2026-11-21-demo-lammps.txt): a smaller factor would leave out the
//    outcomes that went worst, and the site would look better than it is.
inline constexpr double kMostProfileDistance = 0.02;
inline constexpr double kMostWorkRatio = 2.0;
// Less than this is what starting and ending take, now more, now less.
inline constexpr Seconds kLeastWorkS = 0.1;

using CallProfile = std::vector<std::pair<std::string, double>>;  // calls per rank by function

// sum of |a - b| over sum of max(a, b), over all functions: 0 alike, 1 nothing in common. Two empty ones are alike.
double profile_distance(const CallProfile& a, const CallProfile& b);

// Whether they are one program with one kind of input. REQUIRES: same identity and number of ranks.
bool is_same_input(const ProgramRun& a, const ProgramRun& b);

// What changed from the run that a prediction was made from to its target.
enum class TargetDistance { kSelf, kNodes, kPlacement, kNetwork, kSeveral };
const char* name_of(TargetDistance distance);

// With another number of nodes the ranks are placed anew: another placement counts beside it only where its name
// differs, and on one node all placements are the same.
TargetDistance distance_between(const PredictionRecord& ran, const PredictionRecord& target);

// Whether `target` is where `ran` ran: nodes, placement, network, contention, speed, and processors per node, of which
// those do not count that no rank would use: Slurm gives a step of fewer ranks a node fewer of them.
bool is_same_configuration(const PredictionRecord& ran, const PredictionRecord& target, Rank ranks);

// What is known of a program before it runs. Empty: not known.
struct ProgramHint {
  uid_t uid = 0;
  Rank ranks = 0;
  std::string build_id;
  std::vector<std::string> command;
  double before_s = 0;    // since the epoch: only runs that began before; 0: all
  std::string cluster{};  // of work_by_density() alone: other clusters' memory tells nothing
};

// Thread-safe as Database is. REQUIRES: the database outlives the store.
class ProgramStore {
 public:
  explicit ProgramStore(Database& database) : database_(database) {}

  // What the user's earlier runs of this program let expect, corrected run by run: calls as expected_calls_per_s(); one
  // recorded call from runs with 1,000 of them; the relay's share from runs that used a second and more of processor
  // time on each rank and were captured without a break, of this program, else the median of anybody's: it hardly
  // depends on what runs. Errors: as Database.
  Result<cost::CostHistory> expected_cost(const ProgramHint& hint) const;
  // Calls per second and rank that the user's earlier runs of this program let expect, corrected run by run
  // (cost/predicted_cost.h); the ranks' time is processor time where it is known, else wall time, since MPI libraries
  // poll while they wait. Runs with the same build id or the same command and as many ranks; else with any number of
  // ranks; else of the same first word. Of a run whose capture ended before the program, what was recorded counts.
  // Nothing: it never ran. Errors: as Database.
  Result<std::optional<double>> expected_calls_per_s(const ProgramHint& hint) const;

  // Work of a rank, in seconds, of the user's earlier runs of this command with as many ranks on this cluster that were
  // captured as a whole and undisturbed, without threads and devices, by StepFields::ranks_per_domain: the median of
  // the latest ones. Errors: as Database.
  Result<std::map<std::uint32_t, double>> work_by_density(const ProgramHint& hint) const;

  // Calls per second of a rank of the procedures that the user's earlier runs of this program measured, by name, from
  // the latest run that measured each: runs with the same build id, else with the same command. Errors: as Database.
  Result<std::map<std::string, double>> procedure_calls_per_s(const ProgramHint& hint) const;

  // Inside the caller's transaction (StepStore::put): the step's run, its program and its outcomes, instead of what
  // was stored of them. Of a step that is not complete, or whose capture ended before the program, the run only; of one
  // on several nodes without a described network no outcomes, as its predictions are bounds. Throws SQLite::Exception.
  static void record(SQLite::Database& connection, StepRow row, const StepRecord& step,
                     const std::vector<PredictionRecord>& predictions);

 private:
  Database& database_;
};

}  // namespace lbf::db
