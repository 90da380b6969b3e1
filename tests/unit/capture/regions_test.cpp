// Regions and waits for devices as the entries measure them, on the calling thread.
#include "spank_plugin/capture/regions.h"

#include <gtest/gtest.h>

#include <atomic>

#include "spank_plugin/capture/devices.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::capture::regions_test {
namespace {

class RegionsTest : public testing::Test {
 protected:
  void SetUp() override {
    region_host.start(clock(), 2);
    region_host.watch({&attention_, &last_leave_});
    device_host.watch({&where_, &attention_, &libraries_});
  }
  void TearDown() override {
    region_host.watch({});
    device_host.watch({});
  }
  static TickClock clock() {
    TickClock clock;  // CLOCK_MONOTONIC
    clock.cpu_threshold = 100'000;
    clock.cpu_read = 200;
    clock.tick_read = 20;
    return clock;
  }
  // A region with a body that waits WAITS times; what measuring it took, in ticks.
  static std::uint64_t cost_of_region(int waits) {
    region_host.sums()->clear();
    {
      Region region(nullptr, nullptr, ticks_now());
      const Member member(region);
      for (int i = 0; i < waits; ++i) const TeamWait wait;
    }
    return region_host.sums()->cost;
  }

  std::uint64_t attention_ = 1;
  std::uint64_t last_leave_ = 0;
  std::atomic<std::uint32_t> where_{ring::kInProgram};
  std::atomic<std::uint32_t> libraries_{0};
};

// Barriers inside one region cost what they liked: no counter had it.
TEST_F(RegionsTest, WaitsAreChargedAndBounded) {
  const std::uint64_t alone = cost_of_region(0);
  EXPECT_GE(cost_of_region(100), alone + 200 * 20U);
  constexpr int kWaits = 1'000'000;
  const std::uint64_t begin = ticks_now();
  const std::uint64_t cost = cost_of_region(kWaits);
  const std::uint64_t wall = ticks_now() - begin;
  constexpr std::uint64_t kReading = 30, kPassed = 20 / 4;
  EXPECT_LE(cost, alone + ReadingBudget::kMostInAdvance * kReading + wall / 50 + 2 * kWaits * kPassed);
}

// Inside a region that goes on a call of MPI ends the gap. What measuring took stays.
TEST_F(RegionsTest, ARegionThatOutlastsItsGapIsCharged) {
  last_leave_ = ~std::uint64_t{0};
  EXPECT_GT(cost_of_region(10), 0U);
  EXPECT_EQ(region_host.sums()->regions(), 0U);
}

// After MPI_Finalize, and where the capture went off, the other threads went on to measure.
TEST_F(RegionsTest, NothingIsMeasuredOnceTheCaptureIsOver) {
  EXPECT_NE(decide_region(nullptr).measure, RegionMeasure::kNot);
  EXPECT_TRUE(measures_device_waits());
  region_host.stop();
  EXPECT_EQ(decide_region(nullptr).measure, RegionMeasure::kNot);
  EXPECT_FALSE(measures_device_waits());
}

// The objects of the process were gone through at each wait where the library's file has another name.
TEST_F(RegionsTest, AWaitTellsWhichLibraryItIsOf) {
  { const DeviceWait wait(DeviceFunction::k_cuStreamSynchronize); }
  EXPECT_EQ(libraries_.load(), ring::kCudaLibrary);
  { const DeviceWait wait(DeviceFunction::k_hipMemcpy2DFromArray_spt); }
  EXPECT_EQ(libraries_.load(), ring::kCudaLibrary | ring::kHipLibrary);
}

// Two tasks in the barrier that ends a region, one in a barrier of the body: all three are work.
TEST_F(RegionsTest, TasksInWaitsAreWork) {
  const auto spend = [](std::uint64_t ticks) {
    const std::uint64_t begin = ticks_now();
    while (ticks_now() - begin < ticks) {
    }
  };
  constexpr std::uint64_t kLong = 300'000;
  {
    Region region(nullptr, nullptr, ticks_now());
    {
      const Member member(region);
      const TeamWait wait;
      spend(kLong);
      const TeamTask task(&region);
      spend(kLong);
    }
    for (int i = 0; i < 2; ++i) {
      spend(kLong);
      const TeamTask task(&region);
      spend(kLong);
    }
  }
  const RegionTimes times = region_host.sums()->times;
  EXPECT_GE(times.wall, 6 * kLong);
  EXPECT_GE(times.work, 3 * kLong);
  EXPECT_LE(times.work, times.wall - 3 * kLong);
}

}  // namespace
}  // namespace lbf::capture::regions_test
