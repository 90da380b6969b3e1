// The expansion against the installed MPICH: which messages each rank sends, in which order, as MPICH hands
// them to UCX (mpich_sends.c). Every rank is on a node of its own (MPIR_CVAR_NOLOCAL). Skipped where MPICH
// does not run, or not over UCX.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "library_case.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::mpich_test {
namespace {

using Op = CollectiveOp;
using Case = LibraryCase;

constexpr long long kUnknownBytes = -1;

struct Seen {
  int peer = 0;
  long long bytes = 0;
};
using Messages = std::vector<Seen>;
// [case][rank]
using Traffic = std::vector<std::vector<Messages>>;

// False: mpiexec failed.
bool measure(const std::vector<Case>& cases, std::uint32_t ranks, std::uint32_t nodes, Traffic& traffic,
             std::string& output) {
  const test::TemporaryDirectory folder;
  std::string command =
      "LBF_SENDS=" + folder.path() + "/sent " +
      (nodes == 0 ? std::string("MPIR_CVAR_NOLOCAL=1") : "MPIR_CVAR_NUM_CLIQUES=" + std::to_string(nodes)) +
      " timeout 120 " LBF_MPIEXEC " -genv LD_PRELOAD " LBF_SENDS " -n " + std::to_string(ranks) + " " LBF_MONITOR;
  for (const Case& c : cases) command += " " + argument_of(c);
  const test::Outcome outcome = test::run_command(command + " 2>&1");
  output += outcome.out;
  if (outcome.status != 0) return false;
  traffic.assign(cases.size(), std::vector<Messages>(ranks));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder.path() + "/sent." + std::to_string(rank));
    if (!file) return false;
    int number = 0;
    Seen seen;
    while (file >> number >> seen.peer >> seen.bytes) {
      const bool is_own_copy = seen.peer < 0;
      if (number >= 0 && !is_own_copy) traffic[static_cast<std::size_t>(number)][rank].push_back(seen);
    }
  }
  return true;
}

// Why nothing can be measured here; "" where it can.
const std::string& obstacle() {
  static const std::string why = [] {
    Traffic traffic;
    std::string output;
    if (!measure({{Op::kBcast, 64}}, 2, 0, traffic, output)) return "MPICH does not run here: " + output;
    return std::string(traffic[0][0].empty() ? "this MPICH does not send through UCX" : "");
  }();
  return why;
}

std::string text(const Messages& messages) {
  std::string line;
  for (const Seen& seen : messages) line += std::to_string(seen.peer) + ":" + std::to_string(seen.bytes) + " ";
  return line;
}

// `then_four`: the ranks may send messages of 4 bytes after those that are expected.
void expect_same_messages(const std::vector<Case>& cases, std::uint32_t ranks, std::uint32_t nodes = 0,
                          bool then_four = false) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();
  Traffic measured;
  std::string output;
  ASSERT_TRUE(measure(cases, ranks, nodes, measured, output)) << output;
  std::vector<std::uint32_t> node_of_rank(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) node_of_rank[rank] = nodes == 0 ? rank : rank % nodes;
  const engine::NodeLayout layout(node_of_rank);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Messages expected;
      for (const SentMessage& message :
           expected_messages(cases[i], rank, ranks, engine::MpiLibrary::kMpich4, &layout)) {
        expected.push_back({static_cast<int>(message.to), static_cast<long long>(message.bytes)});
      }
      Messages& seen = measured[i][rank];
      while (then_four && seen.size() > expected.size() && seen.back().bytes == 4) seen.pop_back();
      if (seen.size() == expected.size()) {
        for (std::size_t m = 0; m < seen.size(); ++m) {
          if (seen[m].bytes == kUnknownBytes) expected[m].bytes = kUnknownBytes;
        }
      }
      EXPECT_EQ(text(seen), text(expected)) << argument_of(cases[i]) << " on rank " << rank << " of " << ranks;
    }
  }
}

std::vector<Case> at_sizes(Op op, std::initializer_list<Bytes> sizes, std::uint32_t root = 0, int flags = 0) {
  std::vector<Case> cases;
  for (const Bytes bytes : sizes) cases.push_back({op, bytes, root, flags});
  return cases;
}

// The model is of 4.0, and says so of later ones.
bool installed_is(std::string_view version) {
  return std::string_view(LBF_MPICH_VERSION).starts_with(version);
}

class Mpich : public testing::TestWithParam<std::tuple<std::uint32_t, int>> {
 protected:
  std::uint32_t ranks() const { return std::get<0>(GetParam()); }
  int flags() const { return std::get<1>(GetParam()); }
};

TEST_P(Mpich, Barrier) {
  expect_same_messages({{Op::kBarrier, 0, 0, flags()}}, ranks());
}
TEST_P(Mpich, Bcast) {
  // From 4.1 on a non-blocking one of nothing sends nothing; the model is of 4.0.
  const bool sends_nothing = flags() != 0 && !installed_is("4.0");
  if (!sends_nothing) expect_same_messages({{Op::kBcast, 0, 1, flags()}}, ranks());
  expect_same_messages(at_sizes(Op::kBcast, {1, 100, 12287, 12288, 12289, 100000, 524287, 524288, 524289}, 1, flags()),
                       ranks());
}
TEST_P(Mpich, Reduce) {
  expect_same_messages(at_sizes(Op::kReduce, {0, 4, 2048, 2056, 100000, 100004}, 1, flags()), ranks());
  expect_same_messages(at_sizes(Op::kReduce, {8, 100000}, 0, flags()), ranks());
}
TEST_P(Mpich, ReduceNotCommutative) {
  expect_same_messages(at_sizes(Op::kReduce, {8, 100000}, 1, flags() | kNotCommutative), ranks());
}
TEST_P(Mpich, Allreduce) {
  expect_same_messages(at_sizes(Op::kAllreduce, {0, 4, 8, 16, 24, 64, 2048, 2056, 100000}, 0, flags()), ranks());
  expect_same_messages(at_sizes(Op::kAllreduce, {8, 100000}, 0, flags() | kNotCommutative), ranks());
}
TEST_P(Mpich, GatherAndScatter) {
  for (const Op op : {Op::kGather, Op::kScatter}) {
    expect_same_messages(at_sizes(op, {0, 1, 1000, 5000, 100000}, 1, flags()), ranks());
  }
}
TEST_P(Mpich, Allgather) {
  expect_same_messages(at_sizes(Op::kAllgather, {0, 8, 5000, 20000, 100000, 300000}, 0, flags()), ranks());
}
TEST_P(Mpich, Alltoall) {
  expect_same_messages(at_sizes(Op::kAlltoall, {0, 8, 256, 257, 2048, 2049, 32768, 32769}, 0, flags()), ranks());
  expect_same_messages(at_sizes(Op::kAlltoall, {8, 5000}, 0, flags() | kInPlace), ranks());
}
TEST_P(Mpich, ReduceScatterBlock) {
  expect_same_messages(at_sizes(Op::kReduceScatterBlock, {0, 8, 1000, 60000, 300000}, 0, flags()), ranks());
  expect_same_messages(at_sizes(Op::kReduceScatterBlock, {8, 60000}, 0, flags() | kNotCommutative), ranks());
}
TEST_P(Mpich, Scans) {
  for (const Op op : {Op::kScan, Op::kExscan}) {
    expect_same_messages(at_sizes(op, {0, 8, 5000}, 0, flags()), ranks());
  }
}
TEST_P(Mpich, VectorOperations) {
  std::vector<Case> cases;
  for (const Bytes bytes : {Bytes{8}, Bytes{600}, Bytes{5000}, Bytes{20000}, Bytes{100000}}) {
    for (const Op op :
         {Op::kGatherv, Op::kScatterv, Op::kAllgatherv, Op::kAlltoallv, Op::kAlltoallw, Op::kReduceScatter}) {
      cases.push_back({op, bytes, 0, flags()});
    }
    cases.push_back({Op::kReduceScatter, bytes, 0, flags() | kNotCommutative});
  }
  expect_same_messages(cases, ranks());
}
// One size for each kind of decision and of shape: two, odd, power of two, neither; below and from 8 on.
INSTANTIATE_TEST_SUITE_P(Ranks, Mpich,
                         testing::Combine(testing::Values(2, 3, 7, 8, 9), testing::Values(0, kNonblocking)),
                         [](const auto& parameter) {
                           return std::string(std::get<1>(parameter.param) == 0 ? "Blocking" : "Nonblocking") +
                                  std::to_string(std::get<0>(parameter.param));
                         });

std::vector<Case> creations(std::initializer_list<CommCreation> hows, int flags) {
  std::vector<Case> cases;
  for (const CommCreation how : hows) cases.push_back({Op::kCommCreate, 8, static_cast<std::uint32_t>(how), flags});
  return cases;
}
TEST_P(Mpich, Communicators) {
  if ((flags() & kNonblocking) != 0) return;
  expect_same_messages(creations({CommCreation::kDup, CommCreation::kCreateGroup, CommCreation::kCartCreate,
                                  CommCreation::kGraphCreate, CommCreation::kDistGraphCreateAdjacent},
                                 0),
                       ranks());
}
// The new communicators' own broadcast is left out.
TEST_P(Mpich, CommunicatorsOfSomeRanks) {
  if ((flags() & kNonblocking) != 0) return;
  expect_same_messages(creations({CommCreation::kCreate, CommCreation::kSplit}, 0), ranks(), 0, true);
}

class MpichByNodes : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t>> {};

TEST_P(MpichByNodes, All) {
  if (installed_is("5.")) GTEST_SKIP() << "by nodes MPICH 5 sends otherwise";
  const auto [ranks, nodes] = GetParam();
  std::vector<Case> cases{{Op::kBarrier, 0}, {Op::kBarrier, 0, 0, kNonblocking}};
  for (const Bytes bytes : {Bytes{8}, Bytes{1000}, Bytes{2048}, Bytes{2056}, Bytes{12280}, Bytes{12288}, Bytes{100000},
                            Bytes{524280}, Bytes{524296}}) {
    for (const Op op : {Op::kBcast, Op::kReduce}) {
      for (const std::uint32_t root : {0U, 1U, ranks - 1}) {
        for (const int flags : {0, +kNonblocking}) cases.push_back({op, bytes, root, flags});
      }
    }
    for (const int flags : {0, +kNonblocking, +kNotCommutative}) cases.push_back({Op::kAllreduce, bytes, 0, flags});
    for (const Op op : {Op::kAllgather, Op::kAlltoall, Op::kGather, Op::kScatter}) cases.push_back({op, bytes});
  }
  expect_same_messages(cases, ranks, nodes);
}
// Also one node only, one rank on some nodes, and as many nodes as ranks.
INSTANTIATE_TEST_SUITE_P(Ranks, MpichByNodes, testing::Combine(testing::Values(3, 6, 8, 9), testing::Values(2, 3)),
                         [](const auto& parameter) {
                           return "Nodes" + std::to_string(std::get<1>(parameter.param)) + "Ranks" +
                                  std::to_string(std::get<0>(parameter.param));
                         });

class MpichInter : public Mpich {};

TEST_P(MpichInter, All) {
  std::vector<Case> cases{{Op::kBarrier, 0, 0, flags()}};
  for (const Bytes bytes : {Bytes{8}, Bytes{5000}}) {
    for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather,
                        Op::kAlltoall, Op::kAlltoallv, Op::kAlltoallw, Op::kGatherv, Op::kScatterv, Op::kAllgatherv}) {
      cases.push_back({op, bytes, 0, flags()});
    }
  }
  expect_same_messages(cases, ranks());
}
TEST_P(MpichInter, Dup) {
  if ((flags() & kNonblocking) != 0) return;
  if (installed_is("5.")) GTEST_SKIP() << "MPICH 5's context ids are longer";
  expect_same_messages(creations({CommCreation::kDup}, kInter), ranks());
}
TEST_P(MpichInter, ReduceScatter) {
  if (ranks() % 2 != 0) return;  // both groups' vectors must be equally long
  expect_same_messages({{Op::kReduceScatter, 600, 0, flags()}, {Op::kReduceScatterBlock, 704, 0, flags()}}, ranks());
}
INSTANTIATE_TEST_SUITE_P(Ranks, MpichInter,
                         testing::Combine(testing::Values(2, 3, 6, 8), testing::Values(kInter, kInter | kNonblocking)),
                         [](const auto& parameter) {
                           return std::string((std::get<1>(parameter.param) & kNonblocking) == 0 ? "Blocking"
                                                                                                 : "Nonblocking") +
                                  std::to_string(std::get<0>(parameter.param));
                         });

}  // namespace
}  // namespace lbf::mpich_test