// expand_collective: the messages of all ranks fit together and carry the data where the operation says.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <utility>

#include "predictor/engine/match/collective.h"
#include "tests/unit/collective/collective_calls.h"

namespace lbf::data_flow_test {
namespace {

using Op = CollectiveOp;

const std::vector<Bytes> kBytes = {1,      2,      3,      4,      6,       7,       8,       12,      15,     16,
                                   24,     31,     32,     40,     63,      64,      100,     127,     128,    255,
                                   256,    511,    512,    1000,   1023,    1024,    2047,    2048,    4095,   4096,
                                   8191,   8192,   16383,  16384,  32767,   32768,   65535,   65536,   131071, 131072,
                                   262143, 262144, 524287, 524288, 1048575, 1048576, 2097152, 4194304, 5000000};
const std::vector<Bytes> kFewBytes = {1, 8, 300, 5000, 20000, 200000, 3000000};

std::vector<std::uint32_t> small_sizes() {
  std::vector<std::uint32_t> sizes(33);
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

Members range_of(std::uint32_t first, std::uint32_t last) {
  Members members;
  for (std::uint32_t member = first; member < last; ++member) members.set(member);
  return members;
}

bool knows_all(const Members& known, const Members& wanted) {
  return (known & wanted) == wanted;
}

// What must have reached whom after an operation in which all blocks are alike.
void expect_data_flow(const engine::CollectiveCall& call) {
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
    if ((call.op == Op::kScan || call.op == Op::kExscan) && !engine::is_mpich(call.library)) {
      ASSERT_EQ(outcome.knows[rank], range_of(0, rank + 1)) << describe(call) << " rank " << rank;
    }
  }
}

const std::vector<Op> kRooted = {Op::kBcast, Op::kReduce, Op::kGather, Op::kScatter};
const std::vector<Op> kUnrooted = {Op::kBarrier, Op::kAllreduce, Op::kAllgather, Op::kAlltoall, Op::kReduceScatterBlock,
                                   Op::kScan,    Op::kExscan,    Op::kCommCreate};

// Open MPI 5.0 where the nodes are not known is 4.1: ByNodes has it. MPICH 5.0's messages are 4.0's.
const auto kLibraries =
    testing::Values(engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kOpenMpi6, engine::MpiLibrary::kMpich4);
const auto kAllLibraries =
    testing::Values(engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kOpenMpi5, engine::MpiLibrary::kOpenMpi6,
                    engine::MpiLibrary::kMpich4, engine::MpiLibrary::kMpich5);
std::string name_of(engine::MpiLibrary library) {
  switch (library) {
    case engine::MpiLibrary::kOpenMpi4:
      return "OpenMpi4";
    case engine::MpiLibrary::kOpenMpi5:
      return "OpenMpi5";
    case engine::MpiLibrary::kOpenMpi6:
      return "OpenMpi6";
    case engine::MpiLibrary::kMpich4:
      return "Mpich4";
    case engine::MpiLibrary::kMpich5:
      return "Mpich5";
  }
  return "";
}

class DataFlow : public testing::TestWithParam<std::tuple<bool, bool, engine::MpiLibrary>> {
};  // nonblocking, commutative

TEST_P(DataFlow, SmallCommunicatorsEverySizeEveryThreshold) {
  const auto [nonblocking, commutative, library] = GetParam();
  for (const std::uint32_t size : small_sizes()) {
    for (const Bytes bytes : kBytes) {
      for (const Op op : kRooted) {
        for (const std::uint32_t root : {0U, 1U, size / 2, size - 1}) {
          if (root >= size) continue;
          engine::CollectiveCall call = call_of(op, size, bytes, static_cast<Rank>(root), nonblocking, library);
          call.commutative = commutative;
          ASSERT_NO_FATAL_FAILURE(expect_data_flow(call));
        }
      }
      for (const Op op : kUnrooted) {
        if ((op == Op::kBarrier || op == Op::kCommCreate) && bytes != kBytes[0]) continue;
        engine::CollectiveCall call = call_of(op, size, bytes, 0, nonblocking, library);
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
      for (const Op op : {Op::kBarrier, Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kScan,
                          Op::kReduceScatterBlock, Op::kAllgather, Op::kAlltoall}) {
        if (op == Op::kBarrier && bytes > 1) continue;
        const bool rings = library == engine::MpiLibrary::kMpich4 && bytes >= 5000 &&
                           (op == Op::kBcast || op == Op::kReduceScatterBlock);
        const bool quadratic = op == Op::kAllgather || op == Op::kAlltoall || rings;
        if (quadratic && (size > 200 || !commutative || bytes == 300)) continue;
        engine::CollectiveCall call = call_of(op, size, bytes, static_cast<Rank>(size / 3), nonblocking, library);
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
          for (const engine::MpiLibrary library : {engine::MpiLibrary::kOpenMpi4, engine::MpiLibrary::kMpich4}) {
            engine::CollectiveCall call = call_of(op, size, bytes, 0, nonblocking, library);
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

class Vectors : public testing::TestWithParam<std::tuple<bool, engine::MpiLibrary>> {
 protected:
  static bool nonblocking() { return std::get<0>(GetParam()); }
  static engine::MpiLibrary library() { return std::get<1>(GetParam()); }
};

TEST_P(Vectors, GathervAndScatterv) {
  for (const std::uint32_t size : small_sizes()) {
    const std::vector<std::uint64_t> counts = uneven(size, 1000);
    for (const Op op : {Op::kGatherv, Op::kScatterv}) {
      const std::uint32_t root = size / 2;
      std::vector<engine::CollectiveCall> calls;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        engine::CollectiveCall call =
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
          engine::CollectiveCall call = call_of(op, size, counts[0], 0, nonblocking(), library());
          call.values = counts;
          call.commutative = commutative;
          const Outcome outcome = run_alike(call);
          ASSERT_EQ(outcome.problem, "") << describe(call);
          for (std::uint32_t to = 0; to < size; ++to) {
            for (std::uint32_t from = 0; from < size; ++from) {
              const bool needed = op == Op::kAllgatherv ? counts[from] > 0 : counts[to] > 0;
              ASSERT_TRUE(!needed || outcome.knows[to].test(from)) << describe(call) << " " << from << "->" << to;
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
        std::vector<engine::CollectiveCall> calls;
        Bytes expected = 0;
        for (std::uint32_t rank = 0; rank < size; ++rank) {
          for (std::uint32_t peer = 0; peer < size; ++peer) values[rank].push_back(bytes(rank, peer));
          for (std::uint32_t peer = 0; peer < size; ++peer) values[rank].push_back(bytes(peer, rank));
          for (std::uint32_t peer = 0; peer < size; ++peer) expected += peer == rank ? 0 : bytes(rank, peer);
          engine::CollectiveCall call = call_of(op, size, 0, 0, nonblocking(), library());
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
    for (const Op op : {Op::kNeighborAllgather, Op::kNeighborAllgatherv, Op::kNeighborAlltoall, Op::kNeighborAlltoallv,
                        Op::kNeighborAlltoallw}) {
      std::vector<std::vector<std::uint64_t>> values(size);
      std::vector<engine::CollectiveCall> calls;
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        const std::uint64_t below = rank == 0 ? static_cast<std::uint64_t>(-2) : rank - 1;
        const std::uint64_t above = rank + 1 == size ? static_cast<std::uint64_t>(-2) : rank + 1;
        values[rank] = {2, below, above, 10, 10, 2, below, above, 10, 10};
        engine::CollectiveCall call = call_of(op, size, 10, 0, nonblocking(), library());
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
INSTANTIATE_TEST_SUITE_P(All, Vectors, testing::Combine(testing::Bool(), kAllLibraries), [](const auto& parameter) {
  return std::string(std::get<0>(parameter.param) ? "Nonblocking" : "Blocking") + name_of(std::get<1>(parameter.param));
});

// A ring of two: each one's neighbour below is its neighbour above. What the other sends down comes from
// above in Open MPI's blocking collectives; everywhere else messages pair in order. Sends 10 (rank 1: 30)
// down and 20 (40) up.
TEST_P(Vectors, NeighboursOnBothSides) {
  const bool by_direction = !nonblocking() && !engine::is_mpich(library());
  std::vector<std::vector<std::uint64_t>> values;
  std::vector<engine::CollectiveCall> calls;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const std::uint64_t other = 1 - rank;
    const std::uint64_t sent_down = other * 20 + 10;
    const std::uint64_t sent_up = other * 20 + 20;
    values.push_back({2, other, other, rank * 20 + 10, rank * 20 + 20,  //
                      2, other, other, by_direction ? sent_up : sent_down, by_direction ? sent_down : sent_up});
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    engine::CollectiveCall call = call_of(Op::kNeighborAlltoallv, 2, 30, 0, nonblocking(), library());
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
  static Outcome run_inter(Op op, std::uint32_t first, std::uint32_t second, std::int32_t root_member, Bytes bytes) {
    std::vector<engine::CollectiveCall> calls;
    values_.clear();
    for (std::uint32_t member = 0; member < first + second; ++member) {
      const bool in_first = member < first;
      engine::CollectiveCall call = call_of(op, in_first ? first : second, bytes, 0, nonblocking(), library());
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
        for (const Op op : {Op::kBcast, Op::kScatter, Op::kScatterv, Op::kReduce, Op::kGather, Op::kGatherv}) {
          const std::uint32_t root = first / 2;
          const Outcome outcome = run_inter(op, first, second, static_cast<std::int32_t>(root), bytes);
          const std::string which = "op " + std::to_string(static_cast<int>(op)) + " groups " + std::to_string(first) +
                                    "+" + std::to_string(second);
          ASSERT_EQ(outcome.problem, "") << which;
          if (op == Op::kBcast || op == Op::kScatter || op == Op::kScatterv) {
            for (std::uint32_t b = first; b < first + second; ++b) EXPECT_TRUE(outcome.knows[b].test(root)) << which;
          } else {
            EXPECT_TRUE(knows_all(outcome.knows[root], group_b)) << which;
          }
        }
        for (const Op op :
             {Op::kBarrier, Op::kAllreduce, Op::kCommCreate, Op::kAllgather, Op::kAllgatherv, Op::kAlltoall,
              Op::kAlltoallv, Op::kAlltoallw, Op::kReduceScatter, Op::kReduceScatterBlock}) {
          const Outcome outcome = run_inter(op, first, second, -1, bytes);
          const std::string which = "op " + std::to_string(static_cast<int>(op)) + " groups " + std::to_string(first) +
                                    "+" + std::to_string(second);
          ASSERT_EQ(outcome.problem, "") << which;
          for (std::uint32_t member = 0; member < first + second; ++member) {
            // libnbc's barrier lets ranks go that heard of the other leader only, after that one heard of all
            // of *their* group
            if (op == Op::kBarrier && nonblocking() && !engine::is_mpich(library())) continue;
            EXPECT_TRUE(knows_all(outcome.knows[member], member < first ? group_b : group_a)) << which;
          }
        }
      }
    }
  }
}

// One group gives nothing and gets something (sizes are not known at both ends then: what must hold is that every
// message that is sent is received).
TEST_P(Inter, OneWayOnly) {
  for (const Op op : {Op::kAllgather, Op::kAlltoall}) {
    for (const bool first_is_empty : {false, true}) {
      constexpr std::uint32_t kFirst = 2;
      constexpr std::uint32_t kSecond = 3;
      std::map<std::pair<std::uint32_t, std::uint32_t>, int> open;  // sent and not received, by sender and receiver
      std::size_t between_groups = 0;
      for (std::uint32_t member = 0; member < kFirst + kSecond; ++member) {
        const bool in_first = member < kFirst;
        engine::CollectiveCall call = call_of(op, in_first ? kFirst : kSecond, in_first == first_is_empty ? 0 : 1000, 0,
                                              nonblocking(), library());
        call.rank = in_first ? member : member - kFirst;
        call.remote_size = in_first ? kSecond : kFirst;
        call.low_group = in_first;
        std::vector<engine::CollectiveStep> steps;
        ASSERT_TRUE(engine::expand_collective(call, steps).ok());
        for (const engine::CollectiveStep& step : steps) {
          const std::uint32_t peer = step.peer + (in_first == step.local_group ? 0 : kFirst);
          const bool sends = step.kind == engine::CollectiveStep::Kind::kSend;
          open[sends ? std::pair(member, peer) : std::pair(peer, member)] += sends ? 1 : -1;
          between_groups += step.local_group ? 0 : 1;
        }
      }
      EXPECT_GT(between_groups, 0U);
      for (const auto& [pair, count] : open) EXPECT_EQ(count, 0) << pair.first << " to " << pair.second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Inter, testing::Combine(testing::Bool(), kLibraries), [](const auto& parameter) {
  return std::string(std::get<0>(parameter.param) ? "Nonblocking" : "Blocking") + name_of(std::get<1>(parameter.param));
});

TEST(InterErrors, ScanIsNotDefined) {
  engine::CollectiveCall call = call_of(Op::kScan, 2, 8);
  call.remote_size = 2;
  std::vector<engine::CollectiveStep> steps;
  EXPECT_FALSE(engine::expand_collective(call, steps).ok());
}

}  // namespace
}  // namespace lbf::data_flow_test