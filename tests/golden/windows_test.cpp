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

}  // namespace
}  // namespace lbf::golden::windows_test