// Numbers in text.
#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace lbf::number_test {
namespace {

TEST(ParseNumber, WholeNumbers) {
  EXPECT_EQ(parse_number<std::uint32_t>("0"), 0U);
  EXPECT_EQ(parse_number<std::uint32_t>("007"), 7U);
  EXPECT_EQ(parse_number<std::uint32_t>("4294967295"), 4294967295U);
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_number<int>("-0"), 0);
}

TEST(ParseNumber, WhatIsNoWholeNumber) {
  for (const char* text : {"", " ", "-", "+", "+1", " 1", "1 ", "1\n", "\t1", "--1", "1-", "x", "1x", "0x10", "1.0",
                           "1e3", "1,000", "inf", "nan"}) {
    EXPECT_EQ(parse_number<int>(text), std::nullopt) << "'" << text << "'";
  }
  EXPECT_EQ(parse_number<int>(std::string_view()), std::nullopt) << "a view of nothing";
  EXPECT_EQ(parse_number<int>(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(parse_number<int>(std::string_view("12", 1)), 1) << "not beyond the view's end";
}

TEST(ParseNumber, WhatTheTypeCannotHold) {
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-0"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("4294967296"), std::nullopt);
  EXPECT_EQ(parse_number<std::int32_t>("2147483648"), std::nullopt);
  EXPECT_EQ(parse_number<std::int32_t>("-2147483649"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e400"), std::nullopt);
  EXPECT_EQ(parse_number<double>("-1e400"), std::nullopt);
  EXPECT_EQ(parse_number<double>("1e-400"), std::nullopt) << "it is not 0";
}

TEST(ParseNumber, OtherBases) {
  EXPECT_EQ(parse_number<std::uint32_t>("ff", 16), 255U);
  EXPECT_EQ(parse_number<std::uint32_t>("FF", 16), 255U);
  EXPECT_EQ(parse_number<std::uint32_t>("0xff", 16), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("fg", 16), std::nullopt);
}

TEST(ParseNumber, Decimals) {
  EXPECT_EQ(parse_number<double>("0.5"), 0.5);
  EXPECT_EQ(parse_number<double>(".5"), 0.5);
  EXPECT_EQ(parse_number<double>("5."), 5.0);
  EXPECT_EQ(parse_number<double>("-2.5e3"), -2500.0);
  EXPECT_EQ(parse_number<double>("1E-3"), 1e-3);
  EXPECT_EQ(parse_number<double>("1e+3"), 1e3) << "the exponent's own sign";
  EXPECT_EQ(parse_number<double>("0.1"), 0.1) << "the nearest one";
  EXPECT_EQ(parse_number<double>("1.7976931348623157e308"), std::numeric_limits<double>::max());
}

TEST(ParseNumber, WhatIsNoDecimal) {
  for (const char* text : {"",      ".",     "-",   "+0.5", " 0.5", "0.5 ",     "0.5%", "0,5",  "1e",  "1e+",
                           "0x1p3", "1.2.3", "inf", "-inf", "INF",  "infinity", "nan",  "-nan", "NaN", "nan(1)"}) {
    EXPECT_EQ(parse_number<double>(text), std::nullopt) << "'" << text << "'";
  }
  EXPECT_EQ(parse_number<double>(std::string_view()), std::nullopt) << "a view of nothing";
}

}  // namespace
}  // namespace lbf::number_test