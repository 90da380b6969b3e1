// Rounds (event/rounds.h) and what is made of them: predictions are the same bits as from events, in regular and in
// irregular programs, on targets of all kinds.
#include "event/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "event/wire.h"
#include "predictor/engine/metric/predictor.h"
#include "tests/unit/replay/random_configuration.h"

namespace lbf::rounds_replay_test {
namespace {

// A program that does the same again and again: messages, each sent and received in one of the ways there are, and
// collectives.
class Program {
 public:
  explicit Program(std::mt19937_64& random) : random_(random), ranks_(static_cast<Rank>(pick(2, 6))) {
    for (std::uint64_t i = pick(1, 12); i > 0; --i) {
      const auto from = static_cast<Rank>(pick(0, static_cast<std::uint64_t>(ranks_) - 1));
      const auto to = static_cast<Rank>(pick(0, static_cast<std::uint64_t>(ranks_) - 1));
      messages_.push_back({from, to, static_cast<std::int32_t>(pick(0, 9)), chance(4) ? 60000 : pick(0, 3000),
                           chance(2), static_cast<Way>(pick(0, 3)), chance(8), chance(8)});
    }
    collectives_ = chance(3) ? pick(1, 2) : 0;
    has_gaps_ = chance(4);
    if (has_gaps_) {
      for (Rank rank = 0; rank < ranks_; ++rank) {
        if (!chance(5)) add(rank, gap_event(3));
      }
    }
  }
  Rank ranks() const { return ranks_; }

  // Batches of all ranks, in their order.
  std::vector<std::string> batches() {
    const std::uint64_t seldom = chance(2) ? 1u << 30 : pick(50, 2000);  // something comes between
    std::vector<std::string> made;
    for (std::uint64_t batch = pick(1, 3); batch > 0; --batch) {
      for (std::uint64_t round = pick(10, 120); round > 0; --round) play_round(seldom);
      if (batch == 1) {
        for (Rank rank = 0; rank < ranks_; ++rank) add(rank, EventKind::kExit);
      }
      made.push_back(encoder_.finish(0, made.size() + 1));
    }
    return made;
  }

 private:
  enum class Way { kBlocking, kPosted, kPostedEarly, kProbed };
  struct Message {
    Rank from;
    Rank to;
    std::int32_t tag;
    Bytes bytes;
    bool nonblocking;
    Way way;
    bool is_sync;
    bool is_wildcard;
  };
  std::uint64_t pick(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  bool chance(std::uint64_t one_in) { return pick(1, one_in) == 1; }

  Event event(EventKind kind) {
    Event made = event_of_kind(kind);
    made.process_s = Duration::of_ns(static_cast<Nanoseconds>(pick(0, 40000)));
    made.call_s = Duration::of_ns(static_cast<Nanoseconds>(pick(0, 300)));
    return made;
  }
  void add(Rank rank, const Event& made) { encoder_.add(rank, made); }
  void add(Rank rank, EventKind kind) { add(rank, event(kind)); }
  Event of_message(EventKind kind, Rank peer, const Message& message, Bytes bytes) {
    Event made = event(kind);
    made.peer = peer;
    made.tag = message.tag;
    made.bytes = bytes;
    return made;
  }
  void set_request(Event& made, std::uint32_t request) {
    made.flags |= kFlagHasRequest;
    made.request = request;
  }

  void play_round(std::uint64_t seldom) {
    std::vector<std::vector<std::uint64_t>> sent(static_cast<std::size_t>(ranks_));
    std::vector<std::uint32_t> posted(messages_.size(), 0);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].way == Way::kPostedEarly) posted[i] = post(messages_[i]);
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& message = messages_[i];
      if (chance(seldom)) between(static_cast<Rank>(pick(0, static_cast<std::uint64_t>(ranks_) - 1)));
      const Bytes bytes = chance(seldom) ? pick(0, 9) : message.bytes;
      Event send = of_message(message.nonblocking ? EventKind::kIsend : EventKind::kSend, message.to, message, bytes);
      if (message.is_sync) send.flags |= kFlagSync;
      if (message.nonblocking) {
        set_request(send, ++requests_);
        sent[static_cast<std::size_t>(message.from)].push_back(requests_);
      }
      if (message.way == Way::kPosted) posted[i] = post(message);
      add(message.from, send);
      if (message.way == Way::kProbed) add(message.to, of_message(EventKind::kProbe, message.from, message, 0));
      Event receive = of_message(posted[i] > 0 ? EventKind::kEndRecv : EventKind::kRecv, message.from, message, bytes);
      if (posted[i] > 0) set_request(receive, posted[i]);
      if (message.is_wildcard) receive.flags |= kFlagWildcardSource;
      add(message.to, receive);
    }
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const auto& requests = sent[static_cast<std::size_t>(rank)];
      if (requests.empty()) continue;
      Event wait = event(EventKind::kWait);
      if (requests.size() > 1) {
        wait.values = requests;
      } else {
        set_request(wait, static_cast<std::uint32_t>(requests.front()));
      }
      add(rank, wait);
    }
    for (std::uint64_t i = 0; i < collectives_; ++i) {
      for (Rank rank = 0; rank < ranks_; ++rank) {
        Event call = event(EventKind::kCollective);
        set_op(call, CollectiveOp::kAllreduce);
        call.bytes = 8 + i;
        add(rank, call);
      }
    }
  }
  std::uint32_t post(const Message& message) {
    Event posted = of_message(EventKind::kStartRecv, message.from, message, 0);
    if (message.is_wildcard) posted.flags |= kFlagWildcardSource;
    set_request(posted, ++requests_);
    add(message.to, posted);
    return requests_;
  }
  void between(Rank rank) {
    static constexpr EventKind kKinds[] = {EventKind::kCompute,    EventKind::kBlocked,     EventKind::kIo,
                                           EventKind::kUnmodelled, EventKind::kGap,         EventKind::kCancel,
                                           EventKind::kEndRecv,    EventKind::kRequestFree, EventKind::kWait};
    constexpr std::uint64_t kPossible = 4;  // the others contradict what the rank does, where no events were lost
    const std::uint64_t which = pick(0, has_gaps_ ? std::size(kKinds) - 1 : kPossible - 1);
    Event made = event(kKinds[which]);
    if (made.kind == EventKind::kBlocked) made.off_s = made.call_s;
    if (made.kind == EventKind::kGap) made.bytes = 1;
    if (made.kind == EventKind::kEndRecv) made.peer = made.tag = 0;
    if (which > kPossible) set_request(made, std::max(requests_, 4u) - static_cast<std::uint32_t>(pick(0, 3)));
    add(rank, made);
  }

  std::mt19937_64& random_;
  Rank ranks_;
  std::vector<Message> messages_;
  std::uint64_t collectives_ = 0;
  bool has_gaps_ = false;
  std::uint32_t requests_ = 0;
  BatchEncoder encoder_;
};

struct Outcome {
  std::string text;  // everything that is said, times by their bits
  std::uint64_t events = 0;
  std::uint64_t in_rounds = 0;
};

void append(std::string& text, double value) {
  text += std::to_string(std::bit_cast<std::uint64_t>(value)) + ' ';
}

Outcome predict(const std::vector<std::string>& batches, Rank ranks, const std::vector<engine::Target>& targets,
                bool as_rounds) {
  Outcome outcome;
  auto made = engine::Predictor::make(ranks, targets);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  engine::Predictor& predictor = **made;
  CommunicatorTable communicators;
  BatchDecoder decoder(communicators, ranks);
  BatchSink sink;
  sink.on_events = [&](Rank rank, std::span<const Event> events) { return predictor.feed(rank, events); };
  if (as_rounds) {
    sink.on_rounds = [&](Rank rank, const Rounds& rounds) {
      Result<bool> fed = predictor.feed_rounds(rank, rounds);
      if (fed && *fed) outcome.in_rounds += rounds.times.size();
      return fed;
    };
  }
  for (const std::string& batch : batches) {
    const auto decoded = decoder.decode(std::as_bytes(std::span(batch)), sink);
    if (!decoded) outcome.text += decoded.error().message + '\n';
  }
  for (Rank rank = 0; rank < ranks; ++rank) predictor.close(rank);
  EXPECT_TRUE(predictor.advance().ok());
  if (const auto whole = predictor.diagnosis(); !whole) outcome.text += whole.error().message + '\n';
  const engine::PredictorStats stats = predictor.stats();
  outcome.events = stats.events;
  for (const std::uint64_t count : {stats.events, stats.messages, stats.collectives, stats.wildcard_receives})
    outcome.text += std::to_string(count) + ' ';
  for (const engine::Prediction& prediction : predictor.predictions()) {
    outcome.text += '\n' + prediction.why_stuck + ' ';
    for (const Seconds finish_s : prediction.rank_finish_s) append(outcome.text, finish_s);
    for (const Seconds measured_s : prediction.rank_measured_s) append(outcome.text, measured_s);
  }
  return outcome;
}

TEST(RoundsReplay, IsTheSameBitsAsOfEvents) {
  std::uint64_t events = 0;
  std::uint64_t in_rounds = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Program program(random);
    const std::vector<std::string> batches = program.batches();
    std::vector<engine::Target> targets;
    for (int i = 0; i < 3; ++i) targets.push_back(random_trace::make_configuration(random, program.ranks()).target);
    const Outcome expected = predict(batches, program.ranks(), targets, false);
    const Outcome actual = predict(batches, program.ranks(), targets, true);
    ASSERT_EQ(actual.text, expected.text);
    events += actual.events;
    in_rounds += actual.in_rounds;
  }
  EXPECT_GT(in_rounds * 4, events);  // else nothing was tried
}

}  // namespace
}  // namespace lbf::rounds_replay_test
