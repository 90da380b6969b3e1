// StepList: a list of steps, of which only some values are wanted. What `GET /v1/steps?rows=` answers from.
//
// A list is long and shows little: every value that is not read, turned into text and read again is time saved
// (docs/lbfd.md, "Speed of reports").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/records.h"
#include "db/step_store.h"

namespace lbf::db {

// Values of a StepRecord; what they are called is http-v1.md's.
enum class StepValue : std::uint8_t {
  kCluster,
  kJob,
  kStep,
  kRestart,
  kArrayJob,
  kArrayTask,
  kHetJob,
  kHetOffset,
  kUser,
  kUid,
  kAccount,
  kPartition,
  kJobName,
  kCommand,  // command and command_words
  kCommandCut,
  kState,
  kWhyPartial,
  kNodes,
  kNodeCount,
  kRanks,
  kNetwork,
  kStart,
  kEnd,
  kMeasured,
  kEvents,
  kMessages,
  kWireBytes,
  kStoredBytes,
  kWildcardReceives,
  kLostEvents,
  kMpi,
  kUnmodelled,
  kCapture,
  kRelayCpu,
  kLbfdCpu,
  kNotes,
  kCost,  // without its nodes and ranks
  kTargetCounts,
};

// Values of a PredictionRecord.
enum class PredictionValue : std::uint8_t {
  kTarget,
  kNodes,
  kCores,
  kPlacement,
  kNetwork,
  kContention,
  kSpeed,
  kKind,
  kPredicted,  // with why_stuck and why_deferred, without which it says nothing
  kWhyStuck,
  kWhyDeferred,
  kDeferredForGood,
  kTakenUp,
  kSpeedup,
  kSelfError,
  kPartial,
  kProgress,
  kMeasuredAtProgress,
  kSeenShare,
  kLow,
  kHigh,
  kTopology,
};

// What is wanted. Nothing is wanted twice.
struct ListValues {
  std::vector<StepValue> step;
  std::vector<PredictionValue> prediction;  // empty: no predictions
  bool every_target = false;                // false: the configuration that ran and the fastest one
};

// Where a step's predictions are.
struct UnreadPredictions {
  StepRow row = 0;
  std::optional<std::int64_t> self_position;
  std::optional<std::int64_t> fastest_position;
};

struct ListedStep {
  StepRecord record;             // what is wanted, and always start_s; all else as a StepRecord is made
  std::uint64_t node_count = 0;  // where kNodeCount is wanted
  std::vector<PredictionRecord> predictions;
  // Of all its targets, where kTargetCounts is wanted: not replayed for want of room; and those that were not when the step
  // ended, but were later.
  std::uint64_t targets_deferred = 0;
  std::uint64_t targets_taken_up = 0;
  std::optional<UnreadPredictions> unread{};  // they are still to be read
};

// The steps that the query selects, oldest first, without their predictions. Errors: as Database.
Result<std::vector<ListedStep>> list_steps(Database& database, const StepQuery& query, const ListValues& values);

// Those of `values`, where they are unread: a long list is read a few steps at a time, while the steps before them are
// on their way. A step that was removed meanwhile has none. Errors: as Database.
Result<void> read_predictions(Database& database, const ListValues& values, std::span<ListedStep> steps);

// The predictions of a step that are listed where not every target is.
bool is_listed(const PredictionRecord& prediction, const PredictionRecord* fastest);
// nullptr: there is none that ends and is not deferred.
const PredictionRecord* fastest_of(const std::vector<PredictionRecord>& predictions);

}  // namespace lbf::db
