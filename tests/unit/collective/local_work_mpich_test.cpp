// What each rank copies and combines inside MPICH's collectives, worked out by hand from the algorithms in
// src/mpi/coll and src/mpid/ch4/src/ch4_coll_impl.h: MPIR_Localcopy, MPIR_Reduce_local, MPIR_Sched_copy,
// MPIR_Sched_reduce, and messages to oneself.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "event/collective_op.h"
#include "predictor/engine/match/collective.h"

namespace lbf::local_work_mpich_test {
namespace {

using Op = CollectiveOp;
using Kind = engine::CollectiveStep::Kind;
using Numbers = std::vector<Bytes>;

engine::CollectiveCall mpich_call(Op op, std::uint32_t size, Bytes bytes) {
  engine::CollectiveCall call;
  call.library = engine::MpiLibrary::kMpich4;
  call.op = op;
  call.size = size;
  call.bytes = bytes;
  call.local_work = true;
  return call;
}
engine::CollectiveCall in_place(engine::CollectiveCall call) {
  call.in_place = true;
  return call;
}
engine::CollectiveCall nonblocking(engine::CollectiveCall call) {
  call.nonblocking = true;
  return call;
}
engine::CollectiveCall noncommutative(engine::CollectiveCall call) {
  call.commutative = false;
  return call;
}
engine::CollectiveCall rooted_at(Rank root, engine::CollectiveCall call) {
  call.root = root;
  return call;
}

std::vector<engine::CollectiveStep> steps_of(const engine::CollectiveCall& call) {
  std::vector<engine::CollectiveStep> steps;
  EXPECT_TRUE(engine::expand_collective(call, steps).ok());
  return steps;
}

// By rank. MPI_IN_PLACE of a rooted operation is the root's alone.
Numbers bytes_of(Kind kind, engine::CollectiveCall call) {
  const bool rooted = is_rooted(call.op);
  const bool in_place_somewhere = call.in_place;
  Numbers bytes(call.size, 0);
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    call.in_place = in_place_somewhere && (!rooted || static_cast<Rank>(call.rank) == call.root);
    for (const engine::CollectiveStep& step : steps_of(call)) {
      if (step.kind == kind) bytes[call.rank] += step.bytes;
    }
  }
  return bytes;
}
Numbers copied(const engine::CollectiveCall& call) {
  return bytes_of(Kind::kCopy, call);
}
Numbers combined(const engine::CollectiveCall& call) {
  return bytes_of(Kind::kReduce, call);
}
std::string algorithm_of(const engine::CollectiveCall& call) {
  return engine::collective_algorithm_name(call);
}

// Below 1 KiB all collect in memory of their own (gather_intra_binomial.c). From root 3 the subtree of two at
// 5 goes on at 0: it is received aside, and copied in two parts.
TEST(MpichLocalWork, GatherBinomial) {
  for (const bool later : {false, true}) {
    engine::CollectiveCall call = rooted_at(3, mpich_call(Op::kGather, 6, 10));
    call.nonblocking = later;
    ASSERT_EQ(algorithm_of(call), "binomial");
    EXPECT_EQ(copied(call), (Numbers{10, 10, 10, 10 + 20, 10, 10}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{10, 10, 10, 20, 10, 10}));
    EXPECT_EQ(copied(rooted_at(0, call)), (Numbers{10, 10, 10, 10, 10, 10}));
    // From root 4 the subtrees are 5; 0, 1; 2, 3.
    EXPECT_EQ(copied(rooted_at(4, call)), (Numbers{10, 10, 10, 10, 10, 10}));
    call.bytes = 1024;
    EXPECT_EQ(copied(call), (Numbers{0, 0, 0, 1024, 0, 0}));
    EXPECT_EQ(copied(in_place(call)), Numbers(6, 0));
    call.bytes = 1023;
    EXPECT_EQ(copied(call), (Numbers{1023, 1023, 1023, 3 * 1023, 1023, 1023}));
  }
}

// scatter_intra_binomial.c: places 0, 2, 4 from the root on copy their block out of what came; a root other
// than 0 brings the blocks into their order before.
TEST(MpichLocalWork, ScatterBinomial) {
  const engine::CollectiveCall call = rooted_at(3, mpich_call(Op::kScatter, 6, 10));
  EXPECT_EQ(copied(call), (Numbers{0, 10, 0, 60 + 10, 0, 10}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 10, 0, 50, 0, 10}));
  EXPECT_EQ(copied(rooted_at(0, call)), (Numbers{10, 0, 10, 0, 10, 0}));
  EXPECT_EQ(copied(in_place(rooted_at(0, call))), (Numbers{0, 0, 10, 0, 10, 0}));
}
TEST(MpichLocalWork, ScatterSendsBeforeItCopies) {
  const std::vector<engine::CollectiveStep> steps = steps_of(mpich_call(Op::kScatter, 2, 10));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].kind, Kind::kSend);
  EXPECT_EQ(steps[1].kind, Kind::kCopy);
}

TEST(MpichLocalWork, LinearOnesCopyAtTheRoot) {
  const std::vector<std::uint64_t> counts{100, 200, 300};
  for (const Op op : {Op::kGatherv, Op::kScatterv}) {
    engine::CollectiveCall call = rooted_at(1, mpich_call(op, 3, 100));
    call.values = counts;
    EXPECT_EQ(copied(call), (Numbers{0, 200, 0}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{0, 0, 0}));
  }
}

// allgather_intra_brucks.c: into memory of its own, also in place and on rank 0, and all out of it.
TEST(MpichLocalWork, Allgather) {
  engine::CollectiveCall call = mpich_call(Op::kAllgather, 3, 100);
  ASSERT_EQ(algorithm_of(call), "bruck");
  EXPECT_EQ(copied(call), (Numbers{400, 400, 400}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{400, 400, 400}));
  EXPECT_EQ(copied(nonblocking(call)), (Numbers{400, 400, 400}));
  call.size = 4;
  ASSERT_EQ(algorithm_of(call), "recursive_doubling");
  EXPECT_EQ(copied(call), (Numbers{100, 100, 100, 100}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 0, 0, 0}));
  call = mpich_call(Op::kAllgather, 3, 40000);
  ASSERT_EQ(algorithm_of(call), "ring");
  EXPECT_EQ(copied(call), (Numbers{40000, 40000, 40000}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 0, 0}));
}

// Recursive doubling collects elsewhere, too: the blocks need not lie one behind the other.
TEST(MpichLocalWork, Allgatherv) {
  const std::vector<std::uint64_t> small{1000, 2000, 3000, 4000};
  const std::vector<std::uint64_t> large{100000, 200000, 300000};
  engine::CollectiveCall call = mpich_call(Op::kAllgatherv, 3, 1000);
  for (const bool later : {false, true}) {
    call.nonblocking = later;
    call.size = 3;
    call.values = std::span(small).first(3);
    ASSERT_EQ(algorithm_of(call), "bruck");
    EXPECT_EQ(copied(call), (Numbers{1000 + 6000, 2000 + 6000, 3000 + 6000}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{7000, 8000, 9000}));
    call.values = large;
    ASSERT_EQ(algorithm_of(call), "ring");
    EXPECT_EQ(copied(call), (Numbers{100000, 200000, 300000}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{0, 0, 0}));
    call.size = 4;
    call.values = small;
    ASSERT_EQ(algorithm_of(call), "recursive_doubling");
    EXPECT_EQ(copied(call), (Numbers{1000 + 10000, 2000 + 10000, 3000 + 10000, 4000 + 10000}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{10000, 10000, 10000, 10000}));
  }
}

// Of 9 ranks 4 blocks have bit 1, 4 have bit 2, 4 have bit 4, 1 has bit 8: 13 are packed. All 9 are turned
// round before, turned round after, and put into the opposite order (alltoall_intra_brucks.c).
TEST(MpichLocalWork, Alltoall) {
  const engine::CollectiveCall bruck = mpich_call(Op::kAlltoall, 9, 100);
  ASSERT_EQ(algorithm_of(bruck), "modified_bruck");
  EXPECT_EQ(copied(bruck), Numbers(9, 4000));
  EXPECT_EQ(copied(nonblocking(bruck)), Numbers(9, 4000));
  const engine::CollectiveCall scattered = mpich_call(Op::kAlltoall, 4, 100);
  ASSERT_EQ(algorithm_of(scattered), "scattered");
  EXPECT_EQ(copied(scattered), Numbers(4, 100));
  const engine::CollectiveCall pairwise = mpich_call(Op::kAlltoall, 4, 40000);
  ASSERT_EQ(algorithm_of(pairwise), "pairwise");
  EXPECT_EQ(copied(pairwise), Numbers(4, 40000));
}

// MPIC_Sendrecv_replace keeps aside what goes, also to the rank itself; the non-blocking ones leave that out.
TEST(MpichLocalWork, AlltoallInPlace) {
  const engine::CollectiveCall call = in_place(mpich_call(Op::kAlltoall, 4, 100));
  EXPECT_EQ(copied(call), Numbers(4, 3 * 100 + 2 * 100));
  EXPECT_EQ(copied(nonblocking(call)), Numbers(4, 3 * 100));
  const std::vector<std::uint64_t> counts{1000, 2000, 3000, 1000, 2000, 3000};
  for (const Op op : {Op::kAlltoallv, Op::kAlltoallw}) {
    engine::CollectiveCall vector = in_place(mpich_call(op, 3, 0));
    vector.values = counts;
    EXPECT_EQ(copied(vector), (Numbers{2000 + 5000, 4000 + 4000, 6000 + 3000}));
    EXPECT_EQ(copied(nonblocking(vector)), (Numbers{5000, 4000, 3000}));
  }
}
// What comes in ialltoallv is received aside (ialltoallv_intra_sched_inplace.c), what goes in ialltoall is
// kept.
TEST(MpichLocalWork, AlltoallInPlaceCopiesBeforeOrAfter) {
  const std::vector<std::uint64_t> counts{10, 10, 10, 10};
  engine::CollectiveCall call = nonblocking(in_place(mpich_call(Op::kAlltoallv, 2, 0)));
  call.values = counts;
  std::vector<engine::CollectiveStep> steps = steps_of(call);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[2].kind, Kind::kCopy);
  steps = steps_of(nonblocking(in_place(mpich_call(Op::kAlltoall, 2, 10))));
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].kind, Kind::kCopy);
}

// From root 0: 1 and 2 to 0, 3 to 2. What does not commute goes to 0 and from there to the root; the result
// is copied back after each child (reduce_intra_binomial.c).
TEST(MpichLocalWork, ReduceBinomial) {
  const engine::CollectiveCall call = mpich_call(Op::kReduce, 4, 8);
  EXPECT_EQ(copied(call), (Numbers{8, 8, 8, 8}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 8, 8, 8}));
  EXPECT_EQ(combined(call), (Numbers{16, 0, 8, 0}));
  const engine::CollectiveCall ordered = noncommutative(rooted_at(2, call));
  EXPECT_EQ(copied(ordered), (Numbers{8 + 16, 8, 8 + 8, 8}));
  EXPECT_EQ(copied(in_place(ordered)), (Numbers{8 + 16, 8, 8, 8}));
  EXPECT_EQ(copied(nonblocking(ordered)), (Numbers{8 + 16, 8, 8 + 8, 8}));
  EXPECT_EQ(combined(ordered), (Numbers{16, 0, 8, 0}));
}

// 500 doubles on 5 ranks: 1 gives all to 0, then halves and quarters.
TEST(MpichLocalWork, ReduceScatterGather) {
  const engine::CollectiveCall call = mpich_call(Op::kReduce, 5, 4000);
  ASSERT_EQ(algorithm_of(call), "reduce_scatter_gather");
  EXPECT_EQ(copied(call), Numbers(5, 4000));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 4000, 4000, 4000, 4000}));
  EXPECT_EQ(combined(call), (Numbers{4000 + 3000, 0, 3000, 3000, 3000}));
}

TEST(MpichLocalWork, AllreduceRecursiveDoubling) {
  engine::CollectiveCall call = mpich_call(Op::kAllreduce, 3, 8);
  ASSERT_EQ(algorithm_of(call), "recursive_doubling");
  EXPECT_EQ(copied(call), (Numbers{8, 8, 8}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 0, 0}));
  EXPECT_EQ(combined(call), (Numbers{0, 16, 8}));  // 0 gives to 1, 1 and 2 exchange
  // What came from a higher rank is the second operand: the result is copied back.
  call = noncommutative(mpich_call(Op::kAllreduce, 3, 800));
  EXPECT_EQ(copied(call), (Numbers{800, 1600, 800}));
  call.size = 4;
  EXPECT_EQ(copied(call), (Numbers{2400, 1600, 1600, 800}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{1600, 800, 800, 0}));
  EXPECT_EQ(copied(nonblocking(call)), (Numbers{2400, 1600, 1600, 800}));
  EXPECT_EQ(combined(call), Numbers(4, 1600));
}

TEST(MpichLocalWork, AllreduceScatterAllgather) {
  const engine::CollectiveCall call = mpich_call(Op::kAllreduce, 4, 800);
  ASSERT_EQ(algorithm_of(call), "reduce_scatter_allgather");
  EXPECT_EQ(copied(call), Numbers(4, 800));
  EXPECT_EQ(copied(in_place(call)), Numbers(4, 0));
  EXPECT_EQ(combined(call), Numbers(4, 400 + 200));
}

// 0 gives its vector to 1 and gets its block; 1 and 2 halve it: two blocks and one.
TEST(MpichLocalWork, ReduceScatterRecursiveHalving) {
  for (const bool later : {false, true}) {
    engine::CollectiveCall call = mpich_call(Op::kReduceScatterBlock, 3, 80);
    call.nonblocking = later;
    ASSERT_EQ(algorithm_of(call), "recursive_halving");
    EXPECT_EQ(copied(call), (Numbers{240, 240 + 80, 240 + 80}));
    EXPECT_EQ(copied(in_place(call)), (Numbers{240, 320, 320}));
    EXPECT_EQ(combined(call), (Numbers{0, 240 + 160, 80}));
  }
}

// In place the result is where the rank's block was, and goes to the start of the vector.
TEST(MpichLocalWork, ReduceScatterPairwise) {
  const engine::CollectiveCall call = mpich_call(Op::kReduceScatterBlock, 4, 200000);
  ASSERT_EQ(algorithm_of(call), "pairwise");
  EXPECT_EQ(copied(call), Numbers(4, 200000));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 200000, 200000, 200000}));
  EXPECT_EQ(combined(call), Numbers(4, 600000));
}

TEST(MpichLocalWork, ReduceScatterThatDoesNotCommute) {
  engine::CollectiveCall call = noncommutative(mpich_call(Op::kReduceScatterBlock, 4, 80));
  ASSERT_EQ(algorithm_of(call), "noncommutative");
  EXPECT_EQ(copied(call), Numbers(4, 320 + 80));
  EXPECT_EQ(copied(in_place(call)), Numbers(4, 320 + 80));
  EXPECT_EQ(combined(call), Numbers(4, 160 + 80));
  // 0 and 1 exchange all but their own block, then 0 and 2 (two blocks for 0, one for 2), and 0 gives 1 what
  // it got. From above it is copied back: twice in 0, once in 1.
  call.size = 3;
  ASSERT_EQ(algorithm_of(call), "recursive_doubling");
  EXPECT_EQ(copied(call), (Numbers{240 + 160 + 160 + 80, 240 + 160 + 80, 240 + 80}));
  EXPECT_EQ(copied(nonblocking(call)), (Numbers{640, 480, 320}));
  EXPECT_EQ(combined(call), (Numbers{320, 320, 80}));
}

// Rank 0 and 2, 0 and 1 exchange (P = 3): the vector of all so far, and in the upper one the result.
TEST(MpichLocalWork, Scan) {
  const engine::CollectiveCall call = mpich_call(Op::kScan, 3, 80);
  EXPECT_EQ(copied(call), (Numbers{160, 160, 160}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{80, 80, 80}));
  EXPECT_EQ(combined(call), (Numbers{160, 160, 160}));
  EXPECT_EQ(copied(noncommutative(call)), (Numbers{160 + 160, 160, 160}));
  EXPECT_EQ(copied(nonblocking(noncommutative(call))), (Numbers{320, 160, 160}));
}
// The first that comes from below is copied, the next ones are combined.
TEST(MpichLocalWork, Exscan) {
  const engine::CollectiveCall call = mpich_call(Op::kExscan, 4, 80);
  EXPECT_EQ(copied(call), (Numbers{80, 160, 160, 160}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{80, 160, 160, 160}));
  EXPECT_EQ(combined(call), (Numbers{160, 160, 160, 240}));
  EXPECT_EQ(copied(noncommutative(call)), (Numbers{80 + 160, 160 + 80, 160 + 80, 160}));
}

// The reduction on the node leaves its result where the allreduce between the nodes is done in place.
TEST(MpichLocalWork, AllreduceByNodes) {
  const engine::NodeLayout two_and_two(std::vector<std::uint32_t>{0, 0, 1, 1});
  engine::CollectiveCall call = mpich_call(Op::kAllreduce, 4, 800);
  call.layout = &two_and_two;
  ASSERT_EQ(algorithm_of(call), "smp");
  EXPECT_EQ(copied(call), Numbers(4, 800));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 800, 0, 800}));
  EXPECT_EQ(combined(call), (Numbers{800 + 400, 0, 800 + 400, 0}));
  const engine::NodeLayout two_and_one(std::vector<std::uint32_t>{0, 0, 1});
  call.size = 3;
  call.layout = &two_and_one;
  EXPECT_EQ(copied(call), Numbers(3, 800));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 800, 0}));
}

// Each reduction copies, but where the vector of the second one's root is in place (ch4's compositions).
TEST(MpichLocalWork, ReduceByNodes) {
  const engine::NodeLayout two_and_two(std::vector<std::uint32_t>{0, 0, 1, 1});
  engine::CollectiveCall call = mpich_call(Op::kReduce, 4, 800);
  call.layout = &two_and_two;
  ASSERT_EQ(algorithm_of(call), "smp");
  EXPECT_EQ(copied(call), (Numbers{800, 800, 1600, 800}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 800, 1600, 800}));
  EXPECT_EQ(copied(rooted_at(1, call)), (Numbers{1600, 800, 1600, 800}));
  EXPECT_EQ(copied(in_place(rooted_at(1, call))), (Numbers{1600, 0, 1600, 800}));
  EXPECT_EQ(copied(nonblocking(rooted_at(1, call))), (Numbers{1600, 800, 1600, 800}));
  call.bytes = 8000;
  EXPECT_EQ(copied(rooted_at(1, call)), (Numbers{8000, 8000, 16000, 8000}));
  EXPECT_EQ(copied(in_place(rooted_at(1, call))), (Numbers{8000, 8000, 16000, 8000}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 8000, 16000, 8000}));
  // On one node its first rank is the only one between the nodes, and copies all the same.
  const engine::NodeLayout together(std::vector<std::uint32_t>{0, 0});
  call = mpich_call(Op::kReduce, 2, 800);
  call.layout = &together;
  EXPECT_EQ(copied(call), (Numbers{800, 800}));
  EXPECT_EQ(copied(rooted_at(1, call)), (Numbers{1600, 800}));
  // A rank that is alone on its node has one reduction less.
  const engine::NodeLayout one_and_two(std::vector<std::uint32_t>{0, 1, 1});
  call = mpich_call(Op::kReduce, 3, 8000);
  call.layout = &one_and_two;
  EXPECT_EQ(copied(call), (Numbers{8000, 16000, 8000}));
  EXPECT_EQ(copied(in_place(call)), (Numbers{0, 16000, 8000}));
}

// The only rank goes through the algorithm's copies.
TEST(MpichLocalWork, Alone) {
  const std::vector<std::uint64_t> counts{100, 100};
  EXPECT_EQ(copied(mpich_call(Op::kAllreduce, 1, 100)), Numbers{100});
  EXPECT_EQ(copied(in_place(mpich_call(Op::kAllreduce, 1, 100))), Numbers{0});
  EXPECT_EQ(copied(mpich_call(Op::kReduceScatterBlock, 1, 100)), Numbers{200});
  EXPECT_EQ(copied(mpich_call(Op::kScan, 1, 100)), Numbers{200});
  EXPECT_EQ(copied(mpich_call(Op::kExscan, 1, 100)), Numbers{100});
  EXPECT_EQ(copied(mpich_call(Op::kBcast, 1, 100)), Numbers{0});
  engine::CollectiveCall vector = mpich_call(Op::kAllgatherv, 1, 100);
  vector.values = std::span(counts).first(1);
  EXPECT_EQ(copied(vector), Numbers{200});
  vector = in_place(mpich_call(Op::kAlltoallv, 1, 0));
  vector.values = counts;
  EXPECT_EQ(copied(vector), Numbers{200});
  for (const engine::CollectiveStep& step : steps_of(vector)) EXPECT_EQ(step.kind, Kind::kCopy);
}

// A group of one reduces and gathers by itself before it hands on.
TEST(MpichLocalWork, GroupsOfOne) {
  for (const Op op : {Op::kReduce, Op::kGather}) {
    engine::CollectiveCall call = mpich_call(op, 1, 80);
    call.remote_size = 2;
    EXPECT_EQ(copied(call), Numbers{80});
  }
}

}  // namespace
}  // namespace lbf::local_work_mpich_test