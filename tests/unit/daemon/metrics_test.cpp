// Metrics: what lbfd counts, and who may read it. tests/operators/test_metrics.py looks at the text.
#include "predictor/daemon/http/metrics.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "predictor/daemon/steps/arrivals.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::metrics_test {
namespace {

using daemon::Arrivals;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Arrivals::Clock::time_point kBegin{1000s};

TEST(Arrivals, LagIsTheAgeOfTheOldestBytesThatAreNotReplayed) {
  Arrivals arrivals;
  EXPECT_EQ(arrivals.lag_s(kBegin), 0);
  arrivals.came(100, kBegin);
  arrivals.came(100, kBegin + 500ms);  // within the same second as the first
  arrivals.came(50, kBegin + 2s);
  EXPECT_EQ(arrivals.lag_s(kBegin + 3s), 3);
  EXPECT_EQ(arrivals.backlog_bytes(), 250u);
  arrivals.replayed(100);
  EXPECT_EQ(arrivals.lag_s(kBegin + 3s), 3);
  EXPECT_EQ(arrivals.backlog_bytes(), 150u);
  arrivals.replayed(200);
  EXPECT_EQ(arrivals.lag_s(kBegin + 3s), 1);
  arrivals.replayed(250);
  EXPECT_EQ(arrivals.lag_s(kBegin + 3s), 0);
  EXPECT_EQ(arrivals.backlog_bytes(), 0u);
}

TEST(Arrivals, WhatWaitsForOthersIsNoLag) {
  Arrivals arrivals;
  arrivals.came(100, kBegin);
  arrivals.caught_up();
  EXPECT_EQ(arrivals.lag_s(kBegin + 60s), 0);
  EXPECT_EQ(arrivals.backlog_bytes(), 0u);
  arrivals.came(10, kBegin + 60s);
  EXPECT_EQ(arrivals.lag_s(kBegin + 61s), 1);
}

TEST(Arrivals, ALongBacklogTakesLittleMemoryAndKeepsItsAge) {
  Arrivals arrivals;
  for (int second = 0; second < 100'000; ++second) arrivals.came(1, kBegin + std::chrono::seconds(second));
  EXPECT_EQ(arrivals.lag_s(kBegin + 100'000s), 100'000);
  arrivals.replayed(1);
  EXPECT_EQ(arrivals.lag_s(kBegin + 100'000s), 99'999);
}

class Metrics : public DaemonTest {
 protected:
  std::string metrics() {
    const HttpResponse answer = request_as(4242, "GET", "/metrics");
    EXPECT_EQ(answer.status, 200);
    return answer.body;
  }
  // A step's view is final a moment before lbfd has counted it.
  std::string metrics_with(const std::string& line) {
    std::string text = metrics();
    for (int i = 0; i < 400 && text.find(line) == std::string::npos; ++i) {
      std::this_thread::sleep_for(25ms);
      text = metrics();
    }
    EXPECT_THAT(text, HasSubstr(line));
    return text;
  }
};

TEST_F(Metrics, StepsEventsAndWhatRelaysSay) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to ask as an operator";
  RingProgram program;
  program.more_records.push_back(nlohmann::json{
      {"type", "relay"}, {"node_index", 0}, {"cpu_s", 0.01}, {"spooled_batches", 3}, {"lost_batches", 1}});
  start();
  EXPECT_THAT(metrics(), HasSubstr("\nlbfd_replayed_events_total 0\n"));
  send_all(program, 7);
  const nlohmann::json step = wait_until_final(7);
  const std::string text = metrics_with("\nlbfd_steps_ended_total{state=\"complete\"} 1\n");
  EXPECT_THAT(text, HasSubstr("\nlbfd_steps_started_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nlbfd_replayed_events_total " + step["events"].dump() + "\n"));
  EXPECT_THAT(text, HasSubstr("\nlbfd_predictions_total " + std::to_string(step["predictions"].size()) + "\n"));
  EXPECT_THAT(text, HasSubstr("\nlbfd_stored_batches_total 8\n"));
  EXPECT_THAT(text, HasSubstr("\nlbfd_stored_bytes_total " + step["bytes_stored"].dump() + "\n"));
  EXPECT_THAT(text, HasSubstr("\nlbfd_spooled_batches_total 12\n")) << "with the last batch of each rank";
  EXPECT_THAT(text, HasSubstr("\nlbfd_lost_batches_total 4\n"));
  metrics_with("\nlbfd_replay_lag_seconds 0\n");
  metrics_with("\nlbfd_replay_backlog_bytes 0\n");
}

TEST_F(Metrics, AreForOperators) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to ask as others";
  start();
  EXPECT_EQ(request_as(4242, "GET", "/metrics").status, 200);
  EXPECT_EQ(request_as(1234, "GET", "/metrics").status, 403);
  EXPECT_THAT(raw_exchange("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), HasSubstr("HTTP/1.1 401"));
}

}  // namespace
}  // namespace lbf::test::metrics_test
