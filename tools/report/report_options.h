// lbf-report's options: what is asked for, and which of them go together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "report/fields.h"
#include "report/selection.h"

namespace CLI {
class App;
}

namespace lbf::tools {

// As the user wrote them.
struct ReportOptions {
  std::string jobs;
  std::vector<std::string> job_words;  // without -j
  std::string users;
  bool all_users = false;
  bool duplicates = false;
  std::optional<std::uint64_t> submit_s;
  std::string since;
  std::string until;
  std::string format;
  bool help_format = false;
  bool no_header = false;
  bool parsable = false;
  bool parsable2 = false;
  std::string delimiter = "|";
  bool long_list = false;
  std::string clusters;
  std::string names;
  std::string accounts;
  std::string partitions;
  std::string states;
  std::string nodes;
  bool allocations = false;
  std::string units;
  bool no_convert = false;
  bool json = false;
  bool yaml = false;
  bool plot = false;
  bool ascii = false;
  std::string html;
  bool brief = false;
  std::optional<Seconds> wait_s;
  bool accuracy = false;
  bool overhead = false;
  bool savings = false;
  bool scaling = false;
  bool weak = false;
  std::vector<std::uint32_t> ranks;  // of --scaling
  bool procedures = false;
  bool networks = false;
  bool health = false;
  std::string color = "auto";
  std::string server;
  bool version = false;

  bool any_parsable() const { return parsable || parsable2; }
};

// REQUIRES: `options` outlives `app`.
void add_report_options(CLI::App& app, ReportOptions& options);
// `lbf-report 700` is `lbf-report -j 700`: job_words into jobs. REQUIRES: once, after the words are parsed.
void join_jobs(ReportOptions& options);

// What is printed. kDocument: JSON or YAML as lbfd sends it; kSteps: a table or pages.
enum class ReportKind : std::uint8_t {
  kBrief,
  kAccuracy,
  kDocument,
  kHtml,
  kPlot,
  kOverhead,
  kSavings,
  kScaling,
  kProcedures,
  kSteps
};
ReportKind kind_of(const ReportOptions& options);

// Columns of a table; none: pages, one per step.
using ReportColumns = std::optional<std::vector<report::Column>>;

struct ReportRequest {
  report::Selection selection;
  ReportColumns columns;
};
// Errors: kInvalidInput, with what is wrong about the options.
Result<ReportRequest> request_of(const ReportOptions& options);

report::TableStyle table_style(const ReportOptions& options);

}  // namespace lbf::tools
