// Accuracy, see accuracy.h.
#include "db/accuracy.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <utility>

#include "db/program_store.h"

namespace lbf::db {
namespace {

// In local time, as sacct shows times.
std::string formatted(double time_s, const char* format) {
  const auto time = static_cast<std::time_t>(time_s);
  std::tm local{};
  std::array<char, 32> text{};
  if (::localtime_r(&time, &local) == nullptr) return "unknown";
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

using ErrorsByName = std::map<std::string, std::vector<double>>;

std::vector<NamedSummary> summaries(ErrorsByName groups) {
  std::vector<NamedSummary> out;
  for (auto& [name, errors] : groups) out.push_back({name, summary_of(std::move(errors))});
  return out;
}

std::vector<double> errors_of(SQLite::Statement& query) {
  std::vector<double> errors;
  while (query.executeStep()) errors.push_back(query.getColumn(0).getDouble());
  return errors;
}

}  // namespace

ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary out;
  out.outcomes = errors.size();
  if (errors.empty()) return out;
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  out.median_percent = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  out.worst_percent =
      std::fabs(errors.front()) > std::fabs(errors.back()) ? errors.front() : errors.back();
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::fabs(error));
  std::sort(sizes.begin(), sizes.end());
  out.p90_percent = sizes[(9 * sizes.size() + 9) / 10 - 1];
  return out;
}

Result<Accuracy> AccuracyStore::accuracy(const OutcomeQuery& query) const {
  Accuracy out;
  auto done = database_.read([&](SQLite::Database& connection) {
    std::string sql =
        "SELECT o.error_percent, o.distance, o.measured_at_s, o.program_row FROM outcome o "
        "JOIN run r ON r.step_row = o.step_row WHERE 1";
    if (query.uid) sql += " AND r.uid = :uid";
    if (query.since_s) sql += " AND o.measured_at_s >= :since_s";
    if (query.until_s) sql += " AND o.measured_at_s <= :until_s";
    SQLite::Statement statement(connection, sql);
    if (query.uid) statement.bind(":uid", static_cast<std::int64_t>(*query.uid));
    if (query.since_s) statement.bind(":since_s", *query.since_s);
    if (query.until_s) statement.bind(":until_s", *query.until_s);
    std::vector<double> all;
    ErrorsByName distances;
    ErrorsByName months;
    ErrorsByName weeks;
    std::map<std::int64_t, std::vector<double>> programs;
    while (statement.executeStep()) {
      const double error = statement.getColumn(0).getDouble();
      const double time_s = statement.getColumn(2).getDouble();
      all.push_back(error);
      distances[statement.getColumn(1).getString()].push_back(error);
      months[formatted(time_s, "%Y-%m")].push_back(error);
      weeks[formatted(time_s, "%G-W%V")].push_back(error);
      programs[statement.getColumn(3).getInt64()].push_back(error);
    }
    out.all = summary_of(std::move(all));
    for (const TargetDistance distance :
         {TargetDistance::kSelf, TargetDistance::kNodes, TargetDistance::kPlacement, TargetDistance::kNetwork,
          TargetDistance::kSeveral}) {
      const auto found = distances.find(name_of(distance));
      if (found != distances.end()) out.by_distance.push_back({found->first, summary_of(found->second)});
    }
    out.by_month = summaries(std::move(months));
    out.by_week = summaries(std::move(weeks));
    SQLite::Statement program(connection, "SELECT name, identity, ranks FROM program WHERE program_row = ?");
    for (auto& [row, errors] : programs) {
      program.reset();
      program.bind(1, row);
      if (!program.executeStep()) continue;
      ProgramSummary one;
      one.program = row;
      one.name = program.getColumn(0).getString();
      one.build_id = program.getColumn(1).getString();
      one.ranks = program.getColumn(2).getInt();
      one.errors = summary_of(std::move(errors));
      out.by_program.push_back(std::move(one));
    }
  });
  if (!done) return done.error();
  std::stable_sort(out.by_program.begin(), out.by_program.end(), [](const auto& a, const auto& b) {
    return a.errors.outcomes > b.errors.outcomes;
  });
  return out;
}

Result<ErrorFit> AccuracyStore::fit_of(const std::string& cluster, std::uint32_t job, std::uint32_t step,
                                       std::uint32_t restart) const {
  ErrorFit fit;
  auto done = database_.read([&](SQLite::Database& connection) {
    SQLite::Statement program(connection,
                              "SELECT o.error_percent FROM outcome o WHERE o.distance <> 'self' AND "
                              "o.program_row = (SELECT r.program_row FROM run r JOIN step s ON s.step_row = r.step_row "
                              "WHERE s.cluster = ? AND s.job = ? AND s.step = ? AND s.restart = ?)");
    program.bind(1, cluster);
    program.bind(2, job);
    program.bind(3, step);
    program.bind(4, restart);
    fit.program = summary_of(errors_of(program));
    SQLite::Statement site(connection, "SELECT error_percent FROM outcome WHERE distance <> 'self'");
    fit.site = summary_of(errors_of(site));
  });
  if (!done) return done.error();
  return fit;
}

}  // namespace lbf::db
