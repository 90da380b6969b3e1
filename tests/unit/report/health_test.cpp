// lbf-report --health: what is read of lbfd's metrics, and what an operator is told to look at.
#include "report/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lbf::report::health_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kMetrics =
    "# TYPE process_start_time_seconds gauge\n# HELP process_start_time_seconds Some.\n"
    "process_start_time_seconds 1700000000\n"
    "process_cpu_seconds_total 10\nlbfd_replay_cpu_seconds_total 2.5\nlbfd_steps_running 3\n"
    "lbfd_steps_ended_total{state=\"complete\"} 7\nlbfd_replay_lag_seconds 61.5\nlbfd_disk_bytes 1000\n"
    "lbfd_disk_free_bytes 99\nlbfd_step_memory_bytes 95\nlbfd_step_memory_limit_bytes 100\nlbfd_connections 1\n"
    "lbfd_connections_limit 2\nlbfd_http_responses_total{status=\"200\"} 9\n"
    "lbfd_http_responses_total{status=\"401\"} 4\nlbfd_errors_total{kind=\"no_room\"} 0\n# EOF\n";

Health health() {
  Health out = parse_health(R"({"status":"ok","version":"0.2.0","steps_running":3,"disk_full":false})").value();
  out.metrics = parse_metrics(kMetrics).value();
  return out;
}

TEST(Health, SamplesOfTheMetrics) {
  const Samples samples = parse_metrics(kMetrics).value();
  EXPECT_EQ(samples.size(), 15u);
  EXPECT_EQ(samples.at("lbfd_steps_ended_total{state=\"complete\"}"), 7);
  EXPECT_EQ(samples.at("lbfd_replay_lag_seconds"), 61.5);
}

TEST(Health, WhatIsNoMetricsIsRefused) {
  for (const char* text : {"", "x 1\n", "x 1\n# EOF", "x\n# EOF\n", "x y\n# EOF\n", "# EOF\nx 1\n"})
    EXPECT_FALSE(parse_metrics(text).ok()) << text;
  for (const char* text : {"", "[]", "{}", R"({"version":3})"}) EXPECT_FALSE(parse_health(text).ok()) << text;
}

TEST(Health, Screen) {
  const std::string text = render_health(health(), "unix:/s", 1700000090);
  EXPECT_THAT(text, HasSubstr("lbfd 0.2.0 at unix:/s\nLook at     less than a tenth of the disk is free\n"));
  EXPECT_THAT(text, HasSubstr("Up          90.00 s, since "));
  EXPECT_THAT(text, HasSubstr("Steps       3 under way, 0 started, 7 complete, 0 partial\n"));
  EXPECT_THAT(text, HasSubstr("61.5 s behind, backlog 0, 25 % of lbfd's processor time\n"));
  EXPECT_THAT(text, HasSubstr("Refused     401: 4\nErrors      none\n"));
}

TEST(Health, ClustersOfLbfdToml) {
  const Health of_two = parse_health(R"({"version":"1","clusters":["alpha","beta",7]})").value();
  EXPECT_THAT(of_two.clusters, ElementsAre("alpha", "beta"));
  EXPECT_THAT(render_health(of_two, "unix:/s", 0), HasSubstr("Clusters    alpha, beta\n"));
  EXPECT_THAT(render_health(health(), "unix:/s", 0), testing::Not(HasSubstr("Clusters")));
}

TEST(Health, Concerns) {
  EXPECT_THAT(concerns(health()), ElementsAre("less than a tenth of the disk is free", "replays are 61.5 s behind",
                                              "steps hold more than 90 % of memory_mb"));
  Health other = health();
  other.metrics = Samples{{"lbfd_connections", 19}, {"lbfd_connections_limit", 20}};
  EXPECT_THAT(concerns(other), ElementsAre("more than 90 % of max_connections are in use"));
  other.metrics.reset();
  other.disk_full = true;
  EXPECT_THAT(concerns(other), ElementsAre("no room to write: relays keep their events"));
}

TEST(Health, WithoutMetricsTheRestIsSaid) {
  Health one = health();
  one.metrics.reset();
  one.why_no_metrics = "metrics are for operators";
  const std::string text = render_health(one, "unix:/s", 0);
  EXPECT_EQ(text,
            "lbfd 0.2.0 at unix:/s\nState       ok\nSteps       3 under way\nMore        metrics are for operators\n");
  EXPECT_TRUE(nlohmann::json::parse(health_json(one))["health"]["metrics"].is_null());
}

TEST(Health, Json) {
  const auto json = nlohmann::json::parse(health_json(health()))["health"];
  EXPECT_EQ(json["metrics"]["lbfd_steps_running"], 3.0);
  EXPECT_EQ(json["concerns"].size(), 3u);
  EXPECT_EQ(json["version"], "0.2.0");
}

}  // namespace
}  // namespace lbf::report::health_test
