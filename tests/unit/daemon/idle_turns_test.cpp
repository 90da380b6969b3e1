// IdleTurns: when a replay on the programs' own machine rests, and for how long.
#include "predictor/daemon/steps/idle_turns.h"

#include <gtest/gtest.h>

namespace lbf::idle_turns_test {
namespace {

TEST(IdleTurns, OnAnIdleProcessorThereIsNoRest) {
  daemon::IdleTurns turns;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(turns.rest_after(0.003, 0.0031), 0);
}

TEST(IdleTurns, WhereAllProcessorsAreBusyItTakesTwoThousandthsOfOne) {
  // Nice 19 beside one busy thread: 15 parts of 1039 of the time.
  daemon::IdleTurns turns;
  const Seconds rest_s = turns.rest_after(0.003, 0.003 * 1039 / 15);
  EXPECT_NEAR(0.003 / rest_s, 0.002, 1e-9);
}

TEST(IdleTurns, OfShortTurnsItWaitsForEnoughToTell) {
  daemon::IdleTurns turns;
  EXPECT_EQ(turns.rest_after(0.0001, 0.0004), 0);
  EXPECT_EQ(turns.rest_after(0.0001, 0.0004), 0);
  EXPECT_NEAR(turns.rest_after(0.0001, 0.0004), 0.0003 / 0.002, 1e-9);
  EXPECT_EQ(turns.rest_after(0.0001, 0.0004), 0) << "what was judged is judged once";
}

TEST(IdleTurns, ALongTurnIsNotPaidForWithMinutes) {
  daemon::IdleTurns turns;
  EXPECT_EQ(turns.rest_after(1, 70), 10);
}

TEST(IdleTurns, ItGoesOnAtOnceWhenAProcessorIsLeft) {
  daemon::IdleTurns turns;
  EXPECT_GT(turns.rest_after(0.003, 0.2), 0);
  EXPECT_EQ(turns.rest_after(0.003, 0.003), 0);
}

}  // namespace
}  // namespace lbf::idle_turns_test