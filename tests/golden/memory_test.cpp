// Ranks that share a memory domain: times that can be worked out on paper (docs/adr/0014-memory.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <sstream>

#include "predictor/engine/replay/memory_sharing.h"
#include "tests/golden/predict.h"

namespace lbf::memory_test {
namespace {

using golden::make_target;

// Of both ranks.
auto are(Seconds first, Seconds second) {
  return testing::ElementsAre(testing::DoubleNear(first, 1e-9), testing::DoubleNear(second, 1e-9));
}

// One processor gets 10 GB/s, two 12 GB/s together. Messages take no time.
std::shared_ptr<const engine::Network> machine(const std::string& domains = "") {
  return golden::network("name = \"machine\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n[memory]\n" +
                         domains + "bandwidth_MBps = [[1, 10000.0], [2, 12000.0]]\n");
}

engine::Target target_of(double demand_bytes_per_s, std::uint32_t nodes = 1, const std::string& domains = "") {
  engine::Target target = make_target(2, "block", nodes, 2, machine(domains));
  target.memory.bytes_per_s = demand_bytes_per_s;
  return target;
}

std::vector<Seconds> finish(const std::string& trace, const engine::Target& target) {
  return golden::predict_all(trace, 2, {target}).front().rank_finish_s;
}

const char* const kTogether = "0 exit 6\n1 exit 6\n";

// Both want 10 GB/s, 20 in all, of 12: 6 s take 6 * 20/12 = 10 s.
TEST(Memory, RanksThatComputeTogetherShareTheBandwidth) {
  EXPECT_THAT(finish(kTogether, target_of(10e9)), are(10, 10));
}

TEST(Memory, WhatIsEnoughForBothSlowsNobody) {
  EXPECT_THAT(finish(kTogether, target_of(6e9)), are(6, 6));
  EXPECT_THAT(finish(kTogether, target_of(8e9)), are(8, 8));
}

TEST(Memory, RanksWithDomainsOfTheirOwnDoNotMeet) {
  EXPECT_THAT(finish(kTogether, target_of(10e9, 2)), are(6, 6));
  EXPECT_THAT(finish(kTogether, target_of(10e9, 1, "domains = 2\n")), are(6, 6));
}

// Rank 0 is blocked for 6 s and begins when rank 1 has ended: the same ranks on the same node, and nobody waits.
TEST(Memory, PhasesThatDoNotMeetDoNotSlowEachOther) {
  EXPECT_THAT(finish("0 blocked 0 off=6\n0 exit 6\n1 exit 6\n", target_of(10e9)), are(12, 6));
}

// Rank 0 begins after 3 s. Until then rank 1 has all: 3 of its 6 s are done. Then both at 12/20: rank 1 ends 5 s later,
// rank 0 has done 3 of its 6 s by then, and the rest alone.
TEST(Memory, RanksShareOnlyWhileTheyMeet) {
  EXPECT_THAT(finish("0 blocked 0 off=3\n0 exit 6\n1 exit 6\n", target_of(10e9)), are(11, 8));
}

// They ran together and took 10 s: 6 s with a domain for itself.
TEST(Memory, WorkOfADenseRunIsShorterAlone) {
  const char* const recorded = "0 exit 10\n1 exit 10\n";
  engine::Target ran = target_of(10e9);
  ran.memory = engine::memory_demand(ran, ran.network->memory(), 10e9);
  EXPECT_THAT(finish(recorded, ran), are(10, 10));
  engine::Target spread = target_of(10e9, 2);
  spread.memory = ran.memory;
  EXPECT_THAT(finish(recorded, spread), are(6, 6));
  EXPECT_THAT(golden::predict_all(recorded, 2, {spread}).front().rank_measured_s, are(10, 10));
}

// Two threads in a region are two processors that want as much.
TEST(Memory, ThreadsDemandAsRanksDo) {
  const char* const regions =
      "0 regions 6 count=1 threads=2 work=12 critical=6\n0 exit 0\n"
      "1 exit 0\n";
  EXPECT_THAT(finish(regions, target_of(10e9, 2)), are(10, 0));
}

// They ran with the domain for themselves and took 10 s each: 6 s of work of each, were there enough for both.
TEST(Memory, ThreadsDisturbedEachOtherWhereTheyRan) {
  const char* const regions = "0 regions 10 count=1 threads=2 work=20 critical=10\n0 exit 0\n1 exit 0\n";
  engine::Target ran = target_of(10e9, 2);
  ran.memory = engine::memory_demand(ran, ran.network->memory(), 10e9);
  EXPECT_THAT(finish(regions, ran), are(10, 0));
  engine::Target one_thread = ran;
  one_thread.threads = 1;
  EXPECT_THAT(finish(regions, one_thread), are(12, 0));
}

// Two domains of two processors. Each gets two of the four threads: together they have 12 GB/s for the 20 that they
// want.
TEST(Memory, ARankAloneHasAllDomainsForItsThreads) {
  engine::Target target = make_target(1, "block", 1, 4, machine("domains = 2\n"));
  target.memory.bytes_per_s = 10e9;
  const char* const regions = "0 regions 3 count=1 threads=4 work=12 critical=3\n0 exit 0\n";
  EXPECT_NEAR(golden::predict_all(regions, 1, {target}).front().lbf_s, 5, 1e-9);
  target.memory.bytes_per_s = 6e9;
  EXPECT_NEAR(golden::predict_all(regions, 1, {target}).front().lbf_s, 3, 1e-9);
}

// A rank that waits for its device takes a processor, of which there are enough.
TEST(Memory, WaitsForDevicesMoveNothing) {
  EXPECT_THAT(finish("0 device 6 calls=1\n0 exit 0\n1 exit 6\n", target_of(10e9)), are(6, 6));
}

TEST(Memory, OtherProgramsTakeAsLongAsTheyTook) {
  engine::Target ran = target_of(10e9);
  ran.memory = engine::memory_demand(ran, ran.network->memory(), 10e9);
  ran.other_programs = engine::OtherPrograms::kAsTheyRan;
  EXPECT_THAT(finish("0 preempted 0 off=5\n0 exit 5\n1 exit 10\n", ran), are(10, 10));
}

// Two ranks on one processor have half of it each, and one processor is never more than one computing.
TEST(Memory, RanksOfOneProcessorWantOneProcessorsBandwidth) {
  engine::Target target = make_target(2, "block", 1, 1, machine());
  target.memory.bytes_per_s = 10e9;
  EXPECT_THAT(finish(kTogether, target), are(12, 12));
}

TEST(Memory, WithoutADemandOrDomainsNothingChanges) {
  EXPECT_THAT(finish(kTogether, target_of(0)), are(6, 6));
  engine::Target unknown = make_target(2, "block", 1, 2,
                                       golden::network("name = \"a\"\n[[path]]\nlocality = "
                                                       "\"self-node\"\ntable = [[0, 0.0]]\n"));
  unknown.memory.bytes_per_s = 10e9;
  EXPECT_FALSE(engine::shares_memory(unknown));
  EXPECT_THAT(finish(kTogether, unknown), are(6, 6));
}

// A network file without [memory] says nothing against the domains where it ran.
TEST(Memory, DomainsAreTheNodesNotTheNetworks) {
  engine::Target ran = target_of(10e9, 2);
  engine::Target target = make_target(2, "block", 1, 2,
                                      golden::network("name = \"a\"\n[[path]]\nlocality = "
                                                      "\"self-node\"\ntable = [[0, 0.0]]\n"));
  target.memory = engine::memory_demand(ran, ran.network->memory(), 10e9);
  EXPECT_THAT(finish(kTogether, target), are(10, 10));
}

// Whatever N ranks want: ranks that do the same at the same time are all slower by D/B, and ranks of which never two
// compute at a time not at all.
TEST(Memory, SymmetricRanksSlowByDemandOverBandwidth) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 100; ++i) {
    const auto ranks = static_cast<Rank>(2 + random() % 6);
    const double one = static_cast<double>(1000 + random() % 20000);
    const double all = one * (1 + static_cast<double>(random() % 100) / 50);
    const double demand = one * 1e6 * static_cast<double>(1 + random() % 100) / 100;
    std::ostringstream toml;
    toml << "name = \"x\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n[memory]\nbandwidth_MBps = [[1, "
         << std::fixed << one << "], [" << ranks << ", " << all << "]]\n";
    engine::Target target =
        make_target(ranks, "block", 1, static_cast<std::uint32_t>(ranks), golden::network(toml.str()));
    target.memory.bytes_per_s = demand;
    std::string together;
    std::string in_turn;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::string name = std::to_string(rank);
      together += name + " exit 2\n";
      in_turn += name + " blocked 0 off=" + std::to_string(2 * rank) + "\n" + name + " exit 2\n";
    }
    const double slower = std::max(1.0, ranks * demand / (all * 1e6));
    EXPECT_NEAR(golden::predict_all(together, ranks, {target}).front().lbf_s, 2 * slower, 1e-9 * slower);
    EXPECT_NEAR(golden::predict_all(in_turn, ranks, {target}).front().lbf_s, 2 * ranks, 1e-9 * ranks);
  }
}

// --- the demand of a program

TEST(MemoryDemand, FollowsFromTwoDensities) {
  const engine::MemoryDomains memory = machine()->memory();
  const auto fitted = [&](Seconds alone_s, Seconds together_s) {
    const engine::DenseRun runs[] = {{1, alone_s}, {2, together_s}};
    return engine::fitted_demand(memory, runs);
  };
  EXPECT_NEAR(fitted(6, 10).bytes_per_s, 10e9, 1);        // 5/3 of 6 GB/s each
  EXPECT_NEAR(fitted(6, 8).bytes_per_s, 8e9, 1);          // 4/3
  EXPECT_NEAR(fitted(6, 20).bytes_per_s, 10e9, 1);        // not more than one gets alone
  EXPECT_EQ(fitted(6, 6.05).bytes_per_s, 0);              // enough for two ...
  EXPECT_NEAR(fitted(6, 6.05).most_bytes_per_s, 6e9, 1);  // ... so it is not more than that
  const engine::DenseRun one[] = {{2, 6}};
  EXPECT_EQ(engine::fitted_demand(memory, one).bytes_per_s, 0);
  EXPECT_GT(engine::fitted_demand(memory, one).most_bytes_per_s, 1e12);
}

TEST(MemoryDemand, MayBeMoreWhereTheSparserRunHadTooLittle) {
  const engine::MemoryDomains memory{1, engine::CountCurve({{1, 10e9}, {2, 12e9}, {4, 12e9}})};
  const engine::DenseRun runs[] = {{2, 10}, {4, 30}};
  const engine::KnownDemand demand = engine::fitted_demand(memory, runs);
  EXPECT_NEAR(demand.bytes_per_s, 6e9, 1);
  // Alone it might be 10 GB/s: then work of the sparser run is 6/10 there, and with 6 GB/s it stays.
  EXPECT_NEAR(engine::unknown_demand_percent(engine::ran_density(2, memory, 0), target_of(0, 2), demand), 40, 1e-9);
}

TEST(MemoryDemand, WhereItIsNotKnownTheIntervalWidensByTheWorst) {
  const engine::Target sparse = target_of(0, 2);
  const engine::Target dense = target_of(0, 1);
  const engine::MemoryDomains& memory = sparse.network->memory();
  const engine::RanDensity one = engine::ran_density(1, memory, 0);
  EXPECT_NEAR(engine::unknown_demand_percent(one, dense, {}), 100 * (20.0 / 12 - 1), 1e-9);
  EXPECT_NEAR(engine::unknown_demand_percent(engine::ran_density(dense, 0), sparse, {}), 100 * (1 - 12.0 / 20), 1e-9);
  EXPECT_EQ(engine::unknown_demand_percent(one, sparse, {}), 0);
  EXPECT_EQ(engine::unknown_demand_percent(one, dense, {8e9, 8e9}), 0);
  EXPECT_EQ(engine::unknown_demand_percent(one, dense, {0, 6e9}), 0);
  engine::Target unknown = dense;
  unknown.network = std::make_shared<const engine::Network>(engine::Network::zero());
  EXPECT_NEAR(engine::unknown_demand_percent(one, unknown, {}), 100 * (20.0 / 12 - 1), 1e-9) << "as where it ran";
  EXPECT_EQ(engine::unknown_demand_percent(engine::ran_density(1, {}, 0), unknown, {}), 0);
}

TEST(MemoryDemand, ThreadsOfRegionsAreAsDenseAsRanks) {
  engine::Target target = target_of(0, 2);
  const engine::RanDensity ran = engine::ran_density(target, 2);
  EXPECT_EQ(engine::unknown_demand_percent(ran, target, {}), 0) << "as many threads as ran";
  target.threads = 1;
  EXPECT_NEAR(engine::unknown_demand_percent(ran, target, {}), 40, 1e-9);
  EXPECT_EQ(engine::unknown_demand_percent(engine::ran_density(target, 0), target_of(0, 2), {}), 0)
      << "no region was seen";
}

}  // namespace
}  // namespace lbf::memory_test
