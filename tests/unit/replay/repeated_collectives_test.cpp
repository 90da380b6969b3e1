// Collectives that come again (docs/adr/0017-repeated-collectives.md): with plans and without, the ops, messages and
// times are the same bits, whatever members disagree on, leave out, or come late with.
#include "predictor/engine/match/repeated_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "predictor/engine/match/matcher.h"
#include "predictor/engine/network/network.h"
#include "predictor/engine/replay/dedicated_replay.h"

namespace lbf::repeated_collectives_test {
namespace {

constexpr Bytes kEagerBytes = 4096;

struct Program {
  std::vector<std::vector<Event>> events;  // of each rank
  std::deque<std::vector<std::uint64_t>> values;
  std::vector<Rank> arrivals;  // the rank of each event, in the order of feeding
};

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed) {
    ranks_ = static_cast<Rank>(pick(2, 9));
    program_.events.resize(static_cast<std::size_t>(ranks_));
    define_communicators();
    // Few calls, so that they come again.
    for (int i = 0; i < 5; ++i) calls_.push_back(random_call());
    const bool is_regular = chance(3);  // else members disagree now and then
    const bool has_windows = !is_regular && chance(3);
    for (std::uint64_t round = pick(20, 60); round > 0; --round) {
      const std::size_t comm = pick(0, members_.size() - 1);
      if (!is_regular && chance(30)) free_communicator(comm);
      if (has_windows && chance(20)) skip(comm);
      call(comm, !is_regular && chance(10));
    }
    shuffle();
  }
  Program take() { return std::move(program_); }

 private:
  struct Call {
    CollectiveOp op = CollectiveOp::kBarrier;
    Bytes bytes = 0;
    Rank root = 0;
    bool nonblocking = false;
    bool root_in_place = false;
  };
  std::uint64_t pick(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  bool chance(std::uint64_t one_in) { return pick(1, one_in) == 1; }

  Event& add(Rank rank, EventKind kind) {
    Event& event = program_.events[static_cast<std::size_t>(rank)].emplace_back();
    event.kind = kind;
    event.process_s = Duration::of_ns(static_cast<Nanoseconds>(pick(0, 1000)));
    event.call_s = Duration::of_ns(static_cast<Nanoseconds>(pick(0, 100)));
    return event;
  }
  std::span<const std::uint64_t> keep(std::vector<std::uint64_t> values) {
    return program_.values.emplace_back(std::move(values));
  }
  void define_communicators() {
    members_.emplace_back();
    for (Rank rank = 0; rank < ranks_; ++rank) members_[0].push_back(rank);
    for (std::uint64_t more = pick(0, 2); more > 0; --more) {
      std::vector<Rank> some = members_[0];
      std::shuffle(some.begin(), some.end(), random_);
      some.resize(pick(1, some.size()));
      std::vector<std::uint64_t> values{members_.size(), 0};
      for (const Rank rank : some) values.push_back(static_cast<std::uint64_t>(rank));
      for (const Rank rank : some) {
        Event& event = add(rank, EventKind::kCommCreate);
        event.comm = static_cast<std::uint32_t>(members_.size());
        event.values = keep(values);
      }
      members_.push_back(some);
    }
  }
  Call random_call() {
    static constexpr CollectiveOp kOps[] = {
        CollectiveOp::kBarrier, CollectiveOp::kBcast,      CollectiveOp::kReduce,   CollectiveOp::kAllreduce,
        CollectiveOp::kGather,  CollectiveOp::kAllgather,  CollectiveOp::kAlltoall, CollectiveOp::kScan,
        CollectiveOp::kScatter, CollectiveOp::kCommCreate, CollectiveOp::kAlltoallv};
    static constexpr Bytes kSizes[] = {0, 8, 1000, 20000};
    return {kOps[pick(0, std::size(kOps) - 1)], kSizes[pick(0, 3)], static_cast<Rank>(pick(0, 2)), chance(4),
            chance(3)};
  }
  void call(std::size_t comm, bool disagree) {
    const Call usual = calls_[pick(0, calls_.size() - 1)];
    const std::vector<Rank>& members = members_[comm];
    const std::uint64_t other = disagree ? pick(0, members.size() - 1) : members.size();
    for (std::size_t place = 0; place < members.size(); ++place) {
      const Call call = place == other ? random_call() : usual;
      Event& event = add(members[place], call.nonblocking ? EventKind::kIcollective : EventKind::kCollective);
      set_op(event, call.op);
      event.comm = static_cast<std::uint32_t>(comm);
      event.bytes = call.bytes;
      event.root = call.root % static_cast<Rank>(members.size());
      if (call.root_in_place && static_cast<std::size_t>(event.root) == place) event.flags |= kFlagInPlace;
      if (call.op == CollectiveOp::kAlltoallv)
        event.values = keep(std::vector<std::uint64_t>(2 * members.size(), call.bytes));
      if (!call.nonblocking) continue;
      event.flags |= kFlagHasRequest;
      event.request = ++requests_;
      Event& wait = add(members[place], EventKind::kWait);
      wait.flags |= kFlagHasRequest;
      wait.request = requests_;
    }
  }
  void free_communicator(std::size_t comm) {
    if (comm == 0) return;
    for (const Rank rank : members_[comm]) add(rank, EventKind::kCommFree).comm = static_cast<std::uint32_t>(comm);
    members_[comm] = {members_[comm].front()};  // it goes on, and is told that there is none
  }
  // One member does not record what the others do.
  void skip(std::size_t comm) {
    const Rank away = members_[comm][pick(0, members_[comm].size() - 1)];
    std::vector<Event>& events = program_.events[static_cast<std::size_t>(away)];
    const std::uint64_t calls = pick(1, 3);
    add(away, EventKind::kWindowClose);
    events.push_back(skipped_event(SkippedSide::kCollectives, calls));
    events.back().comm = static_cast<std::uint32_t>(comm);
    events.push_back(window_open_event(++windows_));
    const std::size_t recorded = events.size();
    for (std::uint64_t i = 0; i < calls; ++i) call(comm, false);
    events.resize(recorded);
  }
  // Ranks run ahead of one another for a while.
  void shuffle() {
    std::vector<std::size_t> left;
    for (const auto& events : program_.events) left.push_back(events.size());
    while (std::ranges::any_of(left, [](std::size_t events) { return events > 0; })) {
      const std::size_t rank = pick(0, left.size() - 1);
      for (std::uint64_t run = pick(1, 12); run > 0 && left[rank] > 0; --run, --left[rank])
        program_.arrivals.push_back(static_cast<Rank>(rank));
    }
  }

  std::mt19937_64 random_;
  Rank ranks_ = 0;
  Program program_;
  std::vector<std::vector<Rank>> members_;  // of each communicator
  std::vector<Call> calls_;
  std::uint32_t requests_ = 0;
  std::uint64_t windows_ = 0;
};

engine::Target target_of(Rank ranks) {
  engine::Target target;
  target.nodes = static_cast<std::uint32_t>(ranks + 1) / 2;
  target.cores_per_node = 2;
  for (Rank rank = 0; rank < ranks; ++rank) target.node_of_rank.push_back(static_cast<std::uint32_t>(rank) / 2);
  target.network = std::make_shared<const engine::Network>(*engine::Network::parse(R"(
name = "lan"
[[path]]
locality = "remote"
table = [[0, 10], [1024, 20], [1048576, 1000]]
send_cpu = [[0, 1]]
recv_cpu = [[0, 2]]
eager_limit_bytes = 4096
first_message_us = 5
first_peer_us = 7
[[path]]
locality = "self-node"
table = [[0, 1], [1024, 2]]
eager_limit_bytes = 4096
[local]
copy = [[0, 0], [1024, 1]]
reduce = [[0, 0], [1024, 2]]
)",
                                                                                   "test"));
  return target;
}

// One matching, and who reads it.
struct Side {
  Side(Rank ranks, const engine::Target* target, bool plans)
      : store(ranks, 1), matcher(ranks, store, {kEagerBytes, true, true, false, plans}) {
    if (target != nullptr) replay.emplace(std::vector<const engine::Target*>{target}, store);
  }
  engine::OpStore store;
  engine::Matcher matcher;
  std::optional<engine::DedicatedReplay> replay;
};

// The n-th op of a process with plans is the n-th without, and where one names a message, so does the other: the same
// one each time.
void expect_same_ops(Side& with, Side& without) {
  ASSERT_EQ(with.store.processes(), without.store.processes());
  std::map<engine::MessageIndex, engine::MessageIndex> twin;
  std::map<engine::MessageIndex, engine::MessageIndex> back;
  for (engine::ProcessIndex process = 0; process < with.store.processes(); ++process) {
    SCOPED_TRACE("process " + std::to_string(process));
    std::vector<engine::Op> ops;
    with.store.for_each_ahead(process, {}, [&](const engine::Op& op) { ops.push_back(op); });
    std::size_t at = 0;
    without.store.for_each_ahead(process, {}, [&](const engine::Op& op) {
      ASSERT_LT(at, ops.size());
      const engine::Op& other = ops[at++];
      ASSERT_EQ(op.kind, other.kind);
      ASSERT_EQ(op.flags, other.flags);
      ASSERT_EQ(op.work_s, other.work_s);
      ASSERT_EQ(op.call_s, other.call_s);
      if (engine::is_local_work(op.kind)) {
        ASSERT_EQ(op.local_bytes(), other.local_bytes());
      }
      ASSERT_EQ(op.names_message(), other.names_message());
      if (!op.names_message()) return;
      ASSERT_EQ(twin.try_emplace(op.message(), other.message()).first->second, other.message());
      ASSERT_EQ(back.try_emplace(other.message(), op.message()).first->second, op.message());
    });
    ASSERT_EQ(at, ops.size());
  }
  for (const auto& [index, other_index] : twin) {
    const engine::Message& message = without.store.message(index);
    const engine::Message& other = with.store.message(other_index);
    ASSERT_EQ(message.src, other.src);
    ASSERT_EQ(message.dst, other.dst);
    ASSERT_EQ(message.comm, other.comm);
    ASSERT_EQ(message.tag, other.tag);
    ASSERT_EQ(message.sent, other.sent);
    ASSERT_EQ(message.bytes, other.bytes);
    ASSERT_EQ(message.collective, other.collective);
    ASSERT_EQ(message.internal, other.internal);
    ASSERT_EQ(message.sender, other.sender);
    ASSERT_EQ(message.receiver, other.receiver);
    ASSERT_EQ(message.expected, other.expected);
    ASSERT_EQ(message.pending, other.pending);
  }
}

void expect_same_times(const Side& with, const Side& without, Rank ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(with.replay->finish_s(0, rank)),
              std::bit_cast<std::uint64_t>(without.replay->finish_s(0, rank)))
        << "rank " << rank;
    ASSERT_EQ(with.replay->measured_s(rank), without.replay->measured_s(rank));
  }
}

class RepeatedCollectives : public testing::TestWithParam<int> {};

TEST_P(RepeatedCollectives, AreTheSameBitsAsSpelledOut) {
  constexpr Bytes kBounds[] = {0, Bytes{1} << 16, Bytes{1} << 19};  // of the whole replay
  std::uint64_t repeated = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam()) * 1009 + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = RandomProgram(seed).take();
    const Rank ranks = static_cast<Rank>(program.events.size());
    const engine::Target target = target_of(ranks);
    const bool replays = seed % 2 == 1;  // messages then get the slots of others
    Side with(ranks, replays ? &target : nullptr, true);
    Side without(ranks, replays ? &target : nullptr, false);
    const Bytes bound = kBounds[seed % std::size(kBounds)];
    with.matcher.bound_memory(bound);
    std::vector<std::size_t> next(static_cast<std::size_t>(ranks), 0);
    bool is_over = false;
    for (std::size_t fed = 0; fed < program.arrivals.size() && !is_over; ++fed) {
      const Rank rank = program.arrivals[fed];
      const Event& event = program.events[static_cast<std::size_t>(rank)][next[static_cast<std::size_t>(rank)]++];
      const Result<void> one = with.matcher.feed(rank, event);
      const Result<void> other = without.matcher.feed(rank, event);
      ASSERT_EQ(one.ok() ? "" : one.error().message, other.ok() ? "" : other.error().message);
      is_over = !one;
      if (bound != 0) {
        ASSERT_LE(with.matcher.plans().memory_bytes(), bound / 16 + (Bytes{4} << 10));
      }
      if (!replays || fed % 7 != 0) continue;
      for (Side* const side : {&with, &without}) {
        side->matcher.settle();
        side->replay->advance();
        side->store.clear_touched();
      }
      expect_same_times(with, without, ranks);
    }
    repeated += with.matcher.plans().repeated();
    EXPECT_EQ(without.matcher.plans().repeated(), 0u);
    const engine::MatchStats& stats = with.matcher.stats();
    EXPECT_EQ(stats.collectives, without.matcher.stats().collectives);
    EXPECT_EQ(stats.approximated_collectives, without.matcher.stats().approximated_collectives);
    if (!replays) expect_same_ops(with, without);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(repeated, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RepeatedCollectives, testing::Range(0, 8));

Event allreduce(Bytes bytes) {
  Event event = event_of_kind(EventKind::kCollective);
  set_op(event, CollectiveOp::kAllreduce);
  event.bytes = bytes;
  return event;
}

// Ten equal calls of four ranks: the first is spelled out on each, nine are repeated.
TEST(Plans, ServeEachCallButTheFirst) {
  engine::OpStore store(4, 1);
  engine::Matcher matcher(4, store);
  for (int i = 0; i < 10; ++i) {
    for (Rank rank = 0; rank < 4; ++rank) ASSERT_TRUE(matcher.feed(rank, allreduce(64)).ok());
  }
  EXPECT_EQ(matcher.plans().repeated(), 36u);
  // ... and of a rank that is far ahead as well.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(matcher.feed(3, allreduce(64)).ok());
  EXPECT_EQ(matcher.plans().repeated(), 136u);
}

// Another size each time: plans come and go, and their memory stays where it is.
TEST(Plans, OfWhatDoesNotComeAgainAreDropped) {
  engine::OpStore store(64, 1);
  engine::Matcher matcher(64, store);
  const auto feed = [&](Bytes bytes) {
    for (Rank rank = 0; rank < 64; ++rank) ASSERT_TRUE(matcher.feed(rank, allreduce(bytes)).ok());
  };
  for (Bytes bytes = 1; bytes <= 256; ++bytes) feed(bytes);
  const Bytes full = matcher.plans().memory_bytes();
  for (Bytes bytes = 257; bytes <= 600; ++bytes) feed(bytes);
  EXPECT_LE(matcher.plans().memory_bytes(), full + full / 8);
  EXPECT_EQ(matcher.plans().repeated(), 0u);
  feed(600);
  EXPECT_EQ(matcher.plans().repeated(), 64u);
}

}  // namespace
}  // namespace lbf::repeated_collectives_test
