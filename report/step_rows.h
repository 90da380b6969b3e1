// Steps as rows of values (docs/formats/http-v1.md, ROWS): what lists are made from.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/step.h"

namespace lbf::report {

// The steps of an answer {"keys":[...],"prediction_keys":[...],"rows":[...]}, in its order; what it has no key for is
// not known of them. Keys that are not known here are left out. Errors (kInvalidInput, naming row and key): no such
// answer, a value of another type, a row that is too short or too long, a row without job or step.
Result<std::vector<Step>> parse_rows(std::string_view json);

// The same of an answer that comes in pieces: each step is given on as soon as its line is whole (http-v1.md, "Lines"),
// and read into the same memory as the one before it. An answer that is not in lines gives its steps at the end.
class RowsStream {
 public:
  // `take` may keep what is in the step.
  explicit RowsStream(std::function<void(Step& step)> take);
  ~RowsStream();
  RowsStream(const RowsStream&) = delete;
  RowsStream& operator=(const RowsStream&) = delete;

  void add(std::string_view piece);
  // Errors: as parse_rows; steps before the error were given on.
  Result<void> end();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace lbf::report
