// What a rank does by itself inside a collective (kCopy, kReduce): how many bytes all ranks together must
// combine and copy, from what the operation is, whatever the algorithm. MPICH's, rank by rank:
// local_work_mpich_test.cpp.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "predictor/engine/match/collective.h"

namespace lbf::local_work_test {
namespace {

using Op = CollectiveOp;
using Kind = engine::CollectiveStep::Kind;

struct Work {
  Bytes copied = 0;
  Bytes combined = 0;
};

std::vector<engine::CollectiveStep> steps_of(const engine::CollectiveCall& call) {
  std::vector<engine::CollectiveStep> steps;
  const auto expanded = engine::expand_collective(call, steps);
  EXPECT_TRUE(expanded.ok());
  return steps;
}

bool is_message(const engine::CollectiveStep& step) {
  return step.kind == Kind::kSend || step.kind == Kind::kRecv;
}

Work work_of(engine::CollectiveCall call) {
  call.local_work = true;
  Work work;
  for (const engine::CollectiveStep& step : steps_of(call)) {
    EXPECT_TRUE(is_message(step) || step.bytes > 0);
    if (step.kind == Kind::kCopy) work.copied += step.bytes;
    if (step.kind == Kind::kReduce) work.combined += step.bytes;
  }
  return work;
}

Work work_of_all(engine::CollectiveCall call) {
  Work sum;
  for (call.rank = 0; call.rank < call.size; ++call.rank) {
    const Work work = work_of(call);
    sum.copied += work.copied;
    sum.combined += work.combined;
  }
  return sum;
}

std::string describe(const engine::CollectiveCall& call) {
  return std::string(engine::mpi_library_name(call.library)) + " op " + std::to_string(static_cast<int>(call.op)) +
         " " + engine::collective_algorithm_name(call) + " ranks " + std::to_string(call.size) + " bytes " +
         std::to_string(call.bytes) + (call.nonblocking ? " nonblocking" : "") + (call.in_place ? " in place" : "") +
         (call.commutative ? "" : " not commutative");
}

// All shapes of a call on communicators of 2 to 20 ranks, vectors of whole elements for all of them.
template <typename Check>
void for_all(Op op, Check check) {
  for (const engine::MpiLibrary library : {engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kMpich4}) {
    for (std::uint32_t size = 2; size <= 20; ++size) {
      for (const Bytes bytes :
           {Bytes{8}, Bytes{64}, Bytes{800}, Bytes{4096}, Bytes{50000}, Bytes{300000}, Bytes{2000000}}) {
        for (const int shape : {0, 1, 2, 3, 4, 5, 6, 7}) {
          for (const std::uint32_t root : {0U, size / 2, size - 1}) {
            engine::CollectiveCall call;
            call.library = library;
            call.op = op;
            call.size = size;
            call.bytes = bytes;
            call.root = static_cast<Rank>(root);
            call.nonblocking = (shape & 1) != 0;
            call.in_place = (shape & 2) != 0;
            call.commutative = (shape & 4) == 0;
            check(call);
          }
        }
      }
    }
  }
}

TEST(LocalWork, LeavesTheMessagesAsTheyAre) {
  for (const Op op : {Op::kBarrier, Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather,
                      Op::kAlltoall, Op::kReduceScatterBlock, Op::kScan, Op::kExscan}) {
    for_all(op, [](engine::CollectiveCall call) {
      call.rank = call.size / 3;
      const std::vector<engine::CollectiveStep> messages = steps_of(call);
      call.local_work = true;
      std::size_t at = 0;
      for (const engine::CollectiveStep& step : steps_of(call)) {
        if (!is_message(step)) continue;
        ASSERT_LT(at, messages.size()) << describe(call);
        ASSERT_TRUE(step.kind == messages[at].kind && step.peer == messages[at].peer &&
                    step.bytes == messages[at].bytes)
            << describe(call);
        ++at;
      }
      ASSERT_EQ(at, messages.size()) << describe(call);
    });
  }
}

// Combining two vectors of n bytes leaves one: to make one of P takes (P - 1) n bytes, unless several ranks
// do the same.
TEST(LocalWork, OneResultOfPVectors) {
  for_all(Op::kReduce, [](const engine::CollectiveCall& call) {
    ASSERT_EQ(work_of_all(call).combined, (call.size - 1) * call.bytes) << describe(call);
  });
  for_all(Op::kReduceScatterBlock, [](const engine::CollectiveCall& call) {
    const Bytes least = (call.size - 1) * call.size * call.bytes;
    const std::string name = engine::collective_algorithm_name(call);
    if (name == "recursive_doubling") {
      ASSERT_GE(work_of_all(call).combined, least) << describe(call);
    } else {
      ASSERT_EQ(work_of_all(call).combined, least) << describe(call);
    }
  });
}

TEST(LocalWork, RecursiveDoublingCombinesEverywhere) {
  int seen = 0;
  for_all(Op::kAllreduce, [&](const engine::CollectiveCall& call) {
    const Bytes once = (call.size - 1) * call.bytes;
    if (std::string(engine::collective_algorithm_name(call)) != "recursive_doubling") {
      ASSERT_EQ(work_of_all(call).combined, once) << describe(call);
      return;
    }
    ++seen;
    const Bytes power = std::bit_floor(call.size);
    const Bytes rounds = static_cast<Bytes>(std::countr_zero(power));
    ASSERT_EQ(work_of_all(call).combined, (call.size - power + power * rounds) * call.bytes) << describe(call);
  });
  EXPECT_GT(seen, 0);
}

TEST(LocalWork, ScansCombineWhatCameFromBelow) {
  for (const Op op : {Op::kScan, Op::kExscan}) {
    for_all(op, [&](const engine::CollectiveCall& call) {
      if (call.library == engine::MpiLibrary::kMpich4) return;
      const Bytes who_combine = call.size - (op == Op::kScan ? 1 : 2);
      ASSERT_EQ(work_of_all(call).combined, who_combine * call.bytes) << describe(call);
    });
  }
}

// Every rank's own block goes from one of its buffers to the other; MPI_IN_PLACE there is but one.
TEST(LocalWork, OwnBlocksAreCopied) {
  for_all(Op::kAlltoall, [](const engine::CollectiveCall& call) {
    const std::string name = engine::collective_algorithm_name(call);
    const Bytes copied = work_of_all(call).copied;
    const Bytes own = call.size * call.bytes;
    if (name == "in_place") {
      ASSERT_EQ(copied, own * (call.size / 2)) << describe(call);  // what is sent first is kept aside
    } else if (name == "pairwise_sendrecv_replace") {
      const Bytes with_itself = call.nonblocking ? 0 : 2 * own;  // kept aside, and a message
      ASSERT_EQ(copied, own * (call.size - 1) + with_itself) << describe(call);
    } else if (name == "modified_bruck") {
      ASSERT_GE(copied, 2 * own * call.size) << describe(call);  // all blocks are turned round twice
    } else {
      ASSERT_EQ(copied, own) << describe(call);
    }
  });
  for_all(Op::kAllgather, [](const engine::CollectiveCall& call) {
    const Bytes own = call.in_place ? 0 : call.size * call.bytes;
    const Bytes copied = work_of_all(call).copied;
    if (std::string(engine::collective_algorithm_name(call)) == "bruck") {
      ASSERT_GT(copied, own) << describe(call);
    } else {
      ASSERT_EQ(copied, own) << describe(call);
    }
  });
}

TEST(LocalWork, InPlaceMpich5LeavesTheOwnBlockWhereItIs) {
  engine::CollectiveCall call;
  call.library = engine::MpiLibrary::kMpich5;
  call.op = Op::kAlltoall;
  call.size = 4;
  call.bytes = 100;
  call.in_place = true;
  EXPECT_EQ(work_of_all(call).copied, 4 * 3 * Bytes{100});
}

TEST(LocalWork, RootsCopyTheirOwnBlock) {
  for (const Op op : {Op::kGather, Op::kScatter}) {
    for_all(op, [&](engine::CollectiveCall call) {
      if (std::string(engine::collective_algorithm_name(call)) == "binomial") return;
      const Bytes copied = work_of_all(call).copied;
      ASSERT_EQ(copied, call.in_place ? 0 : call.bytes) << describe(call);
      call.rank = static_cast<std::uint32_t>(call.root);
      ASSERT_EQ(work_of(call).copied, copied) << describe(call);
    });
  }
}

// A tree of 4 from rank 2: 2 has 3 and 0, 0 has 1. Ranks with children collect in memory of their own, the
// root turns the blocks round.
TEST(LocalWork, ABinomialGatherCollects) {
  engine::CollectiveCall call;
  call.op = Op::kGather;
  call.size = 4;
  call.bytes = 10;
  call.root = 2;
  ASSERT_STREQ(engine::collective_algorithm_name(call), "binomial");
  const Bytes copied[] = {10, 0, 10 + 40, 0};
  for (call.rank = 0; call.rank < 4; ++call.rank) EXPECT_EQ(work_of(call).copied, copied[call.rank]);
}

// Vectors of their own: 1000, 2000, 3000 bytes to the ranks.
TEST(LocalWork, VectorOperationsCopyWhatTheRankHasForItself) {
  const std::vector<std::uint64_t> counts{1000, 2000, 3000, 1000, 2000, 3000};
  for (const engine::MpiLibrary library : {engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kMpich4}) {
    for (const bool nonblocking : {false, true}) {
      engine::CollectiveCall call;
      call.library = library;
      call.size = 3;
      call.rank = 1;
      call.root = 1;
      call.bytes = 2000;
      call.nonblocking = nonblocking;
      call.values = counts;
      for (const Op op : {Op::kAlltoallv, Op::kAlltoallw, Op::kGatherv, Op::kScatterv, Op::kAllgatherv}) {
        call.op = op;
        // MPICH's bruck collects elsewhere and copies all that there is in the end.
        const bool collects = op == Op::kAllgatherv && library == engine::MpiLibrary::kMpich4;
        EXPECT_EQ(work_of(call).copied, collects ? 8000U : 2000U) << describe(call);
      }
      call.op = Op::kReduceScatter;
      EXPECT_EQ(work_of_all(call).combined, 2 * Bytes{6000}) << describe(call);
    }
  }
}

TEST(LocalWork, MessagesAloneUnlessAskedFor) {
  engine::CollectiveCall call;
  call.op = Op::kAllreduce;
  call.size = 4;
  call.bytes = 800;
  for (const engine::CollectiveStep& step : steps_of(call)) EXPECT_TRUE(is_message(step));
}

TEST(LocalWork, TheOnlyRankCopies) {
  engine::CollectiveCall call;
  call.op = Op::kAllreduce;
  call.bytes = 800;
  EXPECT_EQ(work_of(call).copied, 800U);
  call.in_place = true;
  EXPECT_EQ(work_of(call).copied, 0U);
  call.op = Op::kBcast;
  call.in_place = false;
  EXPECT_EQ(work_of(call).copied, 0U);
}

}  // namespace
}  // namespace lbf::local_work_test