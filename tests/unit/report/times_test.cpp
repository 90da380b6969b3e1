#include "base/times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace lbf::report::times_test {
namespace {

constexpr std::time_t kNow = 1700000000;       // 2023-11-14T22:13:20 UTC
constexpr std::time_t kMidnight = 1699920000;  // 2023-11-14T00:00:00 UTC

class Times : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  static std::time_t parsed(std::string_view text) {
    auto time = parse_time(text, kNow, Repeated::kEarlier);
    EXPECT_TRUE(time.ok()) << text;
    return time.ok() ? time->at_s : -1;
  }
};

TEST_F(Times, ReadsTheWordsOfSacct) {
  EXPECT_EQ(parsed("today"), kMidnight);
  EXPECT_EQ(parsed("Midnight"), kMidnight);
  EXPECT_EQ(parsed("noon"), kMidnight + 12 * 3600);
  EXPECT_EQ(parsed("fika"), kMidnight + 15 * 3600);
  EXPECT_EQ(parsed("teatime"), kMidnight + 16 * 3600);
  EXPECT_EQ(parsed("now"), kNow);
}

TEST_F(Times, ReadsDaysByTheirNames) {
  EXPECT_EQ(parsed("yesterday"), kMidnight - 86400);
  EXPECT_EQ(parsed("Tomorrow"), kMidnight + 86400);
  EXPECT_EQ(parsed("yesterday-13:05"), kMidnight - 86400 + 13 * 3600 + 5 * 60);
  EXPECT_EQ(parsed("yesterday noon"), kMidnight - 86400 + 12 * 3600);
  EXPECT_EQ(parsed("today 1:00PM"), kMidnight + 13 * 3600);
}

TEST_F(Times, ReadsOffsetsFromGreenwich) {
  setenv("TZ", "EST5", 1);
  tzset();
  EXPECT_EQ(parsed("2023-11-14T22:13:20"), kNow + 5 * 3600);
  EXPECT_EQ(parsed("2023-11-14T22:13:20Z"), kNow);
  EXPECT_EQ(parsed("2023-11-15T00:13:20+02:00"), kNow);
  EXPECT_EQ(parsed("2023-11-15T00:13:20+0200"), kNow);
  EXPECT_EQ(parsed("2023-11-15T00:13:20+02"), kNow);
  EXPECT_EQ(parsed("2023-11-14T16:43:20-05:30"), kNow);
}

// `-S` and `-E` in the hour that the clocks show twice: a window of the whole hour has both of them.
TEST_F(Times, ARepeatedHourIsTheEarlierOrTheLaterOne) {
  setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  tzset();
  constexpr std::time_t kChange = 1792890000;  // 2026-10-25T01:00:00Z: from 3:00 back to 2:00
  const auto at = [](Repeated repeated, std::string_view text) { return parse_time(text, kNow, repeated)->at_s; };
  EXPECT_EQ(at(Repeated::kEarlier, "2026-10-25T02:30"), kChange - 1800);
  EXPECT_EQ(at(Repeated::kLater, "2026-10-25T02:30"), kChange + 1800);
  for (const Repeated repeated : {Repeated::kEarlier, Repeated::kLater}) {
    EXPECT_EQ(at(repeated, "2026-10-25T01:59:59"), kChange - 3601);
    EXPECT_EQ(at(repeated, "2026-10-25T03:00"), kChange + 3600);
    EXPECT_EQ(at(repeated, "2026-10-25T02:30+02:00"), kChange - 1800);
    EXPECT_EQ(at(repeated, "2026-10-25T02:30+01:00"), kChange + 1800);
    EXPECT_EQ(at(repeated, "2026-10-25"), kChange - 3 * 3600);
  }
}

TEST_F(Times, ASkippedTimeIsTheChangeOfTheClocks) {
  setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  tzset();
  constexpr std::time_t kChange = 1774746000;  // 2026-03-29T01:00:00Z: from 2:00 on to 3:00
  for (const char* text : {"2026-03-29T02:00", "2026-03-29T02:10", "2026-03-29T02:59:59"}) {
    const auto time = parse_time(text, kNow, Repeated::kEarlier);
    ASSERT_TRUE(time.ok());
    EXPECT_EQ(time->at_s, kChange) << text;
    EXPECT_TRUE(time->is_skipped) << text;
  }
  EXPECT_EQ(parsed("2026-03-29T01:59:59"), kChange - 1);
  EXPECT_EQ(parsed("2026-03-29T03:00"), kChange);
  EXPECT_FALSE(parse_time("2026-03-29T03:00", kNow, Repeated::kEarlier)->is_skipped);
}

// Havana goes from 1:00 back to 0:00, Cairo from 0:00 on to 1:00.
TEST_F(Times, StartOfDayWhereMidnightIsRepeatedOrSkipped) {
  setenv("TZ", "CST5CDT,M3.2.0/0,M11.1.0/1", 1);
  tzset();
  EXPECT_EQ(start_of_day(1793552400), 1793505600);  // 2026-11-01T12:00-05:00 -> 0:00-04:00
  EXPECT_EQ(start_of_day(1772985600), 1772946000);  // 2026-03-08T12:00-04:00 -> 1:00-04:00
}

TEST_F(Times, ReadsOffsetsFromNow) {
  EXPECT_EQ(parsed("now-30"), kNow - 30);
  EXPECT_EQ(parsed("now+2minutes"), kNow + 120);
  EXPECT_EQ(parsed("now - 3 hours"), kNow - 3 * 3600);
  EXPECT_EQ(parsed("now-1day"), kNow - 86400);
  EXPECT_EQ(parsed("NOW-2Weeks"), kNow - 14 * 86400);
}

TEST_F(Times, ReadsTimesOfToday) {
  EXPECT_EQ(parsed("13:05"), kMidnight + 13 * 3600 + 5 * 60);
  EXPECT_EQ(parsed("1:05:07PM"), kMidnight + 13 * 3600 + 5 * 60 + 7);
  EXPECT_EQ(parsed("12:00 am"), kMidnight);
  EXPECT_EQ(parsed("12:00pm"), kMidnight + 12 * 3600);
}

TEST_F(Times, ReadsDates) {
  EXPECT_EQ(parsed("1114"), kMidnight);
  EXPECT_EQ(parsed("111423"), kMidnight);
  EXPECT_EQ(parsed("11/14"), kMidnight);
  EXPECT_EQ(parsed("11/14/23"), kMidnight);
  EXPECT_EQ(parsed("11.14.23"), kMidnight);
  EXPECT_EQ(parsed("11/14/23-01:00"), kMidnight + 3600);
  EXPECT_EQ(parsed("1114-01:00:01"), kMidnight + 3601);
  EXPECT_EQ(parsed("2023-11-14"), kMidnight);
  EXPECT_EQ(parsed("2023-11-14T22:13:20"), kNow);
  EXPECT_EQ(parsed("2024-02-29"), 1709164800);
}

TEST_F(Times, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "soon",
                           "now-",
                           "now-5fortnights",
                           "25:00",
                           "12:60",
                           "13:00PM",
                           "0:30am",
                           "1331",
                           "0230",
                           "2023-02-29",
                           "2023-11-14T",
                           "2023-11-14Tx",
                           "11/14/2",
                           "11-14",
                           "12:00x",
                           "1",
                           "now-99999999999",
                           "2023-11",
                           "99999",
                           "todayish",
                           "yesterday-",
                           "today 25:00",
                           "2023-11-14T22:13+2",
                           "2023-11-14T22:13+02:",
                           "2023-11-14T22:13Zulu",
                           "2023-11-14Z",
                           "2023-11-14T22:13+24:00"}) {
    const auto time = parse_time(text, kNow, Repeated::kEarlier);
    ASSERT_FALSE(time.ok()) << text << " -> " << time->at_s;
    EXPECT_EQ(time.error().code, ErrorCode::kInvalidInput);
    EXPECT_NE(time.error().message.find("YYYY-MM-DD"), std::string::npos) << "names the formats";
  }
}

TEST_F(Times, StartOfDayIsLocal) {
  EXPECT_EQ(start_of_day(kNow), kMidnight);
  setenv("TZ", "EST5", 1);
  tzset();
  EXPECT_EQ(start_of_day(kNow), kMidnight + 5 * 3600);
}

TEST_F(Times, WritesTimestamps) {
  EXPECT_EQ(format_timestamp(1700000000.9), "2023-11-14T22:13:20");
  EXPECT_EQ(format_timestamp(0), "Unknown");
  EXPECT_EQ(format_timestamp(-5), "Unknown");
  EXPECT_EQ(format_timestamp(1e300), "Unknown");
  EXPECT_EQ(format_timestamp(std::nan("")), "Unknown");
}

TEST_F(Times, WritesShortDurationsFineAndLongOnesAsSacct) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(12.3e-6), "12.30 us");
  EXPECT_EQ(format_duration(0.0125), "12.50 ms");
  EXPECT_EQ(format_duration(0.25), "0.250 s");
  EXPECT_EQ(format_duration(12.34), "12.34 s");
  EXPECT_EQ(format_duration(12.34, 3), "12.3 s");
  EXPECT_EQ(format_duration(123.45), "123.5 s");
  EXPECT_EQ(format_duration(600), "00:10:00");
  EXPECT_EQ(format_duration(3723.6), "01:02:04");
  EXPECT_EQ(format_duration(90061), "1-01:01:01");
  EXPECT_EQ(format_duration(-1.5), "-1.500 s");
  EXPECT_EQ(format_duration(1e300), "Unknown");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "Unknown");
}

}  // namespace
}  // namespace lbf::report::times_test