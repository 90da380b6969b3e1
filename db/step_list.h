// StepList: a list of steps, of which only some values are wanted. What `GET /v1/steps?rows=` answers from.
//
// A list is long and shows little: every value that is not read, turned into text and read again is time saved
// (docs/lbfd.md, "Speed of reports").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/database.h"
#include "db/records.h"
#include "db/step_reader.h"
#include "db/step_store.h"

namespace lbf::db {

// What is wanted, as StepReader names it. Nothing is wanted twice.
struct ListValues {
  std::vector<std::string_view> step;
  std::vector<std::string_view> prediction;  // columns of the table prediction; empty: no predictions
  bool every_target = false;                 // false: the configuration that ran and the fastest one
};

struct ListedStep {
  StepRecord record;  // what is wanted, and always start_s; all else as a StepRecord is made
  std::vector<PredictionRecord> predictions{};
  std::optional<UnreadPredictions> unread{};  // they are still to be read
};

// The steps that the query selects, oldest first, without their predictions. Errors: as Database.
Result<std::vector<ListedStep>> list_steps(Database& database, const StepQuery& query, const ListValues& values);

// Those of `values`, where they are unread: a long list is read a few steps at a time, while the steps before them are
// on their way. A step that was removed meanwhile has none. Errors: as Database.
Result<void> read_predictions(Database& database, const ListValues& values, std::span<ListedStep> steps);

// The predictions of a step that are listed where not every target is.
bool is_listed(const PredictionRecord& prediction, const PredictionRecord* fastest);
// On a measured network. nullptr: there is none that ends and is not deferred.
const PredictionRecord* fastest_of(const std::vector<PredictionRecord>& predictions);

}  // namespace lbf::db
