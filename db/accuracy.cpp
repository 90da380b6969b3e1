// Accuracy, see accuracy.h.
#include "db/accuracy.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <unordered_map>
#include <utility>

#include "db/program_store.h"
#include "db/row_reader.h"

namespace lbf::db {
namespace {

using Errors = std::vector<double>;

std::string formatted(const std::tm& local, const char* format) {
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

// The months and weeks of times, in local time, as sacct shows times. The C library is asked once for each day:
// outcomes come nearly in the order of their times, and its calendar takes longer than reading them.
class Calendar {
 public:
  void add(double time_s, double error) {
    if (!(time_s >= begin_s_ && time_s < end_s_)) look_up(time_s);
    month_->push_back(error);
    week_->push_back(error);
  }
  std::vector<NamedSummary> months() { return summaries(months_); }
  std::vector<NamedSummary> weeks() { return summaries(weeks_); }

 private:
  using ByName = std::map<std::string, Errors>;

  static std::vector<NamedSummary> summaries(ByName& groups) {
    std::vector<NamedSummary> out;
    for (auto& [name, errors] : groups) out.push_back({name, summary_of(std::move(errors))});
    return out;
  }

  void look_up(double time_s) {
    const auto time = static_cast<std::time_t>(time_s);
    std::tm local{};
    begin_s_ = end_s_ = 0;
    if (::localtime_r(&time, &local) == nullptr) {
      month_ = &months_["unknown"];
      week_ = &weeks_["unknown"];
      return;
    }
    month_ = &months_[formatted(local, "%Y-%m")];
    week_ = &weeks_[formatted(local, "%G-W%V")];
    local.tm_hour = local.tm_min = local.tm_sec = 0;
    local.tm_isdst = -1;
    std::tm next = local;
    ++next.tm_mday;
    begin_s_ = static_cast<double>(std::mktime(&local));
    end_s_ = static_cast<double>(std::mktime(&next));
  }

  ByName months_;
  ByName weeks_;
  // Of the day from begin_s_ to end_s_.
  Errors* month_ = nullptr;
  Errors* week_ = nullptr;
  double begin_s_ = 0;
  double end_s_ = 0;
};

constexpr std::array kDistances{TargetDistance::kSelf, TargetDistance::kNodes, TargetDistance::kPlacement,
                                TargetDistance::kNetwork, TargetDistance::kSeveral};

Errors errors_of(RowReader& rows) {
  Errors errors;
  while (rows.next()) errors.push_back(rows.number(0));
  return errors;
}

// Columns: error_percent, distance, measured_at_s, program_row. Binds what is asked for.
RowReader outcomes_of(SQLite::Database& connection, const OutcomeQuery& query) {
  std::string sql = "SELECT o.error_percent, o.distance, o.measured_at_s, o.program_row FROM ";
  // One user's by his runs; where a time is given, it leaves out more.
  const bool by_user = query.uid && !query.since_s && !query.until_s;
  sql += by_user     ? "run r CROSS JOIN outcome o ON o.step_row = r.step_row"
         : query.uid ? "outcome o CROSS JOIN run r ON r.step_row = o.step_row"
                     : "outcome o";
  sql += " WHERE 1";
  if (query.uid) sql += " AND r.uid = ?1";
  if (query.since_s) sql += " AND o.measured_at_s >= ?2";
  if (query.until_s) sql += " AND o.measured_at_s <= ?3";
  RowReader rows(connection, sql);
  if (query.uid) rows.bind(1, static_cast<std::int64_t>(*query.uid));
  if (query.since_s) rows.bind(2, *query.since_s);
  if (query.until_s) rows.bind(3, *query.until_s);
  return rows;
}

}  // namespace

ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary out;
  out.outcomes = errors.size();
  if (errors.empty()) return out;
  const auto nth = [&errors](std::size_t n) {
    const auto place = errors.begin() + static_cast<std::ptrdiff_t>(n);
    std::nth_element(errors.begin(), place, errors.end());
    return place;
  };
  const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
  out.worst_percent = std::fabs(*least) > std::fabs(*most) ? *least : *most;
  const auto middle = nth(errors.size() / 2);
  out.median_percent = errors.size() % 2 == 1 ? *middle : (*std::max_element(errors.begin(), middle) + *middle) / 2;
  for (double& error : errors) error = std::fabs(error);
  out.p90_percent = *nth((9 * errors.size() + 9) / 10 - 1);
  return out;
}

Result<Accuracy> AccuracyStore::accuracy(const OutcomeQuery& query) const {
  Accuracy out;
  auto done = database_.read([&](SQLite::Database& connection) {
    Errors all;
    std::array<Errors, kDistances.size()> distances;
    Calendar calendar;
    std::unordered_map<std::int64_t, Errors> programs;
    for (RowReader rows = outcomes_of(connection, query); rows.next();) {
      const double error = rows.number(0);
      const std::string_view distance = rows.text(1);
      all.push_back(error);
      for (std::size_t i = 0; i < kDistances.size(); ++i) {
        if (distance == name_of(kDistances[i])) distances[i].push_back(error);
      }
      calendar.add(rows.number(2), error);
      programs[rows.integer(3)].push_back(error);
    }
    out.all = summary_of(std::move(all));
    for (std::size_t i = 0; i < kDistances.size(); ++i) {
      if (!distances[i].empty())
        out.by_distance.push_back({name_of(kDistances[i]), summary_of(std::move(distances[i]))});
    }
    out.by_month = calendar.months();
    out.by_week = calendar.weeks();
    RowReader program(connection, "SELECT program_row, name, identity, ranks FROM program ORDER BY program_row");
    while (program.next()) {
      const auto found = programs.find(program.integer(0));
      if (found == programs.end()) continue;
      ProgramSummary one;
      one.program = found->first;
      one.name = program.text(1);
      one.build_id = program.text(2);
      one.ranks = static_cast<Rank>(program.integer(3));
      one.errors = summary_of(std::move(found->second));
      out.by_program.push_back(std::move(one));
    }
  });
  if (!done) return done.error();
  std::stable_sort(out.by_program.begin(), out.by_program.end(),
                   [](const auto& a, const auto& b) { return a.errors.outcomes > b.errors.outcomes; });
  return out;
}

Result<ErrorFit> AccuracyStore::fit_of(const std::string& cluster, std::uint32_t job, std::uint32_t step,
                                       std::uint32_t restart, std::uint64_t submit_s) const {
  ErrorFit fit;
  auto done = database_.read([&](SQLite::Database& connection) {
    RowReader program(connection,
                      "SELECT o.error_percent FROM outcome o WHERE o.distance <> 'self' AND "
                      "o.program_row = (SELECT r.program_row FROM run r JOIN step s ON s.step_row = r.step_row "
                      "WHERE s.cluster = ? AND s.job = ? AND s.step = ? AND s.restart = ? AND s.submit_s = ?)");
    program.bind(1, cluster);
    program.bind(2, std::int64_t{job});
    program.bind(3, std::int64_t{step});
    program.bind(4, std::int64_t{restart});
    program.bind(5, static_cast<std::int64_t>(submit_s));
    fit.program = summary_of(errors_of(program));
    RowReader site(connection, "SELECT error_percent FROM outcome WHERE distance <> 'self'");
    fit.site = summary_of(errors_of(site));
  });
  if (!done) return done.error();
  return fit;
}

}  // namespace lbf::db
