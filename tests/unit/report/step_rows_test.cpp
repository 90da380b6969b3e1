#include "report/step_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lbf::report::step_rows_test {
namespace {

using ::testing::HasSubstr;

TEST(ParseRows, ReadsStepsAndTheirPredictions) {
  const auto steps = parse_rows(
      R"({"keys":["cluster","job","step","nodes","a_key_of_later","end","cost.limit_percent","command","command_cut","state"],
          "prediction_keys":["target","nodes","predicted_s","a_key_of_later","topology.nodes"],
          "rows":[["c",4294967295,0,["n1","n2"],["x"],null,2.5,["./a b","x"],true,"partial",
                   [["2 nodes, block",2,12,[],["n1"]],["1 node",1,null,null,[]]]],
                  ["c",7,1,[],null,1.5,null,"./old -x",false,"running",[]]]})");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  ASSERT_EQ(steps->size(), 2U);
  const Step& first = steps->front();
  EXPECT_EQ(first.job, 4294967295U);
  EXPECT_EQ(first.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_FALSE(first.end_s);
  ASSERT_TRUE(first.cost);
  EXPECT_EQ(first.cost->limit_percent, 2.5);
  EXPECT_EQ(first.command, "'./a b' x ...");
  EXPECT_EQ(first.state, StepState::kPartial);
  ASSERT_EQ(first.predictions.size(), 2U);
  EXPECT_EQ(first.predictions[0].target, "2 nodes, block");
  EXPECT_EQ(first.predictions[0].predicted_s, 12.0) << "a whole number is a time, too";
  EXPECT_EQ(first.predictions[0].topology.nodes, std::vector<std::string>{"n1"});
  EXPECT_FALSE(first.predictions[1].predicted_s);
  const Step& second = steps->back();
  EXPECT_FALSE(second.cost);
  EXPECT_EQ(second.command, "./old -x");
  EXPECT_TRUE(second.predictions.empty());
}

TEST(ParseRows, WithoutPredictionKeysThereAreNone) {
  const auto steps = parse_rows(R"({"keys":["job","step"],"prediction_keys":[],"rows":[[1,0],[2,0]]})");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ(steps->size(), 2U);
  EXPECT_TRUE(parse_rows(R"({"keys":["job","step"],"prediction_keys":[],"rows":[]})").ok());
}

TEST(ParseRows, NothingInATextActsOnATerminal) {
  const auto steps = parse_rows("{\"keys\":[\"job\",\"step\",\"job_name\"],\"rows\":[[1,0,\"a\\u001b[31m\"]]}");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ(steps->front().job_name.find('\x1b'), std::string::npos);
}

TEST(ParseRows, NamesWhatIsWrong) {
  const auto error = [](const std::string& json) {
    const auto steps = parse_rows(json);
    return steps.ok() ? std::string("no error") : steps.error().message;
  };
  const std::string keys = R"({"keys":["job","step","ranks"],"prediction_keys":["kind"],"rows":)";
  EXPECT_THAT(error(keys + "[[1,0,4,[]],[2,0,\"x\",[]]]}"), HasSubstr("row 2: 'ranks' is not a whole number"));
  EXPECT_THAT(error(keys + "[[1,0,-4,[]]]}"), HasSubstr("'ranks' is not a whole number"));
  EXPECT_THAT(error(keys + "[[1,0,4,[[3]]]]}"), HasSubstr("'kind' is not text"));
  EXPECT_THAT(error(keys + "[[1,0,4,[[]]]]}"), HasSubstr("too few"));
  EXPECT_THAT(error(keys + "[[1,0,4,[[\"self\",1]]]]}"), HasSubstr("too many"));
  EXPECT_THAT(error(keys + "[[1,0,4]]}"), HasSubstr("too few"));
  EXPECT_THAT(error(keys + "[[1,0]]}"), HasSubstr("too few"));
  EXPECT_THAT(error(keys + "[[1,0,4,[],5]]}"), HasSubstr("too many"));
  EXPECT_THAT(error(keys + "[[1,0,4,5]]}"), HasSubstr("too many"));
  EXPECT_THAT(error(keys + "[1]}"), HasSubstr("not a list of steps"));
  EXPECT_THAT(error(keys + "[[1,0,{},[]]]}"), HasSubstr("object"));
  EXPECT_THAT(error(R"({"keys":["job"],"rows":[[1]]})"), HasSubstr("'job' or 'step'"));
  EXPECT_THAT(error(R"({"rows":[[1]]})"), HasSubstr("'job' or 'step'"));
  EXPECT_THAT(error(R"({"keys":["job","step"]})"), HasSubstr("no rows"));
  EXPECT_THAT(error(R"({"steps":[]})"), HasSubstr("steps"));
  EXPECT_THAT(error("[]"), HasSubstr("answer"));
  EXPECT_THAT(error("1"), HasSubstr("answer"));
  EXPECT_THAT(error(""), HasSubstr("answer"));
  EXPECT_THAT(error(keys + "[[1,0,4,[]]"), HasSubstr("JSON"));
  EXPECT_THAT(error(keys + "[[1,0,4,[[[\"x\"]]]]]}"), HasSubstr("'kind' is not text"));
  EXPECT_THAT(error(keys + "[[1,0,4,[[[[]]]]]]}"), HasSubstr("list"));
}

// An answer in lines, as lbfd sends it.
const std::string kInLines =
    "{\"keys\":[\"job\",\"step\"],\"prediction_keys\":[\"target\"],\"rows\":[\n[3,0,[[\"a\"],[\"b\"]]],\n[1,2,[]]\n]}";

std::vector<std::string> read_in_pieces(const std::string& text, std::size_t bytes, std::string* error = nullptr) {
  std::vector<std::string> seen;
  RowsStream stream([&seen](Step& step) {
    std::string line = raw_job_id(step);
    for (const TargetPrediction& target : step.predictions) line += ' ' + target.target;
    seen.push_back(line);
  });
  for (std::size_t at = 0; at < text.size(); at += bytes) stream.add(std::string_view(text).substr(at, bytes));
  const auto ended = stream.end();
  if (error != nullptr) *error = ended.ok() ? "" : ended.error().message;
  return seen;
}

TEST(RowsStream, GivesEachStepOnHoweverItComes) {
  const std::vector<std::string> expected = {"3.0 a b", "1.2"};
  for (std::size_t bytes = 1; bytes <= kInLines.size(); ++bytes) {
    std::string error;
    EXPECT_EQ(read_in_pieces(kInLines, bytes, &error), expected) << bytes;
    EXPECT_EQ(error, "") << bytes;
  }
}

TEST(RowsStream, GivesAStepOnBeforeTheNextCame) {
  int seen = 0;
  RowsStream stream([&seen](const Step&) { ++seen; });
  stream.add(kInLines.substr(0, kInLines.find("[1,2")));
  EXPECT_EQ(seen, 1);
}

TEST(RowsStream, NothingOfAStepIsLeftInTheNext) {
  std::vector<Step> steps;
  RowsStream stream([&steps](const Step& step) { steps.push_back(step); });
  stream.add(
      "{\"keys\":[\"job\",\"step\",\"job_name\",\"cost.windows\"],\"prediction_keys\":[\"target\"],\"rows\":[\n"
      "[1,0,\"name\",5,[[\"a\"]]],\n[2,0,null,null,[]]\n]}");
  ASSERT_TRUE(stream.end().ok());
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[1].job_name, "");
  EXPECT_FALSE(steps[1].cost);
  EXPECT_TRUE(steps[1].predictions.empty());
}

TEST(RowsStream, AnAnswerThatIsCutIsAnError) {
  for (std::size_t bytes = 0; bytes < kInLines.size(); ++bytes) {
    std::string error;
    (void)read_in_pieces(kInLines.substr(0, bytes), 16, &error);
    EXPECT_NE(error, "") << bytes;
  }
  std::string error;
  (void)read_in_pieces(kInLines + "\n[1]", 16, &error);
  EXPECT_THAT(error, HasSubstr("after its end"));
}

TEST(RowsStream, NamesTheRow) {
  std::string error;
  std::string text = kInLines;
  text.replace(text.find("[1,2"), 4, "[1,\"x\"");
  EXPECT_EQ(read_in_pieces(text, 7, &error), std::vector<std::string>{"3.0 a b"});
  EXPECT_THAT(error, HasSubstr("row 2: 'step' is not a whole number"));
}

}  // namespace
}  // namespace lbf::report::step_rows_test