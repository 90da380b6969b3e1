// The page: whole in itself, well formed, and nothing of a job's words is markup in it.
#include "report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/html_parts.h"
#include "tests/unit/report/fixture.h"

namespace lbf::report::html_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

PictureTimeline timeline(std::size_t rows, std::size_t columns) {
  const std::vector<int> most(columns, 70);
  const std::vector<int> some(columns, 25);
  const std::vector<int> few(columns, 5);
  return {columns, std::vector(rows, most), std::vector(rows, some), std::vector(rows, few)};
}

PictureMatrix matrix(std::uint32_t blocks, std::uint32_t nodes) {
  PictureMatrix made;
  for (std::uint32_t i = 0; i < blocks; ++i) {
    made.first_rank.push_back(i);
    made.node.push_back(i * nodes / blocks);
    made.bytes.emplace_back(blocks, 0);
    made.bytes.back()[(i + 1) % blocks] = 1000 * (i + 1);
  }
  made.bytes_inside_nodes = 3000;
  made.bytes_between_nodes = 7000;
  return made;
}

Picture picture() {
  Picture made;
  made.ranks = 4;
  made.column_s = 0.1;
  made.measured = timeline(4, 40);
  made.predicted = timeline(4, 20);
  made.matrix_ran = matrix(4, 2);
  made.matrix_target = matrix(4, 1);
  return made;
}

std::string page_of(const Step& step, std::optional<Picture> drawn = std::nullopt, const std::string& json = "{}") {
  HtmlPage page;
  page.step = &step;
  page.step_json = json;
  page.picture = std::move(drawn);
  page.version = "1.2.3";
  return render_html(page);
}

// Every element that was opened is closed, in order; the first complaint, or nothing.
std::string why_not_well_formed(const std::string& html) {
  static const std::set<std::string> kEmpty{"meta", "link", "br", "!DOCTYPE"};
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    if (!open.empty() && open.back() == "style" && html.compare(at, 7, "</style") != 0) continue;
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "'<' without '>' at " + html.substr(at, 40);
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /\n", 1));
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1))
        return "</" + tag.substr(1) + "> does not close " + (open.empty() ? "anything" : open.back());
      open.pop_back();
    } else if (tag.back() != '/' && kEmpty.count(name) == 0) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

TEST(Html, AWholePageIsWellFormedAndNeedsNothing) {
  const Step step = fixture("normal.json")[0];
  const std::string page = page_of(step, picture());
  EXPECT_EQ(why_not_well_formed(page), "");
  for (const char* outside : {"http:", "https:", "<script", "@import", "url(", "NaN", "nan", "inf\""})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, AllOf(HasSubstr("Job 123.0 lmp"), HasSubstr("Predicted time over nodes"),
                          HasSubstr("Time against node-hours"), HasSubstr("Who sends to whom"),
                          HasSubstr("What the ranks do when"), HasSubstr("lbf-report 1.2.3")));
  EXPECT_THAT(page, Not(HasSubstr("class=\"missing\"></")));
}

TEST(Html, IdsAreUnique) {
  const std::string page = page_of(fixture("normal.json")[0], picture());
  std::set<std::string> ids;
  for (std::size_t at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1)) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  EXPECT_GE(ids.size(), 7U);
}

TEST(Html, AJobsWordsAreOnlyText) {
  Step step = fixture("normal.json")[0];
  const std::string evil = "<b onload=\"x\">&'\x1b";
  for (std::string* word :
       {&step.command, &step.user_name, &step.account, &step.partition, &step.network, &step.why_partial})
    *word = evil;
  step.notes = {evil};
  step.nodes = {evil};
  for (TargetPrediction& target : step.predictions) {
    target.network = evil;
    target.target = evil;
    target.placement = evil;
    target.nodes = 2;
  }
  const std::string page = page_of(step, picture(), R"({"cost":{"state":"<b onload=\"x\">"}})");
  EXPECT_THAT(page, Not(HasSubstr("<b ")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_EQ(why_not_well_formed(page), "");
  EXPECT_EQ(html::escaped("<a href='\"&"), "&lt;a href=&#39;&quot;&amp;");
}

TEST(Html, WhatIsMissingIsSaidWhereItWouldStand) {
  Step step = fixture("no_predictions.json")[0];
  const std::string page = page_of(step);
  EXPECT_EQ(why_not_well_formed(page), "");
  EXPECT_THAT(page,
              AllOf(HasSubstr("no cost record"), HasSubstr("No timelines"), HasSubstr("No communication matrix")));
  EXPECT_EQ(why_not_well_formed(page_of(Step{})), "");
  HtmlPage with_reason;
  const Step normal = fixture("normal.json")[0];
  with_reason.step = &normal;
  with_reason.why_no_picture = "the trace is gone & over";
  EXPECT_THAT(render_html(with_reason), HasSubstr("No timelines: the trace is gone &amp; over"));
}

TEST(Html, ARunningOrAPartialStepAndWindows) {
  for (const char* name : {"running.json", "partial.json", "windows.json", "odd_texts.json"}) {
    for (const Step& step : fixture(name)) EXPECT_EQ(why_not_well_formed(page_of(step, picture())), "") << name;
  }
  EXPECT_THAT(page_of(fixture("running.json")[0]), HasSubstr("Measured so far"));
}

TEST(Html, EveryTimeThatIsDrawnHasTheIntervalThatTheWordsGive) {
  Step step = fixture("normal.json")[0];
  const std::string curves = html::curves_figure(step);
  const auto count = [](const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  const std::string kBar = "stroke-width=\"1.5\"";
  EXPECT_EQ(count(curves, kBar), 2 * 5U) << "of five times, for a phone and for a desk";
  EXPECT_EQ(count(html::pareto_figure(step, nullptr), kBar), 2 * 5U);
  EXPECT_THAT(curves, HasSubstr("1 node, lan-100: 12.30 s (11.2"));  // 8.7 %
  step.predictions[2].memory_percent = 50;
  EXPECT_THAT(html::curves_figure(step), HasSubstr("1 node, lan-100: 5.0"));
  step.predictions[2].network = "zero";
  step.predictions[2].nodes = 2;
  const std::string bound = html::curves_figure(step);
  EXPECT_THAT(bound, HasSubstr("2 nodes, zero: at best 5.0"));
  EXPECT_EQ(count(bound, kBar), 2 * 4U);
  EXPECT_EQ(count(html::pareto_figure(step, nullptr), kBar), 2 * 4U) << "a bound is on no front";
}

TEST(Html, TheTargetThatIsShown) {
  Step step = fixture("normal.json")[0];
  // The advised one on the network that ran: 1 node, 12.3 s instead of 15.2 s.
  ASSERT_TRUE(chosen_target(step).has_value());
  EXPECT_EQ(step.predictions[*chosen_target(step)].predicted_s, 12.3);
  // Nothing is advised: the fastest that did not run.
  for (TargetPrediction& target : step.predictions) {
    if (!target.is_self()) target.predicted_s = 100 + *target.predicted_s;
  }
  EXPECT_EQ(step.predictions[*chosen_target(step)].predicted_s, 108.0);
  step.predictions.resize(1);
  EXPECT_EQ(chosen_target(step), 0U) << "what ran is all there is";
  step.predictions.clear();
  EXPECT_FALSE(chosen_target(step).has_value());
}

TEST(Html, BytesInUnits) {
  EXPECT_EQ(html::bytes_text(0), "0 B");
  EXPECT_EQ(html::bytes_text(1023), "1023 B");
  EXPECT_EQ(html::bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(html::bytes_text(3.0 * 1024 * 1024 * 1024), "3 GiB");
}

TEST(Html, PicturesThatDoNotFitTogetherAreRefused) {
  EXPECT_FALSE(parse_picture("[]").ok());
  EXPECT_FALSE(parse_picture("{\"target\":0}").ok());
  EXPECT_FALSE(parse_picture("no json").ok());
}

TEST(Html, TimeThatIsInNoEventIsMissed) {
  Step step = fixture("normal.json")[0];
  step.measured_s = 4.1;  // 40 columns of 0.1 s are drawn
  EXPECT_THAT(page_of(step, picture()), Not(HasSubstr("What was recorded ends at")));
  step.measured_s = 8;
  EXPECT_THAT(page_of(step, picture()), HasSubstr("What was recorded ends at 4.00 s of the 8.00 s that were measured"));
  Picture partial = picture();
  partial.why_partial = "a batch is damaged";
  EXPECT_THAT(page_of(step, partial), Not(HasSubstr("What was recorded ends at"))) << "it says why already";
}

// Bars of several networks stood on each other.
TEST(Html, PointsOfSeveralNetworksOnOneNodeCountStandSideBySide) {
  const std::string figure = html::curves_figure(fixture("normal.json")[0]);
  const std::string mark = "class=\"hit\" cx=\"";
  std::multiset<std::string> places;
  for (std::size_t at = figure.find(mark, figure.find("class=\"desk\"")); at != std::string::npos;
       at = figure.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    places.insert(figure.substr(begin, figure.find('"', begin) - begin));
  }
  EXPECT_GE(places.size(), 4U);
  for (const std::string& place : places) EXPECT_EQ(places.count(place), 1U) << place;
}

TEST(Html, AMatrixWithoutBytes) {
  Picture empty = picture();
  for (PictureMatrix* one : {&empty.matrix_ran, &empty.matrix_target}) {
    for (auto& row : one->bytes) row.assign(row.size(), 0);
    one->bytes_inside_nodes = one->bytes_between_nodes = 0;
  }
  const std::string page = page_of(fixture("normal.json")[0], empty);
  EXPECT_EQ(why_not_well_formed(page), "");
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace lbf::report::html_test