// Words in error messages.
#include "base/quoted.h"

#include <gtest/gtest.h>

#include "base/json_levels.h"

namespace lbf::quoted_test {
namespace {

TEST(Quoted, OneLineAndNotTooLong) {
  EXPECT_EQ(lbf::quoted("n[1-4]"), "'n[1-4]'");
  EXPECT_EQ(lbf::quoted(""), "''");
  EXPECT_EQ(lbf::quoted("a\nb\x1b[1m\x7f"), "'a?b?[1m?'");
  EXPECT_EQ(on_one_line("\xC2\x9B"
                        "31m caf\xC3\xA9 \xC2\xA7"),
            "??31m caf\xC3\xA9 \xC2\xA7")
      << "C1 controls in UTF-8";
  const std::string longest(kMaxQuotedBytes, 'x');
  EXPECT_EQ(lbf::quoted(longest), "'" + longest + "'");
  EXPECT_EQ(lbf::quoted(longest + 'y'), "'" + longest + "...'");
}

TEST(JsonLevels, BracketsInTextsDoNotCount) {
  EXPECT_FALSE(has_more_levels(R"({"a":[{"b":"[[[[\"[["}],"c":{}})", 3));
  EXPECT_TRUE(has_more_levels(R"({"a":[{"b":"[[[[\"[["}],"c":{}})", 2));
  EXPECT_FALSE(has_more_levels("]]]]", 0));
  EXPECT_TRUE(has_more_levels(std::string(1'000'000, '['), 64));
}

}  // namespace
}  // namespace lbf::quoted_test