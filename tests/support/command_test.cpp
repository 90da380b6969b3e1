#include "tests/support/command.h"

#include <gtest/gtest.h>

namespace lbf::test::command_test {
namespace {

TEST(Command, OutputAndComplaintsAreApart) {
  const Outcome outcome = run_command("echo one; echo two >&2; cat; exit 3");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.out, "one\n");
  EXPECT_EQ(outcome.err, "two\n");
}

TEST(Command, AnythingThatAShellCanSay) {
  EXPECT_EQ(run_command("cd / && pwd").out, "/\n");
  EXPECT_EQ(run_command("echo one >&2 2>&1 | cat; echo two 2>&1 # no more").out, "two\n");
  EXPECT_EQ(run_command("head -c 100000 /dev/zero").out.size(), 100000u);
}

TEST(Command, ASignalIsNoStatus) {
  EXPECT_EQ(run_command("kill -9 $$").status, -1);
}

}  // namespace
}  // namespace lbf::test::command_test