// StepStore: the steps that lbfd knows, in sqlite; what `GET /v1/steps` answers from.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/records.h"

namespace lbf::db {

enum class Duplicates : std::uint8_t { kAll, kLatest };

struct StepQuery {
  std::optional<std::string> cluster;
  std::optional<std::uint32_t> job;        // this very job
  std::optional<std::uint32_t> job_group;  // this job, the tasks of this array, the components of this het job
  std::optional<std::uint32_t> array_task;
  std::optional<std::uint32_t> het_offset;
  std::optional<std::uint32_t> step;
  std::optional<std::uint32_t> restart;
  std::optional<std::uint64_t> submit_s;
  // Of jobs that had one number: the latest one (with its restarts), or all of them. For daemon::Steps, which also has
  // what is not stored yet.
  Duplicates duplicates = Duplicates::kAll;
  std::optional<uid_t> uid;
  std::optional<StepRow> row;  // this very one, of those in the database
  std::optional<std::string> account;
  std::optional<std::string> partition;
  std::optional<std::string> job_name;
  std::vector<StepState> states;   // one of these; empty: any
  std::vector<std::string> nodes;  // ran on one of these; empty: any
  std::optional<double> since_s;   // steps that were not over by then
  std::optional<double> until_s;   // steps that had begun by then
  std::uint32_t limit = 1000;      // the latest ones

  bool matches(const StepRecord& step) const;
};

struct StoredStepRecord {
  StepRow row = 0;
  StepRecord record;
};

// Thread-safe as Database is. REQUIRES: the database outlives the store.
class StepStore {
 public:
  explicit StepStore(Database& database) : database_(database) {}

  // Inserts the step, or replaces everything that was known of it, its calls and predictions included, in one
  // transaction. Errors: as Database.
  Result<StepRow> put(const StepRecord& step, const std::vector<PredictionRecord>& predictions);

  // Oldest first. `with_calls` also reads the calls.
  Result<std::vector<StoredStepRecord>> find(const StepQuery& query, bool with_calls) const;

  // What the admin's retention removes: up to `most` steps that are not running and ended before `before_s`, the
  // oldest first. `has_trace` keeps a step: its trace would be predicted anew at the next start. Returns how many
  // were removed, their calls and predictions with them.
  Result<std::size_t> remove_ended_before(double before_s, std::size_t most,
                                          const std::function<bool(const StepRecord&)>& has_trace);

  // The state of one step; nothing when it is not known.
  Result<std::optional<StepState>> state_of(const std::string& cluster, std::uint32_t job, std::uint32_t step,
                                            std::uint32_t restart, std::uint64_t submit_s) const;

 private:
  Database& database_;
};

}  // namespace lbf::db
