#include "advisor/report/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/fixture.h"

namespace lbf::report {
namespace {

using ::testing::HasSubstr;

TEST(ParseSteps, ReadsEveryKey) {
  const auto steps = fixture("normal.json");
  ASSERT_EQ(steps.size(), 1U);
  const Step& step = steps[0];
  EXPECT_EQ(step.job, 123U);
  EXPECT_EQ(step.user, "alice");
  EXPECT_EQ(step.state, StepState::kComplete);
  EXPECT_EQ(step.nodes, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(step.measured_s, 15.2);
  ASSERT_EQ(step.unmodelled_calls.size(), 2U);
  EXPECT_EQ(step.unmodelled_calls[1].function, "MPI_Win_fence");
  EXPECT_EQ(step.unmodelled_calls[1].count, 10U);
  ASSERT_EQ(step.predictions.size(), 5U);
  EXPECT_EQ(step.self(), &step.predictions[0]);
  EXPECT_EQ(step.self_error_percent(), -1.2);
  EXPECT_EQ(command_line(step), "lmp -in in.melt");
  ASSERT_TRUE(step.overhead_percent().has_value());
  EXPECT_NEAR(*step.overhead_percent(), 100 * 0.07 / (4 * 15.2), 1e-9) << "of all ranks' processor time";
  EXPECT_NEAR(*step.unmodelled_percent(), 3.0, 1e-9);
}

TEST(ParseSteps, MissingAndNullKeysAreUnknownNotZero) {
  const auto steps = fixture("no_predictions.json");
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_FALSE(steps[0].measured_s.has_value());
  EXPECT_FALSE(steps[0].ranks.has_value());
  EXPECT_FALSE(steps[0].overhead_percent().has_value());
  EXPECT_FALSE(steps[0].unmodelled_percent().has_value());
  EXPECT_EQ(steps[0].self(), nullptr);
  const auto running = fixture("running.json");
  EXPECT_FALSE(running[0].end_s.has_value());
  EXPECT_FALSE(running[0].mpi_s.has_value());
}

TEST(ParseSteps, ReadsASingleStep) {
  const auto steps = parse_steps(R"({"job":1,"step":2,"state":"running"})");
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(raw_job_id(steps->front()), "1.2");
}

TEST(ParseSteps, NamesTheKeyThatBreaksTheContract) {
  struct Case {
    const char* json;
    const char* named;
  };
  for (const Case& c :
       {Case{"", "JSON"}, Case{"[]", "JSON"}, Case{"{\"steps\":", "JSON"}, Case{R"({"steps":7})", "steps"},
        Case{R"({"steps":[7]})", "step 1"}, Case{R"({"steps":[{"step":0,"state":"running"}]})", "'job'"},
        Case{R"({"job":-1,"step":0,"state":"running"})", "'job'"},
        Case{R"({"job":1,"step":0,"state":"done"})", "'state'"}, Case{R"({"job":1,"step":0})", "'state'"},
        Case{R"({"job":1,"step":0,"state":"running","measured_s":"12"})", "'measured_s'"},
        Case{R"({"job":1,"step":0,"state":"running","measured_s":-1})", "'measured_s'"},
        Case{R"({"job":1,"step":0,"state":"running","measured_s":1e999})", "JSON"},
        Case{R"({"job":1,"step":0,"state":"running","nodes":[1]})", "'nodes'"},
        Case{R"({"job":1,"step":0,"state":"running","unmodelled_calls":[["A",1]]})", "'unmodelled_calls'"},
        Case{R"({"job":1,"step":0,"state":"running","predictions":[1]})", "prediction 0"},
        Case{R"({"job":1,"step":0,"state":"running","predictions":[{"nodes":4294967296}]})", "'nodes'"}}) {
    const auto steps = parse_steps(c.json);
    ASSERT_FALSE(steps.ok()) << c.json;
    EXPECT_THAT(steps.error().message, HasSubstr(c.named)) << c.json;
  }
}

TEST(ParseSteps, TakesTheCommandAsWordsOrAsALine) {
  const Step words = fixture("odd_texts.json")[0];
  EXPECT_TRUE(words.command_exact);
  EXPECT_THAT(words.command, HasSubstr("--name 'it'\\''s | a"));
  const Step line = fixture("running.json")[0];
  EXPECT_EQ(command_line(line), "solve -x a;b");
  EXPECT_FALSE(line.command_exact) << "was it one word or two commands?";
  const auto plain = parse_steps(R"({"job":1,"step":0,"state":"running","command":"./a in.x"})");
  ASSERT_TRUE(plain.ok());
  EXPECT_TRUE(plain->front().command_exact);
  EXPECT_EQ(command_line(plain->front()), "a in.x");
  EXPECT_FALSE(parse_steps(R"({"job":1,"step":0,"state":"running","command":7})").ok());
}

TEST(JobId, IsWrittenAsSacctWritesIt) {
  Step step;
  step.job = 50;
  step.step = 0xfffffffb;
  EXPECT_EQ(job_id(step), "50.batch");
  step.step = 3;
  step.array_job = 48;
  step.array_task = 2;
  EXPECT_EQ(job_id(step), "48_2.3");
  EXPECT_EQ(raw_job_id(step), "50.3");
  step.array_job.reset();
  step.het_job = 49;
  step.het_offset = 1;
  EXPECT_EQ(job_id(step), "49+1.3");
}

}  // namespace
}  // namespace lbf::report
