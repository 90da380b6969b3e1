// expand_collective: the bytes that the literature gives, single steps by hand, and bad arguments.
#include <gtest/gtest.h>

#include <bit>

#include "predictor/engine/match/collective.h"
#include "tests/unit/collective/collective_calls.h"

namespace lbf::step_lists_test {
namespace {

using Op = CollectiveOp;

// ---- bytes on the wire, closed forms
// -----------------------------------------------------------------------------

TEST(ClosedForms, BytesOfAllMessages) {
  struct Case {
    Op op;
    std::uint32_t size;
    Bytes bytes;
    const char* algorithm;
    Bytes expected;
  };
  const auto popcounts = [](std::uint32_t size) {
    Bytes total = 0;
    for (std::uint32_t rank = 1; rank < size; ++rank) total += static_cast<Bytes>(std::popcount(rank));
    return total;
  };
  const Case cases[] = {
      {Op::kBcast, 5, 100, "binomial", 4 * 100},
      {Op::kBcast, 20, 2000, "knomial", 19 * 2000},
      {Op::kBcast, 16, 1 << 20, "scatter_allgather",
       // binomial scatter: each of log2 P rounds moves half of the vector; allgather: P (P-1) blocks
       4 * (1 << 19) + 16 * 15 * (Bytes{1 << 20} / 16)},
      {Op::kBcast, 300, 20000, "split_binary_tree",
       // down: 150 ranks of one half, 149 of the other; then everybody but the root gets what is missing
       (299 + 299) * Bytes{10000}},
      {Op::kReduce, 40, 5000, "binomial", 39 * 5000},
      {Op::kReduce, 300, 10000, "in-order_binary", 300 * 10000},  // one more: from its root to rank 0
      {Op::kAllreduce, 3, 6000, "ring", 2 * 2 * 6000},
      {Op::kAllreduce, 16, 4096, "rabenseifner", 2 * 15 * 4096},
      {Op::kAllreduce, 8, 800, "recursive_doubling", 8 * 3 * 800},
      {Op::kAllgather, 16, 100, "recursive_doubling", 16 * 15 * 100},
      {Op::kAllgather, 13, 100, "bruck", 13 * 12 * 100},
      {Op::kAllgather, 40, 70000, "ring", Bytes{40} * 39 * 70000},
      {Op::kAllgather, 40, 7000, "neighbor", Bytes{40} * 39 * 7000},
      {Op::kAlltoall, 6, 600000, "pairwise", Bytes{6} * 5 * 600000},
      {Op::kAlltoall, 40, 100, "modified_bruck", 40 * 100 * popcounts(40)},
      {Op::kGather, 100, 50, "binomial", 50 * popcounts(100)},
      {Op::kScatter, 50, 100, "binomial", 100 * popcounts(50)},
      {Op::kReduceScatterBlock, 8, 64, "butterfly", 7 * 8 * 64},
      {Op::kReduceScatterBlock, 8, 1024, "recursive_halving", 7 * 8 * 1024},
      {Op::kScan, 9, 77, "linear", 8 * 77},
  };
  for (const Case& c : cases) {
    const engine::CollectiveCall call = call_of(c.op, c.size, c.bytes);
    EXPECT_STREQ(engine::collective_algorithm_name(call), c.algorithm) << describe(call);
    const Outcome outcome = run_alike(call);
    EXPECT_EQ(outcome.problem, "") << describe(call);
    EXPECT_EQ(outcome.bytes, c.expected) << describe(call);
  }
}

TEST(ClosedForms, StepsOfOneRankStayLogarithmic) {
  for (const Op op : {Op::kBarrier, Op::kAllreduce, Op::kAllgather}) {
    EXPECT_LE(run_alike(call_of(op, 1024, 8)).most_steps, 2 * 2 * 10U) << static_cast<int>(op);
  }
  EXPECT_LE(run_alike(call_of(Op::kBcast, 1024, 8)).most_steps, 1 + 3 * 5U);
}

// ---- single step lists, by hand
// --------------------------------------------------------------------------------------

std::string text(const engine::CollectiveCall& call) {
  std::vector<engine::CollectiveStep> steps;
  EXPECT_TRUE(engine::expand_collective(call, steps).ok());
  std::string line;
  for (const engine::CollectiveStep& step : steps) {
    line += (step.kind == engine::CollectiveStep::Kind::kSend ? "s" : "r") + std::to_string(step.peer) + ":" +
            std::to_string(step.bytes) + " ";
  }
  return line;
}

std::string text(Op op, std::uint32_t rank, std::uint32_t size, Bytes bytes, Rank root = 0) {
  engine::CollectiveCall call = call_of(op, size, bytes, root);
  call.rank = rank;
  return text(call);
}

TEST(StepLists, BarrierOfSix) {
  EXPECT_EQ(text(Op::kBarrier, 0, 6, 0), "r1:0 r2:0 r3:0 r4:0 r5:0 s1:0 s2:0 s3:0 s4:0 s5:0 ");
  EXPECT_EQ(text(Op::kBarrier, 3, 6, 0), "s0:0 r0:0 ");
}

TEST(StepLists, BinaryBroadcastOfSevenFromTwo) {
  // Counted from the root: 0 -> 1 2, 1 -> 3 5, 2 -> 4 6.
  EXPECT_EQ(text(Op::kBcast, 2, 7, 16, 2), "s3:16 s4:16 ");
  EXPECT_EQ(text(Op::kBcast, 3, 7, 16, 2), "r2:16 s5:16 s0:16 ");
  EXPECT_EQ(text(Op::kBcast, 4, 7, 16, 2), "r2:16 s6:16 s1:16 ");
  EXPECT_EQ(text(Op::kBcast, 1, 7, 16, 2), "r4:16 ");
}

TEST(StepLists, RabenseifnerOfThree) {
  // 300,000 bytes = 37,500 doubles: ranks 0 and 1 combine halves, then 0 and 2 swap halves, then back.
  EXPECT_EQ(text(Op::kAllreduce, 0, 3, 300000),
            "s1:150000 r1:150000 r1:150000 s2:150000 r2:150000 s2:150000 "
            "r2:150000 s1:300000 ");
  EXPECT_EQ(text(Op::kAllreduce, 1, 3, 300000), "s0:150000 r0:150000 s0:150000 r0:300000 ");
}

TEST(StepLists, IreduceChainSendsFragments) {
  engine::CollectiveCall call = call_of(Op::kReduce, 2, 65536 + 8, 0, true);
  call.rank = 1;  // 9 fragments; 8,193 doubles / 9 = 910 each, the last takes the rest
  std::vector<engine::CollectiveStep> steps;
  ASSERT_TRUE(engine::expand_collective(call, steps).ok());
  ASSERT_EQ(steps.size(), 9U);
  EXPECT_EQ(steps[0].bytes, 7280U);
  EXPECT_EQ(steps[8].bytes, 65544U - 8 * 7280U);
}

// Groups of 3 and 2; rank 1 of the first group is the root. What only the root knows in full is exact there.
TEST(InterVectors, OpenMpiCollectsInsideTheGroup) {
  const std::vector<std::uint64_t> counts{100, 300};
  const auto steps_of = [&](Op op, bool in_first, std::uint32_t rank, Rank root, Bytes bytes) {
    engine::CollectiveCall call = call_of(op, in_first ? 3 : 2, bytes, root);
    call.rank = rank;
    call.remote_size = in_first ? 2 : 3;
    if (root == kMpiRoot || op == Op::kAllgatherv) call.values = counts;
    return text(call);
  };
  EXPECT_EQ(steps_of(Op::kGatherv, true, 1, kMpiRoot, 0), "r0:400 ");
  EXPECT_EQ(steps_of(Op::kGatherv, true, 0, kMpiProcNull, 0), "");
  EXPECT_EQ(steps_of(Op::kGatherv, false, 0, 1, 100), "r1:4 r1:100 s1:200 ");
  EXPECT_EQ(steps_of(Op::kGatherv, false, 1, 1, 300), "s0:4 s0:300 ");
  EXPECT_EQ(steps_of(Op::kScatterv, true, 1, kMpiRoot, 0), "s0:8 s0:400 ");
  EXPECT_EQ(steps_of(Op::kScatterv, false, 0, 1, 100), "r1:8 r1:200 s1:100 ");
  EXPECT_EQ(steps_of(Op::kScatterv, false, 1, 1, 300), "r0:300 ");
  // The broadcast in the group is a pipeline.
  EXPECT_EQ(steps_of(Op::kAllgatherv, true, 2, 0, 50), "s0:4 s0:50 r1:400 ");
}

TEST(StepLists, CreatingACommunicator) {
  const auto steps_of = [](CommCreation creation, engine::MpiLibrary library, std::uint32_t rank) {
    engine::CollectiveCall call = call_of(Op::kCommCreate, 4, 8, 0, false, library);
    call.rank = rank;
    call.creation = creation;
    return text(call);
  };
  // Open MPI: three times a binomial allreduce of an int.
  const std::string agreement = "r1:4 r2:4 s1:4 s2:4 ";
  EXPECT_EQ(steps_of(CommCreation::kDup, engine::MpiLibrary::kOpenMpi4, 0), agreement + agreement + agreement);
  EXPECT_EQ(steps_of(CommCreation::kSplit, engine::MpiLibrary::kOpenMpi5, 0),
            "s1:8 r1:8 s2:16 r2:16 " + agreement + agreement + agreement);
  const std::string in_tree = "r3:4 s0:4 r0:4 s3:4 ";
  EXPECT_EQ(steps_of(CommCreation::kCreateGroup, engine::MpiLibrary::kOpenMpi4, 1), in_tree + in_tree + in_tree);
  // MPICH: one allreduce of its mask, 65 ints, by halves; then a broadcast of an int.
  EXPECT_EQ(steps_of(CommCreation::kDup, engine::MpiLibrary::kMpich4, 0),
            "s1:128 r1:132 s2:64 r2:68 s2:68 r2:64 s1:132 r1:128 s2:4 s1:4 ");
  EXPECT_EQ(steps_of(CommCreation::kDup, engine::MpiLibrary::kMpich5, 0),
            "s1:128 r1:132 s2:64 r2:68 s2:68 r2:64 s1:132 r1:128 ");
  EXPECT_EQ(steps_of(CommCreation::kCreateGroup, engine::MpiLibrary::kMpich4, 0),
            "s1:260 r1:260 s2:260 r2:260 s2:4 s1:4 ");
}

// Six ranks after the root make two rows of three, five a row of three and one of two.
TEST(StepLists, OpenMpi6ReducesAlongTwoChains) {
  const auto steps_of = [](std::uint32_t size, std::uint32_t rank, Rank root) {
    engine::CollectiveCall call = call_of(Op::kReduce, size, 4096, root, false, engine::MpiLibrary::kOpenMpi6);
    call.rank = rank;
    return text(call);
  };
  EXPECT_EQ(steps_of(7, 0, 0), "r1:4096 r4:4096 ");
  EXPECT_EQ(steps_of(7, 1, 0), "r2:4096 s0:4096 ");
  EXPECT_EQ(steps_of(7, 3, 0), "s2:4096 ");
  EXPECT_EQ(steps_of(7, 4, 0), "r5:4096 s0:4096 ");
  EXPECT_EQ(steps_of(7, 6, 0), "s5:4096 ");
  EXPECT_EQ(steps_of(6, 2, 2), "r3:4096 r0:4096 ");
  EXPECT_EQ(steps_of(6, 5, 2), "s4:4096 ");
  EXPECT_EQ(steps_of(6, 0, 2), "r1:4096 s2:4096 ");
}

TEST(StepLists, OneRankHasNone) {
  for (int op = 0; op < kCollectiveOpCount; ++op) {
    engine::CollectiveCall call = call_of(static_cast<Op>(op), 1, 100);
    const std::vector<std::uint64_t> values{100, 100};
    const std::vector<std::uint64_t> no_neighbours{0, 0};
    call.values = op >= static_cast<int>(Op::kNeighborAllgather) && op <= static_cast<int>(Op::kNeighborAlltoallw)
                      ? std::span(no_neighbours)
                      : std::span(values);
    EXPECT_EQ(text(call), "") << op;
  }
}

TEST(StepLists, NothingToDoSendsNothing) {
  for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather, Op::kAlltoall,
                      Op::kReduceScatterBlock, Op::kScan, Op::kExscan}) {
    EXPECT_EQ(text(op, 0, 8, 0), "") << static_cast<int>(op);
  }
}

// What cannot be split into equal parts: blocking, the first blocks are longer; non-blocking, the last one
// is.
TEST(StepListsMpich, HalvingOfFiveElementsAmongFour) {
  const auto sent = [](bool nonblocking) {
    // 257 * 5 doubles would do as well; 8 * 1285 bytes is long enough for iallreduce.
    const engine::CollectiveCall call =
        call_of(Op::kAllreduce, 4, 8 * 1285, 0, nonblocking, engine::MpiLibrary::kMpich4);
    std::vector<engine::CollectiveStep> steps;
    EXPECT_TRUE(engine::expand_collective(call, steps).ok());
    return steps.front().bytes;  // rank 0 gives the upper half, blocks 2 and 3
  };
  EXPECT_EQ(sent(false), 2 * 321 * Bytes{8});     // 1285 = 322 + 321 + 321 + 321
  EXPECT_EQ(sent(true), (321 + 322) * Bytes{8});  // 321 + 321 + 321 + 322
}

// ---- bad arguments
// -------------------------------------------------------------------------------------------------

TEST(BadArguments, AreErrorsAndAddNothing) {
  std::vector<engine::CollectiveStep> steps;
  const auto refused = [&](const engine::CollectiveCall& call) {
    const auto result = engine::expand_collective(call, steps);
    EXPECT_STREQ(engine::collective_algorithm_name(call), "invalid");
    return !result.ok() && result.error().code == ErrorCode::kInvalidInput && steps.empty();
  };
  EXPECT_TRUE(refused(call_of(Op::kBcast, 4, 8, 4)));
  EXPECT_TRUE(refused(call_of(Op::kBcast, 4, 8, -1)));
  engine::CollectiveCall call = call_of(Op::kBarrier, 4, 0);
  call.rank = 4;
  EXPECT_TRUE(refused(call));
  EXPECT_TRUE(refused(call_of(Op::kBarrier, 0, 0)));
  EXPECT_TRUE(refused(call_of(static_cast<Op>(99), 4, 0)));
  const std::vector<std::uint64_t> three{1, 2, 3};
  for (const Op op : {Op::kAllgatherv, Op::kAlltoallv, Op::kReduceScatter, Op::kGatherv, Op::kScatterv}) {
    call = call_of(op, 4, 8);
    call.values = three;
    EXPECT_TRUE(refused(call)) << static_cast<int>(op);
  }
  call = call_of(Op::kNeighborAlltoall, 4, 8);
  EXPECT_TRUE(refused(call));
  const std::vector<std::uint64_t> overflow{~std::uint64_t{0} / 2, 1, 2};
  call.values = overflow;
  EXPECT_TRUE(refused(call));
  const std::vector<std::uint64_t> stranger{1, 4, 10, 0};
  call.values = stranger;
  EXPECT_TRUE(refused(call));
}

}  // namespace
}  // namespace lbf::step_lists_test