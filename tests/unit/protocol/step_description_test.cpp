// StepDescription: the relay's JSON is hostile until checked.
#include "protocol/step_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::step_description_test {
namespace {

using nlohmann::json;

json good() {
  return {{"cluster", "c"},
          {"job", 7},
          {"step", 0},
          {"nodes", {"n1", "n2"}},
          {"node_index", 1},
          {"tasks", 3},
          {"tasks_per_node", {2, 1}},
          {"task_ids", {2}},
          {"cpus_on_node", 4},
          {"threads_per_task", 3},
          {"uid", 1000},
          {"command", {"a", "b"}},
          {"networks", {"x"}},
          {"start_realtime_ns", 5},
          {"future_key", {{"x", 1}}}};
}

TEST(StepDescription, ReadsAllAndKeepsUnknownKeys) {
  const auto description = protocol::decode_step_description(good().dump());
  ASSERT_TRUE(description.ok()) << description.error().message;
  EXPECT_EQ(description->nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(description->tasks, 3);
  EXPECT_EQ(description->task_ids, std::vector<Rank>{2});
  EXPECT_EQ(description->cpus_on_node, 4u);
  EXPECT_EQ(description->threads_per_task, 3u);
  EXPECT_EQ(description->uid, uid_t{1000});
  EXPECT_EQ(description->start_realtime_ns, 5);
  EXPECT_EQ(description->raw["future_key"]["x"], 1);
}

TEST(StepDescription, ArrayTasksAndHetComponentsComeInPairs) {
  json description = good();
  description["array_job"] = 40;
  EXPECT_FALSE(protocol::decode_step_description(description.dump())->array_job)
      << "a number without the other: no task";
  description["array_task"] = 0;
  const auto task = protocol::decode_step_description(description.dump());
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->array_job, 40u);
  EXPECT_EQ(task->array_task, 0u);
  EXPECT_FALSE(task->het_job);
  description = good();
  description["het_offset"] = 0;
  EXPECT_FALSE(protocol::decode_step_description(description.dump())->het_offset);
  description["het_job"] = 7;
  EXPECT_EQ(protocol::decode_step_description(description.dump())->het_offset, 0u);
}

TEST(StepDescription, SubmitTimeIsOptional) {
  json description = good();
  EXPECT_EQ(protocol::decode_step_description(description.dump())->submit_s, 0U);
  EXPECT_FALSE(protocol::json_of(protocol::StepDescription()).contains("submit"));
  description["submit"] = protocol::kMaxSubmitS;
  const auto known = protocol::decode_step_description(description.dump());
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(known->submit_s, protocol::kMaxSubmitS);
  EXPECT_EQ(protocol::json_of(*known)["submit"], protocol::kMaxSubmitS);
  for (const json& wrong : {json(-1), json("1700000000"), json(1.5), json(protocol::kMaxSubmitS + 1), json::array()}) {
    description["submit"] = wrong;
    EXPECT_FALSE(protocol::decode_step_description(description.dump()).ok()) << wrong;
  }
}

TEST(StepDescription, SaysWhetherTheCommandIsWhole) {
  json description = good();
  EXPECT_FALSE(protocol::decode_step_description(description.dump())->command_cut);
  description["command_cut"] = true;
  EXPECT_TRUE(protocol::decode_step_description(description.dump())->command_cut);
}

TEST(StepDescription, LimitsAreTheUsers) {
  json description = good();
  EXPECT_FALSE(protocol::decode_step_description(description.dump())->limits[cost::Limit::kStepCpu]);
  description["limits"] = {
      {"step_cpu_percent", 2.5}, {"step_trace_limit_mb", 100}, {"network_limit_kBps", 1}, {"later", "x"}};
  const auto parsed = protocol::decode_step_description(description.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->limits[cost::Limit::kStepCpu], 2.5);
  EXPECT_EQ(parsed->limits[cost::Limit::kStepTrace], 100);
  EXPECT_FALSE(parsed->limits[cost::Limit::kNetwork]) << "the relay's own";
}

TEST(StepDescription, NeedsTheRequiredKeysOnly) {
  for (const char* key : {"job", "step", "nodes", "node_index", "tasks"}) {
    json description = good();
    description.erase(key);
    const auto parsed = protocol::decode_step_description(description.dump());
    ASSERT_FALSE(parsed.ok()) << key;
    EXPECT_THAT(parsed.error().message, testing::HasSubstr(key));
  }
  const json minimal = {{"job", 1}, {"step", 0}, {"nodes", {"n"}}, {"node_index", 0}, {"tasks", 1}};
  EXPECT_TRUE(protocol::decode_step_description(minimal.dump()).ok());
}

TEST(StepDescription, RefusesWrongTypesAndValues) {
  const std::pair<const char*, json> wrong[] = {{"job", "7"},
                                                {"job", -1},
                                                {"job", 4294967296},
                                                {"job", 1.5},
                                                {"array_task", "5"},
                                                {"array_job", -1},
                                                {"het_job", 4294967296},
                                                {"het_offset", 0.5},
                                                {"command_cut", 1},
                                                {"nodes", json::array()},
                                                {"nodes", "n1"},
                                                {"nodes", {1, 2}},
                                                {"nodes", {"n1", ""}},
                                                {"nodes", {"n1", "n 2"}},
                                                {"nodes", {"n1", "n2\n2026-01-01T00:00:00.000 error forged"}},
                                                {"nodes", {"n1", "n2\u001b[2J"}},
                                                {"nodes", {"n1", std::string(256, 'n')}},
                                                {"user", "u\nx"},
                                                {"account", "a\tb"},
                                                {"partition", std::string(256, 'p')},
                                                {"node_index", 2},
                                                {"tasks", 0},
                                                {"tasks", 1 << 21},
                                                {"tasks_per_node", {3}},
                                                {"tasks_per_node", {2, 2}},
                                                {"task_ids", {3}},
                                                {"task_ids", {-1}},
                                                {"uid", "root"},
                                                {"command", {1}},
                                                {"networks", "a,b"},
                                                {"limits", 5},
                                                {"limits", {{"step_cpu_percent", "5"}}},
                                                {"limits", {{"step_cpu_percent", -1}}},
                                                {"limits", {{"step_cpu_percent", 0}}},
                                                {"limits", {{"step_cpu_percent", 1e300}}},
                                                {"limits", {{"step_trace_limit_mb", 1.5}}},
                                                {"limits", {{"step_trace_limit_mb", 0}}},
                                                {"cluster", 5},
                                                {"start_realtime_ns", "now"}};
  for (const auto& [key, value] : wrong) {
    json description = good();
    description[key] = value;
    const auto parsed = protocol::decode_step_description(description.dump());
    ASSERT_FALSE(parsed.ok()) << key << " " << value;
    EXPECT_THAT(parsed.error().message, testing::HasSubstr(key)) << value;
  }
}

TEST(StepDescription, EveryTruncationIsAnError) {
  const std::string text = good().dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(protocol::decode_step_description(text.substr(0, length)).ok()) << length;
  }
}

TEST(StepDescription, DeepNestingIsAnErrorNotACrash) {
  EXPECT_FALSE(protocol::decode_step_description(std::string(1 << 20, '[')).ok());
  // Valid JSON, whose copies would recurse.
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  const auto parsed = protocol::decode_step_description(
      R"({"job":1,"step":0,"nodes":["a"],"node_index":0,"tasks":1,"x":)" + deep + "}");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("nested too deeply"), std::string::npos);
  EXPECT_TRUE(
      protocol::decode_step_description(R"({"job":1,"step":0,"nodes":["a"],"node_index":0,"tasks":1,"x":"[[[\"[[["})")
          .ok());
}

// 7.5 MB of numbers like 1e14 came, were stored as 100000000000000.0, and could not be read after a restart: the step
// was "running" for ever.
TEST(StepDescription, WhatIsTooLongWhenItIsStoredIsRefused) {
  const auto with = [](std::size_t numbers) {
    std::string text = R"({"job":1,"step":0,"nodes":["a"],"node_index":0,"tasks":1,"x":[0)";
    for (std::size_t i = 0; i < numbers; ++i) text += ",1e14";
    return protocol::decode_step_description(text + "]}");
  };
  const auto parsed = with(500'000);
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.error().message.find("when its numbers are written out"), std::string::npos);
  const auto fits = with(250'000);
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE(protocol::decode_step_description(fits->raw.dump()).ok()) << "what was accepted can be read again";
}

TEST(StepDescription, NamesOfPeopleMayHaveBlanksAndLetters) {
  json description = good();
  description["user"] = "DOM\\J\u00fcrgen M\u00fcller";
  description["account"] = "group one";
  EXPECT_TRUE(protocol::decode_step_description(description.dump()).ok());
}

TEST(StreamDescription, IsWhatIsTheStreamsOwn) {
  auto step = protocol::decode_step_description(
      R"({"job":1,"step":0,"nodes":["a","b"],"node_index":0,"tasks":4,"task_ids":[0,1],"cpus_on_node":8})");
  ASSERT_TRUE(step.ok());
  const auto parse = [&](const char* own) {
    return protocol::decode_stream_description(nlohmann::json::parse(own), *step);
  };
  EXPECT_EQ(parse("{}")->task_ids, (std::vector<Rank>{0, 1}));
  EXPECT_EQ(parse("{}")->cpus_on_node, 8u);
  EXPECT_EQ(parse(R"({"task_ids":[2,3],"cpus_on_node":4})")->task_ids, (std::vector<Rank>{2, 3}));
  EXPECT_EQ(parse(R"({"task_ids":[2,3],"cpus_on_node":4})")->cpus_on_node, 4u);
  EXPECT_TRUE(parse(R"({"task_ids":null,"registered_by_lbfd":true})")->task_ids.empty());
  EXPECT_TRUE(parse(R"({"task_ids":null,"registered_by_lbfd":true})")->registered_by_lbfd);
  for (const char* wrong : {"[]", "3", R"({"task_ids":[4]})", R"({"task_ids":"x"})", R"({"cpus_on_node":-1})",
                            R"({"registered_by_lbfd":1})"})
    EXPECT_FALSE(parse(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace lbf::step_description_test