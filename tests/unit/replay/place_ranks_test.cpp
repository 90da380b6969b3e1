// Placements and default targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/replay/target.h"

namespace lbf::place_ranks_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(std::string_view placement, Rank ranks, std::uint32_t nodes) {
  const auto placed = engine::place_ranks(placement, ranks, nodes);
  EXPECT_FALSE(placed.ok()) << placement;
  return placed.ok() ? "" : placed.error().message;
}

TEST(PlaceRanks, AsSlurmDoes) {
  EXPECT_THAT(*engine::place_ranks("block", 4, 2), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(*engine::place_ranks("block", 5, 2), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(*engine::place_ranks("block", 7, 3), ElementsAre(0, 0, 0, 1, 1, 2, 2));
  EXPECT_THAT(*engine::place_ranks("cyclic", 5, 2), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(*engine::place_ranks("plane=2", 7, 2), ElementsAre(0, 0, 1, 1, 0, 0, 1));
  EXPECT_THAT(*engine::place_ranks("map=0,0,1", 3, 2), ElementsAre(0, 0, 1));
  EXPECT_THAT(*engine::place_ranks("map=3", 1, 4), ElementsAre(3));
}

TEST(PlaceRanks, SaysWhatIsWrong) {
  EXPECT_THAT(error_of("blok", 4, 2), HasSubstr("'blok'"));
  EXPECT_THAT(error_of("", 4, 2), HasSubstr("block, cyclic"));
  EXPECT_THAT(error_of("block", 4, 5), HasSubstr("at most 4"));
  EXPECT_THAT(error_of("block", 4, 0), HasSubstr("one node"));
  EXPECT_THAT(error_of("block", 0, 1), HasSubstr("no rank"));
  EXPECT_THAT(error_of("plane=0", 4, 2), HasSubstr("plane=K"));
  EXPECT_THAT(error_of("plane=", 4, 2), HasSubstr("plane=K"));
  EXPECT_THAT(error_of("plane=-1", 4, 2), HasSubstr("plane=K"));
  EXPECT_THAT(error_of("plane=99999999999", 4, 2), HasSubstr("plane=K"));
  EXPECT_THAT(error_of("map=0,0", 3, 2), HasSubstr("2 nodes for 3 ranks"));
  EXPECT_THAT(error_of("map=0,0,0,0", 3, 2), HasSubstr("4 nodes for 3 ranks"));
  EXPECT_THAT(error_of("map=0,2,0", 3, 2), HasSubstr("rank 1 is on node 2"));
  EXPECT_THAT(error_of("map=0,x,0", 3, 2), HasSubstr("'x'"));
  EXPECT_THAT(error_of("map=0,,0", 3, 2), HasSubstr("no node number"));
  EXPECT_THAT(error_of("map=", 3, 2), HasSubstr("no node number"));
  EXPECT_THAT(error_of("map=0,0,1,", 3, 2), HasSubstr("no node number"));
}

TEST(DefaultTargets, TheOneThatRanThenEveryNodeCountThatDividesEvenlyOnEveryNetwork) {
  const auto zero = std::make_shared<const engine::Network>(engine::Network::zero());
  const auto lan = std::make_shared<const engine::Network>(
      *engine::Network::parse("name = \"lan\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n", "x"));
  engine::Target ran;
  ran.node_of_rank = {0, 1, 0, 1, 0, 1};
  ran.nodes = 2;
  ran.cores_per_node = 3;
  ran.speed = 1.0;
  ran.network = zero;
  ran.placement = "cyclic";
  const std::vector<engine::Target> targets = engine::default_targets(ran, {zero, lan});
  ASSERT_EQ(targets.size(), 10u);  // ran, 1 2 3 6 nodes on zero; ran's placement, 1 2 3 6 nodes on lan
  EXPECT_EQ(targets[0].placement, "cyclic");
  std::vector<std::pair<std::uint32_t, std::string>> seen;
  for (const engine::Target& target : targets) {
    EXPECT_EQ(target.cores_per_node, 3u);
    seen.emplace_back(target.nodes, target.placement + " " + target.network->name());
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(testing::Pair(2, "cyclic zero"), testing::Pair(1, "block zero"),
                                                  testing::Pair(2, "block zero"), testing::Pair(3, "block zero"),
                                                  testing::Pair(6, "block zero"), testing::Pair(2, "cyclic lan"),
                                                  testing::Pair(1, "block lan"), testing::Pair(2, "block lan"),
                                                  testing::Pair(3, "block lan"), testing::Pair(6, "block lan")));
}

TEST(DefaultTargets, OtherProgramsAreInTheConfigurationThatRanAlone) {
  engine::Target ran;
  ran.node_of_rank = {0, 0, 1, 1};
  ran.nodes = 2;
  ran.cores_per_node = 4;
  ran.network = std::make_shared<const engine::Network>(engine::Network::zero());
  ran.placement = "block";
  const auto lan = std::make_shared<const engine::Network>(
      *engine::Network::parse("name = \"lan\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1.0]]\n", "x"));
  std::vector<engine::OtherPrograms> seen;
  for (const engine::Target& target : engine::default_targets(ran, {ran.network, lan}, 1))
    seen.push_back(target.other_programs);
  std::vector<engine::OtherPrograms> expected(7, engine::OtherPrograms::kLeftOut);  // the last: more threads
  expected.front() = engine::OtherPrograms::kAsTheyRan;
  EXPECT_EQ(seen, expected);
}

TEST(IsConfiguration, PlacesProcessorsNetworkAndThreadsAreThoseThatRan) {
  engine::Target ran;
  ran.node_of_rank = {0, 1, 1};
  ran.nodes = 2;
  ran.cores_per_node = 4;
  ran.threads = 2;
  ran.network = std::make_shared<const engine::Network>(engine::Network::zero());
  const auto is_with = [&](const auto& change) {
    engine::Target target = ran;
    target.network = std::make_shared<const engine::Network>(*ran.network);
    change(target);
    return engine::is_configuration(target, ran);
  };
  EXPECT_TRUE(is_with([](engine::Target&) {}));
  EXPECT_TRUE(is_with([](engine::Target& target) { target.threads = 0; })) << "as many as ran";
  EXPECT_TRUE(is_with([](engine::Target& target) { target.placement = "map=0,1,1"; })) << "a name";
  EXPECT_TRUE(is_with([](engine::Target& target) { target.waiting = engine::Waiting::kSpin; }));
  EXPECT_TRUE(is_with([](engine::Target& target) {
    target.cores_of_node = {4, 4};
    target.speed_of_node = {1, 1};
  }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.threads = 1; }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.node_of_rank = {0, 0, 1}; }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.nodes = 3; }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.cores_of_node = {4, 2}; }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.speed = 2; }));
  EXPECT_FALSE(is_with([](engine::Target& target) { target.network = nullptr; }));
  EXPECT_FALSE(is_with([](engine::Target& target) {
    auto shared = std::make_shared<engine::Network>(*target.network);
    shared->set_contention(engine::Contention::kBus);
    target.network = std::move(shared);
  }));
}

// 2 ranks of 2 threads on 2 nodes of 2 processors: 1 node takes them with 1 thread each, not as they are.
TEST(DefaultTargets, AsManyThreadsAsFillTheNodes) {
  engine::Target ran;
  ran.node_of_rank = {0, 1};
  ran.nodes = 2;
  ran.cores_per_node = 2;
  ran.network = std::make_shared<const engine::Network>(engine::Network::zero());
  ran.placement = "block";
  const auto threads = [&](std::uint32_t given) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
    for (const engine::Target& target : engine::default_targets(ran, {ran.network}, given))
      all.emplace_back(target.nodes, target.threads);
    return all;
  };
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(threads(0), ElementsAre(Pair(2, 0), Pair(1, 1)));
  EXPECT_THAT(threads(2), ElementsAre(Pair(2, 0), Pair(1, 1)));
  EXPECT_THAT(threads(1), ElementsAre(Pair(2, 0), Pair(1, 1), Pair(2, 2))) << "half of each node was idle";
  ran.cores_per_node = 5;
  EXPECT_THAT(threads(4), ElementsAre(Pair(2, 0), Pair(1, 2), Pair(2, 5)));
  ran.cores_per_node = 1;
  EXPECT_THAT(threads(1), ElementsAre(Pair(2, 0), Pair(1, 1)));
}

TEST(FillingThreads, TheFullestNodeDecides) {
  engine::Target target;
  target.nodes = 3;
  target.node_of_rank = {0, 0, 1};
  target.cores_of_node = {5, 4, 1};
  EXPECT_EQ(engine::filling_threads(target), 2U);
  EXPECT_FALSE(engine::is_oversubscribed(target, 2));
  EXPECT_TRUE(engine::is_oversubscribed(target, 3));
  target.threads = 5;
  EXPECT_TRUE(engine::is_oversubscribed(target, 1)) << "it says itself how many";
}

TEST(DefaultTargets, NothingTwice) {
  engine::Target ran;
  ran.node_of_rank = {0, 0, 1, 1};
  ran.nodes = 2;
  ran.network = std::make_shared<const engine::Network>(engine::Network::zero());
  ran.placement = "map=0,0,1,1";  // is block
  EXPECT_EQ(engine::default_targets(ran, {ran.network}).size(), 3u);
}

}  // namespace
}  // namespace lbf::place_ranks_test