// The summary of lbf-report --overhead.
#include "advisor/report/overhead.h"

#include <gtest/gtest.h>

namespace lbf::report {
namespace {

Step step_of(const std::string& command, double limit, double low, double high, double seen, double cpu_s) {
  Step step;
  step.command = command;
  Cost cost;
  cost.limit_percent = limit;
  cost.predicted_percent = 1;
  cost.low_percent = low;
  cost.high_percent = high;
  cost.seen_share = seen;
  cost.program_cpu_s = cpu_s;
  step.cost = cost;
  return step;
}

std::vector<Step> some_steps() {
  return {step_of("/opt/lmp -in x", 2, 0.5, 1.0, 1, 100), step_of("/usr/bin/lmp", 2, 1.5, 2.5, 0.25, 300),
          step_of("./hpcc", 0.5, 0.25, 0.5, 0.5, 400), Step{}};
}

TEST(Overhead, ProgramsAndAllOfThem) {
  EXPECT_EQ(render_overhead(summarize_overhead(some_steps()), {}),
            "Program             Steps    Limit Predicted     Low    High    Seen InPart  Over\n"
            "------------------ ------ -------- --------- ------- ------- ------- ------ -----\n"
            "hpcc                    1     0.5%     1.00%   0.25%   0.50%   50.0%      1     0\n"
            "lmp                     2       2%     1.00%   1.25%   2.12%   43.8%      1     1\n"
            "(all)                   3   0.5-2%     1.00%   0.75%   1.31%   46.9%      2     1\n");
}

TEST(Overhead, Parsable) {
  TableStyle style;
  style.parsable = true;
  style.header = false;
  style.trailing = true;
  EXPECT_EQ(render_overhead(summarize_overhead({some_steps()[2]}), style),
            "hpcc|1|0.5%|1.00%|0.25%|0.50%|50.0%|1|0|\n(all)|1|0.5%|1.00%|0.25%|0.50%|50.0%|1|0|\n");
}

TEST(Overhead, WithoutKnownCostsThereIsNothing) {
  EXPECT_TRUE(summarize_overhead({Step{}, Step{}}).empty());
  EXPECT_EQ(render_overhead({}, {}), "");
}

}  // namespace
}  // namespace lbf::report
