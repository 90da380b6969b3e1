// What a body waited, from all changes between work and waiting or from as many as its time pays for.
#include "spank_plugin/capture/wait_meter.h"

#include <gtest/gtest.h>

namespace lbf::capture::wait_meter_test {
namespace {

using Part = WaitMeter::Part;

constexpr std::uint64_t kCost = 10;

// A thread's body, as regions.cpp meters it.
class Body {
 public:
  void spend(Part part, std::uint64_t ticks) {
    now_ += ticks;
    waited_ += part == Part::kWait ? ticks : 0;
    if (!meter_.is_read()) return;
    ++readings_;
    const std::uint64_t least = meter_.passed_changes() != 0 ? ReadingBudget::kRun : 1;
    meter_.change(part, now_);
    if (budget_.pay(now_, kCost) < least) meter_.pass(64 + static_cast<std::uint32_t>(readings_ * 37 % 128));
  }
  void end() { meter_.change(Part::kWork, now_); }

  std::uint64_t now() const { return now_; }
  std::uint64_t really_waited() const { return waited_; }
  std::uint64_t readings() const { return readings_; }
  const WaitMeter& meter() const { return meter_; }

 private:
  std::uint64_t now_ = 1'000'000;
  std::uint64_t waited_ = 0;
  std::uint64_t readings_ = 0;
  WaitMeter meter_{now_};
  ReadingBudget budget_;
};

TEST(WaitMeter, ReadsEachChangeWhereTheyAreFew) {
  Body body;
  for (int i = 0; i < 5000; ++i) {
    body.spend(Part::kWork, 3000);
    body.spend(Part::kWait, 1000);
  }
  body.end();
  EXPECT_EQ(body.readings(), 10'000U);
  EXPECT_EQ(body.meter().waited(), body.really_waited());
  EXPECT_EQ(body.meter().worked(), 3000U * 5000);
}

// A region that lasts as long as the program, with a barrier each 50 ns: reading the clock at each was 40 % of it.
TEST(WaitMeter, OfManyChangesReadsAHundredthOfTheTime) {
  Body body;
  for (int i = 0; i < 1'000'000; ++i) {
    body.spend(Part::kWork, i % 3 == 0 ? 60 : 30);
    body.spend(Part::kWait, 10);
  }
  body.end();
  const std::uint64_t time = body.now() - 1'000'000;
  EXPECT_LE(body.readings() * kCost, time / 100 + ReadingBudget::kMostInAdvance * kCost);
  EXPECT_GE(body.readings(), 1000U);
  EXPECT_NEAR(static_cast<double>(body.meter().waited()), static_cast<double>(body.really_waited()),
              0.05 * static_cast<double>(body.really_waited()));
  EXPECT_EQ(body.meter().waited() + body.meter().worked(), time);
}

TEST(WaitMeter, ALongTimeThatIsPassedIsSharedLikeTheTimeBefore) {
  WaitMeter meter(0);
  meter.change(Part::kWork, 300);
  meter.change(Part::kWait, 400);
  meter.pass(1);
  EXPECT_FALSE(meter.is_read());
  EXPECT_TRUE(meter.is_read());
  meter.change(Part::kWait, 400 + 40'000);
  EXPECT_EQ(meter.waited(), 100U + 10'000U);
  EXPECT_EQ(meter.passed_changes(), 0U);
}

TEST(WaitMeter, ABodyThatEndsWhileChangesArePassedHasItsWholeTime) {
  WaitMeter meter(1000);
  meter.change(Part::kWork, 2000);
  meter.change(Part::kWait, 3000);
  meter.pass(100);
  meter.change(Part::kWork, 5000);
  EXPECT_EQ(meter.waited(), 2000U);
  EXPECT_EQ(meter.worked(), 2000U);
}

}  // namespace
}  // namespace lbf::capture::wait_meter_test
