// Hand-made traces for the tables and sections of Sodhi, Subhlok & Xu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "skeleton/draws.h"
#include "skeleton/notation.h"
#include "skeleton/scale.h"
#include "skeleton/spmd.h"
#include "tests/unit/skeleton/event_program.h"
#include "tests/unit/skeleton/signature_text.h"

namespace lbf::skeleton_test::signature_test {
namespace {

using skeleton::Expression;
using skeleton::Place;
using skeleton::Signature;
using skeleton::SignatureOptions;
using testing::HasSubstr;

std::string notation_of(const Signature& s) {
  return notation(s.bodies, s.elements).signature;
}

TEST(Signature, SimilarMessagesBecomeTheirAverage) {
  // Sec. 4.2: sends of 2000 and of 1800 bytes become one of 1900.
  EventProgram program(2);
  for (const Bytes bytes : {2000u, 1800u}) {
    program.send(0, 1, bytes);
    program.recv(1, 0, bytes);
  }
  program.exit();
  // Relative difference 0.1: not below a threshold of 0.1, below the next one.
  const Signature s = signature_of(program, {100, 0.02, 0.2});
  EXPECT_EQ(notation_of(s), "{(E1:2), E2}");
  EXPECT_NEAR(s.similarity_threshold, 0.12, 1e-9);
  EXPECT_EQ(s.exchanges[0].operations[0].bytes, 1900u);
  EXPECT_EQ(s.exchanges[0].operations[1].bytes, 1900u);
  const Signature strict = signature_of(program, {100, 0.02, 0.1});
  EXPECT_EQ(notation_of(strict), "{E1, E2, E3}");
  EXPECT_EQ(strict.similarity_threshold, 0);
}

TEST(Signature, TheThresholdStopsAtTheWantedCompression) {
  // Table 2. Sizes 100, 98, 100, 98, ...: equal pairs repeat at threshold 0 already: 82 operations / 6.
  EventProgram program(2);
  for (int i = 0; i < 40; ++i) {
    program.send(0, 1, i % 2 == 0 ? 100 : 98);
    program.recv(1, 0, i % 2 == 0 ? 100 : 98);
  }
  program.exit();
  const Signature loose = signature_of(program, {13, 0.02, 0.2});
  EXPECT_EQ(notation_of(loose), "{(L_0:20), E3}");
  EXPECT_EQ(loose.similarity_threshold, 0);
  EXPECT_NEAR(loose.compression(), 82.0 / 6, 1e-9);
  const Signature tight = signature_of(program, {20, 0.02, 0.2});
  EXPECT_EQ(notation_of(tight), "{(E1:40), E2}");
  EXPECT_NEAR(tight.compression(), 82.0 / 4, 1e-9);
  EXPECT_GT(tight.similarity_threshold, 0);
}

TEST(Signature, DifferentPeersRootsAndKindsAreNeverOne) {
  EventProgram program(3);
  program.send(0, 1, 8);
  program.recv(1, 0, 8);
  program.send(0, 2, 8);
  program.recv(2, 0, 8);
  program.all(CollectiveOp::kBcast, 8, 0);
  program.all(CollectiveOp::kBcast, 8, 1);
  program.all(CollectiveOp::kReduce, 8, 1);
  program.exit();
  EXPECT_EQ(signature_of(program, {1000, 0.1, 0.9}).exchanges.size(), 6u);
}

TEST(Signature, OneLoopForRanksThatDoDifferentThings) {
  // A sweep: the ends have one call for each two in the middle, and all have 50 iterations.
  EventProgram program(4);
  for (int i = 0; i < 50; ++i) {
    for (Rank me = 0; me < 4; ++me) {
      if (me > 0) program.recv(me, me - 1, 64);
      if (me < 3) program.send(me, me + 1, 64);
    }
    program.all(CollectiveOp::kAllreduce, 8);
  }
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_EQ(notation_of(s), "{(L_0:50), E5}");
  const auto groups = group_ranks(s, skeleton::comm_variables(s.comms), s.exchanges[0]);
  ASSERT_EQ(groups.size(), 2u);
}

TEST(Signature, ParametersAreExpressionsOfTheRank) {
  EventProgram program(4);
  for (Rank me = 0; me < 4; ++me) {
    program.irecv(me, (me + 3) % 4, 1);
    program.isend(me, (me + 1) % 4, 100, 2);
    program.end_recv(me, (me + 3) % 4, 100, 1);
    program.wait(me, 2, false);
  }
  program.exit();
  const std::string text = show_text(signature_of(program));
  EXPECT_THAT(text, HasSubstr("MPI_Irecv(from (rank+3)%size, 100 bytes, tag 0)"));
  EXPECT_THAT(text, HasSubstr("MPI_Isend(to (rank+1)%size, 100 bytes, tag 0)"));
  EXPECT_THAT(text, HasSubstr("MPI_Waitall(2)"));
  EXPECT_THAT(text, HasSubstr("rank 0-3: {P1, P2, O1}"));
}

TEST(Signature, ExpressionsFit) {
  const std::vector<Place> places{{0, 4}, {1, 4}, {2, 4}, {3, 4}};
  const auto kind = [&](std::vector<std::int64_t> values) {
    const Expression e = skeleton::fit(places, values);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(evaluate(e, i, places[i]), values[i]);
    return e.kind;
  };
  EXPECT_EQ(kind({5, 5, 5, 5}), Expression::Kind::kConstant);
  EXPECT_EQ(kind({-1, 0, 1, 2}), Expression::Kind::kOffset);
  EXPECT_EQ(kind({3, 0, 1, 2}), Expression::Kind::kOffsetModulo);
  EXPECT_EQ(kind({1, 0, 3, 2}), Expression::Kind::kXor);
  EXPECT_EQ(kind({2, 0, 3, 1}), Expression::Kind::kTable);
}

TEST(Signature, SubCommunicatorsAreOneVariable) {
  EventProgram program(4);
  program.make_comm(1, {0, 1});
  program.make_comm(2, {2, 3});
  for (int i = 0; i < 9; ++i) {
    for (const Rank me : {0, 1}) program.collective(me, CollectiveOp::kAllreduce, 8, 0, 0, 1);
    for (const Rank me : {2, 3}) program.collective(me, CollectiveOp::kAllreduce, 8, 0, 0, 2);
    program.all(CollectiveOp::kBarrier, 0);
  }
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_EQ(skeleton::comm_variables(s.comms).variable, (std::vector<std::uint32_t>{0, 1, 1}));
  EXPECT_EQ(notation_of(s), "{(L_0:9), E4}");
}

TEST(Signature, CommunicatorsOfAnIterationAreTheSameInEachIteration) {
  const auto make = [](bool freed) {
    EventProgram program(2);
    for (std::uint32_t comm = 1; comm <= 5; ++comm) {
      program.make_comm(comm, {0, 1});
      for (const Rank me : {0, 1}) program.collective(me, CollectiveOp::kBarrier, 0, 0, 0, comm);
      if (freed) program.free_comm(comm, {0, 1});
    }
    program.exit();
    return signature_of(program);
  };
  EXPECT_EQ(notation_of(make(true)), "{(E1:5), E2}");
  // Five that live at the same time are five.
  EXPECT_EQ(make(false).comms.size(), 6u);
}

TEST(Signature, ComputationIsADistributionNotItsMean) {
  // 1 us and 9 us in turn: the mean of 5 us is no time that occurs.
  EventProgram program(1);
  for (int i = 0; i < 40; ++i) program.collective(0, CollectiveOp::kBarrier, 0, 0, i % 2 == 0 ? 1e-6 : 9e-6);
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_NEAR(s.exchanges[0].computation[0].mean_s(), 5e-6, 1e-10);
  const std::vector<double> quarters = s.exchanges[0].computation[0].quantile_means_s(4);
  EXPECT_NEAR(quarters[0], 1e-6, 1e-10);
  EXPECT_NEAR(quarters[1], 1e-6, 1e-10);
  EXPECT_NEAR(quarters[2], 9e-6, 1e-10);
  EXPECT_NEAR(quarters[3], 9e-6, 1e-10);
}

TEST(Signature, WildcardsAreKeptWhereNothingDependsOnWhoseMessageCame) {
  const auto make = [](bool answers) {
    EventProgram program(3);
    for (const Rank worker : {2, 1}) {
      program.send(worker, 0, 8);
      program.recv(0, worker, 8, 0, 0, 0, kFlagWildcardSource);
      if (answers) {
        program.send(0, worker, 8);
        program.recv(worker, 0, 8);
      }
    }
    program.exit();
    return signature_of(program);
  };
  EXPECT_EQ(make(false).wildcards, 2u);
  EXPECT_EQ(make(false).wildcards_fixed, 0u);
  EXPECT_THAT(show_text(make(false)), HasSubstr("MPI_Recv(from any"));
  EXPECT_EQ(make(true).wildcards_fixed, 2u);
  EXPECT_THAT(show_text(make(true)), testing::Not(HasSubstr("from any")));
}

TEST(Signature, WildcardsAreFixedWhereAnotherReceiveCouldTakeTheMessage) {
  // Beside a receive of tag 5 from any rank another one, from rank 2.
  const auto fixed = [](std::int32_t tag, std::uint8_t flags) {
    EventProgram program(3);
    program.send(1, 0, 8, 5);
    program.send(2, 0, 8, tag);
    program.recv(0, 1, 8, 5, 0, 0, kFlagWildcardSource);
    program.recv(0, 2, 8, tag, 0, 0, flags);
    program.exit();
    return signature_of(program).wildcards_fixed;
  };
  EXPECT_EQ(fixed(6, 0), 0u) << "another tag";
  EXPECT_EQ(fixed(6, kFlagWildcardSource), 0u);
  EXPECT_EQ(fixed(5, kFlagWildcardSource), 0u) << "posted alike";
  EXPECT_EQ(fixed(5, 0), 1u);
  EXPECT_EQ(fixed(6, kFlagWildcardTag), 1u);
  EXPECT_EQ(fixed(6, kFlagWildcardSource | kFlagWildcardTag), 2u);
}

TEST(Operations, TimesOfManyEventsAddUp) {
  // Each of the short ones is less than half of what a float at 1000 s can tell apart.
  EventProgram program(1);
  for (const EventKind kind : {EventKind::kCompute, EventKind::kBlocked}) {
    Event event;
    event.kind = kind;
    Duration& seconds = kind == EventKind::kCompute ? event.process_s : event.off_s;
    seconds = 1000;
    program.event(0, event);
    seconds = 1e-5;
    for (int i = 0; i < 10'000; ++i) program.event(0, event);
  }
  program.exit();
  const Result<skeleton::ProgramTrace> trace = read(program);
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace->ranks[0].size(), 1u);
  EXPECT_NEAR(trace->ranks[0][0].process_s, 1000.1, 1e-3);
  EXPECT_NEAR(trace->ranks[0][0].idle_s, 1000.1, 1e-3);
}

EventProgram loop(int iterations, Bytes bytes, Seconds work) {
  EventProgram program(2);
  for (int i = 0; i < iterations; ++i) {
    program.send(0, 1, bytes, 0, work);
    program.recv(1, 0, bytes, 0, work);
  }
  return program;
}

std::string scaled_notation(const Signature& s, std::uint64_t factor) {
  // Symbols in the order of their first use, whole and divided ones apart.
  const skeleton::ScaledSignature scaled = scale(s, factor);
  return notation(scaled.bodies, scaled.elements).signature;
}

std::vector<double> divisors(const skeleton::ScaledSignature& scaled) {
  std::vector<double> all;
  for (const skeleton::ScaledExchange& symbol : scaled.symbols) all.push_back(symbol.divisor);
  return all;
}

TEST(Scale, LoopsAreDividedAndTheRemainderIsScaledDown) {
  // Sec. 4.3, steps 1 and 3: 25 iterations, K = 10: 2 whole ones, and one for the other 5, with half of the
  // bytes.
  EventProgram program = loop(25, 1000, 1e-3);
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_EQ(scaled_notation(s, 10), "{(E1:2), E2, E3}");
  EXPECT_EQ(divisors(scale(s, 10)), (std::vector<double>{1, 2, 10}));
  EXPECT_EQ(scaled_notation(s, 1), "{(E1:25), E2}");
  EXPECT_EQ(scaled_notation(s, 26), "{E1, E2}");
  EXPECT_EQ(divisors(scale(s, 26)), (std::vector<double>{1.04, 26}));
}

TEST(Scale, GroupsOfKEqualExchangesBecomeOne) {
  // Step 2: 12 equal exchanges, K = 5: two groups of 5 and 2 more; the broadcasts are two groups of 5 and 2
  // more.
  EventProgram program(2);
  for (int phase = 0; phase < 12; ++phase) {
    program.send(0, 1, 100);
    program.recv(1, 0, 100);
    program.all(CollectiveOp::kBcast, 8 + static_cast<Bytes>(phase));
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  const skeleton::ScaledSignature scaled = scale(s, 5);
  EXPECT_EQ(scaled.in_loops, 0u);
  EXPECT_EQ(scaled.grouped, 10u);
  EXPECT_EQ(scaled.divided, 2u + 12u + 1u);
  std::map<std::uint32_t, std::uint64_t> executed;
  count_symbols(scaled.bodies, scaled.elements, 1, executed);
  std::uint64_t all = 0;
  for (const auto& [symbol, times] : executed) all += times;
  EXPECT_EQ(all, 3u + 3u + 1u);
}

TEST(Scale, OfKIterationsOfOneBodyOneStaysWhereverTheirLoopsStand) {
  // Loops of 3 steps each, K = 4: none has 4, all together have 12. A step keeps its order: two messages
  // there, two back.
  EventProgram program(2);
  for (int phase = 0; phase < 4; ++phase) {
    for (int step = 0; step < 3; ++step) {
      for (const Rank from : {0, 0, 1, 1}) {
        program.send(from, 1 - from, 100);
        program.recv(1 - from, from, 100);
      }
    }
    program.all(CollectiveOp::kBcast, 8 + static_cast<Bytes>(phase), 0, 1e-3 * (1 + phase));
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  const skeleton::ScaledSignature scaled = scale(s, 4);
  EXPECT_EQ(scaled.in_loops, 12u * 4);
  EXPECT_EQ(scaled.grouped, 0u);
  const skeleton::Notation text = notation(scaled.bodies, scaled.elements);
  EXPECT_EQ(text.signature, "{(L_0:3), E3, E4}");  // the longest broadcast for all four, the end
  EXPECT_EQ(divisors(scaled)[0], 1);
  EXPECT_EQ(divisors(scaled)[1], 1);
}

TEST(Scale, IterationsThatAreLeftOverAreDividedFromTheOutside) {
  // 5 + 4 steps of which 8 are two groups of K = 4; the one that is left has 2 + 2 messages, of which each
  // two become one.
  EventProgram program(2);
  for (const int steps : {5, 4}) {
    for (int step = 0; step < steps; ++step) {
      for (const Rank from : {0, 0, 1, 1}) {
        program.send(from, 1 - from, 100);
        program.recv(1 - from, from, 100);
      }
    }
    program.all(CollectiveOp::kBarrier, 0);
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  ASSERT_EQ(notation_of(s), "{(L_0:5), E3, (L_0:4), E3, E4}");
  const skeleton::ScaledSignature scaled = scale(s, 4);
  EXPECT_EQ(scaled.in_loops, 8u * 4);
  EXPECT_EQ(scaled.divided, 4u + 2u + 1u);  // two of each direction, the barriers, the end
  std::map<std::uint32_t, std::uint64_t> executed;
  count_symbols(scaled.bodies, scaled.elements, 1, executed);
  std::map<double, std::uint64_t> by_divisor;
  for (const auto& [symbol, times] : executed) by_divisor[scaled.symbols[symbol].divisor] += times;
  EXPECT_EQ(by_divisor, (std::map<double, std::uint64_t>{{1, 8}, {2, 3}, {4, 1}}));
}

TEST(Scale, OfARestThatDiffersInSizesTheLongestIsExecutedForAKthOfItsTime) {
  // Messages of 1, 4 and 2 ms (computation before them on both ranks), K = 10: 0.7 ms are wanted, of the 4 ms
  // one.
  EventProgram program(2);
  const auto message = [&](Bytes bytes, Seconds work) {
    program.send(0, 1, bytes, 0, work);
    program.recv(1, 0, bytes, 0, work);
  };
  message(100, 1e-3);
  program.all(CollectiveOp::kBarrier, 0);
  message(400, 4e-3);
  program.all(CollectiveOp::kBarrier, 0);
  message(200, 2e-3);
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  const skeleton::ScaledSignature scaled = scale(s, 10);
  EXPECT_EQ(notation(scaled.bodies, scaled.elements).signature,
            "{E1, E2, E3}");  // the first barrier of two, the message, the end
  ASSERT_EQ(scaled.symbols.size(), 3u);
  EXPECT_EQ(divisors(scaled)[0], 5);
  EXPECT_NEAR(divisors(scaled)[1], 10 * 4 / 7.0, 1e-4);
  const skeleton::Exchange& kept = s.exchanges[scaled.symbols[1].exchange];
  ASSERT_EQ(kept.operations.size(), 2u);
  EXPECT_EQ(kept.operations[0].bytes, 400u);
  EXPECT_NEAR(static_cast<double>(scaled.symbols[1].of(400)), 70, 1);
}

TEST(Scale, ATagThatIsTheNumberOfAStepKeepsNothingApart) {
  EventProgram program(2);
  for (int step = 0; step < 12; ++step) {
    program.send(0, 1, 100, step, 1e-3);
    program.recv(1, 0, 100, step);
    program.all(CollectiveOp::kBcast, 8 + static_cast<Bytes>(step));
  }
  program.exit();
  const Signature s = signature_of(program, {0, 0, 0});
  const skeleton::ScaledSignature scaled = scale(s, 12);
  std::map<std::uint32_t, std::uint64_t> executed;
  count_symbols(scaled.bodies, scaled.elements, 1, executed);
  EXPECT_EQ(executed.size(), 3u);  // one message, one broadcast, the end
}

TEST(Draws, WhatIsComputedInAllIsTheMeanHoweverManyAreDrawn) {
  const std::vector<double> shape{0, 0, 0, 0, 0.5, 1, 2.5, 4};
  for (const int iterations : {8, 11, 16, 31, 100}) {
    EventProgram program = loop(iterations, 1000, 1e-3);
    program.exit();
    const Signature s = signature_of(program);
    const skeleton::ScaledSignature scaled = scale(s, 1);
    const skeleton::Draws draws = skeleton::draws_of(s, scaled)[scaled.symbols[0].exchange];
    EXPECT_EQ(draws.executions, iterations);
    const std::vector<double> unbiased = draws.unbiased(shape);
    // As the skeleton draws: the eighth five places on, the first one that of number five.
    double sum = 0;
    unsigned turn = 0;
    ASSERT_EQ(unbiased.size(), 8u);
    for (int i = 0; i < iterations; ++i) {
      turn = (turn + 5) % 8;
      sum += unbiased[turn];
    }
    EXPECT_NEAR(sum, iterations, 1e-9 * iterations) << iterations;
  }
}

TEST(Draws, FewerThanEightAreTheMeanEachTime) {
  EventProgram program = loop(7, 1000, 1e-3);
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_TRUE(skeleton::draws_of(s, scale(s, 1))[0].unbiased({0, 0, 0, 0, 0, 0, 4, 4}).empty());
}

TEST(Scale, InnerLoopsAreDividedWhereOuterOnesAreTooShort) {
  EventProgram program(2);
  for (int outer = 0; outer < 3; ++outer) {
    for (int i = 0; i < 20; ++i) {
      program.send(0, 1, 100);
      program.recv(1, 0, 100);
    }
    program.all(CollectiveOp::kBarrier, 0);
  }
  program.exit();
  const Signature s = signature_of(program);
  EXPECT_EQ(scaled_notation(s, 10), "{(E1:2), E2, (E1:4), E3}");  // one barrier for three
  EXPECT_EQ(divisors(scale(s, 10)), (std::vector<double>{1, 3.33333, 10}));
}

TEST(Scale, RequestsUnderWayAreNeverLeftOut) {
  // A receive is always posted before the one before it ends: no iteration can be left out by itself.
  EventProgram program(2);
  for (const Rank me : {0, 1}) {
    program.irecv(me, 1 - me, 10);
    for (std::uint32_t i = 0; i < 6; ++i) {
      if (i < 5) program.irecv(me, 1 - me, 11 + i);
      program.isend(me, 1 - me, 100, 50);
      program.end_recv(me, 1 - me, 100, 10 + i);
      program.wait(me, 50, false);
    }
  }
  program.exit();
  const Signature s = signature_of(program);
  const skeleton::ScaledSignature scaled = scale(s, 2);
  const Result<skeleton::ProgramTrace> trace = read(executed(s, scaled));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(scaled.grouped, 0u);
}

TEST(DominantSequence, IsTheInnermostLoopWithNearlyAllOfTheTime) {
  // Sec. 4.5. 4 * 25 iterations of 2 ms (on both ranks) and 4 barriers that take no time.
  EventProgram program(2);
  for (int outer = 0; outer < 4; ++outer) {
    for (int i = 0; i < 25; ++i) {
      program.send(0, 1, 100, 0, 2e-3);
      program.recv(1, 0, 100, 0, 2e-3);
    }
    program.all(CollectiveOp::kBarrier, 0);
  }
  program.exit();
  const skeleton::DominantSequence dominant = dominant_sequence(signature_of(program));
  ASSERT_EQ(dominant.parts.size(), 1u);
  EXPECT_NEAR(dominant.share, 1, 1e-9);
  EXPECT_NEAR(dominant.shortest_good_s, 2e-3, 1e-8);
}

TEST(DominantSequence, WithoutLoopsIsTheWholeApplication) {
  EventProgram program(2);
  program.all(CollectiveOp::kBarrier, 0, 0, 1);
  program.all(CollectiveOp::kBcast, 8, 0, 2);
  program.exit();
  const skeleton::DominantSequence dominant = dominant_sequence(signature_of(program));
  EXPECT_TRUE(dominant.parts.empty());
  EXPECT_NEAR(dominant.shortest_good_s, 3, 1e-6);
}

// --- bad input

std::string error_of(const EventProgram& program) {
  Result<skeleton::ProgramTrace> trace = read(program);
  if (!trace) return trace.error().message;
  const Result<Signature> signature = make_signature(std::move(*trace), {});
  return signature ? "" : signature.error().message;
}

TEST(BadTraces, SayWhatIsMissing) {
  EventProgram no_end = loop(1, 8, 0);
  EXPECT_THAT(error_of(no_end), HasSubstr("rank 0 has no end in the trace after 1 operations"));

  EventProgram lost = loop(1, 8, 0);
  Event gap;
  gap.kind = EventKind::kGap;
  gap.bytes = 17;
  lost.event(1, gap);
  lost.exit();
  EXPECT_THAT(error_of(lost), HasSubstr("rank 1, after 1 operations: 17 events were lost here"));

  // Windows that the capture closed to stay within its limit, in both forms.
  for (const EventKind kind : {EventKind::kWindowClose, EventKind::kSkipped}) {
    EventProgram windows = loop(1, 8, 0);
    Event closed;
    closed.kind = kind;
    windows.event(0, closed);
    windows.exit();
    EXPECT_THAT(error_of(windows),
                testing::AllOf(HasSubstr("rank 0, after 1 operations: from here on calls were only counted"),
                               HasSubstr("lost windows")));
  }

  EventProgram unsent(2);
  unsent.recv(1, 0, 8);
  unsent.exit();
  EXPECT_THAT(error_of(unsent), HasSubstr("rank 0 sends rank 1 0 messages with tag 0, which receives 1"));

  EventProgram alone(2);
  alone.collective(0, CollectiveOp::kBarrier, 0);
  alone.exit();
  EXPECT_THAT(error_of(alone), testing::AnyOf(HasSubstr("fewer collectives"), HasSubstr("is another one")));

  EventProgram unknown(2);
  unknown.wait(0, 5);
  EXPECT_THAT(error_of(unknown), HasSubstr("request 5 ends but was never started"));

  EventProgram inter(2);
  const std::vector<std::uint64_t> values{7, 1, 0, 1};
  Event create;
  create.kind = EventKind::kCommCreate;
  create.comm = 3;
  create.values = values;
  inter.event(0, create);
  inter.collective(0, CollectiveOp::kBarrier, 0, 0, 0, 3);
  EXPECT_THAT(error_of(inter), HasSubstr("intercommunicator"));

  EventProgram peer(2);
  peer.send(0, 2, 8);
  EXPECT_THAT(error_of(peer), HasSubstr("a rank that the program does not have"));
}

}  // namespace
}  // namespace lbf::skeleton_test::signature_test