// Drawings with characters: what is where, in any width.
#include "report/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/advice.h"
#include "report/text.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::plot_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The line and column where `mark` is first; {-1, -1}: nowhere. ASCII only.
std::pair<int, int> place_of(const std::vector<std::string>& lines, char mark) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Behind the axis.
    const std::size_t axis = lines[i].find_first_of("|+");
    if (axis == std::string::npos) continue;
    const std::size_t at = lines[i].find(mark, axis + 1);
    if (at != std::string::npos) return {static_cast<int>(i), static_cast<int>(at)};
  }
  return {-1, -1};
}

TargetPrediction target(std::uint32_t nodes, const std::string& network, const std::string& kind, Seconds seconds) {
  TargetPrediction made;
  made.target = std::to_string(nodes) + " nodes, block";
  made.nodes = nodes;
  made.network = network;
  made.kind = kind;
  made.predicted_s = seconds;
  return made;
}

Step two_networks() {
  Step step;
  step.job = 5;
  step.state = StepState::kComplete;
  step.network = "a";
  step.measured_s = 20;
  step.predictions = {target(2, "a", "self", 19), target(1, "a", "LBF", 40), target(4, "a", "LBF", 10),
                      target(4, "b", "LBF+NF", 5)};
  return step;
}

PlotStyle ascii(std::size_t width = 80, std::size_t height = 16) {
  return {width, height, false, false};
}

TEST(Plot, LongerIsHigherAndMoreNodesAreFurtherRight) {
  const std::vector<std::string> lines = lines_of(render_plot(two_networks(), ascii()));
  // 'o' of the network that ran: first 40 s on 1 node. '^' of the other one: 5 s on 4 nodes. X: measured 20 s
  // on 2 nodes.
  const auto [slow_line, slow_column] = place_of(lines, 'o');
  const auto [fast_line, fast_column] = place_of(lines, '^');
  const auto [measured_line, measured_column] = place_of(lines, 'X');
  ASSERT_GE(slow_line, 0);
  ASSERT_GE(fast_line, 0);
  ASSERT_GE(measured_line, 0);
  EXPECT_LT(slow_line, measured_line);
  EXPECT_LT(measured_line, fast_line);
  EXPECT_LT(slow_column, measured_column);
  EXPECT_LT(measured_column, fast_column);
}

TEST(Plot, HeightsAreProportional) {
  // 0 to 50 s on 51 lines: a line is a second.
  const std::vector<std::string> lines = lines_of(render_plot(two_networks(), ascii(80, 51)));
  const int top = place_of(lines, 'o').first;
  EXPECT_EQ(place_of(lines, 'X').first - top, 20);
  EXPECT_EQ(place_of(lines, '^').first - top, 35);
}

TEST(Plot, TheLegendNamesNetworksAndTheBest) {
  const std::string text = render_plot(two_networks(), ascii());
  EXPECT_THAT(text, HasSubstr("o a (the network that ran): fastest on 4 nodes, 10.00 s"));
  EXPECT_THAT(text, HasSubstr("^ b: fastest on 4 nodes, 5.000 s"));
  EXPECT_THAT(text, HasSubstr("X measured, 20.00 s"));
  EXPECT_THAT(text, Not(HasSubstr("least time")));
}

// Bars were drawn only where the capture had not seen the whole run.
TEST(Plot, TheIntervalThatTheWordsGive) {
  Step step = two_networks();
  step.predictions = {target(2, "a", "self", 20)};
  step.predictions.push_back(target(4, "a", "LBF", 10));
  step.measured_s.reset();
  // Without a measured time 8 %, and 8 % |ln(1/2)| for the change: 10 s, 8.65 to 11.35 s.
  const auto saying = saying_of(step, step.predictions[1]);
  ASSERT_TRUE(saying);
  EXPECT_NEAR(saying->low_s, 8.65, 0.01);
  step.predictions[1].memory_percent = 70;  // 1.65 to 18.35 s: a range
  const auto bars_of = [&] {
    int bars = 0;
    for (const std::string& text : lines_of(render_plot(step, ascii(80, 51)))) {
      for (std::size_t at = 12; at < text.size(); ++at) bars += text[at] == '|' ? 1 : 0;
    }
    return bars;
  };
  const int of_range = bars_of();
  EXPECT_NEAR(of_range, (18.35 - 1.65) / 0.5 + 1.6 * 2 / 0.5, 4) << "a line is half a second";
  const std::string text = render_plot(step, ascii(80, 51));
  EXPECT_THAT(text, HasSubstr("| how far a time may be off"));
  EXPECT_THAT(text, HasSubstr("a (the network that ran): fastest on 4 nodes, 1.6"));
  step.predictions[1].memory_percent = 0;
  EXPECT_LT(bars_of(), of_range);
}

TEST(Plot, ABoundHasAMarkAndNoBar) {
  Step step = two_networks();
  step.network = "zero";
  step.predictions = {target(1, "zero", "self", 20), target(2, "zero", "LBF", 10)};
  const std::string text = render_plot(step, ascii(80, 51));
  EXPECT_THAT(text, HasSubstr("zero: on more than one node the least time"));
  EXPECT_THAT(text, HasSubstr("lbf-calibrate --name"));
  EXPECT_THAT(text, HasSubstr("fastest on 1 node, 20.00 s"));
}

TEST(Plot, NoLineIsWiderThanAskedForAndNothingIsTooNarrow) {
  for (const std::size_t width : {0U, 40U, 79U, 200U}) {
    for (const bool unicode : {false, true}) {
      for (const std::string& line : lines_of(render_plot(two_networks(), {width, 10, unicode, false})))
        EXPECT_LE(display_width(line), std::max<std::size_t>(width, 40)) << line;
    }
  }
}

TEST(Plot, EqualTimesHideNothing) {
  Step step = two_networks();
  step.predictions = {target(2, "a", "self", 20), target(2, "b", "NF", 20), target(2, "c", "NF", 20)};
  const std::vector<std::string> lines = lines_of(render_plot(step, ascii()));
  for (const char mark : {'o', '^', '#', 'X'}) EXPECT_GE(place_of(lines, mark).first, 0) << mark;
}

TEST(Plot, ColorsAreTakenBack) {
  const std::string text = render_plot(two_networks(), {80, 10, true, true});
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_GT(count("\x1b[34m"), 0U);
  EXPECT_EQ(count("\x1b[0m") * 2, count("\x1b["));
}

TEST(Plot, ASingleTimeAndNone) {
  Step step = two_networks();
  step.predictions.resize(1);
  EXPECT_THAT(render_plot(step, ascii(80, 0)), HasSubstr("fastest on 2 nodes"));
  step.predictions[0].predicted_s = 0;
  step.measured_s.reset();
  EXPECT_THAT(render_plot(step, ascii()), HasSubstr("fastest on 2 nodes"));
  step.predictions.clear();
  EXPECT_THAT(render_plot(step, ascii()), HasSubstr("There is no prediction to draw."));
  step.state = StepState::kRunning;
  EXPECT_THAT(render_plot(step, ascii()), HasSubstr("ask again in a moment"));
}

TEST(Plot, ManyNetworksAndNodeCounts) {
  Step step = two_networks();
  step.predictions.resize(1);
  for (std::uint32_t nodes = 1; nodes <= 4096; nodes *= 2) {
    for (int network = 0; network < 10; ++network)
      step.predictions.push_back(target(nodes, "n" + std::to_string(network), "LBF", 100.0 / nodes + network));
  }
  const std::string text = render_plot(step, ascii(60));
  EXPECT_THAT(text, HasSubstr("n9: fastest on 4096 nodes"));
  EXPECT_THAT(text, HasSubstr("4096"));
}

}  // namespace
}  // namespace lbf::report::plot_test