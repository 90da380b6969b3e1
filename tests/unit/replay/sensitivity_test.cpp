// What times are made of, and curves over a parameter: by hand, and on random programs and targets against replays of
// plain times.
#include "predictor/engine/metric/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "predictor/engine/replay/replay.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/random_trace.h"

namespace lbf::sensitivity_test {
namespace {

using engine::Clocks;
using engine::CurveSearch;
using engine::FactorRange;
using engine::Parameter;
using engine::SensitivityCurve;
using engine::Tangent;
using engine::Term;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<engine::Prediction> predict(const random_trace::Trace& trace, const std::vector<engine::Target>& targets,
                                        Clocks clocks) {
  auto made = engine::Predictor::make(trace.ranks, targets, {}, clocks);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  for (Rank rank = 0; rank < trace.ranks; ++rank) {
    EXPECT_TRUE((*made)->feed(rank, trace.events[static_cast<std::size_t>(rank)]).ok());
    (*made)->close(rank);
  }
  EXPECT_TRUE((*made)->advance().ok());
  return (*made)->predictions();
}

// A random target on which each rank has its processors.
engine::Target make_target(std::mt19937_64& random, Rank ranks) {
  random_trace::Configuration configuration = random_trace::make_configuration(random, ranks);
  engine::Target& target = configuration.target;
  target.cores_per_node = 4 * static_cast<std::uint32_t>(ranks);
  target.cores_of_node.clear();
  target.memory = {};
  target.threads = static_cast<std::uint32_t>(1 + random() % 4);
  auto network = std::make_shared<engine::Network>(*target.network);
  network->set_contention(engine::Contention::kNone);
  target.network = std::move(network);
  EXPECT_TRUE(engine::is_dedicated(target));
  return target;
}

// The first message of all tells who waits for whom, and a sleep between looks ends at the next look: there the time
// may jump.
bool may_jump(const random_trace::Trace& trace, const engine::Target& target) {
  for (const reference::Process& process : trace.program.processes) {
    for (const reference::Action& action : process.actions) {
      if (action.kind == reference::Action::Kind::kLook) return true;
    }
  }
  for (const std::uint32_t hops : {0U, 1U, 2U, 3U, 4U, engine::kUnknownHops}) {
    if (target.network->path(hops).first_peer_s > 0) return true;
  }
  return false;
}

TEST(Composition, IsOfTheSameTimeBitByBitAndItsTermsAddUp) {
  int complete = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = random_trace::make_trace(random, random_trace::Regions::kSome);
    std::vector<engine::Target> targets;
    for (int i = 0; i < 3; ++i) targets.push_back(make_target(random, trace.ranks));
    const auto plain = predict(trace, targets, Clocks::kPlain);
    const auto composed = predict(trace, targets, Clocks::kComposed);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      EXPECT_FALSE(plain[t].composition);
      ASSERT_EQ(plain[t].complete, composed[t].complete);
      if (!plain[t].complete) continue;
      ++complete;
      for (std::size_t rank = 0; rank < plain[t].rank_finish_s.size(); ++rank) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(plain[t].rank_finish_s[rank]),
                  std::bit_cast<std::uint64_t>(composed[t].rank_finish_s[rank]));
      }
      ASSERT_TRUE(composed[t].composition);
      const engine::Composed& all = *composed[t].composition;
      EXPECT_EQ(all.value, composed[t].lbf_s);
      EXPECT_NEAR(std::accumulate(all.terms.begin(), all.terms.end(), 0.0), all.value,
                  1e-12 * std::max(1.0, all.value));
    }
  }
  EXPECT_GT(complete, 500);
}

TEST(Curves, EqualReplaysAtEachFactor) {
  constexpr FactorRange kRange{0.02, 50};
  constexpr int kScanned = 61;
  constexpr int kCurves = 300;
  constexpr int kThatMayJump = 40;
  int may_have_jumped = 0;
  int curves_seen = 0;
  int breakpoints = 0;
  int jumps = 0;
  for (std::uint64_t seed = 1000; curves_seen < kCurves && seed < 9000; ++seed) {
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = random_trace::make_trace(random, random_trace::Regions::kSome);
    const engine::Target target = make_target(random, trace.ranks);
    if (may_jump(trace, target) && ++may_have_jumped > kThatMayJump) continue;
    if (!predict(trace, {target}, Clocks::kPlain).front().complete) continue;
    std::vector<CurveSearch> searches(engine::kParameters.size(), CurveSearch(kRange));
    const auto curves = engine::find_curves(searches, [&](auto requests) -> Result<std::vector<Tangent>> {
      EXPECT_LE(requests.size(), engine::kProbesPerPass);
      std::vector<engine::Target> targets;
      for (const auto& [search, factor] : requests)
        targets.push_back(engine::scaled(target, engine::kParameters[search], factor));
      const auto predictions = predict(trace, targets, Clocks::kComposed);
      std::vector<Tangent> tangents;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        tangents.push_back(
            engine::tangent_of(predictions[i], engine::kParameters[requests[i].search], requests[i].factor));
      }
      return tangents;
    });
    ASSERT_TRUE(curves.ok());
    for (std::size_t p = 0; p < curves->size(); ++p) {
      const SensitivityCurve& curve = (*curves)[p];
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::string(engine::parameter_name(engine::kParameters[p])));
      if (may_jump(trace, target)) {
        jumps += curve.not_convex.empty() ? 0 : 1;
        continue;
      }
      ++curves_seen;
      breakpoints += static_cast<int>(curve.points.size()) - 2;
      EXPECT_TRUE(curve.not_convex.empty());
      EXPECT_EQ(curve.most_above_s, 0);
      std::vector<double> factors;
      std::vector<engine::Target> targets;
      for (int i = 0; i < kScanned; ++i) {
        factors.push_back(kRange.low * std::pow(kRange.high / kRange.low, i / (kScanned - 1.0)));
        targets.push_back(engine::scaled(target, engine::kParameters[p], factors.back()));
      }
      const auto scanned = predict(trace, targets, Clocks::kPlain);
      for (std::size_t i = 0; i < factors.size(); ++i) {
        ASSERT_NEAR(curve.time_s(factors[i]), scanned[i].lbf_s, 1e-9 * std::max(1.0, scanned[i].lbf_s))
            << "factor " << factors[i];
      }
    }
  }
  EXPECT_GE(curves_seen, kCurves);
  EXPECT_GT(breakpoints, 50);
  EXPECT_GT(jumps, 0) << "what is not convex is said";
}

// Of a function that is known.
SensitivityCurve curve_of(FactorRange range, const std::function<Tangent(double)>& function, int& probes,
                          std::size_t most = 400) {
  const auto curves =
      engine::find_curves({CurveSearch(range, most)}, [&](auto requests) -> Result<std::vector<Tangent>> {
        std::vector<Tangent> tangents;
        for (const auto& request : requests) tangents.push_back(function(request.factor));
        probes += static_cast<int>(requests.size());
        return tangents;
      });
  EXPECT_TRUE(curves.ok());
  return curves->front();
}

// The largest of lines (value at 0, slope).
Tangent largest(const std::vector<std::pair<double, double>>& lines, double factor) {
  Tangent most;
  for (const auto& [at_0, slope] : lines) {
    if (at_0 + slope * factor > most.time_s) most = {at_0 + slope * factor, slope};
  }
  return most;
}

TEST(CurveSearch, FindsEachBreakpointExactly) {
  // 10, then 7 + 2x from 1.5 on, then 5 x from 7/3 on; the piece from 5 on, 4.999 x + 0.005, would be below.
  const std::vector<std::pair<double, double>> lines{{10, 0}, {7, 2}, {0, 5}, {0, 4.9}};
  int probes = 0;
  const SensitivityCurve curve = curve_of(
      {0.1, 10}, [&](double factor) { return largest(lines, factor); }, probes);
  ASSERT_EQ(curve.points.size(), 4U);
  EXPECT_EQ(curve.points[0].factor, 0.1);
  EXPECT_NEAR(curve.points[1].factor, 1.5, 1e-12);
  EXPECT_NEAR(curve.points[2].factor, 7.0 / 3, 1e-12);
  EXPECT_EQ(curve.points[3].factor, 10);
  EXPECT_NEAR(curve.points[2].time_s, 35.0 / 3, 1e-12);
  EXPECT_LE(probes, 10);
  EXPECT_TRUE(curve.not_convex.empty());
  EXPECT_NEAR(*curve.next_breakpoint(1), 1.5, 1e-12);
  EXPECT_NEAR(*curve.next_breakpoint(1.5), 7.0 / 3, 1e-12);
  EXPECT_FALSE(curve.next_breakpoint(3));
  EXPECT_NEAR(*curve.reaches(10.1, 1), 1.55, 1e-12) << "1 % slower";
  EXPECT_NEAR(*curve.reaches(20, 1), 4, 1e-12);
  EXPECT_EQ(*curve.reaches(9, 1), 1);
  EXPECT_FALSE(curve.reaches(51, 1));
}

TEST(CurveSearch, ALineHasNoBreakpoint) {
  int probes = 0;
  const SensitivityCurve curve = curve_of(
      {0.5, 8},
      [](double factor) {
        return Tangent{3 + factor, 1};
      },
      probes);
  EXPECT_EQ(curve.points.size(), 2U);
  EXPECT_EQ(probes, 4);
}

TEST(CurveSearch, SaysWhereTheTimeJumps) {
  int probes = 0;
  const SensitivityCurve curve = curve_of(
      {0.5, 8},
      [](double factor) {
        return Tangent{factor < 3 ? 4 + factor : 2 + factor, 1};
      },
      probes);
  ASSERT_EQ(curve.not_convex.size(), 1U);
  EXPECT_LE(curve.not_convex.front().low, 3);
  EXPECT_GE(curve.not_convex.front().high, 3);
}

TEST(CurveSearch, StopsWhereThereIsNoEndOfBreakpoints) {
  int probes = 0;
  const SensitivityCurve curve = curve_of(
      {0.5, 8},
      [](double x) {
        return Tangent{x * x, 2 * x};
      },
      probes, 20);
  EXPECT_EQ(probes, 24);
  EXPECT_GT(curve.most_above_s, 0);
  for (double x = 0.5; x <= 8; x += 0.01) {
    EXPECT_GE(curve.time_s(x), x * x - 1e-9);
    EXPECT_LE(curve.time_s(x), x * x + curve.most_above_s + 1e-9);
  }
}

TEST(CurveSearch, ErrorsOfTheReplayEndIt) {
  const auto curves = engine::find_curves(
      {CurveSearch({0.5, 2})}, [](auto) -> Result<std::vector<Tangent>> { return invalid_input("cut off"); });
  ASSERT_FALSE(curves.ok());
  EXPECT_EQ(curves.error().message, "cut off");
}

TEST(Parameters, HaveNames) {
  for (const Parameter parameter : engine::kParameters)
    EXPECT_EQ(engine::parameter_named(engine::parameter_name(parameter)), parameter);
  EXPECT_FALSE(engine::parameter_named("colour"));
}

TEST(Composition, OnlyWhereNothingIsShared) {
  engine::Target target;
  target.node_of_rank = {0, 0};
  target.network = std::make_shared<const engine::Network>(engine::Network::zero());
  const auto made = engine::Predictor::make(2, {target}, {}, Clocks::kComposed);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("target 1: ranks share processors, links or memory"));
}

}  // namespace
}  // namespace lbf::sensitivity_test
