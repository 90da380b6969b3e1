// Schedule: which candidate ends first. When each would start says Slurm (advisor/candidate/start_source.h),
// how long it runs the replay; the one that runs fastest is often not the one that ends first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "advisor/advice/baseline.h"
#include "advisor/candidate/start_source.h"
#include "advisor/ranking/ranking.h"
#include "advisor/trust/trust.h"
#include "base/result.h"

namespace lbf::advisor {

// Questions to Slurm: each is a request to slurmctld, which tries the job on its tables. What runs now is one
// of them.
inline constexpr std::uint32_t kMostQuestions = 16;

struct ScheduleOptions {
  double now_s = 0;  // seconds since the epoch
  // Not nullptr: Slurm is not asked for what is above a partition's time limit. (Where it does not enforce
  // these it would name a start, and the job would wait for ever.)
  const Cluster* cluster = nullptr;
  std::string time_limit;                      // for all, as srun's --time takes it; empty: time_limit_of()
  Trust trust;                                 // how far the predictions may be off
  std::function<void(double share)> progress;  // of the questions; may be empty
};

struct Schedule {
  double asked_at_s = 0;  // seconds since the epoch
  std::uint32_t questions = 0;
  std::uint32_t known = 0;         // candidates with a start
  std::uint32_t not_asked = 0;     // replayed candidates that cannot end first, or want what a faster one wants
  std::uint32_t beyond_bound = 0;  // that might, but kMostQuestions were asked
  std::string why_stopped;         // not empty: then Slurm could not be asked any more
};

// Minutes, for a job that is predicted to run `time_s`: with the prediction's error, a quarter on top for
// what runs differ by, and a minute for the start, MPI_Init and the end, which no prediction has.
std::string time_limit_of(Seconds time_s, double error_percent);

// What srun's --time takes: MINUTES[:SECONDS], HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]].
// nullopt: neither.
std::optional<Seconds> parse_time_limit(std::string_view text);

// Asks for the candidates that were replayed and that the objective allows, in the order of their times; of
// those that want the same nodes (whatever their distribution) for the fastest only; not for those that could
// not end first even if they started now. Then puts `ranking` into the order of the ends. Errors
// (kUnavailable): the first question could not be asked, for want of srun or of Slurm.
Result<Schedule> schedule(Ranking& ranking, Baseline& baseline, const Objective& objective, StartSource& slurm,
                          const ScheduleOptions& options);

// srun_flags() with the --time of its start, if somebody asked for it.
std::string flags_with_limit(std::string flags, const Start& start);

}  // namespace lbf::advisor
