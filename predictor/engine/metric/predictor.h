// Predictor: events in, predictions out, online. The façade of the replay core that lbfd, lbf-whatif, the
// benchmarks and the tests run alike: no sockets, database, threads or clock in here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "event/rounds.h"
#include "predictor/engine/match/match_stats.h"
#include "predictor/engine/match/mpi_library.h"
#include "predictor/engine/match/procedure_plan.h"
#include "predictor/engine/metric/engine_limits.h"
#include "predictor/engine/metric/path_composition.h"
#include "predictor/engine/replay/composed.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

struct Prediction {
  Seconds lbf_s = 0;                     // predicted run time: LBF, NF or both combined (TSE Sec. 2, 3)
  std::vector<Seconds> rank_finish_s;    // predicted time of each rank's last replayed event
  std::vector<Seconds> rank_measured_s;  // measured time at the same events (sum of process, call and off times)
  bool complete = false;                 // every rank reached its exit
  // Where the capture recorded in windows only: lbf_s is extrapolated from them (extrapolation.h), these are its
  // 95 % interval (0 and kNeverS: it cannot be told), and the share of the run's measured time that was seen.
  Seconds low_s = 0;
  Seconds high_s = 0;
  double seen_share = 1;
  // In percent of lbf_s: what exchanges of large messages would add if all of them took turns (Links::exchange_s).
  double exchange_percent = 0;
  Seconds whole_run_s = 0;  // measured, with what lies outside of MPI_Pcontrol's scope and is not predicted; 0: nothing
  std::string why_stuck;    // not complete after every rank was closed: what would hold the program up for ever
                            // on this target
  // Of the last of rank_finish_s, where it was asked for: Clocks::kComposed and kFollowed, kFollowed.
  std::optional<Composed> composition;
  std::optional<PathComposition> path;
};

// What the predictions' times are made of: known for several times the memory and work. kFollowed: and in which calls,
// ranks, communicators and procedures.
enum class Clocks : std::uint8_t { kPlain, kComposed, kFollowed };

// What the capture itself took of the ranks' measured time, all together (C_obs_direct, docs/cost-system.md).
struct CaptureCost {
  Seconds recording_s = 0;  // while calls were recorded
  Seconds counting_s = 0;   // while they were only counted
};

struct PredictorStats : MatchStats {
  std::uint64_t windows = 0;           // of the capture; 0: it was never closed
  std::uint64_t events_in_flight = 0;  // buffered now
  std::string why_partial;             // lost events or matches that cannot be known; empty: predictions are whole
};

// Rows of TSE Fig. 5, for tests and teaching (predictor/engine/replay/observer.h); called by the shared
// (process-sharing) replay of target 0 after each arrival and each report when set.
class ReplayObserver;
// When each op took place (predictor/engine/replay/timeline.h).
class TimelineObserver;

class Predictor {
 public:
  // Errors: a target whose map does not fit `ranks`, nodes or cores 0, speed not positive, no network,
  // lists of cores or speeds by node that are not one entry a node; a scenario that `plan` does not have; a share of a
  // procedure that is not from 0 to 1, a procedure twice in one scenario, a rank that does not exist; other clocks than
  // plain ones, and a target where ranks share processors, links or memory; paths followed in scenarios.
  static Result<std::unique_ptr<Predictor>> make(Rank ranks, std::vector<Target> targets, ProcedurePlan plan = {},
                                                 Clocks clocks = Clocks::kPlain);
  virtual ~Predictor() = default;

  // Whose collectives these are; without it Open MPI 4.1's (predictor/engine/match/mpi_library.h). REQUIRES: before
  // the first event; `node_of_rank` is empty or has every rank.
  virtual void set_mpi(const MpiSetup& setup) = 0;
  // As far as it is known now; without it, nothing. Where the capture recorded in windows only, what was recorded ran
  // slower by it than the rest did.
  virtual void set_capture_cost(const CaptureCost& cost) = 0;
  // REQUIRES: before the first event.
  virtual void set_limits(EngineLimits limits) = 0;
  // What it holds: of the containers' sizes, not measured.
  virtual Bytes memory_bytes() const = 0;

  // Events of `rank`; a rank's events in its order, ranks interleaved anyhow. Errors name rank and event
  // number; after an error the predictor refuses further events, its predictions stay readable. So it does beyond its
  // limits: kLimit, more memory than it may have; kUnavailable, it was stopped.
  virtual Result<void> feed(Rank rank, std::span<const Event> events) = 0;
  Result<void> feed(Rank rank, const Event& event) { return feed(rank, std::span(&event, 1)); }
  // The same of events that come as rounds; false: nothing was fed, they are wanted as events.
  virtual Result<bool> feed_rounds(Rank rank, const Rounds& rounds) = 0;
  // No more events of this rank will come (it exited, was killed, or its stream ended).
  virtual void close(Rank rank) = 0;
  // Replays as far as the events allow. Cheap when nothing is possible. Called by feed() itself every so
  // often; call it to see fresh predictions. Errors: those of the limits, also where feed() or close() met them.
  virtual Result<void> advance() = 0;

  virtual const std::vector<Target>& targets() const = 0;
  virtual std::vector<Prediction> predictions() const = 0;
  virtual PredictorStats stats() const = 0;
  // By scenario, and by profiled procedure, of the plan.
  virtual std::vector<ScenarioStats> scenario_stats() const = 0;
  virtual std::vector<ProcedureStats> procedure_stats() const = 0;
  // After every rank was closed: ok when all ran to their end, else what is in the way: "rank 3 waits at its
  // event 17 for a message from rank 1, tag 5, communicator 0, that was never sent".
  virtual Result<void> diagnosis() const = 0;

  // Rows of TSE Fig. 5 from here on; each event is then replayed as it arrives. REQUIRES: before the first
  // event; `observer` outlives the predictor. False: no processors are shared on target 0, there is nothing
  // to observe.
  virtual bool observe(ReplayObserver* /*observer*/) { return false; }
  // The ops of the only target as they take place. REQUIRES: one target; before the first event; `observer`
  // outlives the predictor.
  virtual void observe_timeline(TimelineObserver& /*observer*/) {}
};

}  // namespace lbf::engine
