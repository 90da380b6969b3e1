// Capture windows: matching across what was only counted, and predictions from windows
// (docs/adr/0010-capture-windows.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "predictor/engine/match/matcher.h"
#include "predictor/engine/metric/predictor.h"
#include "tests/unit/replay/random_configuration.h"
#include "tests/unit/replay/random_trace.h"
#include "tests/unit/replay/window_cut.h"

namespace lbf::windows_test {
namespace {

using random_trace::CutEvent;
using random_trace::CutTrace;
using random_trace::Trace;

CutTrace whole(const Trace& trace) {
  CutTrace all;
  all.events.resize(static_cast<std::size_t>(trace.ranks));
  for (std::size_t rank = 0; rank < all.events.size(); ++rank) {
    for (std::size_t i = 0; i < trace.events[rank].size(); ++i) {
      all.events[rank].push_back({trace.events[rank][i], i});
    }
  }
  return all;
}

// The ranks of a random arrival order, one for each event.
std::vector<Rank> arrivals_of(const CutTrace& cut, std::mt19937_64& random) {
  std::vector<Rank> arrivals;
  for (std::size_t rank = 0; rank < cut.events.size(); ++rank) {
    arrivals.insert(arrivals.end(), cut.events[rank].size(), static_cast<Rank>(rank));
  }
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  return arrivals;
}

struct End {
  engine::MessageIndex message = engine::kNoMessage;
  engine::ProcessIndex sender = 0;
  engine::ProcessIndex receiver = 0;
  bool sends = false;
};
using Ends = std::map<std::pair<std::size_t, std::size_t>, End>;  // by rank and number of the event

bool is_end(const Event& event) {
  return event.kind == EventKind::kSend || event.kind == EventKind::kIsend || event.kind == EventKind::kStartRecv ||
         event.kind == EventKind::kRecv;
}

// Which message each recorded send and posting has.
Ends match(const Trace& trace, const CutTrace& cut, std::mt19937_64& random) {
  engine::OpStore store(trace.ranks, 1);
  engine::Matcher matcher(trace.ranks, store);
  std::vector<std::size_t> next(cut.events.size(), 0);
  for (const Rank rank : arrivals_of(cut, random)) {
    const auto at = static_cast<std::size_t>(rank);
    const Result<void> fed = matcher.feed(rank, cut.events[at][next[at]++].event);
    EXPECT_TRUE(fed.ok()) << fed.error().message;
  }
  EXPECT_EQ(matcher.why_partial(), "");
  for (Rank rank = 0; rank < trace.ranks; ++rank) matcher.close(rank);
  Ends ends;
  for (std::size_t rank = 0; rank < cut.events.size(); ++rank) {
    std::size_t event = 0;
    store.for_each_ahead(static_cast<engine::ProcessIndex>(rank), {}, [&](const engine::Op& op) {
      while (event < cut.events[rank].size() && cut.events[rank][event].event.kind == EventKind::kKeepAlive) ++event;
      if ((op.flags & engine::kOpEndsEvent) == 0) return;
      const CutEvent& done = cut.events[rank][event++];
      if (done.original == random_trace::kMade || !is_end(done.event)) return;
      if (op.message() == engine::kNoMessage) return;  // a wildcard that did not complete in its window
      const engine::Message& message = store.message(op.message());
      ends[{rank, done.original}] = {op.message(), message.sender, message.receiver, op.kind == engine::OpKind::kSend};
    });
  }
  return ends;
}

// What was one message in the whole run is one message, or has one end, whose other one a ghost plays.
void check_messages(double ending, std::uint64_t seeds, int least_pairs, int least_one_ended) {
  int pairs = 0;
  int one_ended = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Trace trace = random_trace::make_trace(random);
    const Ends truth = match(trace, whole(trace), random);
    const CutTrace cut = random_trace::cut_windows(trace, 0.2 + 0.1 * static_cast<double>(seed % 7), random, ending);
    const Ends seen = match(trace, cut, random);
    // Message of the whole run -> what is recorded of its two ends.
    std::map<engine::MessageIndex, std::vector<End>> ends_of;
    for (const auto& [event, end] : seen) {
      ASSERT_TRUE(truth.contains(event));
      ends_of[truth.at(event).message].push_back(end);
    }
    std::set<engine::MessageIndex> taken;
    for (const auto& [message, ends] : ends_of) {
      ASSERT_LE(ends.size(), 2u);
      ASSERT_TRUE(taken.insert(ends.front().message).second) << "two messages became one";
      const auto ranks = static_cast<engine::ProcessIndex>(trace.ranks);
      if (ends.size() == 2) {
        ASSERT_EQ(ends[0].message, ends[1].message) << "two ends of one message became two messages";
        ASSERT_NE(ends[0].sends, ends[1].sends);
        ASSERT_LT(ends[0].sender, ranks);
        ASSERT_LT(ends[0].receiver, ranks);
        ++pairs;
      } else {
        ASSERT_GE(ends[0].sends ? ends[0].receiver : ends[0].sender, ranks)
            << "a ghost plays the other end of message " << message << ", recorded by "
            << (ends[0].sends ? ends[0].sender : ends[0].receiver) << " as its "
            << (ends[0].sends ? "send" : "receive");
        ++one_ended;
      }
    }
  }
  EXPECT_GT(pairs, least_pairs);
  EXPECT_GT(one_ended, least_one_ended);
}

TEST(Windows, NoMessageIsEverMismatched) {
  check_messages(0, 600, 5000, 500);
}

TEST(Windows, NoMessageIsEverMismatchedWhereCapturesEnd) {
  check_messages(0.7, 600, 2000, 1000);
  check_messages(1, 200, 500, 300);
}

std::vector<engine::Prediction> predict(const Trace& trace, const CutTrace& cut,
                                        const std::vector<engine::Target>& targets, bool eager,
                                        std::mt19937_64& random) {
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(trace.ranks, targets);
  EXPECT_TRUE(made.ok());
  engine::Predictor& predictor = **made;
  std::vector<std::size_t> next(cut.events.size(), 0);
  for (const Rank rank : arrivals_of(cut, random)) {
    const auto at = static_cast<std::size_t>(rank);
    const Result<void> fed = predictor.feed(rank, cut.events[at][next[at]++].event);
    EXPECT_TRUE(fed.ok()) << fed.error().message;
    if (eager) {
      EXPECT_TRUE(predictor.advance().ok());
    }
    if (next[at] == cut.events[at].size()) predictor.close(rank);
  }
  EXPECT_TRUE(predictor.advance().ok());
  return predictor.predictions();
}

// Captures that end anywhere hold nobody up: who came to his end on a target does it still.
TEST(Windows, NobodyWaitsForARankWhoseCaptureEnded) {
  int ended = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Trace trace = random_trace::make_trace(random);
    const std::vector<engine::Target> targets{random_trace::make_configuration(random, trace.ranks).target,
                                              random_trace::make_configuration(random, trace.ranks).target};
    const std::vector<engine::Prediction> all = predict(trace, whole(trace), targets, false, random);
    const CutTrace cut = random_trace::cut_windows(trace, 0.5, random, seed % 2 == 0 ? 1 : 0.5);
    const std::vector<engine::Prediction> seen = predict(trace, cut, targets, seed % 3 == 0, random);
    for (std::size_t t = 0; t < targets.size(); ++t) {
      if (!all[t].complete) continue;
      ASSERT_TRUE(seen[t].complete) << "target " << t << ": " << seen[t].why_stuck;
      ++ended;
      // The measured time of the whole run is known, whatever was seen of it.
      for (std::size_t rank = 0; rank < all[t].rank_measured_s.size(); ++rank)
        ASSERT_NEAR(seen[t].rank_measured_s[rank], all[t].rank_measured_s[rank],
                    1e-9 + 1e-9 * all[t].rank_measured_s[rank]);
    }
  }
  EXPECT_GT(ended, 400);
}

TEST(Windows, NothingComesAfterTheEndOfACapture) {
  engine::OpStore store(2, 1);
  engine::Matcher matcher(2, store);
  const Event end = skipped_event(SkippedSide::kEverything, 1);
  EXPECT_FALSE(matcher.feed(0, end).ok()) << "inside a window";
  Event close;
  close.kind = EventKind::kWindowClose;
  ASSERT_TRUE(matcher.feed(1, close).ok());
  ASSERT_TRUE(matcher.feed(1, end).ok());
  const Event open = window_open_event(2);
  ASSERT_TRUE(matcher.feed(1, open).ok());
  Event compute;
  compute.process_s = 1;
  EXPECT_FALSE(matcher.feed(1, compute).ok());
  Event exit;
  exit.kind = EventKind::kExit;
  EXPECT_TRUE(matcher.feed(1, exit).ok());
}

Event of_kind(EventKind kind, Rank peer = kAnyRank, std::int32_t tag = kAnyTag, Bytes bytes = 0) {
  Event event;
  event.kind = kind;
  event.peer = peer;
  event.tag = tag;
  event.bytes = bytes;
  return event;
}

std::shared_ptr<const engine::Network> network_of(const std::string& text) {
  Result<engine::Network> network = engine::Network::parse(text, "test");
  EXPECT_TRUE(network.ok()) << network.error().message;
  return std::make_shared<const engine::Network>(std::move(*network));
}

// Nobody receives the first message; while it is in the link its place goes to the next one.
TEST(Windows, AMessageInALinkIsNotTheNextOneInItsPlace) {
  engine::Target target;
  target.node_of_rank = {0, 1};
  target.nodes = 2;
  target.network = network_of(
      "name = \"slow\"\n[contention]\nmodel = \"nic\"\nbandwidth_MBps = 1\n"
      "[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0], [65536, 65536.0]]\n");
  target.placement = "block";
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(2, {target});
  ASSERT_TRUE(made.ok()) << made.error().message;
  engine::Predictor& predictor = **made;
  const auto feed = [&](Rank rank, const Event& event) {
    const Result<void> fed = predictor.feed(rank, event);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  };
  feed(0, of_kind(EventKind::kSend, 1, 0, 65000));
  feed(1, of_kind(EventKind::kWindowClose));
  Event skipped = skipped_event(SkippedSide::kReceives, 1);
  skipped.peer = 0;
  skipped.tag = 0;
  feed(1, skipped);
  feed(1, of_kind(EventKind::kWindowOpen, kAnyRank, kAnyTag, 1));
  Event pause = of_kind(EventKind::kCompute);  // meanwhile the message is taken; it is in the link until 0.065 s
  pause.process_s = 0.001;
  feed(0, pause);
  feed(1, pause);
  EXPECT_TRUE(predictor.advance().ok());
  feed(1, of_kind(EventKind::kRecv, 0, 1, 8));
  Event work = of_kind(EventKind::kCompute);
  work.process_s = 10;
  feed(0, work);
  feed(0, of_kind(EventKind::kSend, 1, 1, 8));
  for (const Rank rank : {0, 1}) {
    feed(rank, of_kind(EventKind::kExit));
    predictor.close(rank);
  }
  EXPECT_TRUE(predictor.advance().ok());
  const engine::Prediction prediction = predictor.predictions().front();
  ASSERT_TRUE(prediction.complete) << prediction.why_stuck;
  EXPECT_GE(prediction.rank_finish_s[1], 10);
  EXPECT_LT(prediction.rank_finish_s[1], 10.1);
}

// The start measured 10 s, predicted 5; 9 s unseen; then 5 s of work up to MPI_Finalize: the last window, which stands
// for the unseen ones.
TEST(Windows, WorkBeforeTheEndIsTheLastWindows) {
  engine::Target target;
  target.node_of_rank = {0};
  target.network = network_of("name = \"zero\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0], [1, 0.0]]\n");
  target.placement = "block";
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(1, {target});
  ASSERT_TRUE(made.ok()) << made.error().message;
  engine::Predictor& predictor = **made;
  const auto feed = [&](EventKind kind, Seconds process_s, Seconds call_s, Bytes bytes = 0) {
    Event event = of_kind(kind, kAnyRank, kAnyTag, bytes);
    event.process_s = process_s;
    event.call_s = call_s;
    const Result<void> fed = predictor.feed(0, event);
    ASSERT_TRUE(fed.ok()) << fed.error().message;
  };
  Event barrier = of_kind(EventKind::kCollective);
  set_op(barrier, CollectiveOp::kBarrier);
  barrier.process_s = 5;
  barrier.call_s = 5;
  ASSERT_TRUE(predictor.feed(0, barrier).ok());
  feed(EventKind::kWindowClose, 0, 0);
  feed(EventKind::kWindowOpen, 0, 9, 1);
  feed(EventKind::kExit, 5, 0);
  predictor.close(0);
  EXPECT_TRUE(predictor.advance().ok());
  const engine::Prediction prediction = predictor.predictions().front();
  ASSERT_TRUE(prediction.complete) << prediction.why_stuck;
  EXPECT_NEAR(prediction.rank_measured_s[0], 24, 1e-9);
  EXPECT_NEAR(prediction.lbf_s, 10 + 5.0 / 5 * 9, 1e-9);
}

// Rank 0 posts 1,000 receives and sits in one MPI_Waitall until the end; the capture of rank 1, which sends each 10 ms,
// closed after 0.1 of 10 s. Rank 0's window went on alone: 37 ms were predicted for 2.17 s once, and 53 % captured.
TEST(Windows, ALongCallIsSeenAsLongAsTheOthersAre) {
  engine::Target target;
  target.node_of_rank = {0, 0};
  target.cores_per_node = 2;
  target.network = network_of("name = \"zero\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0], [1, 0.0]]\n");
  target.placement = "block";
  std::vector<Event> of_rank[2];
  const auto add = [&](Rank rank, Event event, Seconds process_s, Seconds call_s) {
    event.process_s = process_s;
    event.call_s = call_s;
    of_rank[rank].push_back(event);
  };
  constexpr int kMessages = 1000;
  constexpr int kSeen = 10;
  for (int i = 0; i < kMessages; ++i) {
    Event post = of_kind(EventKind::kStartRecv, 1, 0);
    post.request = static_cast<std::uint32_t>(i + 1);
    post.flags = kFlagHasRequest;
    add(0, post, 0, 0);
  }
  for (int i = 0; i < kMessages; ++i) {
    Event end = of_kind(EventKind::kEndRecv, 1, 0, 4);
    end.request = static_cast<std::uint32_t>(i + 1);
    end.flags = kFlagHasRequest;
    add(0, end, 0, i == 0 ? 10 : 0);
  }
  for (int i = 0; i < kSeen; ++i) add(1, of_kind(EventKind::kSend, 0, 0, 4), 0.01, 0);
  add(1, of_kind(EventKind::kWindowClose), 0, 0);
  Event skipped = skipped_event(SkippedSide::kSends, kMessages - kSeen);
  skipped.peer = 0;
  skipped.tag = 0;
  add(1, skipped, 0, 0);
  add(1, window_open_event(2), 0, 9.9);
  add(1, of_kind(EventKind::kExit), 0, 0);
  for (const bool closes : {false, true}) {
    std::vector<Event> waiting = of_rank[0];
    if (closes) waiting.push_back(of_kind(EventKind::kWindowClose));
    if (closes) waiting.push_back(window_open_event(2));
    waiting.push_back(of_kind(EventKind::kExit));
    for (const Rank first : {0, 1}) {
      Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(2, {target});
      ASSERT_TRUE(made.ok()) << made.error().message;
      for (const Rank rank : {first, 1 - first}) {
        ASSERT_TRUE((*made)->feed(rank, rank == 0 ? waiting : of_rank[1]).ok());
        (*made)->close(rank);
      }
      ASSERT_TRUE((*made)->advance().ok());
      const engine::Prediction prediction = (*made)->predictions().front();
      ASSERT_TRUE(prediction.complete) << prediction.why_stuck;
      EXPECT_NEAR(prediction.lbf_s, 10, 1e-6);
      EXPECT_LE(prediction.low_s, 10);
      EXPECT_GE(prediction.high_s, 10);
      EXPECT_NEAR(prediction.seen_share, 0.01, 1e-6);
    }
  }
}

// Work that goes on when another rank's window has closed is what it was.
TEST(Windows, LongWorkIsSeenToItsEnd) {
  engine::Target target;
  target.node_of_rank = {0, 0};
  target.cores_per_node = 2;
  target.speed = 2;
  target.network = network_of("name = \"zero\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 0.0], [1, 0.0]]\n");
  target.placement = "block";
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(2, {target});
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const Rank rank : {0, 1}) {
    Event close = of_kind(EventKind::kWindowClose);
    close.process_s = rank == 0 ? 8 : 0.1;
    Event open = window_open_event(2);
    open.call_s = rank == 0 ? 2 : 9.9;
    for (const Event& event : {close, open, of_kind(EventKind::kExit)}) ASSERT_TRUE((*made)->feed(rank, event).ok());
    (*made)->close(rank);
  }
  EXPECT_NEAR((*made)->predictions().front().seen_share, 8.1 / 20, 1e-9);
  EXPECT_NEAR((*made)->predictions().front().lbf_s, 5, 1e-9);
}

TEST(Windows, PredictionsDoNotDependOnTheArrivalOrder) {
  int complete = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Trace trace = random_trace::make_trace(random);
    std::vector<engine::Target> targets;
    while (targets.size() < 3) {
      const engine::Target target = random_trace::make_configuration(random, trace.ranks).target;
      // Who is first in a link, of those who come at the same instant, is not defined (docs/limits.md).
      if (target.network->contention() == engine::Contention::kNone) targets.push_back(target);
    }
    const CutTrace cut = random_trace::cut_windows(trace, 0.4, random, seed % 3 == 0 ? 0.5 : 0);
    const std::vector<engine::Prediction> first = predict(trace, cut, targets, false, random);
    for (const bool eager : {false, true}) {
      const std::vector<engine::Prediction> other = predict(trace, cut, targets, eager, random);
      for (std::size_t t = 0; t < targets.size(); ++t) {
        ASSERT_EQ(first[t].complete, other[t].complete)
            << "target " << t << ": " << first[t].why_stuck << " / " << other[t].why_stuck;
        if (!first[t].complete) continue;
        ++complete;
        for (std::size_t rank = 0; rank < first[t].rank_finish_s.size(); ++rank) {
          ASSERT_EQ(std::bit_cast<std::uint64_t>(first[t].rank_finish_s[rank]),
                    std::bit_cast<std::uint64_t>(other[t].rank_finish_s[rank]))
              << "target " << t << ", rank " << rank << " of " << trace.ranks << ", waiting "
              << engine::waiting_name(targets[t].waiting) << ", eager " << eager;
        }
        ASSERT_LT(first[t].seen_share, 1);
        ASSERT_LE(first[t].low_s, first[t].lbf_s);
        ASSERT_GE(first[t].high_s, first[t].lbf_s);
      }
    }
  }
  EXPECT_GT(complete, 1000);
}

}  // namespace
}  // namespace lbf::windows_test