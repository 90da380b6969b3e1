// Summaries of many outcomes are what sorting and the C library's calendar say, row by row.
#include "db/accuracy.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>

#include "tests/support/temporary_directory.h"

namespace lbf::db::accuracy_test {
namespace {

ErrorSummary sorted_summary(std::vector<double> errors) {
  ErrorSummary out;
  out.outcomes = errors.size();
  std::sort(errors.begin(), errors.end());
  const std::size_t half = errors.size() / 2;
  out.median_percent = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
  out.worst_percent = std::fabs(errors.front()) > std::fabs(errors.back()) ? errors.front() : errors.back();
  for (double& error : errors) error = std::fabs(error);
  std::sort(errors.begin(), errors.end());
  out.p90_percent = errors[(9 * errors.size() + 9) / 10 - 1];
  return out;
}

void expect_same(const ErrorSummary& summary, const ErrorSummary& expected) {
  EXPECT_EQ(summary.outcomes, expected.outcomes);
  EXPECT_EQ(summary.median_percent, expected.median_percent);
  EXPECT_EQ(summary.p90_percent, expected.p90_percent);
  EXPECT_EQ(summary.worst_percent, expected.worst_percent);
}

TEST(SummaryOf, IsWhatSortingSays) {
  std::mt19937 random(1);
  for (std::size_t n = 1; n <= 60; ++n) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < n; ++i) errors.push_back(std::round(std::normal_distribution(-1.0, 9.0)(random)));
    expect_same(summary_of(errors), sorted_summary(errors));
  }
}

class AccuracyTest : public testing::Test {
 protected:
  AccuracyTest() {
    ::setenv("TZ", "Europe/Berlin", 1);
    ::tzset();
    auto database = Database::open(directory_.path() + "/lbf.db");
    if (database) database_ = std::move(database).value();
  }
  ~AccuracyTest() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Database> database_;
};

std::string in_local_time(double time_s, const char* format) {
  const auto time = static_cast<std::time_t>(time_s);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, std::localtime(&time))};
}

TEST_F(AccuracyTest, MonthsAndWeeksAreThoseOfTheLocalCalendar) {
  // Around midnight, the turn of a year, both changes of the clock, and back and forth between days.
  std::vector<double> times;
  for (const double around : {1767222000.0, 1774746000.0, 1792893600.0, 1780264800.0}) {
    for (int i = -40; i < 40; ++i) times.push_back(around + 1800 * i);
  }
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) times.push_back(1767222000.0 + random() % 31536000);
  std::map<std::string, std::vector<double>> months;
  std::map<std::string, std::vector<double>> weeks;
  const auto filled = database_->write([&](SQLite::Database& connection) {
    connection.exec("PRAGMA defer_foreign_keys = ON");
    connection.exec(
        "INSERT INTO program (program_row, identity, name, ranks, calls_per_rank_json, work_s) "
        "VALUES (1, 'gnu:1', 'app', 4, '[]', 1)");
    SQLite::Statement step(
        connection,
        "INSERT INTO step (step_row, cluster, job, step, restart, user_name, uid, job_name, command, state, "
        "why_partial, nodes_json, ranks, node_of_rank_json, network, start_s, events, messages, collectives, "
        "wire_bytes, stored_bytes, wildcard_receives, lost_events, mpi_s, unmodelled_s, capture_s, relay_cpu_s, "
        "notes_json) VALUES (?1, 'c', ?1, 0, 0, 'u', 1, '', '', 'complete', '', '[]', 4, '[]', '', 0, 0, 0, 0, 0, "
        "0, 0, 0, 0, 0, 0, 0, '[]')");
    SQLite::Statement outcome(connection, "INSERT INTO outcome VALUES (?1, ?1, 1, 'self', 1, 1, ?2, ?3)");
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double error = static_cast<double>(random() % 100) - 50;
      months[in_local_time(times[i], "%Y-%m")].push_back(error);
      weeks[in_local_time(times[i], "%G-W%V")].push_back(error);
      const auto row = static_cast<std::int64_t>(i) + 1;
      step.bind(1, row);
      step.exec();
      step.reset();
      outcome.bind(1, row);
      outcome.bind(2, error);
      outcome.bind(3, times[i]);
      outcome.exec();
      outcome.reset();
    }
  });
  ASSERT_TRUE(filled.ok()) << filled.error().message;

  const auto accuracy = AccuracyStore(*database_).accuracy({});
  ASSERT_TRUE(accuracy.ok()) << accuracy.error().message;
  EXPECT_EQ(accuracy->all.outcomes, times.size());
  for (const auto& [found, expected] :
       {std::pair(&accuracy->by_month, &months), std::pair(&accuracy->by_week, &weeks)}) {
    ASSERT_EQ(found->size(), expected->size());
    for (const NamedSummary& group : *found) {
      SCOPED_TRACE(group.name);
      ASSERT_TRUE(expected->contains(group.name));
      expect_same(group.errors, sorted_summary(expected->at(group.name)));
    }
  }
}

}  // namespace
}  // namespace lbf::db::accuracy_test