// lbf-trace convert: text <-> stored, nothing lost that both can say.
#include "tests/unit/tools_trace/fixture.h"

namespace lbf::trace_test::convert_test {
namespace {

using testing::HasSubstr;

TEST_F(TraceCommand, TextToStoredToText) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Rank ranks = 2 + static_cast<Rank>(seed % 5);
    const std::string text = random_program(seed, ranks, true, 60);
    write("t.lbf", text);
    output_of("convert t.lbf -o t.lbfw");
    const std::string back = output_of("convert t.lbfw");
    EXPECT_EQ(lines_of_ranks(back, ranks), lines_of_ranks(text, ranks)) << "seed " << seed;
    EXPECT_EQ(predicted_s("t.lbf", "--nodes 1"), predicted_s("t.lbfw", "--nodes 1"));
    write("back.lbf", back);
    output_of("convert back.lbf -o again.lbfw");
    // Ranks that come in another order have other batches; what is in them is the same.
    EXPECT_EQ(lines_of_ranks(output_of("dump again.lbfw"), ranks), lines_of_ranks(output_of("dump t.lbfw"), ranks));
  }
}

TEST_F(TraceCommand, StoredToStoredIsTheSameTrace) {
  write("t.lbf", random_program(3, 4, true, 40));
  output_of("convert t.lbf -o once.lbfw");
  output_of("convert once.lbfw --to stored -o twice.lbfw");
  EXPECT_EQ(output_of("dump once.lbfw"), output_of("dump twice.lbfw"));
}

TEST_F(TraceCommand, RanksWithoutEventsAreKept) {
  write("t.lbf", "lbf-trace 1\nranks 5\n0 exit 1\n");
  output_of("convert t.lbf -o t.lbfw");
  EXPECT_EQ(nlohmann::json::parse(output_of("info --json t.lbfw")).at("ranks"), 5);
  EXPECT_THAT(output_of("convert t.lbfw"), testing::StartsWith("lbf-trace 1\nranks 5\n0 exit 1\n"));
}

// Names go along: in control records, and as words without blanks.
TEST_F(TraceCommand, ProceduresKeepTheirNames) {
  const std::string text =
      "lbf-trace 1\nranks 2\n1 enter 1 proc=F\n1 leave 1 proc=F\n1 procedure 0 proc=G(\"x\") time=0.5 self=0.25 "
      "calls=2\n"
      "1 exit 1\n0 enter 1 proc=G(\"x\")\n0 leave 1 proc=G(\"x\")\n0 exit 1\n";
  write("t.lbf", text);
  output_of("convert t.lbf -o t.lbfw");
  EXPECT_EQ(lines_of_ranks(output_of("convert t.lbfw"), 2), lines_of_ranks(text, 2));
}

// Where the ranks ran decides which messages some collectives were, and what lbf-advise compares with.
TEST_F(TraceCommand, WhereRanksRanIsKept) {
  const auto nodes_of = [this](const std::string& trace) {
    return nlohmann::json::parse(output_of("info --json " + trace)).at("node_of_rank");
  };
  Event end;
  end.kind = EventKind::kExit;
  const std::vector<RankEvent> ends{{0, end}, {1, end}, {2, end}, {3, end}};
  const nlohmann::json nodes{0, 7, 0, 1};
  write("t.lbfw", stored(4, ends, {0, 7, 0, 1}));
  EXPECT_EQ(nodes_of("t.lbfw"), nodes);
  EXPECT_THAT(output_of("info t.lbfw"), HasSubstr("Ran on           3 nodes with 1 to 2 ranks each\n"));
  output_of("convert t.lbfw --to stored -o again.lbfw");
  EXPECT_EQ(nodes_of("again.lbfw"), nodes);
  output_of("convert t.lbfw -o t.lbf");
  EXPECT_THAT(read("t.lbf"), testing::StartsWith("lbf-trace 1\nranks 4\nnodes 0,7,0,1\n"));
  EXPECT_EQ(nodes_of("t.lbf"), nodes);
  output_of("convert t.lbf -o back.lbfw");
  EXPECT_EQ(nodes_of("back.lbfw"), nodes);
  EXPECT_EQ(read("back.lbfw"), read("again.lbfw"));

  write("unknown.lbfw", stored(4, ends));
  output_of("convert unknown.lbfw --to stored -o unknown2.lbfw");
  EXPECT_EQ(nodes_of("unknown2.lbfw"), nlohmann::json::array()) << "nothing is made up";
  EXPECT_THAT(output_of("info unknown2.lbfw"), testing::Not(HasSubstr("Ran on")));
}

TEST_F(TraceCommand, WhereManyRanksRanIsKept) {
  // The records of so many ranks are more than one batch.
  constexpr Rank kRanks = 40000;
  Event end;
  end.kind = EventKind::kExit;
  std::vector<std::uint32_t> nodes;
  for (Rank rank = 0; rank < kRanks; ++rank) nodes.push_back(static_cast<std::uint32_t>(rank) / 64);
  write("t.lbfw", stored(kRanks, {{0, end}}, nodes));
  output_of("convert t.lbfw --to stored -o again.lbfw");
  EXPECT_EQ(nlohmann::json::parse(output_of("info --json again.lbfw")).at("node_of_rank"), nlohmann::json(nodes));
}

TEST_F(TraceCommand, ManyBatchesAreOneTrace) {
  output_of("synth --pattern alltoall --ranks 24 --iterations 200 -o big.lbfw");
  const nlohmann::json info = nlohmann::json::parse(output_of("info --json big.lbfw"));
  EXPECT_EQ(info.at("messages"), 24 * 23 * 200);
  output_of("convert big.lbfw -o big.lbf");
  output_of("convert big.lbf -o again.lbfw");
  EXPECT_EQ(nlohmann::json::parse(output_of("info --json again.lbfw")).at("messages"), 24 * 23 * 200);
}

TEST_F(TraceCommand, WhatTextCannotSayIsRefusedWithTheRemedy) {
  Event gap;
  gap.kind = EventKind::kGap;
  gap.bytes = 1;
  write("gap.lbfw", stored(1, {{0, gap}}));
  expect_error(1, "convert gap.lbfw -o out", "--to stored and lbf-trace dump keep everything");
  Event collective;
  collective.kind = EventKind::kCollective;
  set_op(collective, CollectiveOp::kAlltoallv);
  const std::vector<std::uint64_t> counts{1, 1};
  collective.values = counts;
  write("alltoallv.lbfw", stored(1, {{0, collective}}));
  expect_error(1, "convert alltoallv.lbfw -o out", "version 1 has no collective operation alltoallv");
  output_of("convert gap.lbfw --to stored -o out");
  EXPECT_EQ(output_of("dump out"), "0 gap 0 lost=1\n");
}

}  // namespace
}  // namespace lbf::trace_test::convert_test