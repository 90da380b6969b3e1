// lbf-calibrate --memory: what it reads of a node's processors, the tables that it makes of it, and the program itself.
#include "tools/calibrate/calibrate_node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "predictor/engine/network/network.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::calibrate_node_table_test {
namespace {

using testing::HasSubstr;

const std::string kPath = "name = \"a\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0]]\n";

tools::NodeTimes read(std::initializer_list<const char*> lines) {
  tools::NodeTimes measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_node_line(line, measured).ok()) << line;
  return measured;
}

// 10 GB/s alone, 12.5 GB/s together.
const std::initializer_list<const char*> kLines = {"node 0 node1",
                                                   "processor Example 9000 \"X\"",
                                                   "domains 2 2 4",
                                                   "bandwidth 1 100000000",
                                                   "bandwidth 2 80000000",
                                                   "bandwidth 1 110000000",
                                                   "bandwidth 2 80000000",
                                                   "bandwidth 1 90000000",
                                                   "team libgomp.so.1 1 100",
                                                   "team libgomp.so.1 2 900",
                                                   "team libgomp.so.1 2 1100",
                                                   "team libomp.so.5 1 200",
                                                   "team libomp.so.5 2 1500",
                                                   "others 3",
                                                   "end"};

TEST(NodeLines, AreAddedUp) {
  const tools::NodeTimes measured = read(kLines);
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.node, "node1");
  EXPECT_EQ(measured.domains, 2u);
  EXPECT_EQ(measured.gigabyte_ns.at(1), (std::vector<Nanoseconds>{100000000, 110000000, 90000000}));
  EXPECT_EQ(measured.team_ns.at("libgomp.so.1").at(2), (std::vector<Nanoseconds>{900, 1100}));
  EXPECT_NEAR(tools::bandwidth_of(measured).at(2), 12.5e9, 1);
}

TEST(NodeLines, ForeignOutputIsRefused) {
  for (const char* line : {"Welcome",       "bandwidth",       "bandwidth 1",   "bandwidth 0 5",
                           "bandwidth 1 0", "bandwidth 1 2 3", "bandwidth x 5", "bandwidth 99999999999 5",
                           "team 1 2",      "team lib 1",      "team  1 2",     "domains 1 2",
                           "domains 0 1 1", "others 101",      "others -1",     "node 1 a",
                           "node 0 a b",    "processor ",      "end now",       ""}) {
    tools::NodeTimes measured;
    EXPECT_FALSE(tools::read_node_line(line, measured).ok()) << line;
  }
}

TEST(NodeTables, AreReadByThePredictor) {
  const auto network = engine::Network::parse(kPath + tools::node_tables(read(kLines)), "a.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->memory().per_node, 2u);
  EXPECT_NEAR(network->memory().bytes_per_s.at(1), 10e9, 1e6);
  EXPECT_NEAR(network->memory().bytes_per_s.at(2), 12.5e9, 1e6);
  EXPECT_NEAR(network->fork_join_s().at(2), 1e-6, 1e-12);
}

TEST(NodeTables, AreAPartOfTheNetworkFile) {
  tools::PingPong self_node;
  for (const char* line : {"node 0 a", "node 1 a", "batch 0 1000", "end"})
    ASSERT_TRUE(tools::read_pingpong_line(line, self_node).ok());
  tools::Calibration calibration;
  calibration.name = "lan";
  calibration.self_node = self_node;
  calibration.node = read(kLines);
  const std::string text = tools::network_file(calibration);
  const auto network = engine::Network::parse(text, "lan.toml");
  ASSERT_TRUE(network.ok()) << network.error().message << "\n" << text;
  EXPECT_TRUE(network->memory().known());
  EXPECT_THAT(text, HasSubstr("memory_processor = \"Example 9000 \\\"X\\\"\""));
  EXPECT_THAT(text, HasSubstr("memory_cores = \"2 of the 4 cores of one domain of 2\""));
  EXPECT_THAT(text, HasSubstr("[1, 9524, 1e+04, 1.053e+04, 3]"));
  EXPECT_THAT(text, HasSubstr("threads_runtime = \"libgomp.so.1\""));
  EXPECT_THAT(text, HasSubstr("threads_libomp_us = "));
}

TEST(NodeTables, HaveNothingOfWhatWasNotMeasured) {
  EXPECT_EQ(tools::node_tables(tools::NodeTimes{}), "");
  EXPECT_THAT(tools::node_tables(read({"team libgomp.so.1 1 100"})), testing::Not(HasSubstr("threads")));
  EXPECT_THAT(tools::node_tables(read({"team libomp.so.5 1 100", "team libomp.so.5 2 100"})), HasSubstr("[threads]"));
}

TEST(NodeSummary, SaysWhereNotAllCoresWereMeasured) {
  EXPECT_THAT(tools::node_summary(read(kLines)),
              testing::AllOf(HasSubstr("1 core 1e+04 MB/s, 2 cores 1.25e+04 MB/s together"),
                             HasSubstr("the domain has 4 cores, srun gave 2"), HasSubstr("starts 2 threads in 1 us")));
}

TEST(NodeWarning, OfANodeThatIsNotIdle) {
  EXPECT_EQ(tools::node_warning(read(kLines)),
            "others had the processors of node1 for 3 % of the time: measure again when it is idle");
  EXPECT_EQ(tools::node_warning(read({"node 0 a", "others 0"})), "");
}

// The whole command, with a stand-in for srun that starts the program here.
TEST(CalibrateMemory, MeasuresTheNodeThatItRunsOn) {
  test::TemporaryDirectory directory;
  const std::string srun = directory.path() + "/srun";
  std::ofstream(srun) << "for word; do case $word in -*) ;; *) exec \"$word\" ;; esac; done\n";
  const test::Outcome done = test::run_command(std::string(LBF_CALIBRATE) + " --only memory --srun 'sh " + srun + "'");
  ASSERT_EQ(done.status, 0) << done.err;
  const auto network = engine::Network::parse(kPath + done.out, "measured.toml");
  ASSERT_TRUE(network.ok()) << network.error().message << "\n" << done.out;
  EXPECT_TRUE(network->memory().known());
  EXPECT_GT(network->memory().bytes_per_s.at(1), 1e8);
  EXPECT_THAT(done.out, HasSubstr("# memory_spread_MBps"));
}

TEST(CalibrateMemory, FailsInOneLine) {
  const test::Outcome done = test::run_command(std::string(LBF_CALIBRATE) + " --only memory --srun false");
  EXPECT_EQ(done.status, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("lbf-calibrate: error: 'false -n1 -N1"));
}

}  // namespace
}  // namespace lbf::calibrate_node_table_test
