#include "report/text.h"

#include <gtest/gtest.h>

#include "base/quoted.h"

namespace lbf::report::text_test {
namespace {

TEST(Printable, KeepsTextAndReplacesWhatActsOnATerminal) {
  EXPECT_EQ(printable("plain café 計算"), "plain café 計算");
  EXPECT_EQ(printable("\x1b[31m"), "\uFFFD[31m");
  EXPECT_EQ(printable("a\tb\nc\rd"), "a b c d");
  EXPECT_EQ(printable("\xC2\x9B"), "\uFFFD") << "C1 control";
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\uFFFD") << "right-to-left override";
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\uFFFD");
}

TEST(Printable, ReplacesBrokenUtf8ByteByByte) {
  EXPECT_EQ(printable("\xFF\xFE"), "\uFFFD\uFFFD");
  EXPECT_EQ(printable("a\xE8\xA8"), "a\uFFFD\uFFFD") << "truncated";
  EXPECT_EQ(printable("\xC0\xAF"), "\uFFFD\uFFFD") << "overlong";
  EXPECT_EQ(printable("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "surrogate";
  EXPECT_EQ(printable("\xF5\x80\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "above U+10FFFF";
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("é"), 1U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("計算"), 4U);
  EXPECT_EQ(display_width("\xFF"), 1U);
}

TEST(Fit, PadsAndCutsToExactlyTheWidth) {
  EXPECT_EQ(fit("ab", 4, true), "ab  ");
  EXPECT_EQ(fit("ab", 4, false), "  ab");
  EXPECT_EQ(fit("abcdef", 4, true), "abc+");
  EXPECT_EQ(fit("計算する", 4, true), "計 +") << "a wide character is not cut in two";
  EXPECT_EQ(fit("abc", 0, true), "");
  EXPECT_EQ(fit("abc", 3, false), "abc");
}

TEST(Shorten, EndsInDots) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abc...");
  EXPECT_EQ(shorten("abcdefg", 2), "..");
}

TEST(Wrap, BreaksBetweenWords) {
  EXPECT_EQ(wrap("one two three", 8, 2), "  one\n  two\n  three\n");
  EXPECT_EQ(wrap("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(wrap("", 10, 2), "");
  EXPECT_EQ(wrap("unbreakable", 4, 0), "unbreakable\n");
}

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("in.melt"), "in.melt");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$(rm)"), "'$(rm)'");
}

}  // namespace
}  // namespace lbf::report::text_test