#include "advisor/ranking/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::advisor::objective_test {
namespace {

using testing::ElementsAre;

TEST(Objective, LimitsAndText) {
  Objective objective;
  EXPECT_EQ(objective.text(), "time");
  EXPECT_TRUE(objective.allows(1e9, 1e9));
  objective.node_hours_limit = 2;
  EXPECT_TRUE(objective.allows(5, 2));
  EXPECT_FALSE(objective.allows(5, 2.1));
  EXPECT_EQ(objective.text(), "time within 2 node-hours");
  EXPECT_EQ(objective.value(5, 2), 5);
  objective = {Goal::kNodeHours};
  objective.deadline_s = 60;
  EXPECT_EQ(objective.text(), "node-hours within 60 s");
  EXPECT_FALSE(objective.allows(61, 0));
  EXPECT_EQ(objective.value(5, 2), 2);
}

TEST(ParetoFront, NobodyBeatsItInBoth) {
  const std::vector<Outcome> outcomes{{10, 1}, {5, 2}, {7, 2}, {5, 3}, {4, 9}, {10, 1}, {12, 0.5}};
  EXPECT_THAT(pareto_front(outcomes), ElementsAre(true, true, false, false, true, false, true));
  EXPECT_TRUE(pareto_front({}).empty());
}

}  // namespace
}  // namespace lbf::advisor::objective_test