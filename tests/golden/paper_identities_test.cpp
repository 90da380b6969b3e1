// What the papers' model must give in its limiting cases, on programs of random shape: with one process per
// processor the prediction is the critical path, on network zero the longest chain of process time (TSE Sec.
// 2), with all processes on one processor and network zero at least the sum of all work.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "tests/golden/predict.h"

namespace lbf::paper_identities_test {
namespace {

struct Program {
  std::string trace;
  Seconds longest_chain_s = 0;    // through process times alone
  Seconds longest_flights_s = 0;  // through process times and flights
  Seconds all_work_s = 0;
};

constexpr Rank kRanks = 6;
constexpr Seconds kFlight = 0.25;

// Messages in one global order: chains are then longest paths, kept up to date as the program is written.
Program random_program(std::mt19937_64& random) {
  Program program;
  std::ostringstream out;
  std::vector<Seconds> chain(kRanks, 0);
  std::vector<Seconds> path(kRanks, 0);
  for (int step = 0; step < 200; ++step) {
    const std::size_t from = random() % kRanks;
    const std::size_t to = (from + 1 + random() % (kRanks - 1)) % kRanks;
    const Seconds before_send = static_cast<Seconds>(random() % 8) / 8;  // exact in binary
    const Seconds before_recv = static_cast<Seconds>(random() % 8) / 8;
    out << from << " send " << before_send << " to=" << to << " tag=0 bytes=8\n"
        << to << " startRecv " << before_recv << " from=" << from << " tag=0\n"
        << to << " endRecv 0 from=" << from << " tag=0 bytes=8\n";
    chain[from] += before_send;
    path[from] += before_send;
    chain[to] = std::max(chain[to] + before_recv, chain[from]);
    path[to] = std::max(path[to] + before_recv, path[from] + kFlight);
    program.all_work_s += before_send + before_recv;
  }
  for (Rank rank = 0; rank < kRanks; ++rank) out << rank << " exit 0\n";
  program.trace = out.str();
  program.longest_chain_s = *std::max_element(chain.begin(), chain.end());
  program.longest_flights_s = *std::max_element(path.begin(), path.end());
  return program;
}

TEST(PaperIdentities, HoldOnRandomPrograms) {
  const auto lan = golden::network("name = \"lan\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 250000.0]]\n");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Program program = random_program(random);
    const auto lbf_s = [&](std::uint32_t nodes, std::shared_ptr<const engine::Network> network) {
      return golden::predict(program.trace, kRanks, "block", nodes, 1, std::move(network)).prediction.lbf_s;
    };
    EXPECT_EQ(lbf_s(kRanks, nullptr), program.longest_chain_s);
    EXPECT_EQ(lbf_s(kRanks, lan), program.longest_flights_s);
    // One processor is never idle where messages take no time: all work one after the other.
    EXPECT_NEAR(lbf_s(1, nullptr), program.all_work_s, 1e-9 * program.all_work_s);
  }
}

}  // namespace
}  // namespace lbf::paper_identities_test