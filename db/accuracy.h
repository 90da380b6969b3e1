// Accuracy: how far the site's own predictions were off, from what was predicted and measured later.
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

// Errors are 100 (predicted - measured) / measured.
struct ErrorSummary {
  std::uint64_t outcomes = 0;
  double median_percent = 0;  // with its sign: above 0 predictions are too slow
  double p90_percent = 0;     // 90 % of the errors are at most so far from 0 (nearest rank)
  double worst_percent = 0;   // the one farthest from 0, with its sign
};
ErrorSummary summary_of(std::vector<double> errors_percent);

struct ProgramSummary {
  std::int64_t program = 0;  // number of the program with this kind of input
  std::string name;
  std::string build_id;
  Rank ranks = 0;
  ErrorSummary errors;
};

struct NamedSummary {
  std::string name;
  ErrorSummary errors;
};

struct Accuracy {
  ErrorSummary all;
  std::vector<NamedSummary> by_distance;   // self, nodes, placement, network, several; those that there are
  std::vector<ProgramSummary> by_program;  // most outcomes first
  std::vector<NamedSummary> by_month;      // "2026-11", lbfd's local time, of the measured run's end
  std::vector<NamedSummary> by_week;       // "2026-W47", ISO 8601
};

struct OutcomeQuery {
  std::optional<uid_t> uid;       // whose runs were measured; nothing: everybody's
  std::optional<double> since_s;  // measured runs that ended from then on
  std::optional<double> until_s;
};

// What an interval is fitted to: outcomes on other configurations than the one that ran.
struct ErrorFit {
  ErrorSummary program;  // of the step's program with this kind of input
  ErrorSummary site;     // of all programs and users
};

// Thread-safe as Database is. REQUIRES: the database outlives the store. Errors: as Database.
class AccuracyStore {
 public:
  explicit AccuracyStore(Database& database) : database_(database) {}
  Result<Accuracy> accuracy(const OutcomeQuery& query) const;
  // `step`: of no program, or not stored: `program` has no outcomes.
  Result<ErrorFit> fit_of(const std::string& cluster, std::uint32_t job, std::uint32_t step, std::uint32_t restart,
                          std::uint64_t submit_s) const;

 private:
  Database& database_;
};

}  // namespace lbf::db
