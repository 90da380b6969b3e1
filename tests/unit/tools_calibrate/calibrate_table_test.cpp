// lbf-calibrate: what it reads from the ping-pong program, and the file that it makes of it.
#include "tools/calibrate/calibrate_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "predictor/engine/network/network.h"

namespace lbf::calibrate_table_test {
namespace {

tools::PingPong read(std::initializer_list<const char*> lines) {
  tools::PingPong measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_pingpong_line(line, measured).ok()) << line;
  return measured;
}

TEST(PingPongLines, AreAddedUp) {
  const tools::PingPong measured =
      read({"library Open MPI v4.1.4", "node 0 node1", "node 1 node2", "yield 1", "batch 8 100 200", "batch 0 50",
            "batch 8 300", "eager 65507", "work 8 10 20", "long_work 65536 30 40", "end"});
  EXPECT_EQ(measured.library, "Open MPI v4.1.4");
  EXPECT_EQ(measured.nodes[0], "node1");
  EXPECT_EQ(measured.nodes[1], "node2");
  EXPECT_TRUE(measured.yielded);
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.eager, tools::PingPong::Eager::kUpToLimit);
  EXPECT_EQ(measured.eager_limit_bytes, 65507U);
  EXPECT_EQ(measured.half_round_trips_ns.at(8), (std::vector<Nanoseconds>{100, 200, 300}));
  EXPECT_EQ(measured.half_round_trips_ns.at(0), (std::vector<Nanoseconds>{50}));
  EXPECT_EQ(measured.send_work_ns.at(8), (std::vector<Nanoseconds>{10}));
  EXPECT_EQ(measured.recv_work_ns.at(8), (std::vector<Nanoseconds>{20}));
  EXPECT_EQ(measured.long_send_work_ns.at(65536), (std::vector<Nanoseconds>{30}));
  EXPECT_EQ(measured.long_recv_work_ns.at(65536), (std::vector<Nanoseconds>{40}));
}

TEST(PingPongLines, ForeignOutputIsRefused) {
  for (const char* line : {"Welcome to node1", "batch", "batch 8", "batch 8 x", "batch -1 5", "batch 8 -5", "node 2 a",
                           "node 0", "node 0 a b", "yield 2", "library", "end now", "work 8 1", "work 8 1 2 3", "eager",
                           "eager -1", "eager some", "eager 1 2"}) {
    tools::PingPong measured;
    EXPECT_FALSE(tools::read_pingpong_line(line, measured).ok()) << line;
  }
}

TEST(PingPongLines, AnEagerLimitMayBeUnknownOrNone) {
  EXPECT_EQ(read({"node 0 a"}).eager, tools::PingPong::Eager::kNotMeasured);
  EXPECT_EQ(read({"eager unknown"}).eager, tools::PingPong::Eager::kNotMeasured);
  EXPECT_EQ(read({"eager all"}).eager, tools::PingPong::Eager::kAll);
}

tools::LinkRates read_link(std::initializer_list<const char*> lines) {
  tools::LinkRates measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_link_line(line, measured).ok()) << line;
  return measured;
}

TEST(LinkLines, AreAddedUpByPairs) {
  const tools::LinkRates measured = read_link({"library Open MPI v4.1.4", "node 0 a", "node 1 b", "yield 0",
                                               "stream 1 100", "stream 2 150", "stream 1 120", "end"});
  EXPECT_EQ(measured.nodes[0], "a");
  EXPECT_EQ(measured.nodes[1], "b");
  EXPECT_TRUE(measured.complete);
  EXPECT_EQ(measured.bytes_per_s.at(1), (std::vector<double>{100, 120}));
  EXPECT_EQ(measured.bytes_per_s.at(2), (std::vector<double>{150}));
}

TEST(LinkLines, ForeignOutputIsRefused) {
  for (const char* line : {"Welcome to node1", "stream", "stream 1", "stream 0 5", "stream 1 0", "stream 1 -5",
                           "stream 1 5 6", "stream x 5", "node 2 a", "yield 2", "end now"}) {
    tools::LinkRates measured;
    EXPECT_FALSE(tools::read_link_line(line, measured).ok()) << line;
  }
}

TEST(LinkBandwidth, IsTheLargerOfTheMedians) {
  // Medians: 1 pair 100, 2 pairs 105; 900 is a disturbance.
  const tools::LinkBandwidth full = tools::link_bandwidth(
      read_link({"stream 1 100", "stream 2 105", "stream 1 98", "stream 2 106", "stream 1 900", "stream 2 60"}));
  EXPECT_DOUBLE_EQ(full.median_bytes_per_s.at(1), 100);
  EXPECT_DOUBLE_EQ(full.bytes_per_s, 105);
  EXPECT_FALSE(full.grew);
  // Several pairs in each other's way: one of them alone fills the link.
  EXPECT_DOUBLE_EQ(tools::link_bandwidth(read_link({"stream 1 100", "stream 2 90"})).bytes_per_s, 100);
}

TEST(LinkBandwidth, ThatStillGrewIsALowerBound) {
  EXPECT_TRUE(tools::link_bandwidth(read_link({"stream 1 100", "stream 2 111"})).grew);
  EXPECT_FALSE(tools::link_bandwidth(read_link({"stream 1 100", "stream 2 109"})).grew);
  EXPECT_TRUE(tools::link_bandwidth(read_link({"stream 1 100"})).grew);  // nobody tried more
}

TEST(StreamMessages, AreLongUnlessTheNetworkIsSlow) {
  EXPECT_EQ(tools::stream_message_bytes(read({"batch 0 1", "batch 4194304 4194304"}), 0.2), Bytes{1} << 20);  // 1 GB/s
  EXPECT_EQ(tools::stream_message_bytes(read({"batch 0 1", "batch 4194304 41943040"}), 0.2),
            Bytes{1} << 19);                                                                               // 100 MB/s
  EXPECT_EQ(tools::stream_message_bytes(read({"batch 0 1", "batch 1000 1000000"}), 0.2), Bytes{1} << 17);  // 1 MB/s
}

TEST(SpreadOf, InterpolatesQuartiles) {
  const tools::Spread one = tools::spread_of({7000});
  EXPECT_DOUBLE_EQ(one.median_s, 7e-6);
  EXPECT_DOUBLE_EQ(one.quartile1_s, 7e-6);
  const tools::Spread four = tools::spread_of({4000, 1000, 3000, 2000});
  EXPECT_DOUBLE_EQ(four.median_s, 2.5e-6);
  EXPECT_DOUBLE_EQ(four.quartile1_s, 1.75e-6);
  EXPECT_DOUBLE_EQ(four.quartile3_s, 3.25e-6);
  EXPECT_EQ(four.samples, 4U);
}

TEST(SplitCosts, PartsAddUpToTheHalfRoundTrip) {
  // Work 1 + 2 us at 0 bytes growing by 1 + 2 ns per byte; 4,000 bytes lie beyond what was measured.
  const tools::PingPong measured = read({"batch 0 10000", "batch 1000 20000", "batch 2000 30000", "batch 4000 50000",
                                         "work 0 1000 2000", "work 1000 2000 4000", "work 2000 3000 6000"});
  const auto costs = tools::split_costs(measured);
  ASSERT_EQ(costs.size(), 4U);
  EXPECT_NEAR(costs.at(0).send_cpu_s, 1e-6, 1e-12);
  EXPECT_NEAR(costs.at(0).recv_cpu_s, 2e-6, 1e-12);
  EXPECT_NEAR(costs.at(0).flight_s, 7e-6, 1e-12);
  EXPECT_NEAR(costs.at(4000).send_cpu_s, 5e-6, 1e-12);
  EXPECT_NEAR(costs.at(4000).recv_cpu_s, 10e-6, 1e-12);
  EXPECT_NEAR(costs.at(4000).flight_s, 35e-6, 1e-12);
}

TEST(SplitCosts, OverlappingWorkIsCutInProportion) {
  const auto costs = tools::split_costs(read({"batch 0 3000", "work 0 2000 4000"}));
  EXPECT_NEAR(costs.at(0).send_cpu_s, 1e-6, 1e-12);
  EXPECT_NEAR(costs.at(0).recv_cpu_s, 2e-6, 1e-12);
  EXPECT_NEAR(costs.at(0).flight_s, 0, 1e-15);
}

TEST(SplitCosts, NoWorkNoSplit) {
  EXPECT_TRUE(tools::split_costs(read({"batch 0 3000"})).empty());
}

TEST(NetworkFile, IsReadByThePredictor) {
  const tools::PingPong remote =
      read({"library Open MPI v4.1.4", "node 0 a", "node 1 b", "batch 0 20000 30000 40000", "batch 1024 60000 60000",
            "work 0 5000 10000", "work 1024 6000 12000", "long_work 1024 9000 8000", "end"});
  const tools::PingPong self_node = read({"node 0 a", "node 1 a", "batch 0 1000", "batch 1024 3000", "end"});
  tools::Calibration calibration;
  calibration.name = "lan-100";
  calibration.date = "2026-11-21T12:00:00Z";
  calibration.command = "lbf-calibrate --name lan-100 --srun \"srun -p x\"";
  calibration.remote = remote;
  calibration.self_node = self_node;
  const std::string text = tools::network_file(calibration);
  const auto network = engine::Network::parse(text, "lan-100.toml");
  ASSERT_TRUE(network.ok()) << network.error().message << "\n" << text;
  EXPECT_EQ(network->name(), "lan-100");
  EXPECT_NE(text.find("remote_long_work_us = [\n  [1024, 9.000, 8.000],\n]"), std::string::npos) << text;
  const engine::PathCost& path = network->path(1);
  EXPECT_NEAR(path.flight.at(0), 15e-6, 1e-9);
  EXPECT_NEAR(path.send_cpu.at(0), 5e-6, 1e-9);
  EXPECT_NEAR(path.recv_cpu.at(0), 10e-6, 1e-9);
  for (const Bytes bytes : {Bytes{0}, Bytes{512}, Bytes{1024}}) {
    const double half_s = 30e-6 + 30e-6 * static_cast<double>(bytes) / 1024;
    EXPECT_NEAR(path.flight.at(bytes) + path.send_cpu.at(bytes) + path.recv_cpu.at(bytes), half_s, 1e-9) << bytes;
  }
  EXPECT_NEAR(network->path(0).flight.at(1024), 3e-6, 1e-9);
  EXPECT_NEAR(network->path(0).send_cpu.at(1024), 0, 1e-12);
}

TEST(NetworkFile, HasEagerLimitsAndWhatTheLinkCarries) {
  const tools::PingPong remote =
      read({"node 0 a", "node 1 b", "batch 0 20000", "batch 1024 60000", "eager 1000", "end"});
  const tools::PingPong self_node =
      read({"node 0 a", "node 1 a", "batch 0 1000", "batch 1024 2000", "eager all", "end"});
  const tools::LinkRates link = read_link({"node 0 a", "node 1 b", "stream 1 11500000", "stream 2 11800000", "end"});
  tools::Calibration calibration;
  calibration.name = "lan-100";
  calibration.remote = remote;
  calibration.self_node = self_node;
  calibration.link = link;
  calibration.link_message_bytes = 131072;
  const auto network = engine::Network::parse(tools::network_file(calibration), "lan-100.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->path(1).eager_limit_bytes, 1000U);
  EXPECT_EQ(network->path(0).eager_limit_bytes, ~Bytes{0});
  EXPECT_EQ(network->contention(), engine::Contention::kNic);
  EXPECT_DOUBLE_EQ(network->contention_bytes_per_s(), 11.8e6);
  EXPECT_NE(network->description().find("1 pair 11.5 MB/s, 2 pairs 11.8 MB/s"), std::string::npos)
      << network->description();
  EXPECT_NE(network->description().find("bandwidth_is_lower_bound: false"), std::string::npos);
  calibration.link = {};
  EXPECT_EQ(engine::Network::parse(tools::network_file(calibration), "lan-100.toml")->contention(),
            engine::Contention::kNone);
}

TEST(NetworkFile, OneLocalityIsEnough) {
  const tools::PingPong self_node = read({"node 0 a", "node 1 a", "batch 0 1000", "end"});
  tools::Calibration calibration;
  calibration.name = "x";
  calibration.self_node = self_node;
  EXPECT_TRUE(engine::Network::parse(tools::network_file(calibration), "x.toml").ok());
}

TEST(ParseSizes, UnderstandsUnitsSortsAndDropsDoubles) {
  const auto sizes = tools::parse_sizes("1M,0,64,4K,64,4k");
  ASSERT_TRUE(sizes.ok());
  EXPECT_EQ(*sizes, (std::vector<Bytes>{0, 64, 4096, 1048576}));
  for (const char* bad : {"", "a", "1,,2", "-1", "2G", "1025M", "1.5", "K", "1,"}) {
    EXPECT_FALSE(tools::parse_sizes(bad).ok()) << bad;
  }
}

TEST(DefaultSizes, CoverZeroToFourMebibytesInOrder) {
  const std::vector<Bytes> sizes = tools::default_sizes();
  EXPECT_EQ(sizes.front(), 0U);
  EXPECT_EQ(sizes.back(), Bytes{4} << 20);
  EXPECT_EQ(std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()), sizes.end());
}

TEST(NetworkNames, AreFileNames) {
  for (const char* good : {"lan-100", "a", "x_1.b"}) EXPECT_TRUE(tools::is_network_name(good)) << good;
  for (const char* bad : {"", ".", ".x", "a/b", "a b", "\xC3\xA4"}) EXPECT_FALSE(tools::is_network_name(bad)) << bad;
}

TEST(SplitCommand, QuotesLikeAShell) {
  EXPECT_EQ(*tools::split_command("srun --mpi=pmix"), (std::vector<std::string>{"srun", "--mpi=pmix"}));
  EXPECT_EQ(*tools::split_command("  'a b'\tc\\ d \"e 'f\" ''"), (std::vector<std::string>{"a b", "c d", "e 'f", ""}));
  EXPECT_FALSE(tools::split_command("").ok());
  EXPECT_FALSE(tools::split_command("srun 'x").ok());
}

}  // namespace
}  // namespace lbf::calibrate_table_test