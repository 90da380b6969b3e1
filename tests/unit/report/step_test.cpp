#include "report/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/report/fixture.h"

namespace lbf::report::step_test {
namespace {

using ::testing::HasSubstr;

TEST(ParseSteps, ReadsEveryKey) {
  const auto steps = fixture("normal.json");
  ASSERT_EQ(steps.size(), 1U);
  const Step& step = steps[0];
  EXPECT_EQ(step.job, 123U);
  EXPECT_EQ(step.user_name, "alice");
  EXPECT_EQ(step.state, StepState::kComplete);
  EXPECT_EQ(step.nodes, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(step.measured_s, 15.2);
  ASSERT_EQ(step.unmodelled_calls.size(), 2U);
  EXPECT_EQ(step.unmodelled_calls[1].function, "MPI_Win_fence");
  EXPECT_EQ(step.unmodelled_calls[1].calls, 10U);
  ASSERT_EQ(step.predictions.size(), 5U);
  EXPECT_EQ(step.self(), &step.predictions[0]);
  EXPECT_EQ(step.self_error_percent(), -1.2);
  EXPECT_EQ(command_line(step), "lmp -in in.melt");
  ASSERT_TRUE(step.overhead_percent().has_value());
  EXPECT_NEAR(*step.overhead_percent(), 100 * 0.07 / (4 * 15.2), 1e-9) << "of all ranks' processor time";
  EXPECT_NEAR(*step.unmodelled_percent(), 3.0, 1e-9);
}

TEST(ParseSteps, OneByOneOrAllAtOnceIsTheSame) {
  const std::string tricky = R"({"job":2,"step":0,"state":"complete","job_name":"a}]{\"\\","nodes":["n[1]"]})";
  const std::string plain = R"({"job":1,"step":0,"state":"running"})";
  // As lbfd writes it; with blanks, or another key, it is read as a whole.
  for (const std::string& document :
       {R"({"steps":[)" + tricky + "," + plain + "]}", R"({"steps":[)" + tricky + "," + plain + "]}\n",
        R"({ "steps" : [)" + tricky + " , " + plain + "]}",
        R"({"steps":[)" + tricky + "," + plain + R"(],"more":[]})"}) {
    const auto steps = parse_steps(document);
    ASSERT_TRUE(steps.ok()) << document << steps.error().message;
    ASSERT_EQ(steps->size(), 2U) << document;
    EXPECT_EQ((*steps)[0].job, 1U);
    EXPECT_EQ((*steps)[1].job_name, "a}]{\"\\");
    EXPECT_EQ((*steps)[1].nodes.size(), 1U);
  }
  EXPECT_TRUE(parse_steps(R"({"steps":[]})")->empty());
  for (const char* broken : {R"({"steps":[{"job":1})", R"({"steps":[{"job":1}{}]})", R"({"steps":[{"job":1,]})",
                             R"({"steps":[1]})", R"({"steps":[{"job":"x"}]})", R"({"steps":["]})", R"({"steps":[,]})",
                             R"({"steps":[}]})", R"({"steps":[{"job":1}],"steps":[]}})"}) {
    EXPECT_FALSE(parse_steps(broken).ok()) << broken;
  }
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

TEST(ParseSteps, ATargetOnWhichTheProgramWouldNotEndHasNoTime) {
  const auto steps = parse_steps(
      R"({"job":1,"step":2,"state":"complete","predictions":[{"kind":"NF","predicted_s":null,"why_stuck":"cyclic wait"}]})");
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  EXPECT_EQ(steps->front().predictions[0].why_stuck, "cyclic wait");
  EXPECT_EQ(steps->front().predictions[0].topology.file, "");
  EXPECT_FALSE(steps->front().predictions[0].predicted_s.has_value());
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

// What writes a document calls itself for each level: a million of them ended the command.
TEST(ParseSteps, AnAnswerThatIsTooDeepIsNone) {
  const std::string deep(1'000'000, '[');
  for (const std::string& json :
       {deep, deep + std::string(deep.size(), ']'), "{\"steps\":[" + deep + std::string(deep.size(), ']') + "]}",
        "{\"steps\":[{\"job\":1,\"step\":0,\"more\":" + deep + std::string(deep.size(), ']') + "}]}"}) {
    EXPECT_FALSE(parse_steps(json).ok());
  }
}

TEST(ParseSteps, TakesTheCommandAsWordsOrAsALine) {
  const Step words = fixture("odd_texts.json")[0];
  EXPECT_THAT(words.command, HasSubstr("--name 'it'\\''s | a"));
  EXPECT_FALSE(words.command_exact) << "a control character was replaced";
  const auto quoted =
      parse_steps(R"({"job":1,"step":0,"state":"running","command":["/opt/a","-t","two words","","it's"]})");
  ASSERT_TRUE(quoted.ok());
  EXPECT_EQ(quoted->front().command, "/opt/a -t 'two words' '' 'it'\\''s'");
  EXPECT_EQ(command_line(quoted->front()), "a -t 'two words' '' 'it'\\''s'");
  EXPECT_TRUE(quoted->front().command_exact);
  const auto cut = parse_steps(R"({"job":1,"step":0,"state":"running","command":["a","b"],"command_cut":true})");
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->front().command, "a b ...");
  EXPECT_FALSE(cut->front().command_exact);
  const auto no_utf8 = parse_steps("{\"job\":1,\"step\":0,\"state\":\"running\",\"command\":[\"a\xef\xbf\xbd\"]}");
  ASSERT_TRUE(no_utf8.ok());
  EXPECT_FALSE(no_utf8->front().command_exact) << "lbfd replaced a byte";
  const Step line = fixture("running.json")[0];
  EXPECT_EQ(command_line(line), "solve -x a;b");
  EXPECT_FALSE(line.command_exact) << "was it one word or two commands?";
  const auto plain = parse_steps(R"({"job":1,"step":0,"state":"running","command":"./a in.x"})");
  ASSERT_TRUE(plain.ok());
  EXPECT_TRUE(plain->front().command_exact);
  EXPECT_EQ(command_line(plain->front()), "a in.x");
  EXPECT_FALSE(parse_steps(R"({"job":1,"step":0,"state":"running","command":7})").ok());
}

TEST(JobId, IsReadFromWhatLbfdTells) {
  const auto steps = parse_steps(R"({"steps":[
    {"job":50,"step":0,"state":"running","array_job":48,"array_task":0,"het_job":null,"het_offset":null},
    {"job":51,"step":1,"state":"running","array_job":null,"array_task":null,"het_job":49,"het_offset":0},
    {"job":52,"step":0,"state":"running","array_job":52,"array_task":null,"het_job":null,"het_offset":null}]})");
  ASSERT_TRUE(steps.ok());
  EXPECT_EQ(job_id(steps->at(0)), "48_0.0");
  EXPECT_EQ(job_id(steps->at(1)), "49+0.1");
  EXPECT_EQ(job_id(steps->at(2)), "52.0");
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

TEST(ParseSteps, TopologyOfATarget) {
  const auto parsed = [](const std::string& topology) {
    return parse_steps(R"({"job":1,"step":2,"state":"complete","predictions":[{"kind":"NF","topology":)" + topology +
                       "}]}");
  };
  const auto steps = parsed(R"({"file":"/etc/slurm/topology.conf","nodes":["n1","n2"]})");
  ASSERT_TRUE(steps.ok());
  const TargetPrediction& target = steps->front().predictions[0];
  EXPECT_EQ(target.topology.file, "/etc/slurm/topology.conf");
  EXPECT_EQ(target.topology.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_TRUE(parsed("null").ok());
  EXPECT_FALSE(parsed("7").ok());
  EXPECT_FALSE(parsed(R"({"file":7})").ok());
}

TEST(ParseSteps, CostsOfNodesAndRanks) {
  const auto steps = parse_steps(fixture_text("windows.json"));
  ASSERT_TRUE(steps.ok()) << steps.error().message;
  const Cost& cost = *steps->front().cost;
  EXPECT_DOUBLE_EQ(cost.once_s().value(), 0.0329);
  ASSERT_EQ(cost.nodes.size(), 2U);
  EXPECT_EQ(cost.nodes[0].relay_cpu_s, 0.4);
  EXPECT_EQ(cost.nodes[0].once_s, 0.0165);
  EXPECT_FALSE(cost.nodes[1].once_s) << "half of it is not known";
  ASSERT_EQ(cost.ranks.size(), 2U);
  EXPECT_EQ(cost.ranks[1].number, 1U);
  EXPECT_EQ(cost.ranks[1].program_cpu_s, 59.5);
  EXPECT_EQ(cost.ranks[1].counted_calls, 2750000U);

  const auto parsed = [](const std::string& parts) {
    return parse_steps(R"({"steps":[{"job":1,"step":2,"state":"running","cost":{"state":"open",)" + parts + "}}]}")
        .ok();
  };
  EXPECT_TRUE(parsed(R"("nodes":[],"ranks":[[0,0.1,0.1,1,0,2.0]])"));
  for (const char* wrong :
       {R"("ranks":[[0,0.1,0.1,1,0]])", R"("ranks":[[-1,0.1,0.1,1,0,2.0]])", R"("ranks":[7])", R"("nodes":[7])",
        R"("ranks":[[0,-0.1,0.1,1,0,2.0]])", R"("nodes":[{"relay_cpu_s":-1}])", R"("nodes":"n1")"}) {
    EXPECT_FALSE(parsed(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace lbf::report::step_test