// Where the critical path passes: by hand, on random programs against replays of changed programs, and the memory of
// it.
#include "predictor/engine/metric/path_composition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "predictor/engine/match/matcher.h"
#include "predictor/engine/metric/predictor.h"
#include "predictor/engine/metric/target_checks.h"
#include "predictor/engine/replay/dedicated_replay.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/random_trace.h"

namespace lbf::path_composition_test {
namespace {

using engine::Clocks;
using engine::Composed;
using engine::PathBy;
using engine::PathNotes;
using engine::PathPart;
using engine::PathPlace;
using engine::PathShare;
using engine::Term;

constexpr std::uint16_t kFunctions = 6;

// Calls of several functions. Work is whole nanoseconds there.
random_trace::Trace make_trace(std::mt19937_64& random) {
  random_trace::Trace trace = random_trace::make_trace(random);
  for (std::vector<Event>& events : trace.events) {
    for (Event& event : events) event.function = static_cast<std::uint16_t>(1 + random() % kFunctions);
  }
  return trace;
}

// On which each rank has its processors.
engine::Target make_target(std::mt19937_64& random, Rank ranks) {
  engine::Target target = random_trace::make_configuration(random, ranks).target;
  target.cores_per_node = 4 * static_cast<std::uint32_t>(ranks);
  target.cores_of_node.clear();
  target.memory = {};
  auto network = std::make_shared<engine::Network>(*target.network);
  network->set_contention(engine::Contention::kNone);
  target.network = std::move(network);
  return target;
}

std::vector<engine::Prediction> predict(const std::vector<std::vector<Event>>& events,
                                        const std::vector<engine::Target>& targets, Clocks clocks,
                                        engine::ProcedurePlan plan = {}) {
  const auto ranks = static_cast<Rank>(events.size());
  auto made = engine::Predictor::make(ranks, targets, std::move(plan), clocks);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  for (Rank rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE((*made)->feed(rank, events[static_cast<std::size_t>(rank)]).ok());
    (*made)->close(rank);
  }
  EXPECT_TRUE((*made)->advance().ok());
  return (*made)->predictions();
}

std::array<Seconds, engine::kTerms> sum_of(const auto& entries) {
  std::array<Seconds, engine::kTerms> sum{};
  for (const auto& entry : entries) {
    for (std::size_t term = 0; term < engine::kTerms; ++term) sum[term] += entry.terms[term];
  }
  return sum;
}

void expect_sum(const std::array<Seconds, engine::kTerms>& sum, const Composed& all) {
  for (std::size_t term = 0; term < engine::kTerms; ++term)
    ASSERT_NEAR(sum[term], all.terms[term], 1e-12 * std::max(1.0, all.value)) << "term " << term;
}

TEST(PathComposition, PartsSumUpToTheTime) {
  int complete = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = make_trace(random);
    std::vector<engine::Target> targets;
    for (int i = 0; i < 3; ++i) targets.push_back(make_target(random, trace.ranks));
    const auto plain = predict(trace.events, targets, Clocks::kPlain);
    const auto followed = predict(trace.events, targets, Clocks::kFollowed);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (!plain[t].complete) continue;
      ++complete;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(plain[t].lbf_s), std::bit_cast<std::uint64_t>(followed[t].lbf_s));
      ASSERT_TRUE(followed[t].path);
      EXPECT_FALSE(plain[t].path);
      EXPECT_EQ(followed[t].path->all.value, followed[t].lbf_s);
      expect_sum(sum_of(followed[t].path->parts), followed[t].path->all);
      for (const PathBy by : {PathBy::kCall, PathBy::kRank, PathBy::kCommunicator, PathBy::kProcedure})
        expect_sum(sum_of(engine::path_shares(*followed[t].path, by)), followed[t].path->all);
    }
  }
  EXPECT_GT(complete, 300);
}

// Work of one rank, or before calls of one function, becomes longer: then the run takes longer by what of that is on
// the path; or by more, where another path becomes the longest.
TEST(PathComposition, WorkIsOfTheRankAndBeforeTheCallWhereItIs) {
  constexpr double kMore = 1e-4;
  constexpr double kRounded = 1e-9;  // events have whole nanoseconds
  int equal = 0;
  int longer = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = make_trace(random);
    const bool looks = std::ranges::any_of(trace.program.processes, [](const reference::Process& process) {
      return std::ranges::any_of(process.actions,
                                 [](const auto& action) { return action.kind == reference::Action::Kind::kLook; });
    });
    const engine::Target target = make_target(random, trace.ranks);
    if (looks || target.network->path(engine::kUnknownHops).first_peer_s > 0) continue;
    const engine::Prediction before = predict(trace.events, {target}, Clocks::kFollowed).front();
    if (!before.complete) continue;
    const auto expect_more = [&](Seconds on_path_s, const auto& is_changed) {
      std::vector<std::vector<Event>> events = trace.events;
      std::size_t count = 1;
      for (std::size_t rank = 0; rank < events.size(); ++rank) {
        for (Event& event : events[rank]) {
          if (is_changed(static_cast<Rank>(rank), event))
            event.process_s = static_cast<Seconds>(event.process_s) * (1 + kMore);
        }
        count += events[rank].size();
      }
      const Seconds more_s = predict(events, {target}, Clocks::kPlain).front().lbf_s - before.lbf_s;
      const double rounded = kRounded * static_cast<double>(count);
      EXPECT_GE(more_s, kMore * on_path_s - rounded);
      ++(more_s <= kMore * on_path_s + rounded ? equal : longer);
    };
    for (Rank rank = 0; rank < trace.ranks; ++rank) {
      Seconds on_path_s = 0;
      for (const PathPart& part : before.path->parts) on_path_s += part.place.rank == rank ? part.of(Term::kWork) : 0;
      expect_more(on_path_s, [&](Rank of, const Event&) { return of == rank; });
    }
    for (std::uint16_t function = 1; function <= kFunctions; ++function) {
      Seconds on_path_s = 0;
      for (const PathPart& part : before.path->parts)
        on_path_s += part.place.function == function ? part.of(Term::kWork) : 0;
      expect_more(on_path_s, [&](Rank, const Event& event) { return event.function == function; });
    }
  }
  EXPECT_GT(equal, 100);
  EXPECT_LT(longer, equal / 50);
}

// The replay as Predictor has it, with other limits.
class Replayed {
 public:
  Replayed(const random_trace::Trace& trace, const engine::Target& target, PathNotes::Limits limits)
      : target_(target),
        store_(trace.ranks, 1),
        matcher_(trace.ranks, store_,
                 {engine::eager_up_to({target}), engine::any_first_message({target}), engine::any_local_cost({target}),
                  true}),
        replay_({&target_}, store_) {
    replay_.follow_paths(0, 0, limits);
    std::size_t longest = 0;
    for (const auto& events : trace.events) longest = std::max(longest, events.size());
    for (std::size_t i = 0; i < longest; ++i) {
      for (Rank rank = 0; rank < trace.ranks; ++rank) {
        const auto& events = trace.events[static_cast<std::size_t>(rank)];
        if (i >= events.size()) continue;
        EXPECT_TRUE(matcher_.feed(rank, events[i]).ok());
      }
      advance();
    }
    for (Rank rank = 0; rank < trace.ranks; ++rank) matcher_.close(rank);
    advance();
  }
  const engine::Replay& replay() const { return replay_; }

 private:
  void advance() {
    matcher_.settle();
    replay_.advance();
    store_.clear_touched();
  }
  engine::Target target_;
  engine::OpStore store_;
  engine::Matcher matcher_;
  engine::DedicatedReplayOf<Composed> replay_;
};

TEST(PathNotes, SummingUpLosesNothing) {
  int folded = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const random_trace::Trace trace = make_trace(random);
    const engine::Target target = make_target(random, trace.ranks);
    const Replayed never(trace, target, {});
    const Replayed always(trace, target, {1, std::size_t{1} << 20});
    const Replayed bounded(trace, target, {1, 0, 2});
    for (Rank rank = 0; rank < trace.ranks; ++rank) {
      const auto expected = never.replay().path_parts(0, rank);
      const auto parts = always.replay().path_parts(0, rank);
      ASSERT_EQ(parts.size(), expected.size());
      for (std::size_t i = 0; i < parts.size(); ++i) {
        ASSERT_EQ(parts[i].place, expected[i].place);
        for (std::size_t term = 0; term < engine::kTerms; ++term)
          ASSERT_NEAR(parts[i].terms[term], expected[i].terms[term],
                      1e-12 * std::max(1.0, never.replay().finish_s(0, rank)));
      }
      const auto few = bounded.replay().path_parts(0, rank);
      expect_sum(sum_of(few), *bounded.replay().composition(0, rank));
      folded += std::ranges::any_of(few, [](const auto& part) { return part.place.rank == PathPlace::kOtherRanks; });
    }
  }
  EXPECT_GT(folded, 0);
}

// Ranks that exchange messages for ever: what their paths have in common is one note, and 300 ranks are bounded.
TEST(PathNotes, MemoryIsBoundedHoweverLongTheTrace) {
  constexpr std::size_t kClocks = 300;
  constexpr PathNotes::Limits kLimits{1000, 2000};
  PathNotes notes(kLimits);
  std::vector<Composed> clocks(kClocks);
  std::mt19937_64 random(1);
  Bytes most = 0;
  const auto place_of = [](std::size_t rank, std::uint64_t step) {
    return PathPlace{static_cast<Rank>(rank), static_cast<std::uint16_t>(1 + step % 5), 0, PathPlace::kNone};
  };
  for (std::uint64_t step = 0; step < 2000; ++step) {
    for (std::size_t rank = 0; rank < kClocks; ++rank) {
      engine::add(clocks[rank], Term::kWork, static_cast<double>(random() % 7));
      notes.note(clocks[rank], place_of(rank, step));
    }
    for (std::size_t rank = 0; step % 3 == 0 && rank < kClocks; ++rank)
      clocks[rank] = std::max(clocks[rank], clocks[random() % kClocks]);
    if (!notes.is_full()) continue;
    notes.collect([&](auto&& visit) {
      for (Composed& clock : clocks) visit(clock);
    });
    most = std::max(most, notes.memory_bytes());
  }
  EXPECT_LT(most, Bytes{2} << 20) << "600,000 notes were written";
  for (std::size_t rank = 0; rank < kClocks; ++rank)
    expect_sum(sum_of(notes.parts(clocks[rank], place_of(rank, 0))), clocks[rank]);
}

// Two ranks on one network without costs: rank 0 works 1 s in f and 2 s outside, rank 1 gets the message and works 4 s.
TEST(PathComposition, ByProcedureAndImbalance) {
  const auto at = [](EventKind kind, double process_s, std::uint16_t function) {
    Event event = event_of_kind(kind);
    event.process_s = process_s;
    event.function = function;
    return event;
  };
  const std::vector<std::uint64_t> f{0};
  std::vector<std::vector<Event>> events(2);
  Event enter = at(EventKind::kEnter, 2, 0);
  enter.values = f;
  Event leave = at(EventKind::kLeave, 1, 0);
  leave.values = f;
  Event send = at(EventKind::kSend, 0, 7);
  send.peer = 1;
  Event receive = at(EventKind::kRecv, 0.5, 9);
  receive.peer = 0;
  events[0] = {enter, leave, send, at(EventKind::kExit, 0, 0)};
  events[1] = {receive, at(EventKind::kExit, 4, 0)};
  engine::Target target;
  target.node_of_rank = {0, 1};
  target.nodes = 2;
  target.network = std::make_shared<const engine::Network>(*engine::Network::parse(
      "name = \"n\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 1e6]]\nsend_cpu = [[0, 0.25e6]]\n", "n.toml"));
  engine::ProcedurePlan plan;
  plan.profiled = {0};
  const engine::Prediction prediction = predict(events, {target}, Clocks::kFollowed, plan).front();
  EXPECT_EQ(prediction.lbf_s, 8.25);
  const engine::PathComposition& path = *prediction.path;
  const auto seconds = [&](PathBy by) {
    std::map<std::int64_t, Seconds> out;
    for (const PathShare& share : engine::path_shares(path, by)) out[share.id] = share.seconds;
    return out;
  };
  using Shares = std::map<std::int64_t, Seconds>;
  EXPECT_EQ(seconds(PathBy::kProcedure), (Shares{{0, 1}, {PathShare::kNone, 7.25}}));
  EXPECT_EQ(seconds(PathBy::kRank), (Shares{{0, 3.25}, {1, 5}})) << "the flight is the receiver's";
  EXPECT_EQ(seconds(PathBy::kCall), (Shares{{PathShare::kNone, 7}, {7, 0.25}, {9, 1}}));
  EXPECT_EQ(seconds(PathBy::kCommunicator), (Shares{{PathShare::kNone, 7}, {0, 1.25}}));
  EXPECT_EQ(path.mean_work_s, (3 + 4.5) / 2);
  EXPECT_EQ(path.imbalance_s(), 7 - 3.75);
}

TEST(PathComposition, OnlyAsTheProgramRan) {
  engine::Target target;
  target.node_of_rank = {0};
  target.network = std::make_shared<const engine::Network>(engine::Network::zero());
  engine::ProcedurePlan plan;
  plan.scenarios.resize(1);
  const auto made = engine::Predictor::make(1, {target}, plan, Clocks::kFollowed);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, testing::HasSubstr("not in scenarios"));
}

}  // namespace
}  // namespace lbf::path_composition_test
