// Accuracy: how far predictions were off from what was measured later, as lbfd describes it (docs/formats/http-v1.md,
// GET /v1/accuracy).
//
// Place in the event's way: db -> lbfd -> HTTP -> *report* (lbf-report --accuracy, lbf-advise).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/fields.h"
#include "report/selection.h"

namespace lbf::report {

// In percent, 100 (predicted - measured) / measured; unknown without outcomes.
struct ErrorSummary {
  std::uint64_t outcomes = 0;
  std::optional<double> median_percent;  // with its sign
  std::optional<double> p90_percent;     // 90 % are at most so far from 0
  std::optional<double> worst_percent;   // with its sign
};

// Errors of these three: kInvalidInput, an answer that is no such object.
struct ErrorFit {
  ErrorSummary program;
  ErrorSummary site;
};
Result<ErrorFit> parse_error_fit(std::string_view json);

struct AccuracyLine {
  std::string group;     // "all", "distance", "program", "month", "week"
  std::string key;       // "nodes"; "lmp, 4 ranks"; "2026-11"
  std::string build_id;  // of a program
  ErrorSummary errors;
};
Result<std::vector<AccuracyLine>> parse_accuracy(std::string_view json);

// "/v1/accuracy?since=1700000000": the caller's own; -a: everybody's; one user's (the first of several). REQUIRES: no
// jobs in the selection.
std::string accuracy_target(const Selection& selection);

// A line for each group that has outcomes: Group, Key, BuildID, Outcomes, Median, P90, Worst.
std::string render_accuracy(const std::vector<AccuracyLine>& lines, const TableStyle& style);
// What the table says of all outcomes, in the words of a prediction; without a line end. Empty: there are none.
// REQUIRES: `lines` are of parse_accuracy().
std::string accuracy_sentence(const std::vector<AccuracyLine>& lines);

}  // namespace lbf::report
