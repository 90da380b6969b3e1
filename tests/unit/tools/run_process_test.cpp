#include "tools/run/run_process.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lbf::run {
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

}  // namespace
}  // namespace lbf::run
