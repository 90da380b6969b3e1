// What a program is bound by.
#include "advisor/advice/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/advisor/fixture.h"

namespace lbf::advisor::sensitivity_test {
namespace {

std::shared_ptr<const engine::Network> lan() {
  return test::network("name = \"lan\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 100.0], [1000, 200.0]]\n");
}

TEST(Sensitivity, OneRankThatSendsOneMessage) {
  // 300 us of work, then 1000 bytes: latency 100 us, 100 us for its bytes. The "replay" works that out.
  engine::Target target;
  target.nodes = 2;
  target.node_of_rank = {0, 1};
  target.speed_of_node = {1, 1};
  target.network = lan();
  int passes = 0;
  const auto replay = [&](const std::vector<engine::Target>& targets) -> Result<std::vector<Replayed>> {
    ++passes;
    std::vector<Replayed> replayed;
    for (const engine::Target& one : targets)
      replayed.push_back({300e-6 / one.speed_of(0) + one.network->path(engine::kUnknownHops).flight.at(1000), ""});
    return replayed;
  };
  const Result<Sensitivity> curves = sensitivity(target, replay);
  ASSERT_TRUE(curves.ok());
  EXPECT_EQ(passes, 1) << "one pass for all points";
  EXPECT_NEAR(curves->time_s, 500e-6, 1e-12);
  EXPECT_NEAR(curves->latency_share, 0.2, 1e-6);
  EXPECT_NEAR(curves->bandwidth_share, 0.2, 1e-6);
  EXPECT_NEAR(curves->processor_share, 0.6, 1e-6);
  EXPECT_EQ(curves->bound_by(), "processor speed");
  ASSERT_EQ(curves->latency.size(), 4U);
  EXPECT_EQ(curves->latency[3].factor, 4);
  EXPECT_NEAR(curves->latency[3].time_s, 800e-6, 1e-12);
  EXPECT_EQ(curves->speed[0].factor, 0.5);
  EXPECT_NEAR(curves->speed[0].time_s, 800e-6, 1e-12);
  EXPECT_TRUE(std::isinf(curves->bandwidth[3].factor));
}

TEST(Sensitivity, BoundByNothingOfThese) {
  Sensitivity curves;
  curves.latency_share = 0.01;
  EXPECT_EQ(curves.bound_by(), "nothing of these");
  curves.latency_share = 0.2;
  curves.bandwidth_share = 0.3;
  EXPECT_EQ(curves.bound_by(), "bandwidth");
}

}  // namespace
}  // namespace lbf::advisor::sensitivity_test