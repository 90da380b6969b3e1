// plugstack.conf arguments, option values and environment values: every wrong one has its line.
#include "spank_plugin/plugin/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::plugin::config_test {
namespace {

using cost::Limit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<AdminConfig> parse(std::vector<std::string> arguments) {
  std::vector<char*> av;
  for (std::string& argument : arguments) av.push_back(argument.data());
  return parse_admin_config(av);
}

TEST(AdminConfigTest, EveryArgumentIsTaken) {
  auto config =
      parse({"overhead_limit=1.5%", "lbfd=http://head:8642", "networks=a,b-2", "spool_dir=/s", "spool_limit_mb=7",
             "default=on", "libexec_dir=/l", "capture=/c.so", "report=/r", "ring_dir=/d", "ring_bytes=1048576",
             "relay_wait_s=3", "relay_cpu_limit=0.5", "relay_memory_limit_mb=64", "network_limit_kBps=2500"});
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_DOUBLE_EQ(config->overhead_limit_percent(), 1.5);
  EXPECT_EQ(config->lbfd, "http://head:8642");
  EXPECT_THAT(config->networks, ElementsAre("a", "b-2"));
  EXPECT_EQ(config->spool_dir, "/s");
  EXPECT_EQ(config->limits[Limit::kSpool], 7);
  EXPECT_TRUE(config->default_on);
  EXPECT_EQ(config->relay, "/l/lbf-relay");
  EXPECT_EQ(config->capture, "/c.so");
  EXPECT_EQ(config->report, "/r");
  EXPECT_EQ(config->ring_dir, "/d");
  EXPECT_EQ(config->ring_bytes, 1048576U);
  EXPECT_DOUBLE_EQ(config->relay_wait_s, 3);
  EXPECT_EQ(config->limits[Limit::kRelayCpu], 0.5);
  EXPECT_EQ(config->limits[Limit::kRelayMemory], 64);
  EXPECT_EQ(config->limits[Limit::kNetwork], 2500);
  EXPECT_EQ(parse({"relay=/x/relay"})->relay, "/x/relay");
  EXPECT_FALSE(parse({})->default_on);
  EXPECT_FALSE(parse({})->job_comment);
  EXPECT_TRUE(parse({"job_comment=on"})->job_comment);
}

TEST(AdminConfigTest, EveryWrongArgumentIsNamed) {
  for (const char* bad : {"overhead_limit=",
                          "overhead_limit=-1",
                          "relay_cpu_limit=0",
                          "relay_cpu_limit=101",
                          "relay_cpu_limit=0.0000001",
                          "step_cpu_percent=5",
                          "step_trace_limit_mb=5",
                          "relay_cpu_limit=x",
                          "relay_memory_limit_mb=3",
                          "relay_memory_limit_mb=4097",
                          "network_limit_kBps=0",
                          "network_limit_kBps=-1",
                          "network_limit_kBps=nan",
                          "overhead_limit=101",
                          "overhead_limit=x",
                          "overhead_limit=nan",
                          "overhead_limit=1e999",
                          "lbfd=",
                          "lbfd=/sock",
                          "lbfd=unix:sock",
                          "lbfd=http://host",
                          "lbfd=http://:80",
                          "lbfd=https://host",
                          "lbfd=http://h:0",
                          "lbfd=http://h:99999",
                          "lbfd=http://h:80/x",
                          "networks=",
                          "networks=a,,b",
                          "networks=a b",
                          "networks=../x",
                          "spool_dir=relative",
                          "spool_limit_mb=0",
                          "spool_limit_mb=-3",
                          "spool_limit_mb=1048577",
                          "spool_limit_mb=x",
                          "default=maybe",
                          "libexec_dir=x",
                          "relay=x",
                          "capture=x",
                          "capture=/a:b",
                          "report=",
                          "ring_dir=x",
                          "ring_bytes=1000000",
                          "ring_bytes=1024",
                          "ring_bytes=4294967296",
                          "relay_wait_s=-1",
                          "relay_wait_s=x",
                          "relay_wait_s=nan",
                          "unknown=1",
                          "word"}) {
    auto config = parse({bad});
    ASSERT_FALSE(config.ok()) << bad;
    EXPECT_THAT(config.error().message, HasSubstr("plugstack.conf: ")) << bad;
    EXPECT_THAT(config.error().message, HasSubstr(std::string(bad).substr(0, 10)));
  }
}

TEST(AdminConfigTest, ControlCharactersDoNotReachTheTerminal) {
  auto config = parse({"bad\x1b[31m=1"});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, testing::Not(HasSubstr("\x1b")));
}

StepConfig decide(UserRequest options, UserRequest environment = {}, bool default_on = false) {
  AdminConfig admin;
  admin.default_on = default_on;
  admin.networks = {"admin"};
  return resolve(admin, options, environment);
}

TEST(ResolveTest, OffUnlessAskedFor) {
  EXPECT_FALSE(decide({}).predict);
  EXPECT_TRUE(decide({}, {}, true).predict);
  EXPECT_THAT(decide({}).messages, IsEmpty());
}

TEST(ResolveTest, EveryWayToSayOnAndOff) {
  for (const char* on : {"", "on", "1", "yes", "(null)"}) EXPECT_TRUE(decide({on, {}, {}}).predict) << on;
  for (const char* off : {"off", "0", "no"}) EXPECT_FALSE(decide({off, {}, {}}, {}, true).predict) << off;
}

TEST(ResolveTest, OptionGoesBeforeEnvironmentBeforeDefault) {
  EXPECT_FALSE(decide({"off", {}, {}}, {"on", {}, {}}, true).predict);
  EXPECT_TRUE(decide({"on", {}, {}}, {"off", {}, {}}).predict);
  EXPECT_FALSE(decide({}, {"off", {}, {}}, true).predict);
  EXPECT_THAT(decide({"on", "x,y", {}}, {{}, "z", {}}).networks, ElementsAre("x", "y"));
  EXPECT_THAT(decide({"on", {}, {}}, {{}, "z", {}}).networks, ElementsAre("z"));
  EXPECT_THAT(decide({"on", {}, {}}).networks, ElementsAre("admin"));
}

TEST(ResolveTest, AWrongValueMeansNoPredictionAndOneLine) {
  for (const UserRequest& bad :
       {UserRequest{"maybe", {}, {}}, UserRequest{"on", "a,,b", {}}, UserRequest{"on", {}, "x"},
        UserRequest{"on", {}, "-1"}, UserRequest{"on", {}, "0"}, UserRequest{"on", {}, "200"}}) {
    const StepConfig step = decide(bad, {}, true);
    EXPECT_FALSE(step.predict);
    ASSERT_EQ(step.messages.size(), 1U);
    EXPECT_THAT(step.messages[0], HasSubstr("; the job runs without prediction"));
    EXPECT_THAT(step.messages[0], testing::StartsWith("--lbf-"));
  }
  EXPECT_THAT(decide({}, {"perhaps", {}, {}}).messages, ElementsAre(HasSubstr("LBF_PREDICT=perhaps")));
}

TEST(ResolveTest, OverheadOnlyBelowTheAdministratorsLimit) {
  EXPECT_DOUBLE_EQ(decide({"on", {}, "0.5"}).overhead_limit_percent(), 0.5);
  EXPECT_DOUBLE_EQ(decide({"on", {}, "0.5%"}).overhead_limit_percent(), 0.5);
  const StepConfig more = decide({"on", {}, "10"});
  EXPECT_TRUE(more.predict);
  EXPECT_DOUBLE_EQ(more.overhead_limit_percent(), 2.0);
  EXPECT_THAT(more.messages, ElementsAre("--lbf-overhead=10: more than this site allows; 2 % is used"));
}

TEST(ResolveTest, NonsenseIsRefusedWithItsReason) {
  EXPECT_THAT(decide({"on", {}, "-1"}).messages, ElementsAre(HasSubstr("a limit cannot be below 0")));
  EXPECT_THAT(decide({"on", {}, "101"}).messages, ElementsAre(HasSubstr("more than all of the program's time")));
  for (const char* text : {"x", "nan", "inf", "1,5", "%", "1e999"}) {
    EXPECT_THAT(decide({"on", {}, text}).messages, ElementsAre(HasSubstr("that is no number"))) << text;
  }
}

TEST(ResolveTest, ALimitOfZeroIsOffAndSaysSo) {
  const StepConfig own = decide({"on", {}, "0"});
  EXPECT_FALSE(own.predict);
  EXPECT_THAT(own.messages, ElementsAre("--lbf-overhead=0: the capture is off; the job runs without prediction"));
  AdminConfig none;
  none.limits[Limit::kOverhead] = 0;
  const StepConfig sites = resolve(none, {"on", {}, {}}, {});
  EXPECT_FALSE(sites.predict);
  EXPECT_THAT(sites.messages,
              ElementsAre("overhead_limit=0 of this site: the capture is off; the job runs without prediction"));
  none.default_on = true;
  EXPECT_THAT(resolve(none, {}, {}).messages, IsEmpty()) << "nobody asked";
  EXPECT_FALSE(resolve(none, {}, {}).predict);
}

TEST(ResolveTest, OtherOptionsWithoutPredictAreMentioned) {
  EXPECT_THAT(decide({{}, "a", {}}).messages, ElementsAre(HasSubstr("without --lbf-predict")));
  EXPECT_THAT(decide({"off", "a", {}}).messages, IsEmpty());
}

StepConfig decide_limits(const std::string& limits, AdminConfig admin = {}) {
  UserRequest options{"on", {}, {}};
  options.limits = limits;
  return resolve(admin, options, {});
}

TEST(ResolveTest, EachLimitMayBeLower) {
  AdminConfig admin;
  admin.limits[Limit::kNetwork] = 5000;
  const StepConfig step = decide_limits(
      "overhead_limit=0.5%,relay_cpu_limit=0.2,relay_memory_limit_mb=8,network_limit_kBps=100,spool_limit_mb=10,"
      "step_cpu_percent=2.5,step_trace_limit_mb=100",
      admin);
  EXPECT_TRUE(step.predict);
  EXPECT_THAT(step.messages, IsEmpty());
  EXPECT_EQ(step.overhead_limit_percent(), 0.5);
  EXPECT_EQ(step.limits[Limit::kRelayCpu], 0.2) << "the site has none";
  EXPECT_EQ(step.limits[Limit::kRelayMemory], 8);
  EXPECT_EQ(step.limits[Limit::kNetwork], 100);
  EXPECT_EQ(step.limits[Limit::kSpool], 10);
  EXPECT_EQ(step.limits[Limit::kStepCpu], 2.5);
  EXPECT_EQ(step.limits[Limit::kStepTrace], 100);
  EXPECT_THAT(cost::relay_arguments(step.limits), ElementsAre("--cpu-limit-percent", "0.2", "--memory-limit-mb", "8",
                                                              "--network-limit-kBps", "100", "--spool-limit-mb", "10"));
}

TEST(ResolveTest, WhoNamesNoLimitHasTheSites) {
  const StepConfig step = decide({"on", {}, {}});
  EXPECT_THAT(cost::relay_arguments(step.limits), ElementsAre("--memory-limit-mb", "32", "--spool-limit-mb", "1024"));
  EXPECT_EQ(step.overhead_limit_percent(), 2);
  EXPECT_FALSE(step.limits[Limit::kStepCpu]);
}

TEST(ResolveTest, NoLimitIsRaised) {
  AdminConfig admin;
  admin.limits[Limit::kNetwork] = 5000;
  admin.limits[Limit::kRelayCpu] = 0.5;
  const StepConfig more = decide_limits(
      "overhead_limit=3,relay_cpu_limit=1,relay_memory_limit_mb=33,network_limit_kBps=5000.5,spool_limit_mb=2000",
      admin);
  EXPECT_TRUE(more.predict);
  EXPECT_THAT(more.messages,
              ElementsAre("--lbf-limits=overhead_limit=3: more than this site allows; 2 % is used",
                          "--lbf-limits=relay_cpu_limit=1: more than this site allows; 0.5 % is used",
                          "--lbf-limits=relay_memory_limit_mb=33: more than this site allows; 32 MB is used",
                          "--lbf-limits=network_limit_kBps=5000.5: more than this site allows; 5000 kB/s is used",
                          "--lbf-limits=spool_limit_mb=2000: more than this site allows; 1024 MB is used"));
  EXPECT_THAT(cost::relay_arguments(more.limits), testing::ContainerEq(cost::relay_arguments(admin.limits)));
  EXPECT_EQ(more.overhead_limit_percent(), 2);
  const StepConfig equal = decide_limits("relay_memory_limit_mb=32,network_limit_kBps=5000", admin);
  EXPECT_THAT(equal.messages, IsEmpty());
  EXPECT_EQ(equal.limits[Limit::kNetwork], 5000);
}

TEST(ResolveTest, OfTwoOverheadLimitsTheLowerCounts) {
  const auto both = [](const char* overhead, const std::string& limits) {
    UserRequest options{"on", {}, overhead};
    options.limits = limits;
    return resolve({}, options, {});
  };
  EXPECT_EQ(both("0.5", "overhead_limit=1").overhead_limit_percent(), 0.5);
  EXPECT_THAT(both("0.5", "overhead_limit=1").messages, IsEmpty());
  EXPECT_EQ(both("1", "overhead_limit=0.5").overhead_limit_percent(), 0.5);
  const StepConfig one_above = both("0.5", "overhead_limit=10");
  EXPECT_EQ(one_above.overhead_limit_percent(), 0.5);
  EXPECT_THAT(one_above.messages,
              ElementsAre("--lbf-limits=overhead_limit=10: more than this site allows; 2 % is used"));
}

TEST(ResolveTest, WhatIsWrongInALimitIsSaid) {
  for (const auto& [list, message] : {
           std::pair{"overhead_limit=x", "overhead_limit=x: that is no number; give a percentage, 0 to 100"},
           std::pair{"overhead_limit=-1", "overhead_limit=-1: a limit cannot be below 0"},
           std::pair{"relay_cpu_limit=0", "relay_cpu_limit=0: without processor time no relay runs; give a percentage"},
           std::pair{"relay_cpu_limit=0.0000001", "give a percentage, 0.001 to 100"},
           std::pair{"relay_memory_limit_mb=3", "relay_memory_limit_mb=3: give megabytes, 4 to 4096"},
           std::pair{"relay_memory_limit_mb=4.5", "give megabytes, 4 to 4096"},
           std::pair{"network_limit_kBps=0", "give kilobytes (1000 bytes) per second, 1 to 1e9"},
           std::pair{"network_limit_kBps=", "network_limit_kBps=: give kilobytes"},
           std::pair{"spool_limit_mb=0", "give megabytes, 1 to 1048576"},
           std::pair{"step_cpu_percent=0", "give a percentage, 0.001 to 10000"},
           std::pair{"step_cpu_percent=inf", "that is no number"},
           std::pair{"step_trace_limit_mb=0", "give megabytes, 1 to 1099511627776"},
           std::pair{"relay_cpu_limit=1,relay_cpu_limit=1", "relay_cpu_limit=1: it is there twice"},
           std::pair{"relay_cpu_limit", "relay_cpu_limit: write it as NAME=VALUE"},
           std::pair{"relay_cpu_limit=1,", ": write it as NAME=VALUE"},
           std::pair{
               "ring_bytes=65536",
               "ring_bytes=65536: unknown limit; known are overhead_limit, relay_cpu_limit, relay_memory_limit_mb, "
               "network_limit_kBps, spool_limit_mb, step_cpu_percent, step_trace_limit_mb"},
           std::pair{"a\x1b[31mb=1", "a?[31mb=1: unknown limit"},
       }) {
    const StepConfig step = decide_limits(list);
    EXPECT_FALSE(step.predict) << list;
    ASSERT_EQ(step.messages.size(), 1U) << list;
    EXPECT_THAT(step.messages[0], testing::StartsWith("--lbf-limits="));
    EXPECT_THAT(step.messages[0], HasSubstr(message));
    EXPECT_THAT(step.messages[0], testing::EndsWith("; the job runs without prediction"));
  }
}

TEST(ResolveTest, LimitsFollowTheOtherOptionsRules) {
  UserRequest environment;
  environment.limits = "spool_limit_mb=7,relay_cpu_limit=1";
  EXPECT_EQ(resolve({}, {"on", {}, {}}, environment).limits[Limit::kSpool], 7);
  UserRequest options{"on", {}, {}};
  options.limits = "spool_limit_mb=9";
  EXPECT_EQ(resolve({}, options, environment).limits[Limit::kSpool], 9) << "the option stands for the variable";
  EXPECT_FALSE(resolve({}, options, environment).limits[Limit::kRelayCpu]);
  environment.limits = "nothing";
  EXPECT_THAT(resolve({}, {"on", {}, {}}, environment).messages,
              ElementsAre(HasSubstr("LBF_LIMITS=nothing: write it")));
  EXPECT_THAT(resolve({}, {}, environment).messages, IsEmpty()) << "no prediction was asked for";
  EXPECT_TRUE(decide_limits("").predict) << "as if it were not there";
  options.predict.reset();
  EXPECT_THAT(resolve({}, options, {}).messages,
              ElementsAre(HasSubstr("--lbf-limits and --lbf-procedures do nothing")));
  const StepConfig off = decide_limits("overhead_limit=0");
  EXPECT_FALSE(off.predict);
  EXPECT_THAT(off.messages,
              ElementsAre("--lbf-limits=overhead_limit=0: the capture is off; the job runs without prediction"));
}

TEST(TasksPerNodeTest, SlurmsFormIsRead) {
  EXPECT_THAT(parse_tasks_per_node("2(x3),1", 10), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(parse_tasks_per_node("4", 10), ElementsAre(4));
  for (const char* bad : {"", "x", "2(x", "2(x)", "2(x99),1", "1,,2", "2(x4294967295)", "-1"}) {
    EXPECT_THAT(parse_tasks_per_node(bad, 10), IsEmpty()) << bad;
  }
}

TEST(PreloadTest, TheUsersIsKeptBehindOurs) {
  EXPECT_EQ(preload_with("/l.so", ""), "/l.so");
  EXPECT_EQ(preload_with("/l.so", "/a.so:/b.so"), "/l.so:/a.so:/b.so");
  EXPECT_EQ(preload_with("/l.so", "/a.so /b.so"), "/l.so:/a.so:/b.so");
  EXPECT_EQ(preload_with("/l.so", "/l.so:/a.so"), "/l.so:/a.so");
  EXPECT_EQ(preload_without("/l.so", "/l.so"), "");
  EXPECT_EQ(preload_without("/l.so", "/a.so:/l.so:"), "/a.so");
}

TEST(ResolveTest, ProceduresAreHandedOnAsTheyAreWritten) {
  EXPECT_EQ(decide({"on", {}, {}, "grid::step(int, double),heat::*"}).procedures, "grid::step(int, double),heat::*");
  EXPECT_EQ(decide({"on", {}, {}, {}}).procedures, "");
  EXPECT_EQ(decide({"off", {}, {}, "f"}).procedures, "");
  EXPECT_EQ(resolve({}, {"on", {}, {}, {}}, {{}, {}, {}, "auto"}).procedures, "auto");
  EXPECT_EQ(resolve({}, {"on", {}, {}, "f"}, {{}, {}, {}, "auto"}).procedures, "f");
  const StepConfig broken = decide({"on", {}, {}, "f\ng"});
  EXPECT_FALSE(broken.predict);
  EXPECT_THAT(broken.messages, ElementsAre(HasSubstr("--lbf-procedures=f?g: give names of procedures")));
  EXPECT_THAT(decide({"on", {}, {}, std::string(5000, 'x')}).messages, ElementsAre(HasSubstr("longer than 4096")));
  EXPECT_THAT(decide({{}, {}, {}, "f"}).messages, ElementsAre(HasSubstr("without --lbf-predict")));
}

}  // namespace
}  // namespace lbf::plugin::config_test