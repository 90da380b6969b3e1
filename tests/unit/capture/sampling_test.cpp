#include "spank_plugin/capture/sampling.h"

#include <gtest/gtest.h>

#include <set>

namespace lbf::capture {
namespace {

TEST(Sampler, TimesOneOfAThousandAndKeepsNoStep) {
  Sampler sampler;
  sampler.seed(12345);
  std::uint64_t at = 0;
  std::set<std::uint64_t> distances, phases;
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) {
    const std::uint64_t due = sampler.due();
    ASSERT_GE(due - at, Sampler::kShortest);
    ASSERT_LE(due - at, Sampler::kLongest);
    distances.insert(due - at);
    phases.insert(due % 8);  // of a program that makes the same 8 calls again and again
    sampler.advance(due);
    ASSERT_TRUE(sampler.warms_up()) << "the one before is thrown away";
    ASSERT_EQ(sampler.due(), due + 1);
    at = due + 1;
    sampler.advance(at);
    ASSERT_FALSE(sampler.warms_up());
  }
  EXPECT_NEAR(static_cast<double>(at) / kSamples, 1024.5, 15);
  EXPECT_EQ(distances.size(), Sampler::kLongest - Sampler::kShortest + 1);
  EXPECT_EQ(phases.size(), 8u);
}

TEST(Sampler, TakesTheTimingOffAndLeavesOutLostProcessors) {
  ring::PrimitiveCounter counter{};
  Sampler::count(counter, 150, 50, 1000);
  Sampler::count(counter, 30, 50, 1000);
  Sampler::count(counter, 1001, 50, 1000);
  EXPECT_EQ(counter.sampled.load(), 2u);
  EXPECT_EQ(counter.sampled_ticks.load(), 100u);
}

}  // namespace
}  // namespace lbf::capture
