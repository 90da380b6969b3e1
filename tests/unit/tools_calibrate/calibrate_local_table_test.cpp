// lbf-calibrate: what it reads of copies and reductions, and the table that it makes of it.
#include "tools/calibrate/calibrate_local_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/network/network.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::calibrate_local_table_test {
namespace {

using testing::HasSubstr;

tools::LocalTimes read(std::initializer_list<const char*> lines) {
  tools::LocalTimes measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_local_line(line, measured).ok()) << line;
  return measured;
}

const std::initializer_list<const char*> kLines = {"node 0 node1",  "copy 0 20",       "reduce 0 30",
                                                   "copy 1024 100", "reduce 1024 200", "copy 0 40",
                                                   "copy 1024 140", "copy 1024 120",   "end"};

TEST(LocalLines, AreAddedUp) {
  const tools::LocalTimes measured = read(kLines);
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.node, "node1");
  EXPECT_EQ(measured.copy_ns.at(0), (std::vector<Nanoseconds>{20, 40}));
  EXPECT_EQ(measured.copy_ns.at(1024), (std::vector<Nanoseconds>{100, 140, 120}));
  EXPECT_EQ(measured.reduce_ns.at(1024), (std::vector<Nanoseconds>{200}));
}

TEST(LocalLines, ForeignOutputIsRefused) {
  for (const char* line : {"Welcome", "copy", "copy ", "copy 8", "copy 8 ", "copy x 5", "copy 8 -5", "copy 8 5 6",
                           "copy -8 5", "reduce 8", "node 0 ", "node 1 a", "node 0 a b", "end now", ""}) {
    tools::LocalTimes measured;
    EXPECT_FALSE(tools::read_local_line(line, measured).ok()) << line;
  }
}

TEST(LocalTable, IsReadByThePredictor) {
  const tools::LocalTimes measured = read(kLines);
  tools::PingPong self_node;
  for (const char* line : {"node 0 a", "node 1 a", "batch 0 1000", "end"})
    ASSERT_TRUE(tools::read_pingpong_line(line, self_node).ok());
  tools::Calibration calibration;
  calibration.name = "lan";
  calibration.self_node = self_node;
  EXPECT_FALSE(engine::Network::parse(tools::network_file(calibration), "lan.toml")->local().known());
  calibration.local = measured;
  const std::string text = tools::network_file(calibration);
  const auto network = engine::Network::parse(text, "lan.toml");
  ASSERT_TRUE(network.ok()) << network.error().message << "\n" << text;
  EXPECT_NEAR(network->local().copy.at(0), 30e-9, 1e-15);  // medians
  EXPECT_NEAR(network->local().copy.at(1024), 120e-9, 1e-15);
  EXPECT_NEAR(network->local().reduce.at(1024), 200e-9, 1e-15);
  EXPECT_THAT(text, HasSubstr("local_node = \"node1\""));
  EXPECT_THAT(text, HasSubstr("[1024, 0.110, 0.120, 0.130, 3]"));
}

TEST(LocalTable, HasNothingOfWhatWasNotMeasured) {
  EXPECT_EQ(tools::local_table(tools::LocalTimes{}), "");
  EXPECT_EQ(tools::local_summary(tools::LocalTimes{}), "");
  const tools::LocalTimes copies = read({"copy 8 5"});
  EXPECT_EQ(tools::local_table(copies), "\n[local]\ncopy = [\n  [8, 0.005],\n]\n");
  EXPECT_EQ(tools::local_summary(copies), "8 B copied in 0.005 us");
}

}  // namespace
}  // namespace lbf::calibrate_local_table_test