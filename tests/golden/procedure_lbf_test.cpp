// Procedure LBF by hand: every branch of TR Fig. 2, Critical Path Zeroing, and what goes beyond them
// (docs/procedures.md). All times are exact in binary. How lines of Fig. 2 are read that are misprinted:
//   17, 20    without F a receiver with Cr < Cs keeps Cr: `longest` is Cs
//   18, 19    `lastTime` is set only where Cs > Cr: in both branches
//   20        `TF (rmtF)`: `IF (rmtF)`
//   22        empty: `ELSE` of line 21
//   26        `longest += rmtFCP`: `rmtF`
//   9, 10     two statements: after the send `longest` without F, then F = 0
//   27 to 32  `active` 1 or 0: a counter, for recursion
//   11        Cs, Cr: lengths of the new path
//   1         messages take no time: the target's network; `zero` is the paper's
#include <gtest/gtest.h>

#include <sstream>

#include "event/text_trace.h"
#include "predictor/engine/metric/critical_path.h"
#include "tests/golden/predict.h"

namespace lbf::golden::procedure_lbf_test {
namespace {

engine::Scenario one(engine::MoveTo to, double share = 1, std::uint32_t procedure = 0, Rank rank = kAnyRank) {
  return {{{procedure, to, share}}, rank};
}

std::unique_ptr<engine::Predictor> replay(const std::string& trace, Rank ranks, std::vector<engine::Target> targets,
                                          engine::ProcedurePlan plan, engine::TimelineObserver* timeline = nullptr) {
  Result<std::unique_ptr<engine::Predictor>> made = engine::Predictor::make(ranks, std::move(targets), std::move(plan));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
  if (timeline != nullptr) (*made)->observe_timeline(*timeline);
  std::istringstream in("lbf-trace 1\nranks " + std::to_string(ranks) + "\n" + trace);
  const auto sink = [&](Rank rank, const Event& event) { return (*made)->feed(rank, event); };
  const Result<TraceInfo> read = read_text_trace(in, "golden", sink);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  for (Rank rank = 0; rank < ranks; ++rank) (*made)->close(rank);
  EXPECT_TRUE((*made)->advance().ok());
  EXPECT_TRUE((*made)->diagnosis().ok());
  return std::move(*made);
}

// LBF as it ran, then of each scenario; a processor for each rank, network zero.
std::vector<Seconds> lbf(const std::string& trace, Rank ranks, std::vector<engine::Scenario> scenarios,
                         std::uint32_t nodes = 0) {
  std::vector<engine::Target> targets;
  const std::uint32_t used = nodes == 0 ? static_cast<std::uint32_t>(ranks) : nodes;
  for (std::uint32_t v = 0; v <= scenarios.size(); ++v) {
    targets.push_back(make_target(ranks, "block", used, 1, nullptr));
    targets.back().scenario = v;
  }
  const auto predictor = replay(trace, ranks, targets, {std::move(scenarios), {}});
  std::vector<Seconds> times;
  for (const engine::Prediction& prediction : predictor->predictions()) {
    EXPECT_TRUE(prediction.complete);
    times.push_back(prediction.lbf_s);
  }
  return times;
}

using Times = std::vector<Seconds>;
const engine::Scenario kMove = one(engine::MoveTo::kReceiver);
const engine::Scenario kZero = one(engine::MoveTo::kNowhere);

// Rank 1 runs F for f of its 6 seconds and sends; rank 0 is ready after `ready`, and works 1 more.
std::string one_message(const std::string& before, const std::string& f, const std::string& ready) {
  return "1 enter " + before + " proc=F\n1 leave " + f + " proc=F\n1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n" +
         "0 startRecv " + ready + " from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 exit 1\n";
}

// Lines 17 to 21: Cs = 6 > Cr = 2, and without F = 1 still later than with it: Cs - F = 5 > Cr + F = 3.
TEST(ProcedureLbf, TheSenderStaysTheLonger) {
  EXPECT_EQ(lbf(one_message("4", "1", "2"), 2, {kMove, kZero}), (Times{7, 6, 6}));
}

// Lines 22, 23: Cs = 6 > Cr = 2, but Cs - F = 3 < Cr + F = 5.
TEST(ProcedureLbf, TheReceiverBecomesTheLonger) {
  EXPECT_EQ(lbf(one_message("2", "3", "2"), 2, {kMove, kZero}), (Times{7, 6, 4}));
}

// F waits 3 s for a device and works 2 s: without it the wait is still there.
TEST(ProcedureLbf, AWaitForADeviceIsNoProcedures) {
  const std::string trace = "0 enter 1 proc=F\n0 device 3 calls=1 busy=1\n0 leave 2 proc=F\n0 exit 1\n";
  EXPECT_EQ(lbf(trace, 1, {kZero}), (Times{7, 5}));
}

// Line 20 without F: the printed form would leave the receiver at Cr = 2.
TEST(ProcedureLbf, WithoutTheProcedureTheReceiverWaitsAsBefore) {
  EXPECT_EQ(lbf(one_message("5", "0", "2"), 2, {kMove, kZero}), (Times{7, 7, 7}));
}

// Lines 25, 26: Cs = 6 <= Cr = 10: 10 + 3.
TEST(ProcedureLbf, AReceiverThatIsLateGetsAllOfIt) {
  EXPECT_EQ(lbf(one_message("2", "3", "10"), 2, {kMove, kZero}), (Times{11, 14, 11}));
  EXPECT_EQ(lbf(one_message("2", "3", "6"), 2, {kMove}), (Times{7, 10}));  // Cs = Cr
}

// Lines 5 to 7 and 10: F goes on over the send; each part goes with its own message, none twice.
TEST(ProcedureLbf, AProcedureThatIsActiveAtASend) {
  const std::string trace =
      "1 enter 0 proc=F\n1 send 2 to=0 tag=0 bytes=0\n1 leave 3 proc=F\n1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n"
      "0 startRecv 0 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n"
      "0 startRecv 0 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 exit 0\n";
  EXPECT_EQ(lbf(trace, 2, {kMove, kZero}), (Times{6, 5, 1}));
}

// Line 16, and 18, 19 in the branch where the printed form has them not: F before a receive stays, although F
// is active and the receiver did not wait.
TEST(ProcedureLbf, AReceiveStartsTheCountAnew) {
  const std::string trace =
      "0 enter 0 proc=F\n0 startRecv 2 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 leave 3 proc=F\n"
      "0 send 0 to=1 tag=0 bytes=0\n0 exit 0\n"
      "1 send 1 to=0 tag=0 bytes=0\n1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=0\n1 exit 0\n";
  EXPECT_EQ(lbf(trace, 2, {kMove, kZero}), (Times{5, 4, 1}));
}

// Lines 27 to 32 with a counter instead of a flag: recursion; and what F calls is F's.
TEST(ProcedureLbf, RecursionAndWhatItCalls) {
  const std::string trace =
      "1 enter 1 proc=F\n1 enter 1 proc=F\n1 leave 1 proc=F\n1 enter 1 proc=G\n1 leave 1 proc=G\n1 leave 1 proc=F\n"
      "1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n"
      "0 startRecv 0 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 exit 0\n";
  engine::Scenario both{{{0, engine::MoveTo::kNowhere, 1}, {1, engine::MoveTo::kReceiver, 1}}, kAnyRank};
  EXPECT_EQ(lbf(trace, 2, {kMove, kZero, one(engine::MoveTo::kReceiver, 1, 1), both}), (Times{7, 5, 2, 6, 2}));
}

// A leave without its enter means nothing; one that was forgotten (longjmp) ends with what is around it.
TEST(ProcedureLbf, LeavesThatDoNotFit) {
  const std::string trace = "0 leave 1 proc=F\n0 enter 1 proc=G\n0 enter 1 proc=F\n0 leave 1 proc=G\n0 exit 1\n";
  EXPECT_EQ(lbf(trace, 1, {kZero}), (Times{5, 4}));
}

// The other way round: what a client does with an answer, done by the server before it sends it.
TEST(ProcedureLbf, ToTheSender) {
  const std::string trace =
      "1 send 1 to=0 tag=0 bytes=0\n1 exit 0\n"
      "0 startRecv 3 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 enter 0 proc=F\n0 leave 4 proc=F\n0 exit 1\n";
  // The sender's 1 + 4 = 5 is later than the receiver's 3; then 1 more.
  EXPECT_EQ(lbf(trace, 2, {one(engine::MoveTo::kSender), kMove, one(engine::MoveTo::kSender, 0.5)}),
            (Times{8, 6, 8, 6}));
}

// To rank 1: rank 0's F goes with its message to rank 1, rank 2's (which answers rank 1) to before rank 1's
// message, rank 1's own stays.
TEST(ProcedureLbf, ToOneRank) {
  const std::string trace =
      "0 enter 0 proc=F\n0 leave 2 proc=F\n0 send 0 to=1 tag=0 bytes=0\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=0\n1 enter 0 proc=F\n1 leave 1 proc=F\n"
      "1 send 0 to=2 tag=0 bytes=0\n1 exit 0\n"
      "2 startRecv 0 from=1 tag=0\n2 endRecv 0 from=1 tag=0 bytes=0\n2 enter 0 proc=F\n2 leave 8 proc=F\n2 exit 0\n";
  engine::Scenario to_one = one(engine::MoveTo::kRank, 1, 0, 1);
  const auto predictor = [&] {
    engine::Target target = make_target(3, "block", 3, 1, nullptr);
    target.scenario = 1;
    return replay(trace, 3, {target}, {{to_one}, {}});
  }();
  EXPECT_EQ(predictor->predictions()[0].rank_finish_s, (Times{0, 11, 11}));
  EXPECT_EQ(predictor->scenario_stats()[0].moved_s, 10);
  EXPECT_EQ(predictor->scenario_stats()[0].stayed_s, 0);
}

// The compact form says the same as calls one by one; several lines, and time on either of them.
TEST(ProcedureLbf, ProcedureLinesAreAsGoodAsCalls) {
  const std::string rest = "1 exit 0\n0 startRecv 2 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n0 exit 1\n";
  const std::vector<engine::Scenario> scenarios{
      kMove, kZero, one(engine::MoveTo::kNowhere, 1, 1),
      engine::Scenario{{{0, engine::MoveTo::kReceiver, 1}, {1, engine::MoveTo::kReceiver, 1}}, kAnyRank}};
  const Times calls =
      lbf("1 enter 1 proc=F\n1 enter 1 proc=G\n1 leave 1 proc=G\n1 leave 1 proc=F\n1 enter 1 proc=G\n"
          "1 leave 0.5 proc=G\n1 send 0.5 to=0 tag=0 bytes=0\n" +
              rest,
          2, scenarios);
  for (const std::string lines :
       {"1 procedure 0 proc=F time=3 self=2\n1 procedure 0 proc=G time=1.5 calls=2\n1 send 6 to=0 tag=0 bytes=0\n",
        "1 procedure 6 proc=F time=3 self=2\n1 procedure 0 proc=G time=1.5 calls=2\n1 send 0 to=0 tag=0 bytes=0\n"}) {
    EXPECT_EQ(lbf(lines + rest, 2, scenarios), calls);
  }
}

// Two clients on one processor, the server on another: what moves to the clients shares theirs. By hand: the
// server's 2 + 2 for each client's request; moved, both clients work 2 each on one processor at the same time.
TEST(ProcedureLbf, MovedWorkSharesTheProcessorWhereItIsDone) {
  std::string trace;
  for (const char client : {'1', '2'}) {
    trace += std::string("0 enter 0 proc=F\n0 leave 2 proc=F\n0 send 0 to=") + client + " tag=0 bytes=0\n" + client +
             " startRecv 0 from=0 tag=0\n" + client + " endRecv 0 from=0 tag=0 bytes=0\n" + client + " exit 0\n";
  }
  trace += "0 exit 0\n";
  engine::Target apart = make_target(3, "map=0,1,2", 3, 1, nullptr);
  engine::Target together = make_target(3, "map=0,1,1", 2, 1, nullptr);
  apart.scenario = together.scenario = 1;
  engine::Target as_it_ran = together;
  as_it_ran.scenario = 0;
  const auto predictor = replay(trace, 3, {as_it_ran, apart, together}, {{kMove}, {}});
  const std::vector<engine::Prediction> predictions = predictor->predictions();
  EXPECT_EQ(predictions[0].lbf_s, 4);
  EXPECT_EQ(predictions[1].lbf_s, 2);
  EXPECT_EQ(predictions[2].lbf_s, 4);
}

TEST(ProcedureLbf, FasterIsAShareOfZeroing) {
  const std::string trace = one_message("2", "2", "2");
  EXPECT_EQ(lbf(trace, 2, {one(engine::MoveTo::kNowhere, 0.25), one(engine::MoveTo::kNowhere, 0)}), (Times{6, 5.5, 6}));
}

TEST(ProcedureLbf, WrongPlansAreRefused) {
  const std::vector<engine::Target> targets{make_target(2, "block", 2, 1, nullptr)};
  EXPECT_FALSE(engine::Predictor::make(2, targets, {{one(engine::MoveTo::kNowhere, 1.5)}, {}}).ok());
  EXPECT_FALSE(engine::Predictor::make(2, targets, {{one(engine::MoveTo::kRank, 1, 0, 2)}, {}}).ok());
  EXPECT_FALSE(
      engine::Predictor::make(
          2, targets, {{engine::Scenario{{{0, engine::MoveTo::kNowhere, 1}, {0, engine::MoveTo::kSender, 1}}, 0}}, {}})
          .ok());
  std::vector<engine::Target> without = targets;
  without[0].scenario = 1;
  EXPECT_FALSE(engine::Predictor::make(2, without, {}).ok());
}

// The path: rank 1 up to its message (F 3, G 1 inside it, 2 others), then rank 0.
TEST(CriticalPath, RunsThroughTheProceduresOfTheOneThatIsWaitedFor) {
  const std::string trace =
      "1 enter 2 proc=F\n1 enter 2 proc=G\n1 leave 1 proc=G\n1 leave 1 proc=F\n1 send 0 to=0 tag=0 bytes=0\n1 exit 0\n"
      "0 enter 0 proc=F\n0 leave 1 proc=F\n0 startRecv 1 from=1 tag=0\n0 endRecv 0 from=1 tag=0 bytes=0\n"
      "0 enter 0 proc=G\n0 leave 0.5 proc=G\n0 blocked 0 off=0.25\n0 exit 1\n";
  engine::CriticalPath path(2);
  const auto predictor =
      replay(trace, 2,
             {make_target(2, "block", 2, 1,
                          network("name = \"n\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 500000.0]]\n"
                                  "[[path]]\nlocality = \"self-node\"\ntable = [[0, 0.0]]\n"))},
             {{}, {0, 1}}, &path);
  const engine::PathProfile profile = path.profile();
  EXPECT_EQ(profile.length_s, predictor->predictions()[0].lbf_s);
  EXPECT_EQ(profile.length_s, 6 + 0.5 + 0.5 + 0.25 + 1);
  EXPECT_EQ(profile.ends_at, 0);
  EXPECT_EQ(profile.procedure_s, (Times{3, 1.5}));
  EXPECT_EQ(profile.other_work_s, 3);
  EXPECT_EQ(profile.mpi_s, 0.5);
  EXPECT_EQ(profile.blocked_s, 0.25);
  EXPECT_EQ(profile.rank_s, (std::vector<std::pair<std::int32_t, Seconds>>{{1, 6}, {0, 1.5}}));
  EXPECT_EQ(predictor->procedure_stats()[0].calls, 2u);
  EXPECT_EQ(predictor->procedure_stats()[0].inclusive_s, 5);
  EXPECT_EQ(predictor->procedure_stats()[0].exclusive_s, 4);
}

}  // namespace
}  // namespace lbf::golden::procedure_lbf_test