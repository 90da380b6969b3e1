#include "tools/run/run_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace lbf::tools::run_process_test {
namespace {

TEST(RunInBackground, AllThreadsLetOthersRunFirst) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setsid();
    std::thread([&] {
      [[maybe_unused]] const ssize_t there = ::write(ends[1], "t", 1);
      while (::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())) != 19) ::usleep(1000);
    }).join();
    ::_exit(0);
  }
  char there = 0;
  ASSERT_EQ(::read(ends[0], &there, 1), 1);
  run_in_background(child);
  const auto status = wait_for_child(child, 10);
  EXPECT_TRUE(status && *status == 0);
}

TEST(StartChild, AChildThatEndsWithItsParentDoesSoWhenThatIsKilled) {
  // Whoever loses his parent becomes this process's child, so that it can be waited for.
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ChildOptions options;
    options.own_session = true;
    options.ends_with_parent = true;
    const auto child = start_child({"sleep", "60"}, options);
    const pid_t pid = child ? *child : -1;
    [[maybe_unused]] const ssize_t written = ::write(ends[1], &pid, sizeof pid);
    ::pause();
    ::_exit(1);
  }
  pid_t child = -1;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  ASSERT_GT(child, 0);
  // Once it is sleep its parent's death is watched.
  std::string name;
  for (int i = 0; i < 1000 && name != "sleep"; ++i) {
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm"), name);
    ::usleep(5000);
  }
  ASSERT_EQ(::kill(parent, SIGKILL), 0);
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  const auto status = wait_for_child(child, 20);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  if (!status) ::kill(child, SIGKILL);
  ASSERT_TRUE(status.ok()) << "it sleeps on";
  EXPECT_EQ(*status, 128 + SIGTERM);
}

}  // namespace
}  // namespace lbf::tools::run_process_test