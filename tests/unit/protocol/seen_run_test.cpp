// When lbf predicts nothing, and what it says instead.
#include "protocol/seen_run.h"

#include <gtest/gtest.h>

namespace lbf::seen_run_test {
namespace {

using protocol::SeenRun;

TEST(SeenRun, LessThanOnePercentWithoutAnIntervalIsTooLittle) {
  EXPECT_TRUE((SeenRun{0.0099, false, {}, {}}).is_too_little());
  EXPECT_FALSE((SeenRun{0.0099, true, {}, {}}).is_too_little()) << "many windows give an interval";
  EXPECT_FALSE((SeenRun{0.01, false, {}, {}}).is_too_little());
  EXPECT_FALSE(SeenRun{}.is_too_little());
}

// A tenth recorded, the rest counted at a fifteenth of that: 100 % x 0.16 / 0.75.
TEST(SeenRun, TheLimitThatWouldDoIsNamed) {
  const SeenRun seen{0.002, false, 2, 100};
  EXPECT_EQ(seen.limit_to_see_percent(), 22);
  EXPECT_EQ(seen.why_no_prediction(),
            "only 0.2 % of the run was captured, to keep the overhead below 2 %: too little to predict from. With an "
            "overhead limit of 22 % about a tenth of it would be");
  EXPECT_EQ((SeenRun{0.002, false, 50, 100}).limit_to_see_percent(), std::nullopt) << "it was not the limit";
  EXPECT_EQ((SeenRun{0.002, false, {}, {}}).why_no_prediction(),
            "only 0.2 % of the run was captured: too little to predict from");
}

}  // namespace
}  // namespace lbf::seen_run_test
