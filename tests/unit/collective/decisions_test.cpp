// expand_collective: the algorithm is the one that the library chooses.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "predictor/engine/match/collective.h"
#include "predictor/engine/match/mpi_library.h"
#include "tests/unit/collective/collective_calls.h"

namespace lbf::decisions_test {
namespace {

using Op = CollectiveOp;

TEST(Decisions, AtTheThresholds) {
  struct Case {
    Op op;
    std::uint32_t size;
    Bytes bytes;
    const char* algorithm;
    bool commutative = true;
    bool nonblocking = false;
  };
  const Case cases[] = {
      {Op::kBarrier, 3, 0, "recursive_doubling"},
      {Op::kBarrier, 4, 0, "linear"},
      {Op::kBarrier, 7, 0, "linear"},
      {Op::kBarrier, 8, 0, "recursive_doubling"},
      {Op::kBarrier, 64, 0, "bruck"},
      {Op::kBarrier, 256, 0, "tree"},
      {Op::kBarrier, 512, 0, "bruck"},
      {Op::kBarrier, 1024, 0, "tree"},
      {Op::kBarrier, 4096, 0, "bruck"},
      {Op::kBarrier, 5, 0, "dissemination", true, true},
      {Op::kBcast, 3, 31, "pipeline"},
      {Op::kBcast, 3, 32, "binary_tree"},
      {Op::kBcast, 3, 131072, "chain"},
      {Op::kBcast, 7, 63, "binary_tree"},
      {Op::kBcast, 7, 64, "binomial"},
      {Op::kBcast, 7, 8192, "basic_linear"},
      {Op::kBcast, 7, 1048576, "chain"},
      {Op::kBcast, 15, 7, "knomial"},
      {Op::kBcast, 16, 1048575, "binomial"},
      {Op::kBcast, 16, 1048576, "scatter_allgather"},
      {Op::kBcast, 256, 16383, "knomial"},
      {Op::kBcast, 256, 16384, "split_binary_tree"},
      {Op::kBcast, 4, 8, "linear", true, true},
      {Op::kBcast, 5, 1048576, "binomial", true, true},
      {Op::kReduce, 3, 16, "pipeline"},
      {Op::kReduce, 3, 32, "linear"},
      {Op::kReduce, 7, 4095, "binary"},
      {Op::kReduce, 7, 4096, "chain"},
      {Op::kReduce, 7, 65536, "binomial"},
      {Op::kReduce, 7, 262144, "linear"},
      {Op::kReduce, 15, 8192, "binomial"},
      {Op::kReduce, 2, 4, "linear"},  // rabenseifner, but one element is not enough
      {Op::kReduce, 15, 1023, "in-order_binary", false},
      {Op::kReduce, 15, 1024, "linear", false},
      {Op::kReduce, 4, 32, "rabenseifner", true, true},
      {Op::kReduce, 2, 65535, "binomial", true, true},
      {Op::kReduce, 2, 65536, "chain", true, true},
      {Op::kAllreduce, 2, 4, "recursive_doubling"},  // ring, but one element for two ranks
      {Op::kAllreduce, 3, 8, "recursive_doubling"},
      {Op::kAllreduce, 3, 4096, "ring"},
      {Op::kAllreduce, 3, 8192, "recursive_doubling"},
      {Op::kAllreduce, 3, 65536, "ring"},  // segmented_ring without a segment size
      {Op::kAllreduce, 3, 262144, "rabenseifner"},
      {Op::kAllreduce, 7, 8191, "recursive_doubling"},
      {Op::kAllreduce, 7, 8192, "rabenseifner"},
      {Op::kAllreduce, 16, 4095, "recursive_doubling"},
      {Op::kAllreduce, 16, 4096, "rabenseifner"},
      {Op::kAllreduce, 32, 128, "basic_linear"},  // rabenseifner, but 16 doubles for 32 ranks
      {Op::kAllreduce, 32, 256, "rabenseifner"},
      {Op::kAllreduce, 128, 131071, "nonoverlapping"},
      {Op::kAllreduce, 8, 1048576, "nonoverlapping", false},
      {Op::kAllreduce, 8, 1048575, "recursive_doubling", false},
      {Op::kAllreduce, 4, 65535, "binomial", true, true},
      {Op::kAllreduce, 4, 65536, "rabenseifner", true, true},
      {Op::kGather, 3, 1, "linear_sync"},
      {Op::kGather, 3, 2, "basic_linear"},
      {Op::kGather, 3, 4, "binomial"},
      {Op::kGather, 3, 131072, "linear_sync"},
      {Op::kGather, 7, 1024, "basic_linear"},
      {Op::kGather, 8, 1048576, "binomial"},
      {Op::kScatter, 3, 1, "linear_nb"},
      {Op::kScatter, 3, 2, "basic_linear"},
      {Op::kScatter, 15, 16383, "binomial"},
      {Op::kScatter, 15, 16384, "linear_nb"},
      {Op::kAllgather, 2, 8, "two_proc"},
      {Op::kAllgather, 8, 1048576, "recursive_doubling"},
      {Op::kAllgather, 9, 8, "bruck"},
      {Op::kAllgather, 32, 1024, "neighbor"},
      {Op::kAllgather, 33, 1024, "ring"},
      {Op::kAllgather, 33, 65536, "ring"},
      {Op::kAlltoall, 2, 1, "pairwise"},
      {Op::kAlltoall, 2, 2, "two_proc"},
      {Op::kAlltoall, 2, 32768, "linear_sync"},
      {Op::kAlltoall, 7, 8191, "linear_sync"},
      {Op::kAlltoall, 7, 8192, "linear"},
      {Op::kAlltoall, 31, 4, "modified_bruck"},
      {Op::kAlltoall, 31, 512, "linear_sync"},
      {Op::kAlltoall, 64, 262144, "pairwise"},
      {Op::kReduceScatterBlock, 3, 3, "recursive_doubling"},
      {Op::kReduceScatterBlock, 3, 4, "butterfly"},
      {Op::kReduceScatterBlock, 3, 131072, "basic_linear"},
      {Op::kReduceScatterBlock, 15, 32, "butterfly"},
      {Op::kReduceScatterBlock, 15, 31, "recursive_halving"},
      {Op::kReduceScatterBlock, 15, 31, "basic_linear", false},
  };
  for (const Case& c : cases) {
    engine::CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking);
    call.commutative = c.commutative;
    EXPECT_STREQ(engine::collective_algorithm_name(call), c.algorithm) << describe(call);
  }
}

TEST(Decisions, MpichAtTheThresholds) {
  struct Case {
    Op op;
    std::uint32_t size;
    Bytes bytes;
    const char* algorithm;
    bool commutative = true;
    bool nonblocking = false;
    bool in_place = false;
  };
  const Case cases[] = {
      {Op::kBarrier, 4, 0, "dissemination"},
      {Op::kBarrier, 4, 0, "dissemination", true, true},
      {Op::kBcast, 7, 1 << 20, "binomial"},
      {Op::kBcast, 8, 12288, "binomial"},
      {Op::kBcast, 8, 12289, "scatter_recursive_doubling_allgather"},
      {Op::kBcast, 8, 524288, "scatter_recursive_doubling_allgather"},
      {Op::kBcast, 8, 524289, "scatter_ring_allgather"},
      {Op::kBcast, 9, 12289, "scatter_ring_allgather"},
      {Op::kBcast, 8, 12287, "binomial", true, true},
      {Op::kBcast, 8, 12288, "scatter_recursive_doubling_allgather", true, true},
      {Op::kBcast, 8, 524288, "scatter_ring_allgather", true, true},
      {Op::kReduce, 4, 2048, "binomial"},
      {Op::kReduce, 4, 2056, "reduce_scatter_gather"},
      {Op::kReduce, 4, 2056, "binomial", false},
      {Op::kReduce, 256, 2056, "reduce_scatter_gather"},  // 257 doubles
      {Op::kReduce, 512, 2056, "binomial"},
      {Op::kReduce, 512, 2051, "reduce_scatter_gather"},  // bytes
      {Op::kReduce, 1024, 4096, "binomial"},              // 512 doubles for 1024 ranks
      {Op::kAllreduce, 2, 8, "recursive_doubling"},
      {Op::kAllreduce, 2, 16, "reduce_scatter_allgather"},
      {Op::kAllreduce, 8, 32, "recursive_doubling"},  // 4 doubles for 8 ranks
      {Op::kAllreduce, 8, 64, "reduce_scatter_allgather"},
      {Op::kAllreduce, 8, 64, "recursive_doubling", false},
      {Op::kAllreduce, 8, 2048, "recursive_doubling", true, true},
      {Op::kAllreduce, 8, 2056, "reduce_scatter_allgather", true, true},
      {Op::kGather, 5, 100000, "binomial"},
      {Op::kScatter, 5, 100000, "binomial"},
      {Op::kAllgather, 8, 65535, "recursive_doubling"},
      {Op::kAllgather, 8, 65536, "ring"},
      {Op::kAllgather, 10, 8191, "bruck"},
      {Op::kAllgather, 10, 8192, "ring"},
      {Op::kAlltoall, 8, 8, "scattered"},
      {Op::kAlltoall, 8, 32768, "scattered"},
      {Op::kAlltoall, 8, 32769, "pairwise"},
      {Op::kAlltoall, 9, 256, "modified_bruck"},
      {Op::kAlltoall, 9, 257, "scattered"},
      {Op::kAlltoall, 9, 2048, "modified_bruck", true, true},
      {Op::kAlltoall, 9, 2049, "scattered", true, true},
      {Op::kAlltoall, 9, 8, "pairwise_sendrecv_replace", true, false, true},
      {Op::kReduceScatterBlock, 4, 131071, "recursive_halving"},
      {Op::kReduceScatterBlock, 4, 131072, "pairwise"},
      {Op::kReduceScatterBlock, 4, 1048568, "recursive_halving", true, true},  // 131,071 doubles
      {Op::kReduceScatterBlock, 4, 1048576, "pairwise", true, true},
      {Op::kReduceScatterBlock, 4, 8, "noncommutative", false},
      {Op::kReduceScatterBlock, 5, 8, "recursive_doubling", false},
      {Op::kScan, 5, 8, "recursive_doubling"},
  };
  for (const Case& c : cases) {
    engine::CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking, engine::MpiLibrary::kMpich4);
    call.commutative = c.commutative;
    call.in_place = c.in_place;
    EXPECT_STREQ(engine::collective_algorithm_name(call), c.algorithm) << describe(call);
  }
}

constexpr std::uint32_t kSizes[] = {2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 512, 1024, 2048, 4096};
constexpr Bytes kVectors[] = {1, 4, 8, 64, 128, 1024, 4096, 65536, 262144, 1 << 20, 8 << 20};

// Rabenseifner for the shortest vectors too, and two chains; nothing else.
TEST(Decisions, OpenMpi6DecidesAs5ButForTwo) {
  int differ = 0;
  for (int op = 0; op <= static_cast<int>(Op::kExscan); ++op) {
    for (const std::uint32_t size : kSizes) {
      for (const Bytes bytes : kVectors) {
        engine::CollectiveCall call = call_of(static_cast<Op>(op), size, bytes);
        call.library = engine::MpiLibrary::kOpenMpi5;
        const std::string five = engine::collective_algorithm_name(call);
        call.library = engine::MpiLibrary::kOpenMpi6;
        const std::string six = engine::collective_algorithm_name(call);
        if (five == six) continue;
        ++differ;
        EXPECT_EQ(call.op, Op::kAllreduce) << describe(call);
        EXPECT_EQ(five, "basic_linear") << describe(call);
        EXPECT_EQ(six, "rabenseifner") << describe(call);
      }
    }
  }
  EXPECT_GT(differ, 0);
}

// As seen with 4 ranks.
TEST(Decisions, OpenMpi6AsMeasured) {
  const auto name = [](Op op, Bytes bytes) {
    return std::string(
        engine::collective_algorithm_name(call_of(op, 4, bytes, 0, false, engine::MpiLibrary::kOpenMpi6)));
  };
  EXPECT_EQ(name(Op::kAllreduce, 8), "recursive_doubling");
  EXPECT_EQ(name(Op::kAllreduce, 1 << 20), "rabenseifner");
  EXPECT_EQ(name(Op::kBcast, 65536), "basic_linear");
  EXPECT_EQ(name(Op::kAlltoall, 1024), "linear_sync");
}

TEST(Decisions, SettingsForceBlockingCalls) {
  const auto name = [](engine::MpiLibrary library, Op op, std::uint32_t size, Bytes bytes,
                       std::vector<std::string> environment, bool nonblocking = false) {
    environment.emplace_back("OMPI_MCA_coll_tuned_use_dynamic_rules=1");
    const engine::MpiSettings settings = engine::mpi_settings(library, environment);
    engine::CollectiveCall call = call_of(op, size, bytes, 0, nonblocking, library);
    call.settings = &settings;
    return std::string(engine::collective_algorithm_name(call));
  };
  constexpr engine::MpiLibrary kOpenMpi = engine::MpiLibrary::kOpenMpi4;
  const std::vector<std::string> ring{"OMPI_MCA_coll_tuned_allreduce_algorithm=4"};
  EXPECT_EQ(name(kOpenMpi, Op::kAllreduce, 8, 65536, ring), "ring");
  EXPECT_EQ(name(kOpenMpi, Op::kAllreduce, 8, 8, ring), "recursive_doubling") << "one element for 8 ranks";
  EXPECT_EQ(name(kOpenMpi, Op::kAllreduce, 8, 65536, ring, true), "rabenseifner");
  EXPECT_EQ(name(kOpenMpi, Op::kReduce, 8, 65536, ring), "binomial");
  EXPECT_EQ(name(kOpenMpi, Op::kAllgather, 3, 65536, {"OMPI_MCA_coll_tuned_allgather_algorithm=neighbor"}), "ring");
  constexpr engine::MpiLibrary kMpich = engine::MpiLibrary::kMpich4;
  EXPECT_EQ(name(kMpich, Op::kAlltoall, 8, 8, {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM=brucks"}), "modified_bruck");
  const std::vector<std::string> doubling{"MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM=recursive_doubling"};
  EXPECT_EQ(name(kMpich, Op::kAllgather, 8, 1 << 20, doubling), "recursive_doubling");
  EXPECT_EQ(name(kMpich, Op::kAllgather, 6, 1 << 20, doubling), "ring") << "no power of two";
}

// Whatever is forced, every message that is sent is received.
TEST(Decisions, WhateverIsForcedPairsUp) {
  struct Named {
    Op op;
    const char* lower;
    const char* upper;
  };
  const Named ops[] = {{Op::kBarrier, "barrier", "BARRIER"},
                       {Op::kBcast, "bcast", "BCAST"},
                       {Op::kReduce, "reduce", "REDUCE"},
                       {Op::kAllreduce, "allreduce", "ALLREDUCE"},
                       {Op::kGather, "gather", "GATHER"},
                       {Op::kScatter, "scatter", "SCATTER"},
                       {Op::kAllgather, "allgather", "ALLGATHER"},
                       {Op::kAlltoall, "alltoall", "ALLTOALL"},
                       {Op::kReduceScatterBlock, "reduce_scatter_block", "REDUCE_SCATTER_BLOCK"}};
  int forced = 0;
  for (const engine::MpiLibrary library : {engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kOpenMpi6,
                                           engine::MpiLibrary::kMpich4, engine::MpiLibrary::kMpich5}) {
    for (const auto& [op, lower, upper] : ops) {
      std::vector<std::string> words;
      for (int number = 1; number < 10; ++number) {
        words.push_back("OMPI_MCA_coll_tuned_" + std::string(lower) + "_algorithm=" + std::to_string(number));
      }
      for (const char* const algorithm : {"binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather",
                                          "reduce_scatter_gather", "recursive_doubling", "reduce_scatter_allgather",
                                          "brucks", "ring", "pairwise", "scattered", "recursive_halving"}) {
        words.push_back("MPIR_CVAR_" + std::string(upper) + "_INTRA_ALGORITHM=" + algorithm);
      }
      for (const std::string& word : words) {
        const std::vector<std::string> environment{"OMPI_MCA_coll_tuned_use_dynamic_rules=1", word};
        const engine::MpiSettings settings = engine::mpi_settings(library, environment);
        if (settings.followed.empty()) continue;
        ++forced;
        for (std::uint32_t size = 2; size <= 17; ++size) {
          for (const Bytes bytes : {Bytes{8}, Bytes{24}, Bytes{4096}, Bytes{100000}}) {
            engine::CollectiveCall call = call_of(op, size, bytes, static_cast<Rank>(size / 2), false, library);
            call.settings = &settings;
            ASSERT_EQ(run_alike(call).problem, "") << word << ' ' << describe(call);
          }
        }
      }
    }
  }
  EXPECT_EQ(forced, 2 * 40 - 1 + 2 * 16);  // 6.0 has no bruck of this radix
}

TEST(Decisions, MpichVectorOperationsGoByTheirTotals) {
  const std::vector<std::uint64_t> small(8, 65535);
  std::vector<std::uint64_t> large(8, 65536);
  engine::CollectiveCall call = call_of(Op::kAllgatherv, 8, 0, 0, false, engine::MpiLibrary::kMpich4);
  call.values = small;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "recursive_doubling");
  call.values = large;
  EXPECT_STREQ(engine::collective_algorithm_name(call), "ring");
  call.op = Op::kReduceScatter;
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
  engine::CollectiveCall call = call_of(Op::kAllgatherv, 8, 0);
  call.values = std::span(large).first(8);
  EXPECT_STREQ(engine::collective_algorithm_name(call), "bruck");
  call.values = std::span(small).first(8);
  EXPECT_STREQ(engine::collective_algorithm_name(call), "default");
  call = call_of(Op::kReduceScatter, 16, 0);
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
  EXPECT_FALSE(engine::expand_collective(call_of(Op::kAllreduce, 3, 16), steps)->approximated);
  // 128 bytes on 32 ranks: 16 doubles go linearly, 32 floats by rabenseifner.
  EXPECT_TRUE(engine::expand_collective(call_of(Op::kAllreduce, 32, 128), steps)->approximated);
  EXPECT_FALSE(engine::expand_collective(call_of(Op::kAllreduce, 32, 1024), steps)->approximated);
  engine::CollectiveCall create = call_of(Op::kCommCreate, 4, 0);
  EXPECT_TRUE(engine::expand_collective(create, steps)->approximated);  // made by which call?
  create.creation = CommCreation::kDup;
  EXPECT_FALSE(engine::expand_collective(create, steps)->approximated);
}

}  // namespace
}  // namespace lbf::decisions_test