// Network files and cost curves (docs/formats/network-v1.md).
#include "predictor/engine/network/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "tests/support/temporary_directory.h"

namespace lbf::network_test {
namespace {

using testing::HasSubstr;

engine::CostCurve curve(std::vector<std::pair<Bytes, Seconds>> points) {
  Result<engine::CostCurve> made = engine::CostCurve::make(std::move(points));
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

std::string error_of(const std::string& toml) {
  const Result<engine::Network> network = engine::Network::parse(toml, "x.toml");
  EXPECT_FALSE(network.ok());
  return network.ok() ? "" : network.error().message;
}

const std::string kPath = "name = \"a\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n";

TEST(CostCurve, InterpolatesBetweenTheTwoNearestSizes) {
  const engine::CostCurve c = curve({{0, 0.62}, {2048, 0.90}, {8192, 1.37}});
  EXPECT_DOUBLE_EQ(c.at(0), 0.62);
  EXPECT_DOUBLE_EQ(c.at(1024), 0.76);
  EXPECT_DOUBLE_EQ(c.at(2048), 0.90);
  EXPECT_DOUBLE_EQ(c.at(8192), 1.37);
}

TEST(CostCurve, BelowTheSmallestSizeItsValue) {
  EXPECT_DOUBLE_EQ(curve({{100, 3}, {200, 5}}).at(0), 3);
}

TEST(CostCurve, BeyondTheLargestALineThroughTheLastPoints) {
  const engine::CostCurve line = curve({{0, 100}, {10, 2}, {20, 3}, {30, 4}});  // the last three lie on 1 + x/10
  EXPECT_NEAR(line.at(1000), 101, 1e-9);
  const engine::CostCurve noisy = curve({{0, 0}, {10, 2}, {20, 3}});  // least squares: slope 0.15, through (10, 5/3)
  EXPECT_NEAR(noisy.at(100), 5.0 / 3 + 0.15 * 90, 1e-12);
}

TEST(CostCurve, ExtrapolationNeverFallsBelowTheLastValue) {
  EXPECT_DOUBLE_EQ(curve({{0, 9}, {10, 5}, {20, 4}}).at(1000000), 6);  // flat at the mean of a falling tail
  EXPECT_DOUBLE_EQ(curve({{0, 1}, {10, 1}, {20, 9}}).at(21),
                   9);  // the fitted line is still below the last point
  EXPECT_DOUBLE_EQ(curve({{7, 2}}).at(1000), 2);
}

TEST(CostCurve, EmptyCostsNothing) {
  EXPECT_EQ(engine::CostCurve().at(12345), 0);
}

TEST(CostCurve, RefusesWhatIsNoTable) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(engine::CostCurve::make({}).ok());
  EXPECT_FALSE(engine::CostCurve::make({{0, 1}, {0, 2}}).ok());
  EXPECT_FALSE(engine::CostCurve::make({{5, 1}, {4, 2}}).ok());
  EXPECT_FALSE(engine::CostCurve::make({{0, -1}}).ok());
  EXPECT_FALSE(engine::CostCurve::make({{0, nan}}).ok());
  EXPECT_FALSE(engine::CostCurve::make({{0, std::numeric_limits<double>::infinity()}}).ok());
}

TEST(Network, ReadsEverything) {
  const Result<engine::Network> network = engine::Network::parse(R"(
name = "hps-320"
[about]
what = "IBM SP switch"
year = 1999
[[path]]
locality = "remote"
send_cpu = [[0, 1.2], [65536, 20.0]]
recv_cpu = [[0, 1.4], [65536, 24.0]]
eager_limit_bytes = 65536
table = [[0, 620.0], [2048, 900], [8192, 1370.0]]
[[path]]
locality = "self-node"
table = [[0, 5.0]]
[contention]
model = "nic"
bandwidth_MBps = 40
)",
                                                                 "hps.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->name(), "hps-320");
  EXPECT_THAT(network->description(), HasSubstr("IBM SP switch"));
  EXPECT_DOUBLE_EQ(network->path(1).flight.at(2048), 900e-6);
  EXPECT_DOUBLE_EQ(network->path(1).send_cpu.at(0), 1.2e-6);
  EXPECT_DOUBLE_EQ(network->path(1).recv_cpu.at(65536), 24e-6);
  EXPECT_EQ(network->path(1).eager_limit_bytes, 65536u);
  EXPECT_DOUBLE_EQ(network->path(0).flight.at(99), 5e-6);
  EXPECT_EQ(network->path(0).eager_limit_bytes, ~Bytes{0});
  EXPECT_EQ(network->contention(), engine::Contention::kNic);
}

TEST(Network, KnowsWhatRanksDoByThemselves) {
  const Result<engine::Network> network =
      engine::Network::parse(kPath + "[local]\ncopy = [[0, 0.5], [1000, 2.5]]\nreduce = [[8, 1.0]]\n", "x.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_TRUE(network->local().known());
  EXPECT_DOUBLE_EQ(network->local().copy.at(500), 1.5e-6);
  EXPECT_DOUBLE_EQ(network->local().reduce.at(800), 1e-6);
  const Result<engine::Network> half = engine::Network::parse(kPath + "[local]\ncopy = [[0, 0.5]]\n", "x.toml");
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->local().reduce.at(800), 0);
  EXPECT_FALSE(engine::Network::parse(kPath, "x.toml")->local().known());
  EXPECT_FALSE(engine::Network::zero().local().known());
  EXPECT_THAT(error_of(kPath + "[local]\ncopies = [[0, 0.5]]\n"), HasSubstr("known are copy, reduce"));
  EXPECT_THAT(error_of(kPath + "[local]\ncopy = [[0, -1.0]]\n"), HasSubstr("'copy'"));
  EXPECT_THAT(error_of("local = 1\n" + kPath), HasSubstr("must be a table: [local]"));
}

TEST(Network, KnowsWhatProcessorsOfANodeShare) {
  const auto network = engine::Network::parse(
      kPath +
          "[memory]\ndomains = 2\nbandwidth_MBps = [[1, 10000], [4, 16000.0]]\n[threads]\nfork_join_us = [[2, 1.5]]\n",
      "x.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->memory().per_node, 2u);
  EXPECT_DOUBLE_EQ(network->memory().bytes_per_s.at(1), 10e9);
  EXPECT_DOUBLE_EQ(network->memory().bytes_per_s.at(2.5), 13e9);
  EXPECT_DOUBLE_EQ(network->memory().bytes_per_s.at(0.5), 10e9);
  EXPECT_DOUBLE_EQ(network->memory().bytes_per_s.at(64), 16e9);
  EXPECT_DOUBLE_EQ(network->fork_join_s().at(2), 1.5e-6);
  EXPECT_FALSE(engine::Network::parse(kPath, "x.toml")->memory().known());
}

TEST(Network, OneLocalityServesBoth) {
  const Result<engine::Network> network = engine::Network::parse(kPath, "x.toml");
  ASSERT_TRUE(network.ok());
  EXPECT_DOUBLE_EQ(network->path(0).flight.at(0), 1e-6);
}

// Of each path the time of an empty message in microseconds is 10 * N for hop:N, 5 for remote, 1 for
// self-node.
engine::Network with_paths(const std::vector<std::string>& localities) {
  std::string toml = "name = \"h\"\n";
  for (const std::string& locality : localities) {
    const std::string us = locality == "self-node" ? "1.0" : locality == "remote" ? "5.0" : locality.substr(4) + "0.0";
    toml += "[[path]]\nlocality = \"" + locality + "\"\ntable = [[0, " + us + "]]\n";
  }
  Result<engine::Network> network = engine::Network::parse(toml, "x.toml");
  EXPECT_TRUE(network.ok()) << network.error().message;
  return std::move(*network);
}

std::vector<int> microseconds_by_hops(const engine::Network& network) {
  std::vector<int> all;
  for (const std::uint32_t hops : {0U, 1U, 2U, 3U, 4U, engine::kUnknownHops}) {
    all.push_back(static_cast<int>(std::lround(network.path(hops).flight.at(0) * 1e6)));
  }
  return all;
}

TEST(Network, APathForEachNumberOfHops) {
  using testing::ElementsAre;
  const auto of = [](const std::vector<std::string>& localities) {
    return microseconds_by_hops(with_paths(localities));
  };
  // hops: 0, 1, 2, 3, 4, unknown
  EXPECT_THAT(of({"remote"}), ElementsAre(5, 5, 5, 5, 5, 5));
  EXPECT_THAT(of({"self-node"}), ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(of({"self-node", "remote"}), ElementsAre(1, 5, 5, 5, 5, 5));
  EXPECT_THAT(of({"hop:3", "hop:1", "self-node"}), ElementsAre(1, 10, 30, 30, 30, 30));
  EXPECT_THAT(of({"hop:2", "remote", "self-node"}), ElementsAre(1, 20, 20, 5, 5, 5));
  EXPECT_THAT(of({"hop:3", "remote", "hop:1"}), ElementsAre(5, 10, 30, 30, 5, 5));
  EXPECT_THAT(of({"hop:1"}), ElementsAre(10, 10, 10, 10, 10, 10));
}

TEST(Network, HopsThatShareAPathHaveTheSameReference) {
  const engine::Network network = with_paths({"hop:3", "hop:1", "self-node"});
  EXPECT_EQ(&network.path(2), &network.path(3));
  EXPECT_EQ(&network.path(3), &network.path(engine::kUnknownHops));
  EXPECT_NE(&network.path(1), &network.path(2));
}

TEST(Network, NominalByName) {
  EXPECT_TRUE(
      engine::Network::parse("name = \"nominal-x\"\n" + kPath.substr(kPath.find("[[path")), "x.toml")->nominal());
  EXPECT_FALSE(engine::Network::parse(kPath, "x.toml")->nominal());
}

TEST(Network, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error_of("name = \"a\"\n[[path]]\nlocality = \"remote\"\ntabel = [[0, 1.0]]\n"),
              testing::AllOf(HasSubstr("x.toml:4"), HasSubstr("'tabel'")));
  EXPECT_THAT(error_of(kPath + "[contention]\nmodle = \"none\"\n"), HasSubstr("'modle'"));
  EXPECT_THAT(error_of("nmae = \"a\"\n"), testing::AllOf(HasSubstr("x.toml:1"), HasSubstr("'nmae'")));
  EXPECT_THAT(error_of("name = \n"), HasSubstr("x.toml:1"));
  EXPECT_THAT(error_of(""), HasSubstr("name"));
  EXPECT_THAT(error_of("name = 3\n"), HasSubstr("name"));
  EXPECT_THAT(error_of("name = \"a b\"\n"), HasSubstr("letters"));
  EXPECT_THAT(error_of("name = \"a\"\n"), HasSubstr("[[path]]"));
  EXPECT_THAT(error_of("name = \"a\"\npath = 3\n"), HasSubstr("[[path]]"));
  EXPECT_THAT(error_of("name = \"a\"\n[[path]]\ntable = [[0, 1.0]]\n"), HasSubstr("locality"));
  EXPECT_THAT(error_of("name = \"a\"\n[[path]]\nlocality = \"far\"\ntable = [[0, 1.0]]\n"), HasSubstr("'far'"));
  EXPECT_THAT(error_of("name = \"a\"\n[[path]]\nlocality = \"hop:0\"\ntable = [[0, 1.0]]\n"), HasSubstr("hop:0"));
  EXPECT_THAT(error_of("name = \"a\"\n[[path]]\nlocality = \"remote\"\n"), HasSubstr("'table'"));
  EXPECT_THAT(error_of(kPath + kPath.substr(kPath.find("[[path"))), HasSubstr("twice"));
  const std::string hop = "[[path]]\nlocality = \"hop:2\"\ntable = [[0, 1.0]]\n";
  EXPECT_THAT(error_of(kPath + hop + hop), HasSubstr("'hop:2' appears twice"));
  EXPECT_THAT(error_of(kPath + "eager_limit_bytes = -1\n"), HasSubstr("eager_limit_bytes"));
  for (const std::string key : {"first_message_us", "first_peer_us", "turn_us"}) {
    for (const char* const value : {"-1", "-0.5", "nan", "inf", "\"1\"", "true", "[1]", "1e308"}) {
      EXPECT_THAT(error_of(kPath + key + " = " + value + "\n"), HasSubstr("'" + key + "'")) << value;
    }
  }
  EXPECT_THAT(error_of(kPath + "eager_limit_bytes = \"x\"\n"), HasSubstr("eager_limit_bytes"));
  EXPECT_THAT(error_of(kPath + "send_cpu = [[0, 1.0], [0, 2.0]]\n"), HasSubstr("ascend"));
  EXPECT_THAT(error_of(kPath + "send_cpu = [[0]]\n"), HasSubstr("[bytes, microseconds]"));
  EXPECT_THAT(error_of(kPath + "send_cpu = [[-1, 1.0]]\n"), HasSubstr("negative"));
  EXPECT_THAT(error_of(kPath + "send_cpu = [[0, -1.0]]\n"), HasSubstr("send_cpu"));
  EXPECT_THAT(error_of(kPath + "send_cpu = [[0, nan]]\n"), HasSubstr("send_cpu"));
  EXPECT_THAT(error_of(kPath + "send_cpu = 4\n"), HasSubstr("send_cpu"));
  EXPECT_THAT(error_of(kPath + "[contention]\nmodel = \"magic\"\n"), HasSubstr("\"bus\""));
  EXPECT_THAT(error_of(kPath + "[contention]\nmodel = \"bus\"\n"), HasSubstr("bandwidth_MBps"));
  for (const char* const value : {"-2", "nan", "1e-308", "1e308"}) {
    EXPECT_THAT(error_of(kPath + "[contention]\nmodel = \"bus\"\nbandwidth_MBps = " + value + "\n"),
                HasSubstr("bandwidth_MBps, a number from 1e-6 to 1e12"));
  }
  // A prediction of 308 digits.
  EXPECT_THAT(error_of(kPath + "send_cpu = [[0, 1.0], [8, 1e308]]\n"),
              testing::AllOf(HasSubstr("x.toml:"), HasSubstr("the time for 8 bytes is more than 1e12 microseconds")));
}

TEST(Network, ErrorsOfWhatProcessorsShare) {
  EXPECT_THAT(error_of(kPath + "memory = 3\n"), HasSubstr("unknown key 'memory' in [[path]]"));
  EXPECT_THAT(error_of(kPath + "[memory]\n"), HasSubstr("x.toml:5: [memory] needs 'bandwidth_MBps'"));
  EXPECT_THAT(error_of(kPath + "[memory]\ncores = 4\n"), HasSubstr("x.toml:6: unknown key 'cores' in [memory]"));
  EXPECT_THAT(error_of(kPath + "[memory]\ndomains = 0\nbandwidth_MBps = [[1, 1.0]]\n"),
              HasSubstr("'domains' must be a whole number"));
  for (const char* wrong : {"3", "[]", "[[1]]", "[[0, 1.0]]", "[[1.5, 1.0]]", "[[2, 1.0], [1, 2.0]]", "[[1, 0.0]]",
                            "[[1, -3.0]]", "[[1, nan]]", "[[9999999, 1.0]]"}) {
    EXPECT_THAT(error_of(kPath + "[memory]\nbandwidth_MBps = " + wrong + "\n"),
                HasSubstr("'bandwidth_MBps' must be a list of [processors, MB/s] pairs"))
        << wrong;
  }
  EXPECT_THAT(error_of(kPath + "[threads]\n"), HasSubstr("[threads] needs 'fork_join_us'"));
  EXPECT_THAT(error_of(kPath + "[threads]\nfork_join_us = [[2, -1.0]]\n"),
              HasSubstr("'fork_join_us' must be a list of [threads, microseconds] pairs"));
}

TEST(Network, LoadSaysWhatIsWrongWithTheFile) {
  const Result<engine::Network> none = engine::Network::load("/nonexistent/net.toml");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("/nonexistent/net.toml"));
  EXPECT_FALSE(engine::Network::load("/").ok());
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/lbf-network-test.toml";
  std::ofstream(path) << kPath;
  const Result<engine::Network> network = engine::Network::load(path);
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_EQ(network->name(), "a");
}

TEST(Network, ScaledInLatencyGapAndOverheadApart) {
  const Result<engine::Network> parsed = engine::Network::parse(
      "name = \"tree\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0], [1000, 2.0], [2000, 3.0]]\n"
      "[[path]]\nlocality = \"hop:1\"\ntable = [[0, 10.0], [1000, 20.0], [2000, 30.0]]\n"
      "send_cpu = [[0, 0.5]]\nrecv_cpu = [[0, 0.25]]\neager_limit_bytes = 4096\nfirst_message_us = 400.0\n"
      "[[path]]\nlocality = \"remote\"\ntable = [[0, 100.0], [1000, 200.0], [2000, 300.0]]\n"
      "[local]\ncopy = [[0, 0.5], [1000, 5.0]]\n[contention]\nmodel = \"nic\"\nbandwidth_MBps = 40.0\n",
      "tree.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const engine::Network network = parsed->scaled({.latency = 0.5, .gap = 0.25, .overhead = 2});
  EXPECT_EQ(network.name(), "tree");
  // 10 us * 0.5, and 10 us for 1000 bytes * 0.25.
  EXPECT_NEAR(network.path(1).flight.at(0), 5e-6, 1e-15);
  EXPECT_NEAR(network.path(1).flight.at(1000), 7.5e-6, 1e-15);
  EXPECT_NEAR(network.path(1).flight.at(4000), 15e-6, 1e-12) << "beyond the table";
  EXPECT_NEAR(network.path(2).flight.at(1000), 75e-6, 1e-15);
  EXPECT_NEAR(network.path(0).flight.at(1000), 0.75e-6, 1e-15);
  EXPECT_NEAR(network.path(1).send_cpu.at(0), 1e-6, 1e-15);
  EXPECT_NEAR(network.path(1).recv_cpu.at(0), 0.5e-6, 1e-15);
  EXPECT_NEAR(network.contention_bytes_per_s(), 160e6, 1);
  EXPECT_EQ(network.local().copy.at(1000), parsed->local().copy.at(1000)) << "what ranks do by themselves stays";
  EXPECT_EQ(network.path(1).first_message_s, parsed->path(1).first_message_s);
  EXPECT_EQ(network.path(1).eager_limit_bytes, 4096U);
}

TEST(CostCurve, ScaledWhereAMessageTakesLessThanAnEmptyOne) {
  const engine::CostCurve scaled = curve({{0, 4}, {8, 3}, {16, 6}}).scaled(2, 10);
  EXPECT_DOUBLE_EQ(scaled.at(0), 8);
  EXPECT_DOUBLE_EQ(scaled.at(8), 6) << "all of it is latency";
  EXPECT_DOUBLE_EQ(scaled.at(16), 28);
}

TEST(Network, ZeroTakesNoTime) {
  EXPECT_EQ(engine::Network::zero().name(), "zero");
  EXPECT_EQ(engine::Network::zero().path(engine::kUnknownHops).flight.at(1 << 30), 0);
  EXPECT_EQ(engine::Network::zero().path(0).send_cpu.at(1 << 30), 0);
}

TEST(NetworkFile, WhatFirstContactsAndTurnsCost) {
  const std::string path = "[[path]]\nlocality = \"remote\"\ntable = [[0, 5]]\n";
  const auto network = engine::Network::parse("name = \"n\"\n" + path +
                                                  "first_message_us = 500\nfirst_peer_us = 10000.5\nturn_us = "
                                                  "0.25\nswitch_us = 1.5\n"
                                                  "[[path]]\nlocality = \"self-node\"\ntable = [[0, 5]]\n",
                                              "n.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  EXPECT_DOUBLE_EQ(network->path(1).first_message_s, 500e-6);
  EXPECT_DOUBLE_EQ(network->path(1).first_peer_s, 10000.5e-6);
  EXPECT_DOUBLE_EQ(network->path(1).turn_s, 0.25e-6);
  EXPECT_DOUBLE_EQ(network->path(1).switch_s, 1.5e-6);
  EXPECT_EQ(network->path(0).first_message_s, 0);  // a file without them is as it was
  EXPECT_EQ(network->path(0).first_peer_s, 0);
  EXPECT_EQ(network->path(0).turn_s, 0);
  EXPECT_EQ(network->path(0).switch_s, 0);
}

}  // namespace
}  // namespace lbf::network_test