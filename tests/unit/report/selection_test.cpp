#include "advisor/report/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseJobs, ReadsJobsAndSteps) {
  const auto jobs = parse_jobs("12,13.0,14.batch");
  ASSERT_TRUE(jobs.ok());
  EXPECT_THAT(*jobs,
              ElementsAre(JobSelector{12, std::nullopt}, JobSelector{13, 0}, JobSelector{14, 0xfffffffbU}));
  EXPECT_EQ(describe(*jobs), "jobs 12, 13.0, 14.batch");
}

TEST(ParseJobs, NamesWhatIsWrong) {
  for (const char* list : {"", "x", "12,", "0", "12.x", "12.", "-3", "4294967296", "12 13"}) {
    EXPECT_FALSE(parse_jobs(list).ok()) << list;
  }
  const auto array = parse_jobs("12_3");
  ASSERT_FALSE(array.ok());
  EXPECT_THAT(array.error().message, HasSubstr("JobIDRaw"));
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
  selection.jobs = {{12, std::nullopt}, {13, 0}};
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?job=12&all=1&limit=1000", "/v1/steps?job=13&step=0&all=1&limit=1000"));
  selection.operator_view = false;  // lbfd said that the caller is no operator
  EXPECT_THAT(request_targets(selection),
              ElementsAre("/v1/steps?job=12&limit=1000", "/v1/steps?job=13&step=0&limit=1000"));
}

TEST(RequestTargets, OneRequestPerUserAndJob) {
  Selection selection;
  selection.jobs = {{1, std::nullopt}};
  selection.users = {"alice", "b&c=d /%"};
  EXPECT_THAT(request_targets(selection), ElementsAre("/v1/steps?job=1&user=alice&limit=1000",
                                                      "/v1/steps?job=1&user=b%26c%3Dd%20%2F%25&limit=1000"));
}

TEST(ParseUsers, RefusesEmptyNames) {
  EXPECT_TRUE(parse_users("alice,1000").ok());
  EXPECT_FALSE(parse_users("alice,").ok());
}

}  // namespace
}  // namespace lbf::report
