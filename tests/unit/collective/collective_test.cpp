// expand_collective: the messages of all ranks fit together, carry the data where the operation says, have
// the bytes that the literature gives, and the algorithm is the one that the library chooses.
#include "predictor/match/collective.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "executor.h"

namespace lbf {
namespace {

using Op = CollectiveOp;
constexpr Rank kMpiRoot = -4;
constexpr Rank kMpiProcNull = -2;

const std::vector<Bytes> kBytes = {
    1,      2,      3,      4,      6,      7,       8,       12,      15,      16,     24,    31,    32,
    40,     63,     64,     100,    127,    128,     255,     256,     511,     512,    1000,  1023,  1024,
    2047,   2048,   4095,   4096,   8191,   8192,    16383,   16384,   32767,   32768,  65535, 65536, 131071,
    131072, 262143, 262144, 524287, 524288, 1048575, 1048576, 2097152, 4194304, 5000000};
const std::vector<Bytes> kFewBytes = {1, 8, 300, 5000, 20000, 200000, 3000000};

std::vector<std::uint32_t> small_sizes() {
  std::vector<std::uint32_t> sizes(33);
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

CollectiveCall call_of(Op op, std::uint32_t size, Bytes bytes, Rank root = 0, bool nonblocking = false,
                       MpiLibrary library = MpiLibrary::kOpenMpi4) {
  CollectiveCall call;
  call.library = library;
  call.op = op;
  call.size = size;
  call.bytes = bytes;
  call.root = root;
  call.nonblocking = nonblocking;
  return call;
}

// The same call on every rank.
Outcome run_alike(CollectiveCall call) {
  std::vector<CollectiveCall> calls(call.size, call);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) calls[rank].rank = rank;
  return run(calls, call.size);
}

Members range_of(std::uint32_t first, std::uint32_t last) {
  Members members;
  for (std::uint32_t member = first; member < last; ++member) members.set(member);
  return members;
}

bool knows_all(const Members& known, const Members& wanted) {
  return (known & wanted) == wanted;
}

std::string describe(const CollectiveCall& call) {
  return std::string(mpi_library_name(call.library)) + " op " + std::to_string(static_cast<int>(call.op)) +
         " size " + std::to_string(call.size) + " bytes " + std::to_string(call.bytes) + " root " +
         std::to_string(call.root) + (call.nonblocking ? " nonblocking " : " blocking ") +
         collective_algorithm_name(call);
}

// What must have reached whom after an operation in which all blocks are alike.
void expect_data_flow(const CollectiveCall& call) {
  const Outcome outcome = run_alike(call);
  ASSERT_EQ(outcome.problem, "") << describe(call);
  const Members everyone = range_of(0, call.size);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    Members wanted;
    switch (call.op) {
      case Op::kBcast:
      case Op::kScatter:
        wanted.set(static_cast<std::size_t>(call.root));
        break;
      case Op::kReduce:
      case Op::kGather:
        if (static_cast<Rank>(rank) == call.root) wanted = everyone;
        break;
      case Op::kScan:
      case Op::kExscan:
        wanted = range_of(0, rank);
        break;
      default:
        wanted = everyone;
    }
    ASSERT_TRUE(knows_all(outcome.knows[rank], wanted)) << describe(call) << " rank " << rank;
    // Recursive doubling tells the lower ranks of the upper ones too.
    if ((call.op == Op::kScan || call.op == Op::kExscan) && call.library != MpiLibrary::kMpich4) {
      ASSERT_EQ(outcome.knows[rank], range_of(0, rank + 1)) << describe(call) << " rank " << rank;
    }
  }
}

const std::vector<Op> kRooted = {Op::kBcast, Op::kReduce, Op::kGather, Op::kScatter};
const std::vector<Op> kUnrooted = {Op::kBarrier,  Op::kAllreduce,          Op::kAllgather,
                                   Op::kAlltoall, Op::kReduceScatterBlock, Op::kScan,
                                   Op::kExscan,   Op::kCommCreate};

// Open MPI 5.0 where the nodes are not known is 4.1: ByNodes has it.
const auto kLibraries = testing::Values(MpiLibrary::kOpenMpi4, MpiLibrary::kMpich4);
const auto kAllLibraries = testing::Values(MpiLibrary::kOpenMpi4, MpiLibrary::kOpenMpi5, MpiLibrary::kMpich4);
std::string name_of(MpiLibrary library) {
  switch (library) {
    case MpiLibrary::kOpenMpi4:
      return "OpenMpi4";
    case MpiLibrary::kOpenMpi5:
      return "OpenMpi5";
    case MpiLibrary::kMpich4:
      return "Mpich4";
  }
  return "";
}

class DataFlow : public testing::TestWithParam<std::tuple<bool, bool, MpiLibrary>> {
};  // nonblocking, commutative

TEST_P(DataFlow, SmallCommunicatorsEverySizeEveryThreshold) {
  const auto [nonblocking, commutative, library] = GetParam();
  for (const std::uint32_t size : small_sizes()) {
    for (const Bytes bytes : kBytes) {
      for (const Op op : kRooted) {
        for (const std::uint32_t root : {0U, 1U, size / 2, size - 1}) {
          if (root >= size) continue;
          CollectiveCall call = call_of(op, size, bytes, static_cast<Rank>(root), nonblocking, library);
          call.commutative = commutative;
          ASSERT_NO_FATAL_FAILURE(expect_data_flow(call));
        }
      }
      for (const Op op : kUnrooted) {
        if ((op == Op::kBarrier || op == Op::kCommCreate) && bytes != kBytes[0]) continue;
        CollectiveCall call = call_of(op, size, bytes, 0, nonblocking, library);
        call.commutative = commutative;
        ASSERT_NO_FATAL_FAILURE(expect_data_flow(call));
      }
    }
  }
}

TEST_P(DataFlow, LargeCommunicators) {
  const auto [nonblocking, commutative, library] = GetParam();
  for (const std::uint32_t size : {64U, 100U, 127U, 130U, 200U, 256U, 300U, 513U}) {
    for (const Bytes bytes : kFewBytes) {
      for (const Op op : {Op::kBarrier, Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter,
                          Op::kScan, Op::kReduceScatterBlock, Op::kAllgather, Op::kAlltoall}) {
        if (op == Op::kBarrier && bytes > 1) continue;
        const bool rings = library == MpiLibrary::kMpich4 && bytes >= 5000 &&
                           (op == Op::kBcast || op == Op::kReduceScatterBlock);
        const bool quadratic = op == Op::kAllgather || op == Op::kAlltoall || rings;
        if (quadratic && (size > 200 || !commutative || bytes == 300)) continue;
        CollectiveCall call = call_of(op, size, bytes, static_cast<Rank>(size / 3), nonblocking, library);
        call.commutative = commutative;
        ASSERT_NO_FATAL_FAILURE(expect_data_flow(call));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DataFlow, testing::Combine(testing::Bool(), testing::Bool(), kLibraries),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param) ? "Nonblocking" : "Blocking") +
                                  (std::get<1>(parameter.param) ? "Commutative" : "NonCommutative") +
                                  name_of(std::get<2>(parameter.param));
                         });

TEST(DataFlowInPlace, AlltoallAndAllreduce) {
  for (const std::uint32_t size : small_sizes()) {
    for (const bool nonblocking : {false, true}) {
      for (const Op op : {Op::kAlltoall, Op::kAllreduce}) {
        for (const Bytes bytes : {Bytes{8}, Bytes{100000}}) {
          for (const MpiLibrary library : {MpiLibrary::kOpenMpi4, MpiLibrary::kMpich4}) {
            CollectiveCall call = call_of(op, size, bytes, 0, nonblocking, library);
            call.in_place = true;
            ASSERT_NO_FATAL_FAILURE(expect_data_flow(call));
          }
        }
      }
    }
  }
}

// ---- operations with counts of their own per rank
// ----------------------------------------------------------------

// Some blocks are empty, the others differ.
std::vector<std::uint64_t> uneven(std::uint32_t size, Bytes bytes) {
  std::vector<std::uint64_t> counts(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) counts[rank] = rank % 4 == 2 ? 0 : (rank % 3 + 1) * bytes;
  return counts;
}

class Vectors : public testing::TestWithParam<std::tuple<bool, MpiLibrary>> {
 protected:
  static bool nonblocking() { return std::get<0>(GetParam()); }
  static MpiLibrary library() { return std::get<1>(GetParam()); }
};

TEST_P(Vectors, GathervAndScatterv) {
  for (const std::uint32_t size : small_sizes()) {
    const std::vector<std::uint64_t> counts = uneven(size, 1000);
    for (const Op op : {Op::kGatherv, Op::kScatterv}) {
      const std::uint32_t root = size / 2;
      std::vector<CollectiveCall> calls;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        CollectiveCall call =
            call_of(op, size, counts[rank], static_cast<Rank>(root), nonblocking(), library());
        call.rank = rank;
        if (rank == root) call.values = counts;
        calls.push_back(call);
      }
      const Outcome outcome = run(calls, size);
      ASSERT_EQ(outcome.problem, "") << describe(calls[0]);
      Bytes expected = 0;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        if (rank != root) expected += counts[rank];
        if (counts[rank] == 0) continue;
        const std::uint32_t from = op == Op::kGatherv ? rank : root;
        const std::uint32_t to = op == Op::kGatherv ? root : rank;
        EXPECT_TRUE(outcome.knows[to].test(from)) << describe(calls[0]) << " rank " << rank;
      }
      EXPECT_EQ(outcome.bytes, expected) << describe(calls[0]);
    }
  }
}

TEST_P(Vectors, AllgathervAndReduceScatter) {
  std::vector<std::uint32_t> sizes = small_sizes();
  sizes.insert(sizes.end(), {64, 100, 130});
  for (const std::uint32_t size : sizes) {
    for (const Bytes bytes : {Bytes{8}, Bytes{200}, Bytes{3000}, Bytes{20000}, Bytes{400000}}) {
      const std::vector<std::uint64_t> counts = uneven(size, bytes);
      for (const Op op : {Op::kAllgatherv, Op::kReduceScatter}) {
        for (const bool commutative : {true, false}) {
          CollectiveCall call = call_of(op, size, counts[0], 0, nonblocking(), library());
          call.values = counts;
          call.commutative = commutative;
          const Outcome outcome = run_alike(call);
          ASSERT_EQ(outcome.problem, "") << describe(call);
          for (std::uint32_t to = 0; to < size; ++to) {
            for (std::uint32_t from = 0; from < size; ++from) {
              const bool needed = op == Op::kAllgatherv ? counts[from] > 0 : counts[to] > 0;
              ASSERT_TRUE(!needed || outcome.knows[to].test(from))
                  << describe(call) << " " << from << "->" << to;
            }
          }
        }
      }
    }
  }
}

TEST_P(Vectors, AlltoallvAndAlltoallw) {
  for (const std::uint32_t size : {2U, 3U, 4U, 5U, 16U, 33U, 64U, 100U, 130U}) {
    for (const Op op : {Op::kAlltoallv, Op::kAlltoallw}) {
      for (const bool in_place : {false, true}) {
        const auto bytes = [&](std::uint32_t a, std::uint32_t b) -> std::uint64_t {
          if (in_place) return (a + b) % 3 * 100;  // what is swapped in place is equally long both ways
          return (3 * a + b) % 4 * 100;
        };
        std::vector<std::vector<std::uint64_t>> values(size);
        std::vector<CollectiveCall> calls;
        Bytes expected = 0;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          for (std::uint32_t peer = 0; peer < size; ++peer) values[rank].push_back(bytes(rank, peer));
          for (std::uint32_t peer = 0; peer < size; ++peer) values[rank].push_back(bytes(peer, rank));
          for (std::uint32_t peer = 0; peer < size; ++peer) expected += peer == rank ? 0 : bytes(rank, peer);
          CollectiveCall call = call_of(op, size, 0, 0, nonblocking(), library());
          call.rank = rank;
          call.values = values[rank];
          call.in_place = in_place;
          calls.push_back(call);
        }
        const Outcome outcome = run(calls, size);
        ASSERT_EQ(outcome.problem, "") << describe(calls[0]);
        EXPECT_EQ(outcome.bytes, expected) << describe(calls[0]);
        for (std::uint32_t to = 0; to < size; ++to) {
          for (std::uint32_t from = 0; from < size; ++from) {
            ASSERT_TRUE(bytes(from, to) == 0 || outcome.knows[to].test(from)) << describe(calls[0]);
          }
        }
      }
    }
  }
}

// A ring of neighbours, with MPI_PROC_NULL beyond one end: each rank knows itself and the ranks beside it.
TEST_P(Vectors, NeighbourCollectives) {
  for (const std::uint32_t size : {2U, 3U, 8U}) {
    for (const Op op : {Op::kNeighborAllgather, Op::kNeighborAllgatherv, Op::kNeighborAlltoall,
                        Op::kNeighborAlltoallv, Op::kNeighborAlltoallw}) {
      std::vector<std::vector<std::uint64_t>> values(size);
      std::vector<CollectiveCall> calls;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const std::uint64_t below = rank == 0 ? static_cast<std::uint64_t>(-2) : rank - 1;
        const std::uint64_t above = rank + 1 == size ? static_cast<std::uint64_t>(-2) : rank + 1;
        values[rank] = {2, below, above, 10, 10, 2, below, above, 10, 10};
        CollectiveCall call = call_of(op, size, 10, 0, nonblocking(), library());
        call.rank = rank;
        call.values = values[rank];
        calls.push_back(call);
      }
      const Outcome outcome = run(calls, size);
      ASSERT_EQ(outcome.problem, "") << describe(calls[0]);
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ(outcome.knows[rank], range_of(rank == 0 ? 0 : rank - 1, std::min(rank + 2, size)));
      }
      EXPECT_EQ(outcome.bytes, 2 * (size - 1) * Bytes{10});
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Vectors, testing::Combine(testing::Bool(), kAllLibraries),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param) ? "Nonblocking" : "Blocking") +
                                  name_of(std::get<1>(parameter.param));
                         });

// A ring of two: each one's neighbour below is its neighbour above. What the other sends down comes from
// above in Open MPI's blocking collectives; everywhere else messages pair in order. Sends 10 (rank 1: 30)
// down and 20 (40) up.
TEST_P(Vectors, NeighboursOnBothSides) {
  const bool by_direction = !nonblocking() && library() != MpiLibrary::kMpich4;
  std::vector<std::vector<std::uint64_t>> values;
  std::vector<CollectiveCall> calls;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const std::uint64_t other = 1 - rank;
    const std::uint64_t sent_down = other * 20 + 10;
    const std::uint64_t sent_up = other * 20 + 20;
    values.push_back({2, other, other, rank * 20 + 10, rank * 20 + 20,  //
                      2, other, other, by_direction ? sent_up : sent_down,
                      by_direction ? sent_down : sent_up});
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    CollectiveCall call = call_of(Op::kNeighborAlltoallv, 2, 30, 0, nonblocking(), library());
    call.rank = rank;
    call.values = values[rank];
    calls.push_back(call);
  }
  const Outcome outcome = run(calls, 2);
  EXPECT_EQ(outcome.problem, "") << describe(calls[0]);
  EXPECT_EQ(outcome.bytes, 10U + 20 + 30 + 40);
}

// ---- intercommunicators
// ------------------------------------------------------------------------------------------

class Inter : public Vectors {
 protected:
  // `root_member`: member of the first group that is the root; -1: no root. The other members of the first
  // group pass MPI_PROC_NULL.
  static Outcome run_inter(Op op, std::uint32_t first, std::uint32_t second, std::int32_t root_member,
                           Bytes bytes) {
    std::vector<CollectiveCall> calls;
    values_.clear();
    for (std::uint32_t member = 0; member < first + second; ++member) {
      const bool in_first = member < first;
      CollectiveCall call = call_of(op, in_first ? first : second, bytes, 0, nonblocking(), library());
      call.rank = in_first ? member : member - first;
      call.remote_size = in_first ? second : first;
      call.low_group = in_first;
      if (root_member >= 0) {
        call.root = !in_first                                          ? root_member
                    : static_cast<std::int32_t>(member) == root_member ? kMpiRoot
                                                                       : kMpiProcNull;
      }
      const std::size_t counts = op == Op::kReduceScatter ? call.size : 2 * call.remote_size;
      // reduce_scatter: both groups' vectors are equally long
      const Bytes each = op == Op::kReduceScatter ? bytes * first * second / call.size : bytes;
      values_.push_back(std::vector<std::uint64_t>(counts, each));
      if (op == Op::kReduceScatterBlock) call.bytes = bytes * first * second / call.size;
      calls.push_back(call);
    }
    for (std::size_t member = 0; member < calls.size(); ++member) calls[member].values = values_[member];
    return run(calls, first);
  }
  static inline std::vector<std::vector<std::uint64_t>> values_;
};

TEST_P(Inter, EveryOperationInEveryShape) {
  for (const std::uint32_t first : {1U, 2U, 3U, 5U, 8U}) {
    for (const std::uint32_t second : {1U, 2U, 4U, 7U}) {
      const Members group_a = range_of(0, first);
      const Members group_b = range_of(first, first + second);
      for (const Bytes bytes : {Bytes{8}, Bytes{1000}, Bytes{100000}}) {
        for (const Op op :
             {Op::kBcast, Op::kScatter, Op::kScatterv, Op::kReduce, Op::kGather, Op::kGatherv}) {
          const std::uint32_t root = first / 2;
          const Outcome outcome = run_inter(op, first, second, static_cast<std::int32_t>(root), bytes);
          const std::string which = "op " + std::to_string(static_cast<int>(op)) + " groups " +
                                    std::to_string(first) + "+" + std::to_string(second);
          ASSERT_EQ(outcome.problem, "") << which;
          if (op == Op::kBcast || op == Op::kScatter || op == Op::kScatterv) {
            for (std::uint32_t b = first; b < first + second; ++b)
              EXPECT_TRUE(outcome.knows[b].test(root)) << which;
          } else {
            EXPECT_TRUE(knows_all(outcome.knows[root], group_b)) << which;
          }
        }
        for (const Op op :
             {Op::kBarrier, Op::kAllreduce, Op::kCommCreate, Op::kAllgather, Op::kAllgatherv, Op::kAlltoall,
              Op::kAlltoallv, Op::kAlltoallw, Op::kReduceScatter, Op::kReduceScatterBlock}) {
          const Outcome outcome = run_inter(op, first, second, -1, bytes);
          const std::string which = "op " + std::to_string(static_cast<int>(op)) + " groups " +
                                    std::to_string(first) + "+" + std::to_string(second);
          ASSERT_EQ(outcome.problem, "") << which;
          for (std::uint32_t member = 0; member < first + second; ++member) {
            // libnbc's barrier lets ranks go that heard of the other leader only, after that one heard of all
            // of *their* group
            if (op == Op::kBarrier && nonblocking() && library() != MpiLibrary::kMpich4) continue;
            EXPECT_TRUE(knows_all(outcome.knows[member], member < first ? group_b : group_a)) << which;
          }
        }
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Inter, testing::Combine(testing::Bool(), kLibraries),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param) ? "Nonblocking" : "Blocking") +
                                  name_of(std::get<1>(parameter.param));
                         });

TEST(InterErrors, ScanIsNotDefined) {
  CollectiveCall call = call_of(Op::kScan, 2, 8);
  call.remote_size = 2;
  std::vector<CollectiveStep> steps;
  EXPECT_FALSE(expand_collective(call, steps).ok());
}

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
    const CollectiveCall call = call_of(c.op, c.size, c.bytes);
    EXPECT_STREQ(collective_algorithm_name(call), c.algorithm) << describe(call);
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

// ---- decisions
// -----------------------------------------------------------------------------------------------------

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
    CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking);
    call.commutative = c.commutative;
    EXPECT_STREQ(collective_algorithm_name(call), c.algorithm) << describe(call);
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
    CollectiveCall call = call_of(c.op, c.size, c.bytes, 0, c.nonblocking, MpiLibrary::kMpich4);
    call.commutative = c.commutative;
    call.in_place = c.in_place;
    EXPECT_STREQ(collective_algorithm_name(call), c.algorithm) << describe(call);
  }
}

TEST(Decisions, MpichVectorOperationsGoByTheirTotals) {
  const std::vector<std::uint64_t> small(8, 65535);
  std::vector<std::uint64_t> large(8, 65536);
  CollectiveCall call = call_of(Op::kAllgatherv, 8, 0, 0, false, MpiLibrary::kMpich4);
  call.values = small;
  EXPECT_STREQ(collective_algorithm_name(call), "recursive_doubling");
  call.values = large;
  EXPECT_STREQ(collective_algorithm_name(call), "ring");
  call.op = Op::kReduceScatter;
  EXPECT_STREQ(collective_algorithm_name(call), "pairwise");
  call.values = small;
  EXPECT_STREQ(collective_algorithm_name(call), "recursive_halving");
  call.commutative = false;
  EXPECT_STREQ(collective_algorithm_name(call), "noncommutative");
  large[3] = 1;
  call.values = large;  // not alike
  EXPECT_STREQ(collective_algorithm_name(call), "recursive_doubling");
}

// What cannot be split into equal parts: blocking, the first blocks are longer; non-blocking, the last one
// is.
TEST(StepListsMpich, HalvingOfFiveElementsAmongFour) {
  const auto sent = [](bool nonblocking) {
    // 257 * 5 doubles would do as well; 8 * 1285 bytes is long enough for iallreduce.
    const CollectiveCall call = call_of(Op::kAllreduce, 4, 8 * 1285, 0, nonblocking, MpiLibrary::kMpich4);
    std::vector<CollectiveStep> steps;
    EXPECT_TRUE(expand_collective(call, steps).ok());
    return steps.front().bytes;  // rank 0 gives the upper half, blocks 2 and 3
  };
  EXPECT_EQ(sent(false), 2 * 321 * Bytes{8});     // 1285 = 322 + 321 + 321 + 321
  EXPECT_EQ(sent(true), (321 + 322) * Bytes{8});  // 321 + 321 + 321 + 322
}

TEST(Decisions, VectorOperationsGoByTheirTotals) {
  const std::vector<std::uint64_t> small(16, 511);
  const std::vector<std::uint64_t> large(16, 1024);
  CollectiveCall call = call_of(Op::kAllgatherv, 8, 0);
  call.values = std::span(large).first(8);
  EXPECT_STREQ(collective_algorithm_name(call), "bruck");
  call.values = std::span(small).first(8);
  EXPECT_STREQ(collective_algorithm_name(call), "default");
  call = call_of(Op::kReduceScatter, 16, 0);
  const std::vector<std::uint64_t> huge(16, 16384);
  call.values = huge;  // 256 KiB in all
  EXPECT_STREQ(collective_algorithm_name(call), "ring");
  call.values = large;
  EXPECT_STREQ(collective_algorithm_name(call), "recursive_halving");
  call.commutative = false;
  EXPECT_STREQ(collective_algorithm_name(call), "non-overlapping");
}

TEST(Decisions, UnsureOnlyWhereTheElementSizeMatters) {
  std::vector<CollectiveStep> steps;
  // 16 bytes on 3 ranks: 2 doubles are too few for a ring, 4 ints are not; but the rule says recursive
  // doubling.
  EXPECT_FALSE(expand_collective(call_of(Op::kAllreduce, 3, 16), steps)->approximated);
  // 128 bytes on 32 ranks: 16 doubles go linearly, 32 floats by rabenseifner.
  EXPECT_TRUE(expand_collective(call_of(Op::kAllreduce, 32, 128), steps)->approximated);
  EXPECT_FALSE(expand_collective(call_of(Op::kAllreduce, 32, 1024), steps)->approximated);
  CollectiveCall create = call_of(Op::kCommCreate, 4, 0);
  EXPECT_TRUE(expand_collective(create, steps)->approximated);  // made by which call?
  create.creation = CommCreation::kDup;
  EXPECT_FALSE(expand_collective(create, steps)->approximated);
}

// ---- single step lists, by hand
// --------------------------------------------------------------------------------------

std::string text(const CollectiveCall& call) {
  std::vector<CollectiveStep> steps;
  EXPECT_TRUE(expand_collective(call, steps).ok());
  std::string line;
  for (const CollectiveStep& step : steps) {
    line += (step.kind == CollectiveStep::Kind::kSend ? "s" : "r") + std::to_string(step.peer) + ":" +
            std::to_string(step.bytes) + " ";
  }
  return line;
}

std::string text(Op op, std::uint32_t rank, std::uint32_t size, Bytes bytes, Rank root = 0) {
  CollectiveCall call = call_of(op, size, bytes, root);
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
  CollectiveCall call = call_of(Op::kReduce, 2, 65536 + 8, 0, true);
  call.rank = 1;  // 9 fragments; 8,193 doubles / 9 = 910 each, the last takes the rest
  std::vector<CollectiveStep> steps;
  ASSERT_TRUE(expand_collective(call, steps).ok());
  ASSERT_EQ(steps.size(), 9U);
  EXPECT_EQ(steps[0].bytes, 7280U);
  EXPECT_EQ(steps[8].bytes, 65544U - 8 * 7280U);
}

// Groups of 3 and 2; rank 1 of the first group is the root. What only the root knows in full is exact there.
TEST(InterVectors, OpenMpiCollectsInsideTheGroup) {
  const std::vector<std::uint64_t> counts{100, 300};
  const auto steps_of = [&](Op op, bool in_first, std::uint32_t rank, Rank root, Bytes bytes) {
    CollectiveCall call = call_of(op, in_first ? 3 : 2, bytes, root);
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
  const auto steps_of = [](CommCreation creation, MpiLibrary library, std::uint32_t rank) {
    CollectiveCall call = call_of(Op::kCommCreate, 4, 8, 0, false, library);
    call.rank = rank;
    call.creation = creation;
    return text(call);
  };
  // Open MPI: three times a binomial allreduce of an int.
  const std::string agreement = "r1:4 r2:4 s1:4 s2:4 ";
  EXPECT_EQ(steps_of(CommCreation::kDup, MpiLibrary::kOpenMpi4, 0), agreement + agreement + agreement);
  EXPECT_EQ(steps_of(CommCreation::kSplit, MpiLibrary::kOpenMpi5, 0),
            "s1:8 r1:8 s2:16 r2:16 " + agreement + agreement + agreement);
  const std::string in_tree = "r3:4 s0:4 r0:4 s3:4 ";
  EXPECT_EQ(steps_of(CommCreation::kCreateGroup, MpiLibrary::kOpenMpi4, 1), in_tree + in_tree + in_tree);
  // MPICH: one allreduce of its mask, 65 ints, by halves; then a broadcast of an int.
  EXPECT_EQ(steps_of(CommCreation::kDup, MpiLibrary::kMpich4, 0),
            "s1:128 r1:132 s2:64 r2:68 s2:68 r2:64 s1:132 r1:128 s2:4 s1:4 ");
  EXPECT_EQ(steps_of(CommCreation::kCreateGroup, MpiLibrary::kMpich4, 0),
            "s1:260 r1:260 s2:260 r2:260 s2:4 s1:4 ");
}

TEST(StepLists, OneRankHasNone) {
  for (int op = 0; op < kCollectiveOpCount; ++op) {
    CollectiveCall call = call_of(static_cast<Op>(op), 1, 100);
    const std::vector<std::uint64_t> values{100, 100};
    const std::vector<std::uint64_t> no_neighbours{0, 0};
    call.values =
        op >= static_cast<int>(Op::kNeighborAllgather) && op <= static_cast<int>(Op::kNeighborAlltoallw)
            ? std::span(no_neighbours)
            : std::span(values);
    EXPECT_EQ(text(call), "") << op;
  }
}

TEST(StepLists, NothingToDoSendsNothing) {
  for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather,
                      Op::kAlltoall, Op::kReduceScatterBlock, Op::kScan, Op::kExscan}) {
    EXPECT_EQ(text(op, 0, 8, 0), "") << static_cast<int>(op);
  }
}

// ---- bad arguments
// -------------------------------------------------------------------------------------------------

TEST(BadArguments, AreErrorsAndAddNothing) {
  std::vector<CollectiveStep> steps;
  const auto refused = [&](const CollectiveCall& call) {
    const auto result = expand_collective(call, steps);
    EXPECT_STREQ(collective_algorithm_name(call), "invalid");
    return !result.ok() && result.error().code == ErrorCode::kInvalidInput && steps.empty();
  };
  EXPECT_TRUE(refused(call_of(Op::kBcast, 4, 8, 4)));
  EXPECT_TRUE(refused(call_of(Op::kBcast, 4, 8, -1)));
  CollectiveCall call = call_of(Op::kBarrier, 4, 0);
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
}  // namespace lbf
