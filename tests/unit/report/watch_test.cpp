// A running step on a screen of any size, and as a line.
#include "report/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "report/text.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::watch_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const auto kThen = std::chrono::steady_clock::time_point(100s);

Step running_step() {
  Step step = fixture("running.json")[0];
  step.events = 5'000;
  step.messages = 2'000;
  step.stored_bytes = 30'000;
  return step;
}

TEST(Watch, RatesAreOfTheTimeBetweenTwoLooks) {
  const Step step = running_step();
  const WatchSample now = sample_of(step, kThen + 4s);
  const WatchSample before{kThen, 1'000, 500, 10'000};
  const std::string screen = render_watch(step, &before, now, {});
  EXPECT_THAT(screen, AllOf(HasSubstr("5 k events, 2 k messages, 1 k events/s, 5 kB/s stored")));
  EXPECT_THAT(render_watch(step, nullptr, now, {}), Not(HasSubstr("/s")));
  // lbfd was started anew and counts from the beginning.
  const WatchSample more{kThen, 9'000, 9'000, 90'000};
  EXPECT_THAT(render_watch(step, &more, now, {}), HasSubstr("0 events/s"));
  const WatchSample same{kThen + 4s, 1'000, 0, 0};
  EXPECT_THAT(render_watch(step, &same, now, {}), Not(HasSubstr("inf")));
}

TEST(Watch, WhatRunsAndHowFarItIs) {
  const Step step = running_step();
  const std::string screen = render_watch(step, nullptr, sample_of(step, kThen), {});
  EXPECT_THAT(screen, AllOf(StartsWith("Job 7.1  solve"), HasSubstr("running, "), HasSubstr("network ib"),
                            HasSubstr("measured 100.0 s, 50 % of it replayed"), HasSubstr("MPI time modelled: ")));
  EXPECT_THAT(screen, HasSubstr("1 node, ib"));
  EXPECT_LT(screen.find("1 node, ib"), screen.find("(runs now)")) << "the fastest first";
  const std::string line = watch_line(step, nullptr, sample_of(step, kThen));
  EXPECT_THAT(
      line, AllOf(StartsWith("7.1 running, measured 100.0 s, 50 % replayed"), HasSubstr("fastest 1 node, ib 40.00 s")));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
}

// An lbfd of before says a number all the same.
TEST(Watch, NoNumberFromAMoment) {
  std::string text = fixture_text("windows.json");
  for (const auto& [from, to] :
       {std::pair{"\"seen_share\":0.081,\"low_s\":57.0", "\"seen_share\":0.002,\"low_s\":null"},
        std::pair{"\"seen_share\":0.081,\"low_s\":36.5", "\"seen_share\":0.002,\"low_s\":null"}}) {
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), std::string_view(from).size(), to);
  }
  const auto steps = parse_steps(text);
  ASSERT_TRUE(steps.ok());
  const Step& step = steps->front();
  const std::string screen = render_watch(step, nullptr, sample_of(step, kThen), {});
  EXPECT_THAT(screen, AllOf(HasSubstr("No prediction: only 0.2 % of the run was captured"), Not(HasSubstr("Predicted")),
                            Not(HasSubstr("40.00 s"))));
  EXPECT_THAT(watch_line(step, nullptr, sample_of(step, kThen)), Not(HasSubstr("fastest")));
}

TEST(Watch, AShortScreenCountsWhatDoesNotFit) {
  Step step = running_step();
  for (std::uint32_t nodes = 4; nodes < 40; ++nodes) {
    TargetPrediction more = step.predictions[1];
    more.nodes = nodes;
    more.predicted_s = 50.0 + nodes;
    step.predictions.push_back(more);
  }
  for (const std::size_t height : {1U, 24U, 40U}) {
    const std::string screen = render_watch(step, nullptr, sample_of(step, kThen), {80, height, false});
    EXPECT_THAT(screen, HasSubstr(" more\n")) << height;
    const auto lines = static_cast<std::size_t>(std::count(screen.begin(), screen.end(), '\n'));
    EXPECT_LE(lines, std::max<std::size_t>(height, 20)) << screen;
  }
  EXPECT_THAT(render_watch(step, nullptr, sample_of(step, kThen), {80, 100, false}), Not(HasSubstr(" more\n")));
}

TEST(Watch, NoLineIsWiderThanTheScreen) {
  Step step = running_step();
  step.command = "/usr/bin/" + std::string(200, 'x') + " -in " + std::string(200, 'y');
  for (const std::size_t width : {70U, 80U, 120U}) {
    std::istringstream screen(render_watch(step, nullptr, sample_of(step, kThen), {width, 24, false}));
    for (std::string line; std::getline(screen, line);) {
      // Flags to be pasted stay whole.
      if (line.find("srun ") != std::string::npos) continue;
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(Watch, BeforeAnythingIsKnown) {
  Step step;
  step.job = 9;
  const WatchSample nothing = sample_of(step, kThen);
  EXPECT_EQ(nothing.events, 0U);
  const std::string screen = render_watch(step, nullptr, nothing, {});
  EXPECT_THAT(screen, AllOf(HasSubstr("measured: not yet"), HasSubstr("unknown nodes"), HasSubstr("network unknown"),
                            HasSubstr("MPI time modelled: unknown"), HasSubstr("No prediction yet")));
  EXPECT_THAT(watch_line(step, nullptr, nothing), StartsWith("9.0 running, 0 events"));
}

TEST(Watch, ColorsAndControlCharacters) {
  const auto steps =
      parse_steps(R"({"job":7,"step":1,"state":"running","command":["a\u001b[2Jb"],"network":"\u001b]0;x"})");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  const Step& step = steps->front();
  EXPECT_THAT(render_watch(step, nullptr, sample_of(step, kThen), {80, 24, false}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(watch_line(step, nullptr, sample_of(step, kThen)), Not(HasSubstr("\x1b")));
  EXPECT_THAT(render_watch(step, nullptr, sample_of(step, kThen), {80, 24, true}), StartsWith("\x1b[1mJob 7.1"));
}

}  // namespace
}  // namespace lbf::report::watch_test