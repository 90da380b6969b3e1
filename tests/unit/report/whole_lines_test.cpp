#include "report/whole_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lbf::report::whole_lines_test {
namespace {

TEST(WholeLines, AreTheSameHoweverTheyCome) {
  const std::string text = "one\n\ntwo three\nfour\nrest";
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    WholeLines lines;
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < text.size(); at += bytes) {
      lines.add(std::string_view(text).substr(at, bytes), [&](std::string_view line) { seen.emplace_back(line); });
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"one", "", "two three", "four"})) << bytes;
    EXPECT_EQ(lines.rest(), "rest") << bytes;
  }
}

}  // namespace
}  // namespace lbf::report::whole_lines_test