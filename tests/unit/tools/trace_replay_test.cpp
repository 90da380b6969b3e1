#include "tools/whatif/trace_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "predictor/engine/replay/replay_groups.h"
#include "tests/support/temporary_directory.h"

namespace lbf::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TraceReplay : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  // A ring of four ranks that work unlike times, 50 rounds.
  std::string ring() {
    std::string text = "lbf-trace 1\nranks 4\n";
    for (int round = 0; round < 50; ++round) {
      for (int rank = 0; rank < 4; ++rank) {
        const std::string me = std::to_string(rank);
        const std::string previous = std::to_string((rank + 3) % 4);
        text += me + " isend 0." + std::to_string(17 * (rank + 1) + round) + " to=" + std::to_string((rank + 1) % 4) +
                " tag=0 bytes=1000 req=1\n" + me + " startRecv 0 from=" + previous + " tag=0\n" + me +
                " endRecv 0 from=" + previous + " tag=0 bytes=1000\n" + me + " wait 0 req=1\n";
      }
    }
    for (const char* rank : {"0", "1", "2", "3"}) text += std::string(rank) + " exit 0.1\n";
    return text;
  }
  // One and two nodes of one processor, and four: the last one has a processor for each rank.
  std::vector<engine::Target> targets() {
    WhatIfOptions options;
    options.nodes = {1, 2, 4};
    options.networks = {write("lan.toml",
                              "name = \"lan\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 100.0], [1000, 900.0]]\n"
                              "[[path]]\nlocality = \"self-node\"\ntable = [[0, 1.0], [1000, 2.0]]\n")};
    options.placements = {"block", "cyclic"};
    std::vector<std::string> notes;
    auto made = make_targets(options, 4, notes);
    EXPECT_TRUE(made.ok());
    return std::move(made).value();
  }
  Result<ReplayedTrace> replay(const std::string& path, std::uint32_t threads) {
    auto trace = open_trace(path, "");
    if (!trace) return trace.error();
    return replay_targets(**trace, targets(), {}, threads, [](double) {});
  }

  test::TemporaryDirectory directory_;
};

TEST_F(TraceReplay, AsManyThreadsAsThereAreGroups) {
  const std::vector<engine::Target> all = targets();  // a processor for each rank: 2 and 5
  ASSERT_EQ(all.size(), 6u);
  EXPECT_THAT(engine::replay_groups(all, 1), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5)));
  EXPECT_THAT(engine::replay_groups(all, 2), ElementsAre(ElementsAre(0, 2, 3, 5), ElementsAre(1, 4)));
  EXPECT_THAT(engine::replay_groups(all, 99),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3), ElementsAre(4), ElementsAre(2, 5)))
      << "targets with a processor for each rank cost little together";
  EXPECT_THAT(engine::replay_groups({all[2], all[5]}, 2), ElementsAre(ElementsAre(0, 1)));
}

TEST_F(TraceReplay, EachTargetHasTheSameBits) {
  const std::string path = write("ring.lbf", ring());
  const auto alone = replay(path, 1);
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  for (const std::uint32_t threads : {2U, 3U, 5U}) {
    const auto together = replay(path, threads);
    ASSERT_TRUE(together.ok()) << together.error().message;
    ASSERT_EQ(together->predictions.size(), 6u);
    for (std::size_t t = 0; t < 6; ++t) {
      EXPECT_EQ(together->predictions[t].rank_finish_s, alone->predictions[t].rank_finish_s) << threads << ", " << t;
      EXPECT_TRUE(together->predictions[t].complete);
    }
    EXPECT_EQ(together->stats.messages, alone->stats.messages);
    EXPECT_EQ(together->why_partial, "");
  }
  EXPECT_GT(alone->predictions[0].lbf_s, alone->predictions[2].lbf_s) << "else the order would not show";
}

TEST_F(TraceReplay, WhatIsWrongWithTheTraceIsSaidOnce) {
  const std::string path = write("wrong.lbf", ring() + "0 exit 1\n");
  const auto alone = replay(path, 1);
  const auto together = replay(path, 3);
  ASSERT_FALSE(alone.ok());
  ASSERT_FALSE(together.ok());
  EXPECT_EQ(together.error().message, alone.error().message);
  EXPECT_THAT(alone.error().message, HasSubstr("wrong.lbf"));
}

}  // namespace
}  // namespace lbf::tools
