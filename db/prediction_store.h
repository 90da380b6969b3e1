// PredictionStore: the predictions of each step, in sqlite.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/records.h"

namespace lbf::db {

// Thread-safe as Database is. REQUIRES: the database outlives the store.
class PredictionStore {
 public:
  explicit PredictionStore(Database& database) : database_(database) {}

  // In the order in which they were stored: the configuration that ran first. `with_ranks`: rank_finish_s
  // too, which is most of the bytes of a large step. Errors: as Database.
  Result<std::vector<PredictionRecord>> of_step(StepRow step, bool with_ranks = true) const;

  // The same of many steps, in their order, in one transaction.
  Result<std::vector<std::vector<PredictionRecord>>> of_steps(const std::vector<StepRow>& steps, bool with_ranks) const;

  // The first step above `after` that is over and has deferred targets which are still to be taken up. Errors: as
  // Database.
  Result<std::optional<StepRow>> next_deferred(StepRow after) const;
  // The step's targets that are deferred, or were when it ended. Errors: as Database.
  Result<std::set<TargetName>> deferred_targets(StepRow step) const;
  // They will not be taken up any more, for the reason `why` (not empty).
  Result<void> give_up_deferred(StepRow step, const std::string& why);
  // Those that a list of steps shows: the configuration that ran, and the fastest one; without ranks.
  Result<std::vector<PredictionRecord>> summary_of_step(StepRow step) const;
  // The same of many steps, in their order, in one transaction.
  Result<std::vector<std::vector<PredictionRecord>>> summaries(const std::vector<StepRow>& steps) const;

  // Replaces all predictions of the step, inside the caller's transaction (StepStore::put). Throws
  // SQLite::Exception.
  static void replace(SQLite::Database& connection, StepRow step, const std::vector<PredictionRecord>& predictions);

 private:
  Result<std::vector<std::vector<PredictionRecord>>> of_each(const std::vector<StepRow>& steps, bool with_ranks,
                                                             std::string_view condition) const;

  Database& database_;
};

}  // namespace lbf::db
