#include "report/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::report::selection_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseJobs, ReadsJobsAndSteps) {
  const auto jobs = parse_jobs("12,13.0,14.batch");
  ASSERT_TRUE(jobs.ok());
  EXPECT_THAT(*jobs, ElementsAre(JobSelector{12, std::nullopt, std::nullopt, std::nullopt},
                                 JobSelector{13, 0, std::nullopt, std::nullopt},
                                 JobSelector{14, 0xfffffffbU, std::nullopt, std::nullopt}));
  EXPECT_EQ(describe(*jobs), "jobs 12, 13.0, 14.batch");
}

TEST(ParseJobs, NamesWhatIsWrong) {
  for (const char* list : {"",           "x",       "12,",      "0",     "12.x",        "12.",    "-3",
                           "4294967296", "12 13",   "12_",      "12+",   "_3",          "12_x",   "12_3_4",
                           "12_3+1",     "12_[1-3", "12_[3-1]", "12_[]", "12_[1-2000]", "12.0_3", "12_4294967296"}) {
    EXPECT_FALSE(parse_jobs(list).ok()) << list;
  }
  EXPECT_THAT(parse_jobs("12_x").error().message, HasSubstr("123_4"));
  EXPECT_THAT(parse_jobs("12+").error().message, HasSubstr("123+1"));
}

TEST(ParseJobs, ReadsClusters) {
  const auto jobs = parse_jobs("12@alpha,13_[1-2].0@b-1,14");
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ(describe(*jobs), "jobs 12@alpha, 13_1.0@b-1, 13_2.0@b-1, 14");
  EXPECT_EQ(query_of(jobs->front()), "job=12&cluster=alpha");
  EXPECT_EQ(query_of(jobs->back()), "job=14");
  for (const char* wrong : {"12@", "@alpha", "12.@alpha", "x@alpha"}) EXPECT_FALSE(parse_jobs(wrong).ok()) << wrong;
  Selection selection;
  selection.clusters = {"alpha", "b&c"};
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?limit=1000&cluster=alpha", "/v1/steps?limit=1000&cluster=b%26c"));
  EXPECT_EQ(describe_filters(selection), "-M 'alpha,b&c'");
}

TEST(ParseJobs, ReadsArraysTasksAndHeterogeneousJobsComponents) {
  const auto jobs = parse_jobs("12_0,13_4.2,14+1,15+0.batch");
  ASSERT_TRUE(jobs.ok());
  EXPECT_THAT(*jobs, ElementsAre(JobSelector{12, std::nullopt, 0, std::nullopt}, JobSelector{13, 2, 4, std::nullopt},
                                 JobSelector{14, std::nullopt, std::nullopt, 1},
                                 JobSelector{15, 0xfffffffbU, std::nullopt, 0}));
  EXPECT_EQ(describe(*jobs), "jobs 12_0, 13_4.2, 14+1, 15+0.batch");
  Selection selection;
  selection.jobs = *jobs;
  selection.operator_view = false;
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?job=12&array_task=0&limit=1000", "/v1/steps?job=13&array_task=4&step=2&limit=1000",
                          "/v1/steps?job=14&het_offset=1&limit=1000",
                          "/v1/steps?job=15&het_offset=0&step=4294967291&limit=1000"));
}

TEST(RequestTargets, AskForTheCallerTodayByDefault) {
  Selection selection;
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?limit=1000"));
  selection.since = 100;
  selection.until = 200;
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?limit=1000&since=100&until=200"));
}

TEST(RequestTargets, JobsAreAskedWhoeverOwnsThem) {
  Selection selection;
  selection.jobs = {{12, std::nullopt, std::nullopt, std::nullopt}, {13, 0, std::nullopt, std::nullopt}};
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?job=12&all=1&limit=1000", "/v1/steps?job=13&step=0&all=1&limit=1000"));
  selection.operator_view = false;  // lbfd said that the caller is no operator
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?job=12&limit=1000", "/v1/steps?job=13&step=0&limit=1000"));
}

TEST(RequestTargets, AskForWhatListsLeaveOutOnlyWhenWanted) {
  Selection selection;
  selection.jobs = {{12, std::nullopt, std::nullopt, std::nullopt}};
  selection.detail = true;
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?job=12&all=1&limit=1000&detail=1"));
}

// A job number that comes again.
TEST(RequestTargets, OneJobOfANumberOrAllOfThem) {
  Selection selection;
  selection.jobs = {{12, 0, std::nullopt, std::nullopt}};
  selection.operator_view = false;
  selection.submit_s = 1700000000;
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?job=12&step=0&limit=1000&submit=1700000000"));
  selection.submit_s.reset();
  selection.duplicates = true;
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?job=12&step=0&limit=1000&duplicates=1"));
}

TEST(RequestTargets, OneRequestPerUserAndJob) {
  Selection selection;
  selection.jobs = {{1, std::nullopt, std::nullopt, std::nullopt}};
  selection.users = {"alice", "b&c=d /%"};
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?job=1&user=alice&limit=1000",
                                                      "/v1/steps?job=1&user=b%26c%3Dd%20%2F%25&limit=1000"));
}

TEST(ParseUsers, RefusesEmptyNames) {
  EXPECT_TRUE(parse_users("alice,1000").ok());
  EXPECT_FALSE(parse_users("alice,").ok());
}

TEST(RequestTargets, JobsAreAskedForByTheirNames) {
  Selection selection;
  selection.names = {"lu", "a b"};
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?limit=1000&name=lu", "/v1/steps?limit=1000&name=a%20b"));
}

TEST(DescribeFilters, AreOptionsThatAShellTakes) {
  Selection selection;
  EXPECT_EQ(describe_filters(selection), "");
  selection.names = {"a b", "lu"};
  selection.users = {"alice"};
  selection.accounts = {"x"};
  selection.partitions = {"p-a", "p-b"};
  selection.states = {"partial"};
  selection.nodes = "n[1-3]";
  EXPECT_EQ(describe_filters(selection), "--name 'a b,lu' -u alice -A x -r p-a,p-b -s partial -N 'n[1-3]'");
}

}  // namespace
}  // namespace lbf::report::selection_test
