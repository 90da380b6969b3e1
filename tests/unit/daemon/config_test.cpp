// lbfd.toml: what it takes, and that errors name the line, the key and the remedy.
#include "predictor/daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::config_test {
namespace {

using testing::HasSubstr;

TEST(DaemonConfig, TakesEveryKey) {
  const auto config = daemon::DaemonConfig::parse(
      "listen = [\"unix:/a/b.sock\", \"tcp:0.0.0.0:7000\", \"tcp:[::1]:7001\"]\nstate_dir = \"/s\"\n"
      "networks_dir = \"/n\"\nnetwork = \"ib\"\ntopology = \"/t.conf\"\noperators = [\"root\"]\nlog_level = "
      "\"debug\"\n"
      "stream_timeout_s = 60\nstream_start_timeout_s = 0.5\ntrace_retention_days = 0\ntrace_store_limit_mb = "
      "100\n"
      "log_format = \"json\"\nmetrics_token_file = \"/m\"\nworker_threads = 3\nreplay_threads = 4\nmax_connections = "
      "10\nrequest_memory_mb = 64\n"
      "outcome_others_percent = 7.5\nstep_memory_mb = 11\nuser_memory_mb = 12\nmemory_mb = 13\nturn_limit_s = "
      "1.5\nuser_steps = 14\n"
      "step_trace_limit_mb = 7\nstep_cpu_percent = 2.5\nreplay_memory_mb = 8\npicture_limit_s = 0.5\nreplay_when_idle "
      "= true\n",
      "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->listen.size(), 3u);
  EXPECT_EQ(config->listen[0].unix_path, "/a/b.sock");
  EXPECT_EQ(config->listen[2].host, "::1");
  EXPECT_EQ(config->listen[2].text(), "tcp:[::1]:7001");
  EXPECT_EQ(config->network, "ib");
  EXPECT_EQ(config->topology, "/t.conf");
  EXPECT_EQ(config->log_format, daemon::LogFormat::kJson);
  EXPECT_EQ(config->metrics_token_file, "/m");
  EXPECT_EQ(config->stream_start_timeout.count(), 500);
  EXPECT_EQ(config->trace_retention_days, 0u);
  EXPECT_EQ(config->replay_threads, 4u);
  EXPECT_EQ(config->step_trace_limit_mb, 7u);
  EXPECT_EQ(config->bounds.step_memory_bytes, Bytes{11} << 20);
  EXPECT_EQ(config->bounds.user_memory_bytes, Bytes{12} << 20);
  EXPECT_EQ(config->bounds.all_memory_bytes, Bytes{13} << 20);
  EXPECT_EQ(config->bounds.turn_cpu_s, 1.5);
  EXPECT_EQ(config->bounds.user_steps, 14u);
  EXPECT_EQ(config->bounds.outcome_others_percent, 7.5);
  EXPECT_EQ(config->step_cpu_percent, 2.5);
  EXPECT_EQ(config->replay_memory_mb, 8u);
  EXPECT_EQ(config->picture_limit_s, 0.5);
  EXPECT_TRUE(config->replay_when_idle);
}

TEST(DaemonConfig, AClusterHasASectionOfItsOwn) {
  const auto config = daemon::DaemonConfig::parse(
      "network = \"lan\"\n[cluster.alpha]\nnetwork = \"ib\"\ntopology = \"/a.conf\"\n[cluster.b-1]\nnetworks_dir = "
      "\"/n\"\n",
      "f");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->clusters.size(), 2u);
  EXPECT_EQ(config->clusters.at("alpha").network, "ib");
  EXPECT_EQ(config->clusters.at("alpha").topology, "/a.conf");
  EXPECT_EQ(config->clusters.at("b-1").networks_dir, "/n");
  EXPECT_EQ(config->clusters.at("b-1").network, "") << "a cluster's network is no other cluster's";
  EXPECT_EQ(config->network, "lan");
}

TEST(DaemonConfig, AnEmptyFileIsTheDefaults) {
  const auto config = daemon::DaemonConfig::parse("", "f");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->listen.size(), 2u);
  EXPECT_EQ(config->trace_retention_days, 30u);
  EXPECT_FALSE(config->replay_when_idle);
  EXPECT_EQ(config->stream_timeout.count(), 120);
}

TEST(DaemonConfig, AFileOfNoBytesIsTheDefaults) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/lbfd.toml";
  std::ofstream(path).flush();
  const auto config = daemon::DaemonConfig::load(path);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->listen.size(), 2u);
  EXPECT_FALSE(daemon::DaemonConfig::load(directory.path() + "/none.toml").ok());
  EXPECT_FALSE(daemon::DaemonConfig::load(directory.path()).ok()) << "a folder";
}

TEST(DaemonConfig, ErrorsNameFileLineAndKey) {
  const std::pair<const char*, const char*> wrong[] = {
      {"\nstate_dirr = \"/x\"\n", "f:2: state_dirr: unknown key"},
      {"state_dir = \"relative\"", "f:1: state_dir: must be an absolute path"},
      {"state_dir = 5", "f:1: state_dir: must be a string"},
      {"topology = \"topology.conf\"", "f:1: topology: must be an absolute path"},
      {"listen = []", "f:1: listen: must have at least one"},
      {"listen = [\"http://x\"]", "unix:/path/of/socket"},
      {"listen = [\"tcp:1.2.3.4\"]", "unix:/path/of/socket"},
      {"listen = [\"tcp:1.2.3.4:99999\"]", "unix:/path/of/socket"},
      {"listen = [\"unix:relative\"]", "unix:/path/of/socket"},
      {"log_level = \"loud\"", "trace, debug, info, warning or error"},
      {"stream_timeout_s = 0", "from 1 to"},
      {"worker_threads = 1.5", "whole number"},
      {"operators = \"root\"", "array of strings"},
      {"cluster = \"alpha\"", "must be sections, [cluster.NAME]"},
      {"[cluster]\nalpha = 1", "alpha must be a section"},
      {"[cluster.\"a/b\"]\nnetwork = \"x\"", "cluster name 'a/b'"},
      {"[cluster.alpha]\nstate_dir = \"/x\"", "f:2: state_dir: unknown key; there are network, networks_dir, topology"},
      {"[cluster.alpha]\ntopology = \"t\"", "f:2: topology: must be an absolute path"},
      {"state_dir = ", "f:1:"}};
  for (const auto& [text, message] : wrong) {
    const auto config = daemon::DaemonConfig::parse(text, "f");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.error().message, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace lbf::config_test