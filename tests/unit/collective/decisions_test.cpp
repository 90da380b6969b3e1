// expand_collective: the algorithm is the one that the library chooses.
#include "predictor/engine/match/collective.h"

#include <gtest/gtest.h>

#include "tests/unit/collective/collective_calls.h"

namespace lbf::decisions_test {
namespace {

using engine::Op = CollectiveOp;

TEST(Decisions, AtTheThresholds) {
  struct Case {
    engine::Op op;
    std::uint32_t size;
    Bytes bytes;
    const char* algorithm;
    bool commutative = true;
    bool nonblocking = false;
  };
  const Case cases[] = {
      {engine::Op::kBarrier, 3, 0, "recursive_doubling"},
      {engine::Op::kBarrier, 4, 0, "linear"},
      {engine::Op::kBarrier, 7, 0, "linear"},
      {engine::Op::kBarrier, 8, 0, "recursive_doubling"},
      {engine::Op::kBarrier, 64, 0, "bruck"},
      {engine::Op::kBarrier, 256, 0, "tree"},
      {engine::Op::kBarrier, 512, 0, "bruck"},
      {engine::Op::kBarrier, 1024, 0, "tree"},
      {engine::Op::kBarrier, 4096, 0, "bruck"},
      {engine::Op::kBarrier, 5, 0, "dissemination", true, true},
      {engine::Op::kBcast, 3, 31, "pipeline"},
      {engine::Op::kBcast, 3, 32, "binary_tree"},
      {engine::Op::kBcast, 3, 131072, "chain"},
      {engine::Op::kBcast, 7, 63, "binary_tree"},
      {engine::Op::kBcast, 7, 64, "binomial"},
      {engine::Op::kBcast, 7, 8192, "basic_linear"},
      {engine::Op::kBcast, 7, 1048576, "chain"},
      {engine::Op::kBcast, 15, 7, "knomial"},
      {engine::Op::kBcast, 16, 1048575, "binomial"},
      {engine::Op::kBcast, 16, 1048576, "scatter_allgather"},
      {engine::Op::kBcast, 256, 16383, "knomial"},
      {engine::Op::kBcast, 256, 16384, "split_binary_tree"},
      {engine::Op::kBcast, 4, 8, "linear", true, true},
      {engine::Op::kBcast, 5, 1048576, "binomial", true, true},
      {engine::Op::kReduce, 3, 16, "pipeline"},
      {engine::Op::kReduce, 3, 32, "linear"},
      {engine::Op::kReduce, 7, 4095, "binary"},
      {engine::Op::kReduce, 7, 4096, "chain"},
      {engine::Op::kReduce, 7, 65536, "binomial"},
      {engine::Op::kReduce, 7, 262144, "linear"},
      {engine::Op::kReduce, 15, 8192, "binomial"},
      {engine::Op::kReduce, 2, 4, "linear"},  // rabenseifner, but one element is not enough
      {engine::Op::kReduce, 15, 1023, "in-order_binary", false},
      {engine::Op::kReduce, 15, 1024, "linear", false},
      {engine::Op::kReduce, 4, 32, "rabenseifner", true, true},
      {engine::Op::kReduce, 2, 65535, "binomial", true, true},
      {engine::Op::kReduce, 2, 65536, "chain", true, true},
      {engine::Op::kAllreduce, 2, 4, "recursive_doubling"},  // ring, but one element for two ranks
      {engine::Op::kAllreduce, 3, 8, "recursive_doubling"},
      {engine::Op::kAllreduce, 3, 4096, "ring"},
      {engine::Op::kAllreduce, 3, 8192, "recursive_doubling"},
      {engine::Op::kAllreduce, 3, 65536, "ring"},  // segmented_ring without a segment size
      {engine::Op::kAllreduce, 3, 262144, "rabenseifner"},
      {engine::Op::kAllreduce, 7, 8191, "recursive_doubling"},
      {engine::Op::kAllreduce, 7, 8192, "rabenseifner"},
      {engine::Op::kAllreduce, 16, 4095, "recursive_doubling"},
      {engine::Op::kAllreduce, 16, 4096, "rabenseifner"},
      {engine::Op::kAllreduce, 32, 128, "basic_linear"},  // rabenseifner, but 16 doubles for 32 ranks
      {engine::Op::kAllreduce, 32, 256, "rabenseifner"},
      {engine::Op::kAllreduce, 128, 131071, "nonoverlapping"},
      {engine::Op::kAllreduce, 8, 1048576, "nonoverlapping", false},
      {engine::Op::kAllreduce, 8, 1048575, "recursive_doubling", false},
      {engine::Op::kAllreduce, 4, 65535, "binomial", true, true},
      {engine::Op::kAllreduce, 4, 65536, "rabenseifner", true, true},
      {engine::Op::kGather, 3, 1, "linear_sync"},
      {engine::Op::kGather, 3, 2, "basic_linear"},
      {engine::Op::kGather, 3, 4, "binomial"},
      {engine::Op::kGather, 3, 131072, "linear_sync"},
      {engine::Op::kGather, 7, 1024, "basic_linear"},
      {engine::Op::kGather, 8, 1048576, "binomial"},
      {engine::Op::kScatter, 3, 1, "linear_nb"},
      {engine::Op::kScatter, 3, 2, "basic_linear"},
      {engine::Op::kScatter, 15, 16383, "binomial"},
      {engine::Op::kScatter, 15, 16384, "linear_nb"},
      {engine::Op::kAllgather, 2, 8, "two_proc"},
      {engine::Op::kAllgather, 8, 1048576, "recursive_doubling"},
      {engine::Op::kAllgather, 9, 8, "bruck"},
      {engine::Op::kAllgather, 32, 1024, "neighbor"},
      {engine::Op::kAllgather, 33, 1024, "ring"},
      {engine::Op::kAllgather, 33, 65536, "ring"},
      {engine::Op::kAlltoall, 2, 1, "pairwise"},
      {engine::Op::kAlltoall, 2, 2, "two_proc"},
      {engine::Op::kAlltoall, 2, 32768, "linear_sync"},
      {engine::Op::kAlltoall, 7, 8191, "linear_sync"},
      {engine::Op::kAlltoall, 7, 8192, "linear"},
      {engine::Op::kAlltoall, 31, 4, "modified_bruck"},
      {engine::Op::kAlltoall, 31, 512, "linear_sync"},
      {engine::Op::kAlltoall, 64, 262144, "pairwise"},
      {engine::Op::kReduceScatterBlock, 3, 3, "recursive_doubling"},
      {engine::Op::kReduceScatterBlock, 3, 4, "butterfly"},
      {engine::Op::kReduceScatterBlock, 3, 131072, "basic_linear"},
      {engine::Op::kReduceScatterBlock, 15, 32, "butterfly"},
      {engine::Op::kReduceScatterBlock, 15, 31, "recursive_halving"},
      {engine::Op::kReduceScatterBlock, 15, 31, "basic_linear", false},
  };
  for (const Case& c : cases) {
    engine::CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking);
    call.commutative = c.commutative;
    EXPECT_STREQ(engine::collective_algorithm_name(call), c.algorithm) << describe(call);
  }
}

TEST(Decisions, MpichAtTheThresholds) {
  struct Case {
    engine::Op op;
    std::uint32_t size;
    Bytes bytes;
    const char* algorithm;
    bool commutative = true;
    bool nonblocking = false;
    bool in_place = false;
  };
  const Case cases[] = {
      {engine::Op::kBarrier, 4, 0, "dissemination"},
      {engine::Op::kBarrier, 4, 0, "dissemination", true, true},
      {engine::Op::kBcast, 7, 1 << 20, "binomial"},
      {engine::Op::kBcast, 8, 12288, "binomial"},
      {engine::Op::kBcast, 8, 12289, "scatter_recursive_doubling_allgather"},
      {engine::Op::kBcast, 8, 524288, "scatter_recursive_doubling_allgather"},
      {engine::Op::kBcast, 8, 524289, "scatter_ring_allgather"},
      {engine::Op::kBcast, 9, 12289, "scatter_ring_allgather"},
      {engine::Op::kBcast, 8, 12287, "binomial", true, true},
      {engine::Op::kBcast, 8, 12288, "scatter_recursive_doubling_allgather", true, true},
      {engine::Op::kBcast, 8, 524288, "scatter_ring_allgather", true, true},
      {engine::Op::kReduce, 4, 2048, "binomial"},
      {engine::Op::kReduce, 4, 2056, "reduce_scatter_gather"},
      {engine::Op::kReduce, 4, 2056, "binomial", false},
      {engine::Op::kReduce, 256, 2056, "reduce_scatter_gather"},  // 257 doubles
      {engine::Op::kReduce, 512, 2056, "binomial"},
      {engine::Op::kReduce, 512, 2051, "reduce_scatter_gather"},  // bytes
      {engine::Op::kReduce, 1024, 4096, "binomial"},              // 512 doubles for 1024 ranks
      {engine::Op::kAllreduce, 2, 8, "recursive_doubling"},
      {engine::Op::kAllreduce, 2, 16, "reduce_scatter_allgather"},
      {engine::Op::kAllreduce, 8, 32, "recursive_doubling"},  // 4 doubles for 8 ranks
      {engine::Op::kAllreduce, 8, 64, "reduce_scatter_allgather"},
      {engine::Op::kAllreduce, 8, 64, "recursive_doubling", false},
      {engine::Op::kAllreduce, 8, 2048, "recursive_doubling", true, true},
      {engine::Op::kAllreduce, 8, 2056, "reduce_scatter_allgather", true, true},
      {engine::Op::kGather, 5, 100000, "binomial"},
      {engine::Op::kScatter, 5, 100000, "binomial"},
      {engine::Op::kAllgather, 8, 65535, "recursive_doubling"},
      {engine::Op::kAllgather, 8, 65536, "ring"},
      {engine::Op::kAllgather, 10, 8191, "bruck"},
      {engine::Op::kAllgather, 10, 8192, "ring"},
      {engine::Op::kAlltoall, 8, 8, "scattered"},
      {engine::Op::kAlltoall, 8, 32768, "scattered"},
      {engine::Op::kAlltoall, 8, 32769, "pairwise"},
      {engine::Op::kAlltoall, 9, 256, "modified_bruck"},
      {engine::Op::kAlltoall, 9, 257, "scattered"},
      {engine::Op::kAlltoall, 9, 2048, "modified_bruck", true, true},
      {engine::Op::kAlltoall, 9, 2049, "scattered", true, true},
      {engine::Op::kAlltoall, 9, 8, "pairwise_sendrecv_replace", true, false, true},
      {engine::Op::kReduceScatterBlock, 4, 131071, "recursive_halving"},
      {engine::Op::kReduceScatterBlock, 4, 131072, "pairwise"},
      {engine::Op::kReduceScatterBlock, 4, 1048568, "recursive_halving", true, true},  // 131,071 doubles
      {engine::Op::kReduceScatterBlock, 4, 1048576, "pairwise", true, true},
      {engine::Op::kReduceScatterBlock, 4, 8, "noncommutative", false},
      {engine::Op::kReduceScatterBlock, 5, 8, "recursive_doubling", false},
      {engine::Op::kScan, 5, 8, "recursive_doubling"},
  };
  for (const Case& c : cases) {
    engine::CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking, engine::MpiLibrary::kMpich4);
    call.commutative = c.commutative;
    call.in_place = c.in_place;
    EXPECT_STREQ(engine::collective_algorithm_name(call), c.algorithm) << describe(call);
  }
}

TEST(Decisions, MpichVectorOperationsGoByTheirTotals) {
  const std::vector<std::uint64_t> small(8, 65535);
  std::vector<std::uint64_t> large(8, 65536);
  engine::CollectiveCall call = call_of(engine::Op::kAllgatherv, 8, 0, 0, false, engine::MpiLibrary::kMpich4);
  call.values = small;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "recursive_doubling");
  call.values = large;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "ring");
  call.op = engine::Op::kReduceScatter;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "pairwise");
  call.values = small;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "recursive_halving");
  call.commutative = false;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "noncommutative");
  large[3] = 1;
  call.values = large;  // not alike
  EXPECT_STREQ(engine::collective_algorithm_name(call), "recursive_doubling");
}

TEST(Decisions, VectorOperationsGoByTheirTotals) {
  const std::vector<std::uint64_t> small(16, 511);
  const std::vector<std::uint64_t> large(16, 1024);
  engine::CollectiveCall call = call_of(engine::Op::kAllgatherv, 8, 0);
  call.values = std::span(large).first(8);
  EXPECT_STREQ(engine::collective_algorithm_name(call), "bruck");
  call.values = std::span(small).first(8);
  EXPECT_STREQ(engine::collective_algorithm_name(call), "default");
  call = call_of(engine::Op::kReduceScatter, 16, 0);
  const std::vector<std::uint64_t> huge(16, 16384);
  call.values = huge;  // 256 KiB in all
  EXPECT_STREQ(engine::collective_algorithm_name(call), "ring");
  call.values = large;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "recursive_halving");
  call.commutative = false;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "non-overlapping");
}

TEST(Decisions, UnsureOnlyWhereTheElementSizeMatters) {
  std::vector<engine::CollectiveStep> steps;
  // 16 bytes on 3 ranks: 2 doubles are too few for a ring, 4 ints are not; but the rule says recursive
  // doubling.
  EXPECT_FALSE(engine::expand_collective(call_of(engine::Op::kAllreduce, 3, 16), steps)->approximated);
  // 128 bytes on 32 ranks: 16 doubles go linearly, 32 floats by rabenseifner.
  EXPECT_TRUE(engine::expand_collective(call_of(engine::Op::kAllreduce, 32, 128), steps)->approximated);
  EXPECT_FALSE(engine::expand_collective(call_of(engine::Op::kAllreduce, 32, 1024), steps)->approximated);
  engine::CollectiveCall create = call_of(engine::Op::kCommCreate, 4, 0);
  EXPECT_TRUE(engine::expand_collective(create, steps)->approximated);  // made by which call?
  create.creation = CommCreation::kDup;
  EXPECT_FALSE(engine::expand_collective(create, steps)->approximated);
}

}  // namespace
}  // namespace lbf::decisions_test