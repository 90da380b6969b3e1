// Exchanges with requests under way at their ends, made independent (detached.h), and when a scaled signature
// does that (scale.h).
#include "skeleton/detached.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "skeleton/scale.h"
#include "tests/unit/skeleton/event_program.h"
#include "tests/unit/skeleton/signature_text.h"

namespace lbf::skeleton_test::detached_test {
namespace {

using skeleton::Exchange;
using skeleton::Operation;
using skeleton::OperationKind;
using skeleton::ScaledSignature;
using skeleton::Signature;

// "rank: operations"; a request as #slot.
std::string text_of(const Exchange& exchange) {
  std::string text;
  for (const Exchange::Part& part : exchange.parts) {
    text += (text.empty() ? "" : " | ") + std::to_string(part.rank) + ":";
    for (std::uint32_t i = part.begin; i < part.begin + part.count; ++i) {
      const Operation& o = exchange.operations[i];
      const std::string slot = "#" + std::to_string(o.slot);
      switch (o.kind) {
        case OperationKind::kIsend:
          text += " isend" + slot + ">" + std::to_string(o.peer);
          break;
        case OperationKind::kIrecv:
          text += " irecv" + slot + "<" + std::to_string(o.peer);
          break;
        case OperationKind::kWait:
          text += " wait";
          for (const std::uint64_t each : exchange.values_of(o)) text += "#" + std::to_string(each);
          break;
        case OperationKind::kIcollective:
          text += " icollective" + slot;
          break;
        case OperationKind::kCompute:
          text += " compute";
          break;
        case OperationKind::kEnd:
          text += " end";
          break;
        default:
          text += " other";
      }
    }
  }
  return text;
}

double computation_s(const Exchange& exchange) {
  double all = 0;
  for (const skeleton::TimeDistribution& each : exchange.computation) all += each.sum_s();
  return all;
}

// Rank 1 always has a receive under way, rank 0 a send.
EventProgram open_messages(int messages) {
  EventProgram program(2);
  program.irecv(1, 0, 10);
  for (int i = 0; i < messages; ++i) {
    const std::uint32_t request = 10 + static_cast<std::uint32_t>(i);
    program.isend(0, 1, 8 * static_cast<Bytes>(1 + i % 3), 50 + request, 0, 1e-3);
    if (i > 0) program.wait(0, 49 + request, true, 1e-3);
    if (i + 1 < messages) program.irecv(1, 0, request + 1, 0, 1e-3);
    program.end_recv(1, 0, 8 * static_cast<Bytes>(1 + i % 3), request);
    program.all(CollectiveOp::kBcast, 8 + static_cast<Bytes>(i));  // no loop
  }
  program.wait(0, 59 + static_cast<std::uint32_t>(messages));
  program.exit();
  return program;
}

TEST(Detached, AnExchangeEndsAndStartsItsRequestsItself) {
  const Signature s = signature_of(open_messages(3), {0, 0, 0});
  // The first message; its broadcast; the second one ...
  ASSERT_EQ(text_of(s.exchanges[0]), "0: isend#0>1 | 1: irecv#0<0 irecv#1<0 wait#0");
  EXPECT_EQ(text_of(skeleton::detached(s.exchanges[0])), "0: isend#0>1 wait#0 | 1: irecv#0<0 compute wait#0");
  ASSERT_EQ(text_of(s.exchanges[2]), "0: isend#1>1 wait#0 | 1: irecv#0<0 wait#1");
  const Exchange second = skeleton::detached(s.exchanges[2]);
  EXPECT_EQ(text_of(second), "0: isend#0>1 compute wait#0 | 1: irecv#0<0 compute wait#0");
  EXPECT_TRUE(second.is_closed);
  EXPECT_EQ(second.seconds, s.exchanges[2].seconds);
  EXPECT_NEAR(computation_s(second), 3e-3, 1e-9);
}

TEST(Detached, ReceivesStartInTheOrderInWhichTheyWereStarted) {
  // Both end in one exchange, the later one first: it takes the later message.
  EventProgram program(2);
  program.irecv(1, 0, 10);
  program.irecv(1, 0, 11);
  program.all(CollectiveOp::kBarrier, 0);
  program.isend(0, 1, 8, 20);
  program.isend(0, 1, 16, 21);
  program.end_recv(1, 0, 16, 11);
  program.end_recv(1, 0, 8, 10, 0, false);
  program.wait(0, 20);
  program.wait(0, 21, false);
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  const auto open = std::find_if(s.exchanges.begin(), s.exchanges.end(), [](const Exchange& e) {
    return !e.is_closed && e.parts.size() == 2 && e.under_way.size() == 2;
  });
  ASSERT_NE(open, s.exchanges.end());
  EXPECT_EQ(text_of(skeleton::detached(*open)), "0: isend#0>1 isend#1>1 wait#0#1 | 1: irecv#0<0 irecv#1<0 wait#1#0");
}

TEST(Detached, ACollectiveEndsWhereItStarted) {
  EventProgram program(2);
  for (const Rank me : {0, 1}) program.icollective(me, CollectiveOp::kAllreduce, 8, 5);
  program.all(CollectiveOp::kBarrier, 0);
  for (const Rank me : {0, 1}) program.wait(me, 5);
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  ASSERT_FALSE(s.exchanges[0].is_closed);
  EXPECT_EQ(text_of(skeleton::detached(s.exchanges[0])), "0: icollective#0 wait#0 | 1: icollective#0 wait#0");
}

TEST(Detached, AClosedExchangeStaysWhatItIs) {
  EventProgram program(2);
  for (const Rank me : {0, 1}) {
    program.irecv(me, 1 - me, 1);
    program.isend(me, 1 - me, 8, 2);
    program.end_recv(me, 1 - me, 8, 1);
    program.wait(me, 2, false);
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  EXPECT_EQ(text_of(skeleton::detached(s.exchanges[0])), text_of(s.exchanges[0]));
}

TEST(Scale, InTheRestExchangesAreDetachedAndGrouped) {
  // 12 messages of three sizes, each of another structure than a closed one's; K = 4: 3 are left, and the
  // end.
  const Signature s = signature_of(open_messages(12), {0, 0, 0});
  const ScaledSignature scaled = scale(s, 4);
  EXPECT_FALSE(scaled.detached.empty());
  const Signature again = signature_of(executed(s, scaled), {0, 0, 0});
  EXPECT_EQ(difference(exchanges_of(again), exchanges_of(s, scaled)), "");
  std::uint64_t messages = 0;
  for (const auto& [text, times] : exchanges_of(again)) {
    if (text.find("0:1,") == 0) messages += times;
  }
  EXPECT_EQ(messages, 3u);
  // Whole, nothing is detached: the skeleton is the application.
  EXPECT_TRUE(scale(s, 1).detached.empty());
}

// A loop whose requests are under way from one iteration to the next, among `around` messages in no loop.
EventProgram loop_among(int iterations, int around) {
  EventProgram program(2);
  std::uint32_t request = 100;
  program.irecv(1, 0, request);
  const auto message = [&](Bytes bytes, bool last) {
    program.send(0, 1, bytes, 0, 1e-3);
    if (!last) program.irecv(1, 0, request + 1);
    program.end_recv(1, 0, bytes, request++);
  };
  const auto others = [&](bool last) {
    for (int i = 0; i < around; ++i) {
      program.all(CollectiveOp::kBcast, 1000 + request);
      message(8 * (1 + request % 7), last && i + 1 == around);
    }
  };
  others(false);
  for (int i = 0; i < iterations; ++i) message(8, false);
  others(true);
  program.exit();
  return program;
}

TEST(Scale, WhatIsTiedToALoopStaysWithIt) {
  const Signature s = signature_of(loop_among(100, 5), {0, 0, 0});
  const ScaledSignature scaled = scale(s, 4);
  EXPECT_TRUE(scaled.detached.empty());
  EXPECT_GE(scaled.in_loops, 96u);
  EXPECT_EQ(difference(exchanges_of(signature_of(executed(s, scaled), {0, 0, 0})), exchanges_of(s, scaled)), "");
}

TEST(Scale, ALoopTiedToMoreThanItHoldsIsTakenApart) {
  const Signature s = signature_of(loop_among(8, 50), {0, 0, 0});
  const ScaledSignature scaled = scale(s, 4);
  EXPECT_FALSE(scaled.detached.empty());
  EXPECT_EQ(scaled.in_loops, 0u);
  EXPECT_EQ(difference(exchanges_of(signature_of(executed(s, scaled), {0, 0, 0})), exchanges_of(s, scaled)), "");
}

TEST(Scale, WildcardsThatAreKeptAreNotDetached) {
  // Rank 0 takes from anybody and answers nobody.
  EventProgram program(3);
  program.irecv(0, 1, 10, 0, 0, 0, kFlagWildcardSource);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const Rank from = 1 + static_cast<Rank>(i % 2);
    program.send(from, 0, 8 * (1 + i), 0, 1e-3);
    if (i + 1 < 8) program.irecv(0, 1 + static_cast<Rank>((i + 1) % 2), 11 + i, 0, 0, 0, kFlagWildcardSource);
    program.end_recv(0, from, 8 * (1 + i), 10 + i);
    program.all(CollectiveOp::kBcast, 8 + i);
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  ASSERT_GT(s.wildcards, 0u);
  ASSERT_EQ(s.wildcards_fixed, 0u);
  EXPECT_TRUE(scale(s, 4).detached.empty());
}

}  // namespace
}  // namespace lbf::skeleton_test::detached_test