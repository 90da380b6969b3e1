#include "tools/run/run_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lbf::tools::run_process_test {
namespace {

// What `nice`, which prints its own niceness, says as a child.
std::string niceness_of_child(bool background) {
  std::string folder = "/tmp/lbf-run-process-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return "no folder";
  ChildOptions options;
  options.output = folder + "/out";
  options.own_session = true;
  options.background = background;
  const auto child = start_child({"nice"}, options);
  if (!child) return child.error().message;
  const auto status = wait_for_child(*child, 10);
  std::string text;
  std::getline(std::ifstream(options.output) >> std::ws, text);
  std::filesystem::remove_all(folder);
  return status && *status == 0 ? text : "nice failed";
}

TEST(StartChild, ABackgroundChildLetsOthersRunFirst) {
  EXPECT_EQ(niceness_of_child(true), "19");
  EXPECT_NE(niceness_of_child(false), "19");
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