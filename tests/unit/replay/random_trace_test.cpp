// The engine against the reference on random programs and targets, and against itself under other arrival
// orders.
#include "tests/unit/replay/random_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>

#include "predictor/engine/metric/predictor.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/reference.h"

namespace lbf::random_trace_test {
namespace {

constexpr int kTraces = 1200;
constexpr std::size_t kTargetsPerTrace = 4;
// Twice what the reference takes for the same time (reference.cpp): near a tie the two may differ by that.
constexpr double kRelativeError = 2e-9;

enum class Order { kRankByRank, kShuffled, kShuffledAndEager };

std::vector<engine::Prediction> predict(const random_trace::Trace& trace, const std::vector<engine::Target>& targets,
                                        Order order, std::mt19937_64& random) {
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(trace.ranks, targets);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  engine::Predictor& predictor = **made;
  std::vector<Rank> arrivals;
  for (Rank rank = 0; rank < trace.ranks; ++rank) {
    arrivals.insert(arrivals.end(), trace.events[static_cast<std::size_t>(rank)].size(), rank);
  }
  if (order != Order::kRankByRank) std::shuffle(arrivals.begin(), arrivals.end(), random);
  std::vector<std::size_t> next(static_cast<std::size_t>(trace.ranks), 0);
  for (Rank rank : arrivals) {
    const auto& events = trace.events[static_cast<std::size_t>(rank)];
    std::size_t& at = next[static_cast<std::size_t>(rank)];
    const Result<void> fed = predictor.feed(rank, events[at++]);
    EXPECT_TRUE(fed.ok()) << fed.error().message;
    if (order == Order::kShuffledAndEager) {
      EXPECT_TRUE(predictor.advance().ok());
    }
    if (at == events.size()) predictor.close(rank);
  }
  EXPECT_TRUE(predictor.advance().ok());
  std::vector<engine::Prediction> predictions = predictor.predictions();
  const bool any = std::any_of(predictions.begin(), predictions.end(),
                               [](const engine::Prediction& prediction) { return prediction.complete; });
  const Result<void> diagnosis = predictor.diagnosis();
  EXPECT_EQ(diagnosis.ok(), any) << (diagnosis.ok() ? "" : diagnosis.error().message);
  for (const engine::Prediction& prediction : predictions) {
    EXPECT_EQ(prediction.complete, prediction.why_stuck.empty()) << prediction.why_stuck;
  }
  return predictions;
}

class RandomTraces : public testing::TestWithParam<int> {};

TEST_P(RandomTraces, EqualTheReferenceWhateverTheArrivalOrder) {
  int complete = 0;
  int stuck = 0;
  int ambiguous = 0;
  for (int i = 0; i < kTraces / 8; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam()) * 100003 + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = random_trace::make_trace(random, random_trace::Regions::kSome);
    std::vector<random_trace::Configuration> configurations;
    std::vector<engine::Target> targets;
    for (std::size_t t = 0; t < kTargetsPerTrace; ++t) {
      configurations.push_back(random_trace::make_configuration(random, trace.ranks));
      random_trace::choose_threads(random, configurations.back());
      targets.push_back(configurations.back().target);
    }
    const std::vector<engine::Prediction> first = predict(trace, targets, Order::kRankByRank, random);
    for (Order order : {Order::kShuffled, Order::kShuffledAndEager}) {
      const std::vector<engine::Prediction> other = predict(trace, targets, order, random);
      for (std::size_t t = 0; t < targets.size(); ++t) {
        ASSERT_EQ(first[t].complete, other[t].complete) << "target " << t;
        if (!first[t].complete) continue;
        for (std::size_t rank = 0; rank < first[t].rank_finish_s.size(); ++rank) {
          ASSERT_EQ(std::bit_cast<std::uint64_t>(first[t].rank_finish_s[rank]),
                    std::bit_cast<std::uint64_t>(other[t].rank_finish_s[rank]))
              << "target " << t << ", rank " << rank;
        }
      }
    }
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const reference::Outcome outcome = reference::simulate(trace.program, configurations[t].machine);
      const std::vector<double>& expected = outcome.finish;
      ambiguous += outcome.ambiguous ? 1 : 0;
      if (outcome.ambiguous) continue;
      ASSERT_EQ(first[t].complete, outcome.complete)
          << "target " << t << " (" << targets[t].placement << "): " << first[t].why_stuck;
      ++(outcome.complete ? complete : stuck);
      if (!outcome.complete) continue;
      ASSERT_EQ(expected.size(), first[t].rank_finish_s.size());
      for (std::size_t rank = 0; rank < expected.size(); ++rank) {
        ASSERT_NEAR(first[t].rank_finish_s[rank], expected[rank], kRelativeError * std::max(1.0, expected[rank]))
            << "target " << t << " (" << targets[t].placement << ", " << targets[t].cores_per_node << " cores), rank "
            << rank;
      }
      EXPECT_EQ(first[t].lbf_s, *std::max_element(first[t].rank_finish_s.begin(), first[t].rank_finish_s.end()));
    }
  }
  // Programs that rely on buffers, on targets that have none, are part of it, but not most of it; so are ones
  // whose result on shared links is not defined.
  EXPECT_GT(stuck, 0);
  EXPECT_GT(complete, 2 * stuck);
  EXPECT_LT(ambiguous * 6, complete);
  RecordProperty("stuck", stuck);
  RecordProperty("ambiguous", ambiguous);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraces, testing::Range(0, 8));

}  // namespace
}  // namespace lbf::random_trace_test