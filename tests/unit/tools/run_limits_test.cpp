// lbf-run --limits, as LBF_LIMITS hands them on: what its relays and its lbfd are told, and what the user is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "tools/run/run_description.h"

namespace lbf::tools::run_limits_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunLimits : public testing::Test {
 protected:
  RunLimits() { clear(); }
  ~RunLimits() override { clear(); }
  static void clear() {
    for (const char* name : {"LBF_OVERHEAD", "LBF_LIMITS"}) ::unsetenv(name);
  }
};

TEST_F(RunLimits, WithoutAnyTheyAreLbfRunsOwn) {
  EXPECT_EQ(overhead_limit_percent(), 2);
  EXPECT_THAT(cost::relay_arguments(limits_in_environment()), ElementsAre("--memory-limit-mb", "32"));
  EXPECT_THAT(*check_limits(), IsEmpty());
  EXPECT_FALSE(nlohmann::json::parse(describe_job(1)).contains("limits"));
}

TEST_F(RunLimits, LowerOnesReachRelaysAndDescription) {
  ::setenv("LBF_OVERHEAD", "10", 1);
  ::setenv("LBF_LIMITS", "overhead_limit=5,network_limit_kBps=100,step_cpu_percent=2.5,step_trace_limit_mb=9", 1);
  EXPECT_THAT(*check_limits(), IsEmpty());
  EXPECT_EQ(overhead_limit_percent(), 5);
  EXPECT_THAT(cost::relay_arguments(limits_in_environment()),
              ElementsAre("--memory-limit-mb", "32", "--network-limit-kBps", "100"));
  const auto description = nlohmann::json::parse(describe_job(1));
  EXPECT_EQ(description["overhead_limit_percent"], 5);
  EXPECT_EQ(description["limits"], (nlohmann::json{{"step_cpu_percent", 2.5}, {"step_trace_limit_mb", 9}}));
}

TEST_F(RunLimits, HigherOnesAreSaid) {
  ::setenv("LBF_LIMITS", "overhead_limit=5,relay_memory_limit_mb=64", 1);
  EXPECT_THAT(*check_limits(), ElementsAre("overhead_limit=5: more than lbf-run's own limit; 2 % is used",
                                           "relay_memory_limit_mb=64: more than lbf-run's own limit; 32 MB is used"));
  EXPECT_EQ(overhead_limit_percent(), 2);
}

TEST_F(RunLimits, WrongOnesAreErrors) {
  for (const auto& [list, message] : {std::pair{"nosuch=1", "nosuch=1: unknown limit; known are"},
                                      std::pair{"relay_cpu_limit=x", "that is no number"},
                                      std::pair{"overhead_limit=0", "run the command without lbf-run"}}) {
    ::setenv("LBF_LIMITS", list, 1);
    const auto checked = check_limits();
    ASSERT_FALSE(checked.ok()) << list;
    EXPECT_THAT(checked.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace lbf::tools::run_limits_test