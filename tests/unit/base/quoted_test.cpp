// Words in error messages.
#include "base/quoted.h"

#include <gtest/gtest.h>

namespace lbf::quoted_test {
namespace {

TEST(Quoted, OneLineAndNotTooLong) {
  EXPECT_EQ(lbf::quoted("n[1-4]"), "'n[1-4]'");
  EXPECT_EQ(lbf::quoted(""), "''");
  EXPECT_EQ(lbf::quoted("a\nb\x1b[1m\x7f"), "'a?b?[1m?'");
  const std::string longest(kMaxQuotedBytes, 'x');
  EXPECT_EQ(lbf::quoted(longest), "'" + longest + "'");
  EXPECT_EQ(lbf::quoted(longest + 'y'), "'" + longest + "...'");
}

}  // namespace
}  // namespace lbf::quoted_test