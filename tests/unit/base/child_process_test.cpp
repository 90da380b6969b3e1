// Programs that speak, fail, hang or do not exist.
#include "base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

namespace lbf::child_process_test {
namespace {

using testing::HasSubstr;

Result<ChildOutput> shell(const std::string& script, Seconds patience_s = 20) {
  return run_child({"sh", "-c", script}, patience_s);
}

TEST(RunChild, BothOutputsAndTheStatus) {
  const Result<ChildOutput> done = shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->out, "out\n");
  EXPECT_EQ(done->err, "err\n");
  EXPECT_EQ(done->exit_status, 3);
  EXPECT_FALSE(done->succeeded());
  EXPECT_TRUE(shell("true")->succeeded());
}

TEST(RunChild, MoreThanAPipeHoldsOnEitherSide) {
  const Result<ChildOutput> done =
      shell("head -c 300000 /dev/zero >&2; head -c 400000 /dev/zero; head -c 300000 /dev/zero >&2");
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->out.size(), 400000U);
  EXPECT_EQ(done->err.size(), 600000U);
}

TEST(RunChild, ItReadsNothing) {
  EXPECT_TRUE(shell("test -z \"$(cat)\"")->succeeded());
}

TEST(RunChild, ASignal) {
  const Result<ChildOutput> done = shell("kill -ALRM $$");
  EXPECT_EQ(done->signal, SIGALRM);
  EXPECT_EQ(done->exit_status, -1);
}

TEST(RunChild, ItsTimeIsBounded) {
  const auto before = std::chrono::steady_clock::now();
  const Result<ChildOutput> done = shell("echo early; exec sleep 30", 0.3);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_TRUE(done->timed_out);
  EXPECT_EQ(done->out, "early\n");
  EXPECT_FALSE(done->succeeded());
  EXPECT_LT(took.count(), 15);
}

TEST(RunChild, SoIsThatOfOneThatSaysNothingMore) {
  const Result<ChildOutput> done = shell("exec >&- 2>&-; exec sleep 30", 0.3);
  EXPECT_TRUE(done->timed_out);
  EXPECT_EQ(done->signal, SIGTERM);
}

TEST(RunChild, ItIsAskedFirstAndMaySayMore) {
  const Result<ChildOutput> done =
      shell("trap 'echo tidied; exit 4' TERM; echo early; while :; do sleep 0.05; done", 0.3);
  EXPECT_TRUE(done->timed_out);
  EXPECT_EQ(done->out, "early\ntidied\n");
  EXPECT_EQ(done->exit_status, 4);
  EXPECT_FALSE(done->succeeded());
}

TEST(RunChild, WhatMindsNothingIsKilled) {
  const Result<ChildOutput> done = shell("trap '' TERM; while :; do sleep 0.05; done", 0.2);
  EXPECT_TRUE(done->timed_out);
  EXPECT_EQ(done->signal, SIGKILL);
}

TEST(RunChild, WhatItLeftBehindIsNotWaitedFor) {
  const auto before = std::chrono::steady_clock::now();
  const Result<ChildOutput> done = shell("sleep 60 & wait", 0.2);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_TRUE(done->timed_out);
  EXPECT_LT(took.count(), 20);
}

TEST(RunChild, WithoutABoundItIsWaitedFor) {
  EXPECT_EQ(shell("sleep 0.1; echo late", 0)->out, "late\n");
}

TEST(RunChild, TheEnvironmentIsTheOneThatIsGiven) {
  const Result<ChildOutput> done =
      run_child({"/bin/sh", "-c", "echo $LBF_A-$HOME"}, 20, std::vector<std::string>{"LBF_A=x y"});
  EXPECT_EQ(done->out, "x y-\n");
}

TEST(RunChild, AProgramThatIsNotThere) {
  const Result<ChildOutput> done = run_child({"no-such-program-of-lbf"}, 20);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(done.error().message, HasSubstr("cannot run no-such-program-of-lbf: No such file"));
}

TEST(LastLine, OfSeveral) {
  EXPECT_EQ(last_line("a\nb c \n\n"), "b c");
  EXPECT_EQ(last_line("\n"), "");
}

}  // namespace
}  // namespace lbf::child_process_test