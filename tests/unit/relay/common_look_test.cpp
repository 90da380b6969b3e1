#include "spank_plugin/relay/common_look.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace lbf::relay::common_look_test {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kToday = kMs * 1'000 * 1'800'000'000;

TEST(CommonLook, IsTheNextMultipleOfThePeriod) {
  EXPECT_EQ(until_common_look_ns(1'000 * 50 * kMs + 12 * kMs, 50 * kMs), 38 * kMs);
  EXPECT_EQ(until_common_look_ns(1'000 * 50 * kMs, 50 * kMs), 50 * kMs);
  // A timer that was early, or a look that took nearly the whole period: not twice at once.
  EXPECT_EQ(until_common_look_ns(1'000 * 50 * kMs - 10'000, 50 * kMs), 50 * kMs + 10'000);
}

TEST(CommonLook, RelaysThatStartedAtDifferentTimesMeet) {
  std::set<Nanoseconds> looks;
  for (const Nanoseconds started : {3 * kMs, 20 * kMs + 7, 48 * kMs}) {
    const Nanoseconds first = kToday + started;
    const Nanoseconds second = first + until_common_look_ns(first, 50 * kMs) + 300'000;  // a look takes 0.3 ms
    looks.insert(second + until_common_look_ns(second, 50 * kMs));
  }
  EXPECT_EQ(looks.size(), 1u);
}

TEST(CommonLook, ThoseOfLongerPeriodsAreAmongThoseOfShorterOnes) {
  const Nanoseconds now = kToday + 123'456'789;
  for (const Nanoseconds period : {200 * kMs, 500 * kMs, 1'000 * kMs})
    EXPECT_EQ((now + until_common_look_ns(now, period)) % (50 * kMs), 0) << period;
}

TEST(CommonLook, SleepsGrowWhileRingsHardlyFill) {
  std::vector<int> sleeps{5};
  for (int i = 0; i < 7; ++i) sleeps.push_back(next_sleep_ms(sleeps.back(), 0.001, 5, 200));
  EXPECT_EQ(sleeps, (std::vector<int>{5, 10, 20, 40, 50, 100, 200, 200}));
  EXPECT_EQ(next_sleep_ms(200, 0.05, 5, 200), 200);
  EXPECT_EQ(next_sleep_ms(200, 0.2, 5, 200), 100);
  EXPECT_EQ(next_sleep_ms(200, 0.9, 5, 200), 5);
  EXPECT_EQ(next_sleep_ms(200, 0.001, 5, 50), 50);  // threads came
}

}  // namespace
}  // namespace lbf::relay::common_look_test