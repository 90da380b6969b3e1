#include "spank_plugin/capture/sampling.h"

#include <gtest/gtest.h>

#include <set>

namespace lbf::capture::sampling_test {
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

// The next one that is no warming up, of the kind that is wanted; those before it took nothing that counts.
void begin_next(Sampler& sampler, bool null) {
  do {
    sampler.advance(sampler.due());
    sampler.advance(sampler.due());
  } while (sampler.is_null() != null);
}

TEST(Sampler, OneOfFourIsANullSampleAndTheFirstIsOne) {
  Sampler sampler;
  sampler.seed(7);
  int nulls = 0;
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) {
    sampler.advance(sampler.due());
    const bool null = sampler.is_null();
    sampler.advance(sampler.due());
    ASSERT_EQ(sampler.is_null(), null) << "what warms up goes the same way";
    EXPECT_TRUE(null || i > 0);
    nulls += null ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(nulls) / kSamples, 0.25, 0.02);
}

TEST(Sampler, TakesNullSamplesOffAndLeavesOutLostProcessors) {
  Sampler sampler;
  ring::PrimitiveCounter counter{};
  begin_next(sampler, true);
  sampler.note(counter, 50, 1000);
  begin_next(sampler, true);
  sampler.note(counter, 1001, 1000);  // its processor was lost
  EXPECT_EQ(counter.sampled.load(), 0u) << "null samples are no executions";
  begin_next(sampler, false);
  sampler.note(counter, 150, 1000);
  EXPECT_EQ(counter.sampled_ticks.load(), 100u);
  begin_next(sampler, false);
  sampler.note(counter, 1001, 1000);
  EXPECT_EQ(counter.sampled.load(), 1u);
  sampler.advance(sampler.due());  // warms up
  sampler.note(counter, 500, 1000);
  EXPECT_EQ(counter.sampled.load(), 1u);
  EXPECT_EQ(counter.sampled_ticks.load(), 100u);
}

// 2.5 ticks of each pass where no reading sees them.
TEST(Sampler, AddsWhatSamplesDoNotSee) {
  Sampler sampler;
  sampler.set_unseen(640);
  ring::PrimitiveCounter counter{};
  begin_next(sampler, true);
  sampler.note(counter, 50, 1000);
  EXPECT_EQ(counter.sampled_ticks.load(), 0u) << "a null sample has none";
  for (const std::uint64_t ticks : {60, 60, 50, 40}) {  // the last makes the next one up for 10
    begin_next(sampler, false);
    sampler.note(counter, ticks, 1000);
  }
  EXPECT_EQ(counter.sampled.load(), 4u);
  EXPECT_EQ(counter.sampled_ticks.load(), 30u) << "20 seen, 4 times 2.5";
}

// What the timing adds scatters, so some samples take less than the null samples: the mean is right all the same.
TEST(Sampler, TheMeanOfSmallCostsIsNotTooHigh) {
  Sampler sampler;
  sampler.seed(99);
  ring::PrimitiveCounter counter{};
  std::uint64_t random = 1;
  const auto timing = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return 80 + (random >> 33) % 41;  // 80 to 120
  };
  constexpr std::uint64_t kOwnTicks = 5;
  for (int i = 0; i < 40'000; ++i) {
    sampler.advance(sampler.due());
    sampler.advance(sampler.due());
    sampler.note(counter, timing() + (sampler.is_null() ? 0 : kOwnTicks), 100'000);
  }
  const double mean = static_cast<double>(counter.sampled_ticks.load()) / static_cast<double>(counter.sampled.load());
  EXPECT_NEAR(mean, kOwnTicks, 0.5);
}

TEST(NullSamples, AnInterruptInOneDoesNotMoveTheCenter) {
  NullSamples nulls;
  EXPECT_EQ(nulls.center(), 0u);
  for (int i = 0; i < 12; ++i) nulls.note(100);
  nulls.note(30'000);
  EXPECT_EQ(nulls.center(), 100u);
  for (std::size_t i = 0; i < NullSamples::kKept; ++i) nulls.note(60);
  EXPECT_EQ(nulls.center(), 60u) << "what the program does changed";
}

}  // namespace
}  // namespace lbf::capture::sampling_test