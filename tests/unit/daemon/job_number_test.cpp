// A job number that comes again: ids wrap at MaxJobId, or slurmctld starts with an empty state. Reported with these
// stories: the second run's relay was told that "the stream has ended" and its user saw the first run's result; with
// other ranks the batches were refused; as another user "belongs to user ..."; where the first run's nodes had died,
// both runs came into one trace. The job's submit time is part of the key: each run has its own row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::job_number_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kFirst = 1700000000;
constexpr std::uint64_t kSecond = 1700000600;

class JobNumber : public DaemonTest {
 protected:
  static std::string key_of(std::uint64_t submit_s) { return "/v1/steps/c/7/0/0/" + std::to_string(submit_s); }
  static json description_of(const RingProgram& program, std::uint64_t submit_s) {
    json description = program.description(0, 7);
    description["submit"] = submit_s;
    description["start_realtime_ns"] = (submit_s + 1) * 1'000'000'000;
    return description;
  }
  void begin(const RingProgram& program, std::uint64_t submit_s) {
    json_request("PUT", key_of(submit_s) + "/streams/0", description_of(program, submit_s).dump());
    json_request("POST", key_of(submit_s) + "/streams/0/batches/1", program.batches_of(0)[0]);
  }
  void finish(std::uint64_t submit_s) {
    json_request("POST", key_of(submit_s) + "/streams/0/end", R"({"last_sequence":1})");
    for (int i = 0; i < 300 && json_request("GET", key_of(submit_s))["state"] == "running"; ++i) ::usleep(100'000);
  }
  std::vector<std::uint64_t> submits(const std::string& query) {
    std::vector<std::uint64_t> found;
    const json answer = json_request("GET", "/v1/steps?" + query);
    if (query.find("rows=") != std::string::npos) {
      for (const json& row : answer["rows"]) found.push_back(row[0]);
    } else {
      for (const json& step : answer["steps"]) found.push_back(step["submit"]);
    }
    return found;
  }
  static RingProgram one_node(std::vector<int> ranks) {
    RingProgram program;
    program.ranks_of_node = {std::move(ranks)};
    program.batches = 1;
    return program;
  }
};

TEST_F(JobNumber, EachRunHasItsOwnRow) {
  start();
  begin(one_node({0, 1}), kFirst);
  finish(kFirst);
  begin(one_node({0, 1, 2, 3}), kSecond);  // with other ranks, too
  finish(kSecond);
  const json first = json_request("GET", key_of(kFirst));
  const json second = json_request("GET", key_of(kSecond));
  EXPECT_EQ(first["state"], "complete");
  EXPECT_EQ(second["state"], "complete");
  EXPECT_EQ(first["ranks"], 2);
  EXPECT_EQ(second["ranks"], 4);
  EXPECT_EQ(first["start"], 1700000001.0);
  EXPECT_EQ(second["start"], 1700000601.0);
  EXPECT_NE(request("GET", key_of(kFirst) + "/trace").body, request("GET", key_of(kSecond) + "/trace").body);
  EXPECT_EQ(request("GET", key_of(kFirst) + "/picture?target=0").status, 200);
  EXPECT_EQ(request("GET", key_of(kSecond) + "/accuracy").status, 200);
  EXPECT_EQ(request("GET", key_of(kSecond + 1)).status, 404);
  EXPECT_EQ(request("GET", "/v1/steps/c/7/0/0/x").status, 404);
  EXPECT_EQ(request("GET", "/v1/steps/c/7/0/0/99999999999999999").status, 400);

  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) {
      stop(SIGTERM);
      start();
    }
    EXPECT_THAT(submits("job=7"), ElementsAre(kSecond)) << "as sacct -j";
    EXPECT_THAT(submits("job=7&rows=submit"), ElementsAre(kSecond));
    EXPECT_THAT(submits("job=7&duplicates=1"), ElementsAre(kFirst, kSecond)) << "as sacct -j -D";
    EXPECT_THAT(submits("job=7&duplicates=1&rows=submit"), ElementsAre(kFirst, kSecond));
    EXPECT_THAT(submits("job=7&submit=" + std::to_string(kFirst)), ElementsAre(kFirst));
    EXPECT_THAT(submits("job=7&submit=1"), IsEmpty());
    EXPECT_THAT(submits("since=1"), ElementsAre(kFirst, kSecond)) << "a list of a time has what ran then";
    EXPECT_EQ(json_request("GET", "/v1/steps/c/7/0/0")["submit"], kSecond) << "of a client that knows no SUBMIT";
  }
}

TEST_F(JobNumber, ARunWhoseNodesDiedStaysItself) {
  start();
  const RingProgram program = one_node({0, 1});
  begin(program, kFirst);  // and no more
  begin(program, kSecond);
  EXPECT_THAT(submits("job=7"), ElementsAre(kSecond));
  finish(kSecond);
  EXPECT_EQ(json_request("GET", key_of(kSecond))["state"], "complete");
  EXPECT_EQ(json_request("GET", key_of(kFirst))["state"], "running");
  EXPECT_EQ(request("GET", key_of(kSecond) + "/trace").body, program.batches_of(0)[0]);
  EXPECT_THAT(submits("job=7"), ElementsAre(kSecond));
  EXPECT_THAT(submits("job=7&rows=submit"), ElementsAre(kSecond));
}

TEST_F(JobNumber, ItMayBeAnotherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOther = 65533;
  constexpr uid_t kOperator = 4242;
  start();
  const RingProgram program = one_node({0, 1});
  begin(program, kFirst);
  finish(kFirst);
  json description = description_of(program, kSecond);
  description["uid"] = kOther;
  EXPECT_EQ(request_as(kOther, "PUT", key_of(kSecond) + "/streams/0", description.dump()).status, 200);
  const std::string others = request_as(kOther, "GET", "/v1/steps?job=7").body;
  EXPECT_THAT(others, HasSubstr(std::to_string(kSecond)));
  EXPECT_THAT(others, testing::Not(HasSubstr("\"submit\":" + std::to_string(kFirst))));
  EXPECT_EQ(request_as(kOther, "GET", key_of(kFirst)).status, 403);
  EXPECT_EQ(request_as(kOther, "GET", "/v1/steps/c/7/0/0").status, 200);
  // What one user registers hides nothing of another one's from operators.
  const json all = json::parse(request_as(kOperator, "GET", "/v1/steps?job=7&all=1").body, nullptr, false);
  ASSERT_EQ(all["steps"].size(), 2U) << all;
}

// Slurm gives a requeued job another submit time. Its runs are one job's.
TEST_F(JobNumber, RestartsAreNoOtherJobs) {
  start();
  const RingProgram program = one_node({0, 1});
  begin(program, kFirst);
  finish(kFirst);
  json description = description_of(program, kSecond);
  description["restart"] = 1;
  const std::string again = "/v1/steps/c/7/0/1/" + std::to_string(kSecond);
  json_request("PUT", again + "/streams/0", description.dump());
  EXPECT_THAT(submits("job=7"), ElementsAre(kFirst, kSecond));
}

TEST_F(JobNumber, RelaysThatDoNotSayItAreServedAsBefore) {
  start();
  const RingProgram program = one_node({0, 1});
  send_all(program, 7);
  EXPECT_EQ(wait_until_final(7)["submit"], 0);
  // The description and the address must agree.
  EXPECT_EQ(request("PUT", stream(7, 0), description_of(program, kFirst).dump()).status, 400);
  EXPECT_EQ(request("PUT", key_of(kFirst) + "/streams/0", program.description(0, 7).dump()).status, 400);
  EXPECT_EQ(request("PUT", key_of(kFirst) + "/streams/0", description_of(program, kSecond).dump()).status, 400);
  // It began before the next job of that number was submitted.
  begin(program, kSecond);
  EXPECT_THAT(submits("job=7"), ElementsAre(kSecond));
  EXPECT_THAT(submits("job=7&duplicates=1"), ElementsAre(0, kSecond));
  EXPECT_EQ(json_request("GET", key(7))["submit"], 0) << "this very step, not the latest";
}

}  // namespace
}  // namespace lbf::test::job_number_test
