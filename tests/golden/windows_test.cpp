// Capture windows by hand: what passed in a window, and what the capture itself took of it (docs/cost-system.md,
// "Extrapolation").
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "predictor/engine/metric/predictor.h"
#include "tests/golden/predict.h"

namespace lbf::golden::windows_test {
namespace {

// Rank 0 works 1 s a window and sends, rank 1 works 0.25 s and polls until the message is there, which no event says
// but the window's close, or the run's end. 6 s lie between the windows.
struct Polled {
  std::vector<std::vector<Event>> events{2};
  void add(std::size_t rank, EventKind kind, Seconds process_s, Seconds call_s = 0) {
    Event event;
    event.kind = kind;
    event.process_s = process_s;
    event.call_s = call_s;
    event.bytes = kind == EventKind::kWindowOpen ? 2 : 0;
    event.peer = 1 - static_cast<Rank>(rank);
    events[rank].push_back(event);
  }
  void window(EventKind end) {
    add(0, EventKind::kSend, 1);
    add(0, end, 0);
    add(1, EventKind::kRecv, 0.25);
    add(1, end, 0, 0.75);
  }
  // Recorded whole: the work, and the message.
  void part() {
    add(0, EventKind::kSend, 1);
    add(1, EventKind::kRecv, 0.25);
  }
  void phase(std::size_t rank, std::int32_t level) { events[rank].push_back(phase_event(level)); }
  // MPI_Pcontrol(0), and AWAY_S later (1), in window NUMBER. Rank 1 had polled for 0.75 s.
  void outside(std::size_t rank, Seconds away_s, std::uint64_t number = 1) {
    phase(rank, kScopeEnds);
    add(rank, EventKind::kWindowClose, 0, rank == 1 ? 0.75 : 0);
    events[rank].push_back(window_open_event(number));
    events[rank].back().call_s = away_s;
    phase(rank, kScopeBegins);
  }
  void exit() {
    add(0, EventKind::kExit, 0);
    add(1, EventKind::kExit, 0, 0.75);
  }
  void away() {
    for (const std::size_t rank : {0U, 1U}) add(rank, EventKind::kWindowOpen, 0, 6);
  }
  std::unique_ptr<engine::Predictor> replay(Seconds latency_s, const engine::CaptureCost& cost = {}) const {
    const std::string table =
        "name = \"n\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, " + std::to_string(latency_s * 1e6) + "]]\n";
    auto predictor = std::move(engine::Predictor::make(2, {make_target(2, "block", 2, 1, network(table))})).value();
    predictor->set_capture_cost(cost);
    for (const Rank rank : {0, 1}) {
      const Result<void> fed = predictor->feed(rank, events[static_cast<std::size_t>(rank)]);
      EXPECT_TRUE(fed.ok());
      predictor->close(rank);
    }
    return predictor;
  }
};

TEST(Windows, WaitingThatIsInNoEventIsTimeOfTheWindow) {
  for (const bool closed : {true, false}) {
    Polled polled;
    polled.window(EventKind::kWindowClose);
    polled.away();
    if (!closed) polled.window(EventKind::kExit);
    for (const std::size_t rank : {0U, 1U}) {
      if (closed) polled.add(rank, EventKind::kExit, 0);
    }
    const engine::Prediction prediction = polled.replay(0)->predictions().front();
    EXPECT_TRUE(prediction.complete);
    EXPECT_NEAR(prediction.lbf_s, closed ? 7 : 8, 1e-9) << "as it ran";
    for (const Seconds measured_s : prediction.rank_measured_s) EXPECT_NEAR(measured_s, closed ? 7 : 8, 1e-9);
    EXPECT_NEAR(prediction.seen_share, closed ? 1 / 7.0 : 2 / 8.0, 1e-9);
    // A message that takes 0.5 s makes 2.5 s of the two ranks' 2 s, and so of all the rest. In a second window rank 1
    // is behind already: what follows the first one is as the second.
    EXPECT_NEAR(polled.replay(0.5)->predictions().front().lbf_s, closed ? 1.5 + 6 * 1.25 : 2.5 + 6, 1e-9);
  }
}

// Of the window that is open the time that is in no event is measured as far as it was told: two windows of 1 s each, 6
// s between them.
TEST(Windows, ARunUnderWayHasWhatWasToldOfItsWindow) {
  Polled polled;
  polled.window(EventKind::kWindowClose);
  polled.away();
  polled.add(0, EventKind::kSend, 1);
  polled.add(1, EventKind::kRecv, 0.25);
  polled.add(1, EventKind::kKeepAlive, 0, 0.75);
  const engine::Prediction prediction = polled.replay(0)->predictions().front();
  EXPECT_FALSE(prediction.complete);
  for (const Seconds measured_s : prediction.rank_measured_s) EXPECT_NEAR(measured_s, 8, 1e-9);
  EXPECT_NEAR(prediction.lbf_s, 8, 1e-9);
  EXPECT_NEAR(prediction.seen_share, 2 / 8.0, 1e-9);
}

// It is the window's, not that of the block in which it was told: the interval is the same whenever that was.
TEST(Windows, TimeInNoEventIsOfNoBlockWheneverItIsTold) {
  const auto predict = [](bool early) {
    Polled polled;
    for (int i = 0; i < 64; ++i) {
      polled.add(0, EventKind::kSend, 0.05 + 0.01 * (i % 3));
      polled.add(1, EventKind::kRecv, 0.02);
      if (early && i == 40) polled.add(1, EventKind::kKeepAlive, 0, 0.5);
    }
    polled.add(0, EventKind::kWindowClose, 0);
    polled.add(1, EventKind::kWindowClose, 0, early ? 0.3 : 0.8);
    polled.away();
    for (const std::size_t rank : {0U, 1U}) polled.add(rank, EventKind::kExit, 0);
    return polled.replay(0.01)->predictions().front();
  };
  const engine::Prediction late = predict(false);
  const engine::Prediction early = predict(true);
  ASSERT_LT(late.high_s, kNeverS);
  EXPECT_GT(late.high_s, late.lbf_s + 0.01);
  EXPECT_NEAR(early.lbf_s, late.lbf_s, 1e-9);
  EXPECT_NEAR(early.low_s, late.low_s, 1e-9);
  EXPECT_NEAR(early.high_s, late.high_s, 1e-9);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_NEAR(early.rank_measured_s[rank], late.rank_measured_s[rank], 1e-9);
}

// A fifth of the windows' time is the recording's: of what a second of the two ranks takes elsewhere, too, so that the
// program itself is slower by 0.5 in 1.6, not in 2. The interval has the other readings.
TEST(Windows, WhatTheCaptureTookIsNoTimeOfTheProgram) {
  Polled polled;
  polled.window(EventKind::kWindowClose);
  polled.away();
  for (const std::size_t rank : {0U, 1U}) polled.add(rank, EventKind::kExit, 0);
  const engine::CaptureCost cost{0.4, 0};
  EXPECT_NEAR(polled.replay(0, cost)->predictions().front().lbf_s, 7, 1e-9) << "as it ran";
  EXPECT_NEAR(polled.replay(0.5, cost)->predictions().front().lbf_s, 1.5 + 6 * 2.1 / 1.6, 1e-9);
}

// What the program does outside of its scope takes no time, on no target: parts of it follow one another.
TEST(Scope, WhatTheProgramAskedForIsWhatIsPredicted) {
  Polled polled;
  polled.part();
  polled.outside(0, 6);
  polled.outside(1, 5.5);
  polled.part();
  polled.exit();
  for (const Seconds latency_s : {0.0, 0.5}) {
    const engine::Prediction prediction = polled.replay(latency_s, {0.25, 0.125})->predictions().front();
    EXPECT_TRUE(prediction.complete);
    EXPECT_NEAR(prediction.lbf_s, 2 + latency_s, 1e-9);
    EXPECT_EQ(prediction.low_s, prediction.lbf_s);
    EXPECT_EQ(prediction.high_s, prediction.lbf_s);
    EXPECT_EQ(prediction.seen_share, 1);
    for (const Seconds measured_s : prediction.rank_measured_s) EXPECT_NEAR(measured_s, 2, 1e-9);
    EXPECT_NEAR(prediction.whole_run_s, 8, 1e-9);
  }
}

TEST(Scope, OtherLevelsAreNoScope) {
  Polled polled;
  polled.part();
  for (const std::int32_t level : {2, -1, 1}) polled.phase(0, level);
  polled.window(EventKind::kWindowClose);
  polled.away();
  polled.exit();
  const engine::Prediction prediction = polled.replay(0)->predictions().front();
  EXPECT_EQ(prediction.whole_run_s, 0);
  EXPECT_LT(prediction.seen_share, 1);
}

// The relay closes a window for 6 s, the program leaves its scope for 10: only the 6 s are taken to be as what was
// seen.
TEST(Scope, OnlyWhatIsInsideIsExtrapolatedTo) {
  for (const bool counted_when_it_ends : {false, true}) {
    Polled polled;
    polled.window(EventKind::kWindowClose);
    if (counted_when_it_ends) {  // an empty window says where the scope ends, and the next one where it begins
      for (const std::size_t rank : {0U, 1U}) {
        polled.events[rank].push_back(window_open_event(1));
        polled.events[rank].back().call_s = 2;
        polled.phase(rank, kScopeEnds);
        polled.add(rank, EventKind::kWindowClose, 0);
        polled.events[rank].push_back(window_open_event(1));
        polled.events[rank].back().call_s = 10;
        polled.phase(rank, kScopeBegins);
        polled.add(rank, EventKind::kWindowClose, 0);
        polled.events[rank].push_back(window_open_event(2));
        polled.events[rank].back().call_s = 4;
      }
    } else {
      polled.away();
    }
    polled.part();
    if (!counted_when_it_ends) {
      polled.outside(0, 10, 2);
      polled.outside(1, 10, 2);
      polled.part();
    }
    polled.exit();
    const int parts = counted_when_it_ends ? 2 : 3;
    const engine::Prediction prediction = polled.replay(0)->predictions().front();
    EXPECT_TRUE(prediction.complete);
    EXPECT_NEAR(prediction.lbf_s, parts + 6, 1e-9);
    EXPECT_NEAR(prediction.whole_run_s, parts + 16, 1e-9);
    EXPECT_NEAR(prediction.seen_share, parts / (parts + 6.0), 1e-9);
    EXPECT_LE(prediction.low_s, prediction.lbf_s);
    EXPECT_GE(prediction.high_s, prediction.lbf_s);
  }
}

// Rank 1 needs 2.5 s for each part and rank 0 waits for it outside: in their own times they are far apart, and all of
// it was seen.
TEST(Scope, RanksThatMeetOutsideAreSeenTogether) {
  Polled polled;
  for (int i = 0; i < 8; ++i) {
    polled.add(0, EventKind::kCompute, 1);
    polled.add(1, EventKind::kCompute, 2.5);
    for (const std::size_t rank : {0U, 1U}) {
      polled.phase(rank, kScopeEnds);
      polled.add(rank, EventKind::kWindowClose, 0);
      polled.events[rank].push_back(window_open_event(1));
      polled.events[rank].back().call_s = rank == 0 ? 2 : 0.5;
      polled.phase(rank, kScopeBegins);
    }
  }
  for (const std::size_t rank : {0U, 1U}) polled.add(rank, EventKind::kExit, 0);
  const engine::Prediction prediction = polled.replay(0)->predictions().front();
  EXPECT_NEAR(prediction.lbf_s, 20, 1e-9);
  EXPECT_EQ(prediction.seen_share, 1);
  EXPECT_NEAR(prediction.rank_measured_s[0], 8, 1e-9);
  EXPECT_NEAR(prediction.whole_run_s, 24, 1e-9);
}

// Rank 1 alone leaves, and receives the first message outside: inside it receives the second one, which is sent after 4
// s.
TEST(Scope, AMessageMayBeginInsideAndEndOutside) {
  Polled polled;
  polled.add(0, EventKind::kSend, 1);
  polled.add(0, EventKind::kSend, 3);
  polled.add(0, EventKind::kExit, 0);
  polled.phase(1, kScopeEnds);
  polled.add(1, EventKind::kWindowClose, 0);
  Event skipped = skipped_event(SkippedSide::kReceives, 1);
  skipped.peer = 0;
  skipped.tag = polled.events[0].front().tag;
  polled.events[1].push_back(skipped);
  polled.events[1].push_back(window_open_event(1));
  polled.events[1].back().call_s = 2;
  polled.phase(1, kScopeBegins);
  polled.add(1, EventKind::kRecv, 0.5);
  polled.add(1, EventKind::kExit, 0);
  const engine::Prediction prediction = polled.replay(0)->predictions().front();
  EXPECT_TRUE(prediction.complete) << prediction.why_stuck;
  EXPECT_NEAR(prediction.rank_finish_s[1], 4, 1e-9);
  EXPECT_EQ(prediction.seen_share, 1);
}

}  // namespace
}  // namespace lbf::golden::windows_test