// StepStore: the steps that lbfd knows, in sqlite; what `GET /v1/steps` answers from.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/records.h"

namespace lbf::db {

struct StepQuery {
  std::optional<std::string> cluster;
  std::optional<std::uint32_t> job;  // this very job
  std::optional<std::uint32_t>
      job_group;  // this job, the tasks of this array, the components of this het job
  std::optional<std::uint32_t> array_task;
  std::optional<std::uint32_t> het_offset;
  std::optional<std::uint32_t> step;
  std::optional<std::uint32_t> restart;
  std::optional<uid_t> uid;
  std::optional<double> since_s;  // steps that were not over by then
  std::optional<double> until_s;  // steps that had begun by then
  std::uint32_t limit = 1000;     // the latest ones

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

  // The state of one step; nothing when it is not known.
  Result<std::optional<StepState>> state_of(const std::string& cluster, std::uint32_t job, std::uint32_t step,
                                            std::uint32_t restart) const;

 private:
  Database& database_;
};

}  // namespace lbf::db
