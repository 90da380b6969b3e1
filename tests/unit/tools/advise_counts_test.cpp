// lbf-advise --ranks from jobs that lbfd stores: by the pattern as long as their traces are there, then by laws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/command.h"
#include "tests/unit/daemon/daemon_fixture.h"

namespace lbf::advise_counts_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A message goes around 4, 6 and 8 ranks, two on each node: jobs 4, 6 and 8.
class SeveralCounts : public test::DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (IsSkipped()) return;
    write_config("network = \"lan\"\n");
    std::ofstream(path("cluster.toml")) << "lbf_cluster = 1\n[[node]]\nname = \"n[0-7]\"\ncores_per_socket = 2\n";
    start();
    for (const int ranks : {4, 6, 8}) {
      test::RingProgram program;
      program.more_work = 0;
      program.build_id = "1234";
      program.ranks_of_node.clear();
      for (int rank = 0; rank < ranks; rank += 2) program.ranks_of_node.push_back({rank, rank + 1});
      send_all(program, static_cast<std::uint32_t>(ranks));
      const json step =
          wait_for(static_cast<std::uint32_t>(ranks), [](const json& one) { return one["path_work_s"].is_number(); });
      ASSERT_EQ(step["state"], "complete") << step;
    }
  }
  json advise(const std::string& arguments) {
    const test::Outcome out =
        test::run_command(LBF_ADVISE " " + arguments + " --json --cluster " + path("cluster.toml") +
                          " --server unix:" + socket() + " --networks-dir " + path("networks.d"));
    EXPECT_EQ(out.status, 0) << out.err;
    err_ = out.err;
    return json::parse(out.out, nullptr, false);
  }
  static std::set<std::string> sources_of(const json& advice, int ranks) {
    std::set<std::string> sources;
    for (const json& one : advice["candidates"]) {
      if (one["ranks"] == ranks) sources.insert(one["source"]);
    }
    return sources;
  }

  std::string err_;
};

TEST_F(SeveralCounts, ByThePatternWhileTheirTracesAreStored) {
  const json advice = advise("-j 4,6,8 --ranks 4,8,10,15");
  EXPECT_THAT(sources_of(advice, 4), ElementsAre("trace"));
  EXPECT_THAT(sources_of(advice, 8), ElementsAre("trace"));
  EXPECT_THAT(sources_of(advice, 10), ElementsAre("pattern"));
  EXPECT_THAT(sources_of(advice, 15), ElementsAre("pattern"));
  std::set<std::string> placements;
  for (const json& one : advice["candidates"]) {
    if (one["ranks"] != 10) continue;
    placements.insert(one["placement"]);
    EXPECT_NE(one["trust"], "number");
    EXPECT_GT(one["error_percent"], advice["now"]["error_percent"]);
  }
  EXPECT_TRUE(placements.contains("block") && placements.contains("cyclic"));
  EXPECT_THAT(advice["counts_by_laws"], IsEmpty());
  EXPECT_THAT(advice["counts_not_known"], IsEmpty());
}

TEST_F(SeveralCounts, ByLawsThereafter) {
  ASSERT_EQ(stop(SIGTERM) & 0x7f, 0);
  for (const std::string job : {"6", "8"}) {
    const std::filesystem::path trace = path("state/traces/c/" + job + ".0.0");
    EXPECT_GT(std::filesystem::remove_all(trace), 0U) << trace;
  }
  start();
  const json advice = advise("-j 4,6,8 --ranks 4,10");
  EXPECT_THAT(sources_of(advice, 4), ElementsAre("trace"));
  EXPECT_THAT(sources_of(advice, 10), ElementsAre("laws"));
  EXPECT_THAT(advice["counts_by_laws"],
              ElementsAre("10 ranks: the pattern is refused: all runs have 4 ranks: run it once with 8"));
  EXPECT_THAT(err_, HasSubstr("job 8.0 is left out: the trace of step"));
}

}  // namespace
}  // namespace lbf::advise_counts_test
