#include "report/accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::report::accuracy_test {
namespace {

constexpr const char* kAnswer = R"({
  "all":{"outcomes":21,"median_percent":-1.25,"p90_percent":7.5,"worst_percent":-12.0},
  "by_distance":[{"distance":"self","outcomes":20,"median_percent":-1.25,"p90_percent":7.5,"worst_percent":8.0},
                 {"distance":"nodes","outcomes":1,"median_percent":-12.0,"p90_percent":12.0,"worst_percent":-12.0}],
  "by_program":[{"program":3,"name":"lmp","build_id":"gnu:0123456789abcdef0123","ranks":16,"outcomes":21,
                 "median_percent":-1.25,"p90_percent":7.5,"worst_percent":-12.0}],
  "by_month":[{"month":"2026-11","outcomes":21,"median_percent":-1.25,"p90_percent":7.5,"worst_percent":-12.0}],
  "by_week":[{"week":"2026-W47","outcomes":21,"median_percent":-1.25,"p90_percent":7.5,"worst_percent":-12.0}]})";

TEST(Accuracy, ATableOfAllGroups) {
  const auto lines = parse_accuracy(kAnswer);
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  EXPECT_EQ(render_accuracy(*lines, {}),
            R"(Group    Key                  BuildID          Outcomes  Median     P90    Worst
-------- -------------------- ---------------- -------- ------- ------- --------
all                                                  21   -1.2%    7.5%   -12.0%
distance self                                        20   -1.2%    7.5%    +8.0%
distance nodes                                        1  -12.0%   12.0%   -12.0%
program  lmp, 16 ranks        gnu:0123456789ab       21   -1.2%    7.5%   -12.0%
month    2026-11                                     21   -1.2%    7.5%   -12.0%
week     2026-W47                                    21   -1.2%    7.5%   -12.0%
)");
}

TEST(Accuracy, ForScripts) {
  const auto lines = parse_accuracy(kAnswer);
  ASSERT_TRUE(lines.ok());
  TableStyle style;
  style.parsable = true;
  style.header = false;
  style.trailing = true;
  const std::string text = render_accuracy(*lines, style);
  EXPECT_THAT(text, testing::StartsWith("all|||21|-1.2%|7.5%|-12.0%|\n"));
  EXPECT_THAT(text, testing::HasSubstr("program|lmp, 16 ranks|gnu:0123456789abcdef0123|21|"));
}

TEST(Accuracy, WithoutOutcomesThereIsNothingButTheHeader) {
  const auto lines = parse_accuracy(
      R"({"all":{"outcomes":0,"median_percent":null,"p90_percent":null,"worst_percent":null},"by_distance":[]})");
  ASSERT_TRUE(lines.ok()) << lines.error().message;
  TableStyle style;
  style.header = false;
  EXPECT_EQ(render_accuracy(*lines, style), "");
  EXPECT_EQ(accuracy_sentence(*lines), "");
}

TEST(Accuracy, InTheWordsOfAPrediction) {
  const auto lines = parse_accuracy(kAnswer);
  ASSERT_TRUE(lines.ok());
  EXPECT_THAT(accuracy_sentence(*lines), testing::StartsWith("Give or take 7.5 %: 90 % of these predictions"));
}

TEST(Accuracy, AnAnswerOfAnotherKindIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"all":{}})", R"({"all":{"outcomes":1},"by_month":[{}]})",
                           R"({"all":{"outcomes":-1}})", R"({"all":{"outcomes":1},"by_week":3})"}) {
    EXPECT_FALSE(parse_accuracy(text).ok()) << text;
  }
  EXPECT_FALSE(parse_error_fit(R"({"program":{"outcomes":1}})").ok());
}

TEST(Accuracy, NamesCannotActOnATerminal) {
  const auto lines = parse_accuracy(
      "{\"all\":{\"outcomes\":1},\"by_program\":[{\"name\":\"a\\u001b[2J\",\"ranks\":1,\"outcomes\":1}]}");
  ASSERT_TRUE(lines.ok());
  EXPECT_THAT(render_accuracy(*lines, {}), testing::Not(testing::HasSubstr("\x1b")));
}

TEST(Accuracy, WhoAndWhenIsAsked) {
  Selection selection;
  EXPECT_EQ(accuracy_target(selection), "/v1/accuracy");
  selection.since = 100;
  selection.until = 200;
  selection.users = {"a b"};
  EXPECT_EQ(accuracy_target(selection), "/v1/accuracy?user=a%20b&since=100&until=200");
  selection.users.clear();
  selection.all_users = true;
  EXPECT_EQ(accuracy_target(selection), "/v1/accuracy?all=1&since=100&until=200");
}

TEST(ErrorFit, OfTheProgramAndTheSite) {
  const auto fit = parse_error_fit(R"({"program":{"outcomes":0,"p90_percent":null},
                                       "site":{"outcomes":12,"p90_percent":9.5}})");
  ASSERT_TRUE(fit.ok()) << fit.error().message;
  EXPECT_EQ(fit->program.outcomes, 0u);
  EXPECT_FALSE(fit->program.p90_percent);
  EXPECT_EQ(fit->site.p90_percent, 9.5);
}

}  // namespace
}  // namespace lbf::report::accuracy_test