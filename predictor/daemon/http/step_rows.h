// Lists of steps as rows of values: `GET /v1/steps?rows=` (docs/formats/http-v1.md, ROWS). What a list does not show is
// neither read from the database nor written, and a key's name is written once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "db/step_list.h"

namespace lbf::daemon {

template <typename Record>
struct RowColumn;

struct RowColumns {
  std::vector<const RowColumn<db::StepRecord>*> step;
  std::vector<const RowColumn<db::PredictionRecord>*> prediction;

  // What the columns show; without every_target.
  db::ListValues values() const;
};

// "job,state,predictions.target": columns in this order, those of predictions always last. Errors: kInvalidInput (a
// name that there is not, one that is there twice).
Result<RowColumns> parse_rows(std::string_view names);

// The names that parse_rows knows.
std::vector<std::string_view> all_row_names();

// {"keys":[...],"prediction_keys":[...],"rows":[ and then a row for each step, with commas between them, and ]}
void append_rows_head(const RowColumns& columns, std::string& out);
// REQUIRES: the columns are not empty.
void append_row(const db::ListedStep& step, const RowColumns& columns, std::string& out);

}  // namespace lbf::daemon
