// GET .../picture against a real lbfd, and the binning of its timelines.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "predictor/daemon/steps/run_picture.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::test::picture_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(BinnedTimeline, ColumnsGetWiderAndNothingIsLost) {
  daemon::BinnedTimeline timeline(2, 8);
  timeline.add(0, daemon::BinnedTimeline::kComputing, 0, 2);
  timeline.add(1, daemon::BinnedTimeline::kMpi, 0.5, 0.75);
  timeline.add(0, daemon::BinnedTimeline::kBlocked, 2, 11);
  EXPECT_GE(timeline.columns_used(), 4U);
  EXPECT_LE(timeline.columns_used(), 8U);
  const auto sum = [&](std::uint32_t row, daemon::BinnedTimeline::Kind kind) {
    Seconds total_s = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      EXPECT_LE(timeline.seconds(row, kind, i), timeline.column_s() * (1 + 1e-9));
      total_s += timeline.seconds(row, kind, i);
    }
    return total_s;
  };
  EXPECT_NEAR(sum(0, daemon::BinnedTimeline::kComputing), 2, 1e-9);
  EXPECT_NEAR(sum(1, daemon::BinnedTimeline::kMpi), 0.25, 1e-9);
  EXPECT_NEAR(sum(0, daemon::BinnedTimeline::kBlocked), 9, 1e-9);
  EXPECT_EQ(sum(1, daemon::BinnedTimeline::kComputing), 0);
  const Seconds before_s = timeline.column_s();
  timeline.widen_to(3 * before_s);
  EXPECT_EQ(timeline.column_s(), 4 * before_s);
  EXPECT_NEAR(sum(0, daemon::BinnedTimeline::kBlocked), 9, 1e-9);
}

using PictureTest = DaemonTest;

TEST_F(PictureTest, OfARing) {
  start();
  const RingProgram program;
  send_all(program, 7);
  const json step = wait_until_final(7);
  std::size_t one_node = 0;
  for (std::size_t i = 0; i < step["predictions"].size(); ++i) {
    if (step["predictions"][i]["nodes"] == 1) one_node = i;
  }
  ASSERT_GT(one_node, 0U);
  const json picture = json_request("GET", key(7) + "/picture?target=" + std::to_string(one_node));
  EXPECT_EQ(picture["why_partial"], "");
  EXPECT_EQ(picture["ranks"], 4);
  EXPECT_EQ(picture["messages"], step["messages"]);
  const json& ran = picture["matrix_ran"];
  EXPECT_EQ(ran["node"], json({0, 0, 1, 1}));
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      EXPECT_EQ(ran["bytes"][from][to] != 0, to == (from + 1) % 4) << from << ' ' << to;
    }
  }
  // Two of the four neighbours are on the other node; on one node nobody is.
  EXPECT_EQ(ran["bytes_inside_nodes"], ran["bytes_between_nodes"]);
  EXPECT_EQ(picture["matrix_target"]["bytes_between_nodes"], 0);
  EXPECT_EQ(picture["matrix_target"]["bytes_inside_nodes"], 2 * ran["bytes_inside_nodes"].get<std::uint64_t>());
  // The measured line ends where the events do (the program's own clock says more, in this made-up step).
  const double column_s = picture["column_s"];
  EXPECT_NEAR(column_s * picture["measured"]["columns"].get<double>(),
              step["predictions"][one_node]["measured_at_progress_s"].get<double>(), 2 * column_s);
  EXPECT_NEAR(column_s * picture["predicted"]["columns"].get<double>(),
              step["predictions"][one_node]["predicted_s"].get<double>(), 2 * column_s);
  for (const char* kind : {"computing", "mpi", "blocked"}) {
    EXPECT_EQ(picture["measured"][kind].size(), 4U);
    EXPECT_EQ(picture["measured"][kind][0].size(), picture["measured"]["columns"]);
  }
  // Smaller on request.
  const json small = json_request("GET", key(7) + "/picture?target=0&blocks=2&rows=2&columns=10");
  EXPECT_EQ(small["matrix_ran"]["bytes"].size(), 2U);
  EXPECT_EQ(small["ranks_per_row"], 2);
  EXPECT_LE(small["measured"]["columns"], 10);
}

TEST_F(PictureTest, Refusals) {
  start();
  send_all(RingProgram(), 7);
  wait_until_final(7);
  EXPECT_THAT(json_request("GET", key(7) + "/picture?target=99", "", 400)["error"].get<std::string>(),
              HasSubstr("no number 99"));
  EXPECT_EQ(request("GET", key(7) + "/picture?nonsense=1").status, 400);
  EXPECT_EQ(request("GET", key(8) + "/picture").status, 404);
  if (::getuid() == 0) {
    EXPECT_EQ(request_as(1, "GET", key(7) + "/picture").status, 403);
  }
}

TEST_F(PictureTest, ItsTimeIsLimited) {
  write_config("picture_limit_s = 1e-9\n");
  start();
  send_all(RingProgram(), 7);
  wait_until_final(7);
  const std::string why = json_request("GET", key(7) + "/picture", "", 507)["error"].get<std::string>();
  EXPECT_THAT(why, HasSubstr("picture_limit_s"));
  EXPECT_THAT(why, HasSubstr("lbf-trace export"));
  ASSERT_EQ(stop(SIGTERM), 0);
  write_config("picture_limit_s = 0\n");
  start();
  EXPECT_EQ(request("GET", key(7) + "/picture").status, 200);
}

TEST_F(PictureTest, ADamagedTraceSaysSo) {
  start();
  send_all(RingProgram(), 7);
  wait_until_final(7);
  ASSERT_EQ(stop(SIGTERM), 0);
  // A byte in the middle of a stream's file.
  std::filesystem::path largest;
  std::uintmax_t size = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(path("state/traces"))) {
    if (file.is_regular_file() && file.file_size() > size) {
      size = file.file_size();
      largest = file.path();
    }
  }
  ASSERT_GT(size, 100U);
  {
    std::fstream file(largest, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(size * 3 / 4));
    const char byte = static_cast<char>(file.get() ^ 0x55);
    file.seekp(static_cast<std::streamoff>(size * 3 / 4));
    file.put(byte);
  }
  start();
  const HttpResponse answer = request("GET", key(7) + "/picture?target=0");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(json::parse(answer.body)["why_partial"], "");
}

TEST_F(PictureTest, ListsCanBeShort) {
  start();
  send_all(RingProgram(), 7);
  wait_until_final(7);
  const json step = json_request("GET", "/v1/steps?job=7&summary=1")["steps"][0];
  EXPECT_FALSE(step.contains("calls"));
  EXPECT_FALSE(step.contains("node_of_rank"));
  ASSERT_LE(step["predictions"].size(), 2U);
  EXPECT_EQ(step["predictions"][0]["kind"], "self");
  EXPECT_EQ(json_request("GET", "/v1/steps?nodelist=n[0-1]")["steps"].size(), 1U);
  EXPECT_EQ(json_request("GET", "/v1/steps?nodelist=n0,,n[0000000001-0000000003],")["steps"].size(), 1U);
  EXPECT_EQ(json_request("GET", "/v1/steps?nodelist=m")["steps"].size(), 0U);
  EXPECT_EQ(json_request("GET", "/v1/steps?state=running,partial")["steps"].size(), 0U);
  EXPECT_EQ(request("GET", "/v1/steps?state=lost").status, 400);
  EXPECT_EQ(json_request("GET", "/v1/steps?account=nobodys")["steps"].size(), 0U);
  EXPECT_EQ(json_request("GET", "/v1/steps?name=nobodys")["steps"].size(), 0U);
  EXPECT_EQ(json_request("GET", "/v1/networks")["networks"][0], "zero");
}

}  // namespace
}  // namespace lbf::test::picture_test