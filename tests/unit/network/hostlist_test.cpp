// Lists of nodes as Slurm writes them.
#include "base/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::hostlist_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> expanded(std::string_view list, std::size_t limit = 100) {
  Result<std::vector<std::string>> names = expand_hostlist(list, limit);
  EXPECT_TRUE(names.ok()) << list << ": " << (names.ok() ? "" : names.error().message);
  return names.ok() ? *names : std::vector<std::string>();
}

Error refused(std::string_view list, std::size_t limit = 100) {
  const Result<std::vector<std::string>> names = expand_hostlist(list, limit);
  EXPECT_FALSE(names.ok()) << list;
  return names.ok() ? Error{} : names.error();
}

TEST(Hostlist, NamesAndRangesInTheirOrder) {
  EXPECT_THAT(expanded("n1"), ElementsAre("n1"));
  EXPECT_THAT(expanded("n[1-4,7],m08"), ElementsAre("n1", "n2", "n3", "n4", "n7", "m08"));
  EXPECT_THAT(expanded("n[3,1-2]"), ElementsAre("n3", "n1", "n2"));
  EXPECT_THAT(expanded("a-b_c.d"), ElementsAre("a-b_c.d"));
  EXPECT_THAT(expanded("n[1-2]-ib,x"), ElementsAre("n1-ib", "n2-ib", "x"));
}

TEST(Hostlist, TheWidthOfTheFirstNumberIsKept) {
  EXPECT_THAT(expanded("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(expanded("n[8-10]"), ElementsAre("n8", "n9", "n10"));
  EXPECT_THAT(expanded("n[001]"), ElementsAre("n001"));
  EXPECT_THAT(expanded("n[0000000001-0000000003]"), ElementsAre("n0000000001", "n0000000002", "n0000000003"));
  EXPECT_THAT(expanded("n[99999999999999-100000000000000]"), ElementsAre("n99999999999999", "n100000000000000"));
  EXPECT_THAT(expanded("n[18446744073709551615]"), ElementsAre("n18446744073709551615"));
}

// As hostlist_create() of Slurm: what lists have that people or scripts put together.
TEST(Hostlist, SeparatorsWithoutANameBetweenThem) {
  EXPECT_THAT(expanded("n1,"), ElementsAre("n1"));
  EXPECT_THAT(expanded(",n1,,n[2-3],,"), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(expanded(" n1, n2\tn3\nn[4,5] "), ElementsAre("n1", "n2", "n3", "n4", "n5"));
}

TEST(Hostlist, SeveralBracketsFromLeftToRight) {
  EXPECT_THAT(expanded("r[0-1]n[1-2]"), ElementsAre("r0n1", "r0n2", "r1n1", "r1n2"));
}

TEST(Hostlist, WhatIsNoListIsQuoted) {
  EXPECT_THAT(refused("").message, HasSubstr("no name in ''"));
  EXPECT_THAT(refused(", ,").message, HasSubstr("no name in ', ,'"));
  EXPECT_THAT(refused("n[1-2").message, HasSubstr("'[' without its ']'"));
  EXPECT_THAT(refused("n1]").message, HasSubstr("'n1]' is no name"));
  EXPECT_THAT(refused("n:1").message, HasSubstr("'n:1' is no name"));
  EXPECT_THAT(refused("n\x1b[1]").message, HasSubstr("is no name"));
  EXPECT_THAT(refused("n[]").message, HasSubstr("'' is no range"));
  EXPECT_THAT(refused("n[a-b]").message, HasSubstr("'a-b' is no range"));
  EXPECT_THAT(refused("n[1-]").message, HasSubstr("'1-' is no range"));
  EXPECT_THAT(refused("n[-1]").message, HasSubstr("'-1' is no range"));
  EXPECT_THAT(refused("n[1-2-3]").message, HasSubstr("'1-2-3' is no range"));
  EXPECT_THAT(refused("n[1,]").message, HasSubstr("'' is no range"));
  EXPECT_THAT(refused("n[4-3]").message, HasSubstr("'4-3' ends before it begins"));
  EXPECT_THAT(refused("n[0-18446744073709551616]").message, HasSubstr("is no range"));
  EXPECT_THAT(refused(std::string(300, 'n')).message, HasSubstr("longer than 255 bytes"));
}

TEST(Hostlist, NoMoreNamesThanTheLimit) {
  EXPECT_EQ(expanded("n[1-10]", 10).size(), 10U);
  EXPECT_EQ(expanded("a,b,n[1-8]", 10).size(), 10U);
  for (const char* list :
       {"n[1-11]", "a,n[1-10]", "n[1-10],a", "n[1-2,3-11]", "n[0-999999999]", "n[0-18446744073709551615]",
        "n[0-3]m[0-3]", "n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]n[1-9]"}) {
    const Error error = refused(list, 10);
    EXPECT_EQ(error.code, ErrorCode::kLimit) << list;
    EXPECT_THAT(error.message, HasSubstr("more than 10 names"));
  }
  EXPECT_EQ(refused("a", 0).code, ErrorCode::kLimit);
  EXPECT_EQ(refused("n[1]", 0).code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace lbf::hostlist_test