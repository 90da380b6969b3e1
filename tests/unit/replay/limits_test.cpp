// What one program may cost: events of a few bytes that ask for much memory or work (EngineLimits).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/metric/predictor.h"

namespace lbf::limits_test {
namespace {

using testing::HasSubstr;

constexpr Bytes kLargest = Bytes{1} << 44;  // of a collective

engine::Target target(std::vector<std::uint32_t> node_of_rank, const std::string& network = {}) {
  engine::Target made;
  made.nodes = 1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
  made.node_of_rank = std::move(node_of_rank);
  made.cores_per_node = 16;
  made.network = std::make_shared<const engine::Network>(
      network.empty() ? engine::Network::zero() : *engine::Network::parse(network, "test.toml"));
  return made;
}

Event collective(CollectiveOp op, Bytes bytes = 8, Rank root = 0, std::uint32_t comm = 0) {
  Event made = event_of_kind(EventKind::kCollective);
  set_op(made, op);
  made.bytes = bytes;
  made.root = root;
  made.comm = comm;
  return made;
}

// A program on two nodes, under a library's rules.
class Program {
 public:
  explicit Program(Rank ranks, const std::string& network = {}, const std::string& library = "Open MPI v4.1.4")
      : ranks_(ranks) {
    std::vector<std::uint32_t> node_of_rank;
    for (Rank rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank < (ranks + 1) / 2 ? 0 : 1);
    predictor = *engine::Predictor::make(ranks, {target(node_of_rank, network)});
    predictor->set_mpi(engine::mpi_setup(library, node_of_rank));
  }
  // Looks at most so often before the program is stopped.
  void limit(Bytes memory_bytes, std::uint64_t most_looks = ~std::uint64_t{0}) {
    predictor->set_limits({memory_bytes, [this, most_looks] { return ++looks > most_looks; }});
  }
  void feed(Rank rank, const Event& event) {
    const Result<void> fed = predictor->feed(rank, event);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  }
  void feed_all(const Event& event) {
    for (Rank rank = 0; rank < ranks_; ++rank) feed(rank, event);
  }
  // The first half and the second half of the ranks.
  void create_intercommunicator() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      std::vector<std::uint64_t> values{77, static_cast<std::uint64_t>(ranks_ / 2)};
      for (Rank member = 0; member < ranks_; ++member) values.push_back(static_cast<std::uint64_t>(member));
      Event event = event_of_kind(EventKind::kCommCreate);
      event.comm = 1;
      event.values = values;
      feed(rank, event);
    }
  }

  std::unique_ptr<engine::Predictor> predictor;
  std::uint64_t looks = 0;

 private:
  Rank ranks_;
};

TEST(Limits, WhoNeverWaitsEndsAtTheMemoryThatItMayHave) {
  Program program(4);
  program.limit(Bytes{16} << 20);
  Event start = collective(CollectiveOp::kAllreduce);
  start.kind = EventKind::kIcollective;
  start.flags = kFlagHasRequest;
  Result<void> fed;
  while (fed.ok() && start.request < 10'000'000) {
    ++start.request;
    fed = program.predictor->feed(0, start);
  }
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().code, ErrorCode::kLimit);
  EXPECT_THAT(fed.error().message, HasSubstr("the replay needs more than 16 MiB"));
  EXPECT_LT(program.predictor->memory_bytes(), Bytes{24} << 20);
  EXPECT_GT(program.predictor->memory_bytes(), Bytes{16} << 20);

  EXPECT_FALSE(program.predictor->feed(1, start).ok());
  EXPECT_EQ(program.predictor->advance().error().code, ErrorCode::kLimit);
  EXPECT_EQ(program.predictor->diagnosis().error().code, ErrorCode::kLimit);
  program.predictor->close(0);
  EXPECT_EQ(program.predictor->predictions().size(), 1u);
}

TEST(Limits, NoneAreNone) {
  Program program(2);
  EXPECT_GT(program.predictor->memory_bytes(), 0u);
  for (int i = 0; i < 10000; ++i) program.feed_all(collective(CollectiveOp::kBarrier));
  EXPECT_LT(program.predictor->memory_bytes(), Bytes{4} << 20);
}

TEST(Limits, WhoIsStoppedStopsWithinAFewThousandEvents) {
  Program program(2);
  bool stop = false;
  program.predictor->set_limits({0, [&stop] { return stop; }});
  program.feed_all(collective(CollectiveOp::kBarrier));
  stop = true;
  Result<void> fed;
  int events = 0;
  for (; fed.ok() && events < 10000; ++events) fed = program.predictor->feed(0, collective(CollectiveOp::kBarrier));
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(fed.error().message, "stopped");
  EXPECT_LT(events, 5000);
}

// One event is as much work as its collective has messages: it is stopped in the middle.
TEST(Limits, ALargeCollectiveIsStoppedInTheMiddle) {
  Program program(4, "", "Open MPI v5.0.3");
  program.limit(Bytes{64} << 20);
  const Result<void> fed = program.predictor->feed(0, collective(CollectiveOp::kAllreduce, kLargest));
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().code, ErrorCode::kLimit);
  EXPECT_LT(program.predictor->memory_bytes(), Bytes{192} << 20);
}

// A batch of 167 bytes: MPICH's rules looked for the node of a root that a barrier does not have.
TEST(Limits, ARootWhereThereIsNoneSaysNothing) {
  for (const char* library : {"Open MPI v4.1.4", "Open MPI v5.0.3", "MPICH Version: 4.0.2"}) {
    Program program(4, "", library);
    for (const Rank root : {1 << 30, -1, -4, 5}) {
      program.feed_all(collective(CollectiveOp::kBarrier, 0, root));
      program.feed_all(collective(CollectiveOp::kAllreduce, 8, root));
    }
    EXPECT_TRUE(program.predictor->advance().ok());
    const Result<void> fed = program.predictor->feed(2, collective(CollectiveOp::kBcast, 8, 4));
    ASSERT_FALSE(fed.ok());
    EXPECT_THAT(fed.error().message, HasSubstr("rank 2, event 9"));
    EXPECT_THAT(fed.error().message, HasSubstr("root 4"));
  }
}

// A batch of 81 bytes: two ranks say that they left out 2^31 - 1 collectives each. Each pair of members was asked for
// each of them.
TEST(Limits, CollectivesThatWereLeftOutCostNoMoreTheMoreTheyAre) {
  Program program(8);
  program.limit(0, 100);
  program.feed_all(collective(CollectiveOp::kAllreduce));
  program.feed_all(event_of_kind(EventKind::kWindowClose));
  program.feed_all(skipped_event(SkippedSide::kCollectives, 0x7fffffff));
  program.feed_all(skipped_event(SkippedSide::kCollectives, 0x7ffffff0));
  const Result<void> fed = program.predictor->feed(0, skipped_event(SkippedSide::kCollectives, 0x7fffffff));
  ASSERT_FALSE(fed.ok());
  EXPECT_THAT(fed.error().message, HasSubstr("an impossible number of collectives"));
}

// A batch of 192 bytes: a reduction of 16 TiB on an intercommunicator was cut into pieces of 1 GiB for each operand.
TEST(Limits, LargeReductionsAreFewOps) {
  constexpr const char* kNetwork = R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 10], [1024, 20]]
[local]
copy = [[0, 0], [1048576, 100]]
reduce = [[0, 0], [1048576, 1000]]
)";
  const auto ops = [&](Bytes bytes) {
    Program program(8, kNetwork);
    program.limit(Bytes{64} << 20);
    program.create_intercommunicator();
    Event reduce = collective(CollectiveOp::kReduce, bytes, 0, 1);
    for (Rank rank = 0; rank < 4; ++rank) program.feed(rank, reduce);
    for (Rank rank = 4; rank < 8; ++rank) {
      reduce.root = rank == 4 ? kRootIsMe : kRootIsElsewhere;
      program.feed(rank, reduce);
    }
    const std::uint64_t in_flight = program.predictor->stats().events_in_flight;
    EXPECT_TRUE(program.predictor->advance().ok());
    EXPECT_GT(program.predictor->predictions()[0].lbf_s, 0);
    return in_flight;
  };
  EXPECT_LE(ops(kLargest), ops(Bytes{17} << 30));
}

}  // namespace
}  // namespace lbf::limits_test
