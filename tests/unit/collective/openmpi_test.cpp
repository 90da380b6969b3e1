// The expansion against the installed Open MPI: how many messages and bytes each rank sends to each other one for a
// collective, as the library's own monitoring component sees them (openmpi_sends.c). Skipped where there is no mpirun
// or no such component.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "library_case.h"
#include "predictor/engine/match/collective.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"

namespace lbf::openmpi_test {
namespace {

using Op = CollectiveOp;
constexpr engine::MpiLibrary kInstalled =
    LBF_OPENMPI_MAJOR < 5 ? engine::MpiLibrary::kOpenMpi4 : engine::MpiLibrary::kOpenMpi5;
using Case = LibraryCase;

struct Sent {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  bool operator==(const Sent&) const = default;
};
void PrintTo(const Sent& sent, std::ostream* out) {
  *out << sent.messages << " messages, " << sent.bytes << " bytes";
}
using Traffic = std::map<std::pair<std::uint32_t, std::uint32_t>, Sent>;  // (source, destination), without zeros

Traffic expansion(const Case& c, std::uint32_t ranks) {
  Traffic traffic;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const SentMessage& message : expected_messages(c, rank, ranks, kInstalled)) {
      if (message.to == rank) continue;
      Sent& sent = traffic[{rank, message.to}];
      ++sent.messages;
      sent.bytes += static_cast<std::int64_t>(message.bytes);
    }
  }
  return traffic;
}

// A message to oneself is a copy. 5.0's Alltoallv sends it all the same.
// Of each case. False: mpirun failed or counted nothing that could be read.
bool measure(const std::vector<Case>& cases, std::uint32_t ranks, std::vector<Traffic>& traffic, std::string& output) {
  const test::TemporaryDirectory folder;
  std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LBF_SENDS=" + folder.path() +
                        "/sent timeout 120 " LBF_MPIEXEC
                        " --oversubscribe --mca btl self,vader --mca mpi_yield_when_idle 1"
                        " --mca pml_monitoring_enable 1 -np " +
                        std::to_string(ranks) + " " LBF_MONITOR;
  for (const Case& c : cases) command += " " + argument_of(c);
  const test::Outcome outcome = test::run_command(command + " 2>&1");
  output += outcome.out;
  if (outcome.status != 0) return false;
  traffic.assign(cases.size(), {});
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::ifstream file(folder.path() + "/sent." + std::to_string(rank));
    if (!file) return false;
    std::size_t number = 0;
    std::uint32_t peer = 0;
    std::int64_t bytes = 0;
    while (file >> number >> peer >> bytes) {
      if (peer == rank) continue;
      Sent& sent = traffic.at(number)[{rank, peer}];
      ++sent.messages;
      sent.bytes += bytes;
    }
    if (!file.eof()) return false;
  }
  return true;
}

// Why nothing can be measured here; "" where it can.
const std::string& obstacle() {
  static const std::string why = [] {
    std::vector<Traffic> traffic;
    std::string output;
    if (!measure({{Op::kBcast, 64}}, 2, traffic, output)) return "mpirun with pml/monitoring does not work: " + output;
    return std::string(traffic[0].empty() ? "pml/monitoring tells nothing here" : "");
  }();
  return why;
}

void expect_same_traffic(const std::vector<Case>& cases, std::uint32_t ranks) {
  if (!obstacle().empty()) GTEST_SKIP() << obstacle();
  std::vector<Traffic> measured;
  std::string output;
  ASSERT_TRUE(measure(cases, ranks, measured, output)) << output;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(argument_of(cases[i]) + " on " + std::to_string(ranks) + " ranks");
    const Traffic expected = expansion(cases[i], ranks);
    EXPECT_EQ(measured[i].size(), expected.size());
    for (const auto& [pair, sent] : expected) {
      EXPECT_EQ(measured[i][pair], sent) << "from " << pair.first << " to " << pair.second;
    }
  }
}

std::vector<Case> at_sizes(Op op, std::initializer_list<Bytes> sizes, std::uint32_t root = 0, int flags = 0) {
  std::vector<Case> cases;
  for (const Bytes bytes : sizes) cases.push_back({op, bytes, root, flags});
  return cases;
}

class OpenMpi : public testing::TestWithParam<std::uint32_t> {};

TEST_P(OpenMpi, Barrier) {
  expect_same_traffic({{Op::kBarrier, 0}}, GetParam());
}
TEST_P(OpenMpi, Bcast) {
  expect_same_traffic(
      at_sizes(Op::kBcast, {8, 50, 100, 300, 1000, 3000, 10000, 20001, 40000, 140000, 300000, 1200000}, 1), GetParam());
}
TEST_P(OpenMpi, Reduce) {
  expect_same_traffic(at_sizes(Op::kReduce, {4, 8, 24, 100, 5000, 70000, 280000, 600000, 1200000}, 1), GetParam());
}
TEST_P(OpenMpi, ReduceNotCommutative) {
  expect_same_traffic(at_sizes(Op::kReduce, {4, 100, 5000, 10000, 280000}, 1, kNotCommutative), GetParam());
}
TEST_P(OpenMpi, Allreduce) {
  expect_same_traffic(at_sizes(Op::kAllreduce, {4, 8, 100, 5000, 10000, 20000, 70000, 300000}), GetParam());
}
TEST_P(OpenMpi, AllreduceNotCommutative) {
  expect_same_traffic(at_sizes(Op::kAllreduce, {8, 200000, 1200000}, 0, kNotCommutative), GetParam());
}
TEST_P(OpenMpi, Gather) {
  expect_same_traffic(at_sizes(Op::kGather, {1, 2, 100, 2000, 10000, 40000, 300000}, 1), GetParam());
}
TEST_P(OpenMpi, Scatter) {
  expect_same_traffic(at_sizes(Op::kScatter, {1, 100, 3000, 5000, 20000, 140000, 300000}, 1), GetParam());
}
TEST_P(OpenMpi, Allgather) {
  expect_same_traffic(at_sizes(Op::kAllgather, {8, 3000, 100000}), GetParam());
}
TEST_P(OpenMpi, Alltoall) {
  expect_same_traffic(at_sizes(Op::kAlltoall, {1, 2, 8, 40, 100, 3000, 10000, 40000, 300000}), GetParam());
}
TEST_P(OpenMpi, ReduceScatterBlock) {
  expect_same_traffic(at_sizes(Op::kReduceScatterBlock, {2, 4, 8, 24, 200, 3000, 6000, 10000, 140000, 600000}),
                      GetParam());
}
TEST_P(OpenMpi, Scans) {
  expect_same_traffic({{Op::kScan, 8}, {Op::kScan, 5000}, {Op::kExscan, 16}, {Op::kExscan, 70000}}, GetParam());
}
TEST_P(OpenMpi, VectorOperations) {
  std::vector<Case> cases;
  for (const Bytes bytes : {Bytes{8}, Bytes{600}, Bytes{5000}, Bytes{9000}, Bytes{100000}}) {
    for (const Op op :
         {Op::kGatherv, Op::kScatterv, Op::kAllgatherv, Op::kAlltoallv, Op::kAlltoallw, Op::kReduceScatter}) {
      cases.push_back({op, bytes});
    }
  }
  expect_same_traffic(cases, GetParam());
}
TEST_P(OpenMpi, ReduceScatterNotCommutative) {
  expect_same_traffic(at_sizes(Op::kReduceScatter, {8, 5000}, 0, kNotCommutative), GetParam());
}
TEST_P(OpenMpi, Nonblocking) {
  std::vector<Case> cases{{Op::kBarrier, 0, 0, kNonblocking}};
  for (const Bytes bytes : {Bytes{8}, Bytes{5000}, Bytes{70000}, Bytes{600000}}) {
    for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather,
                        Op::kAlltoall, Op::kReduceScatterBlock, Op::kScan, Op::kExscan, Op::kGatherv, Op::kScatterv,
                        Op::kAllgatherv, Op::kAlltoallv, Op::kAlltoallw, Op::kReduceScatter}) {
      cases.push_back({op, bytes, 1, kNonblocking});
    }
  }
  expect_same_traffic(cases, GetParam());
}
TEST_P(OpenMpi, InPlace) {
  expect_same_traffic({{Op::kAlltoall, 100, 0, kInPlace},
                       {Op::kAlltoall, 3000, 0, kInPlace | kNonblocking},
                       {Op::kAllreduce, 70000, 0, kInPlace | kNonblocking}},
                      GetParam());
}
TEST_P(OpenMpi, Neighbours) {
  if (GetParam() % 2 != 0 || GetParam() < 6) return;  // columns that are not their own neighbours
  expect_same_traffic({{Op::kNeighborAlltoall, 8, 0, kCart},
                       {Op::kNeighborAlltoall, 5000, 0, kCart | kNonblocking},
                       {Op::kNeighborAlltoallv, 700, 0, kCart}},
                      GetParam());
}
TEST_P(OpenMpi, Communicators) {
  for (const CommCreation how : {CommCreation::kDup, CommCreation::kCreate, CommCreation::kCreateGroup,
                                 CommCreation::kSplit, CommCreation::kSplitType, CommCreation::kCartCreate,
                                 CommCreation::kGraphCreate, CommCreation::kDistGraphCreateAdjacent}) {
    SCOPED_TRACE(static_cast<int>(how));
    expect_same_traffic({{Op::kCommCreate, 8, static_cast<std::uint32_t>(how)}}, GetParam());
  }
  expect_same_traffic({{Op::kCommCreate, 8, static_cast<std::uint32_t>(CommCreation::kDup), kNonblocking}}, GetParam());
}
// One size for each kind of decision and of shape: two, odd, power of two, neither.
INSTANTIATE_TEST_SUITE_P(Ranks, OpenMpi, testing::Values(2, 3, 6, 8),
                         [](const auto& parameter) { return "Ranks" + std::to_string(parameter.param); });

class OpenMpiInter : public testing::TestWithParam<std::uint32_t> {};

TEST_P(OpenMpiInter, Blocking) {
  std::vector<Case> cases{{Op::kBarrier, 0, 0, kInter}};
  for (const Bytes bytes : {Bytes{8}, Bytes{5000}}) {
    for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather,
                        Op::kAlltoall, Op::kAlltoallv, Op::kAlltoallw}) {
      cases.push_back({op, bytes, 0, kInter});
    }
  }
  cases.push_back({Op::kReduceScatter, 600, 0, kInter});  // both groups' vectors are equally long
  cases.push_back({Op::kReduceScatterBlock, 700, 0, kInter});
  expect_same_traffic(cases, GetParam());
}
TEST_P(OpenMpiInter, Nonblocking) {
  constexpr int kFlags = kInter | kNonblocking;
  std::vector<Case> cases{{Op::kBarrier, 0, 0, kFlags}};
  for (const Op op : {Op::kBcast, Op::kReduce, Op::kAllreduce, Op::kGather, Op::kScatter, Op::kAllgather, Op::kAlltoall,
                      Op::kAlltoallv, Op::kAlltoallw, Op::kGatherv, Op::kScatterv}) {
    cases.push_back({op, 5000, 0, kFlags});
  }
  cases.push_back({Op::kReduceScatter, 600, 0, kFlags});
  cases.push_back({Op::kReduceScatterBlock, 700, 0, kFlags});
  expect_same_traffic(cases, GetParam());
}
// With counts that are alike: else only the leaders know what the library sends.
TEST_P(OpenMpiInter, Vectors) {
  std::vector<Case> cases;
  for (const Bytes bytes : {Bytes{8}, Bytes{5000}}) {
    for (const Op op : {Op::kGatherv, Op::kScatterv, Op::kAllgatherv}) cases.push_back({op, bytes, 0, kInter | kAlike});
  }
  expect_same_traffic(cases, GetParam());
}
TEST_P(OpenMpiInter, Communicators) {
  for (const CommCreation how :
       {CommCreation::kDup, CommCreation::kCreate, CommCreation::kSplit, CommCreation::kIntercommMerge}) {
    SCOPED_TRACE(static_cast<int>(how));
    expect_same_traffic({{Op::kCommCreate, 8, static_cast<std::uint32_t>(how), kInter}}, GetParam());
  }
}
// Groups of equal size only: with others the monitoring component itself crashes (Open MPI 4.1.4).
INSTANTIATE_TEST_SUITE_P(Ranks, OpenMpiInter, testing::Values(2, 6),
                         [](const auto& parameter) { return "Ranks" + std::to_string(parameter.param); });

}  // namespace
}  // namespace lbf::openmpi_test