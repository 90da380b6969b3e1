// A window may have more requests than there are numbers: those that began in it must go on being told from
// those before it, and no number may be one of the relay's own. Once all completions went unrecorded from
// request 2^31 of a window on.
#include "spank_plugin/capture/request_numbers.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace lbf::capture::request_numbers {
namespace {

using Number = std::atomic<std::uint32_t>;

TEST(RequestNumbers, GoRoundBelowTheRelaysOwnWithoutZero) {
  for (const bool shared : {false, true}) {
    Number last{ring::kFirstRelayRequest - 3}, before_window{ring::kFirstRelayRequest - 3};
    EXPECT_EQ(take(last, before_window, shared), ring::kFirstRelayRequest - 2);
    EXPECT_EQ(take(last, before_window, shared), ring::kFirstRelayRequest - 1);
    EXPECT_EQ(take(last, before_window, shared), 1u);
    EXPECT_EQ(take(last, before_window, shared), 2u);
    EXPECT_EQ(before_window.load(), ring::kFirstRelayRequest - 3) << "nothing to be pulled along yet";
  }
  Number last{0xffffffffU}, before_window{0xffffffffU};  // where the counter itself goes round
  EXPECT_EQ(take(last, before_window, false), 1u);
}

TEST(RequestNumbers, OneIsAfterAnotherTheShorterWayRound) {
  EXPECT_TRUE(is_after(1, 0));
  EXPECT_FALSE(is_after(0, 1));
  EXPECT_FALSE(is_after(7, 7));
  EXPECT_TRUE(is_after(2, kAll - 1));
  EXPECT_FALSE(is_after(kAll - 1, 2));
  EXPECT_TRUE(is_after(kAll / 2 - 1, 0));
  EXPECT_FALSE(is_after(kAll / 2 + 1, 0));
  EXPECT_TRUE(is_after(5, 0xfffffff0U)) << "a counter that was not cut";
}

// Eight times round in one window, wherever it begins; most numbers are left out.
TEST(RequestNumbers, AllOfAWindowAreAfterItsBegin) {
  for (const std::uint32_t begin : {0u, 1u, kBlock - 1, kBlock, kAll / 2 - 1, kAll / 2, kAll - 2, kAll - 1}) {
    Number last{begin}, before_window{begin};
    std::uint32_t old = 0, recent = 0;  // of kReach numbers ago and more, and of less
    for (int block = 0; block < 64; ++block) {
      for (int near = 0; near < 8; ++near) {
        const std::uint32_t number = take(last, before_window, false);
        ASSERT_TRUE(number > 0 && number < kAll);
        ASSERT_TRUE(is_after(number, before_window)) << begin << " block " << block;
        if (block >= 1) {
          EXPECT_TRUE(is_after(recent, before_window)) << begin << " block " << block;
        }
        if (block >= 4) {
          EXPECT_FALSE(is_after(old, before_window)) << begin << " block " << block;
        }
        if (block < 2) {
          EXPECT_EQ(before_window, begin);
        }
      }
      old = (last - 3 * kBlock - 16) & (kAll - 1);
      recent = last & (kAll - 1);
      last = ((last & ~(kBlock - 1)) | (kBlock - 4)) + ((last & (kBlock - 1)) >= kBlock - 4 ? kBlock : 0);
    }
  }
}

TEST(RequestNumbers, ThoseBeforeTheWindowStayBeforeIt) {
  for (const std::uint32_t begin : {kBlock, kAll / 2, kAll - 1, 5u}) {
    Number last{begin}, before_window{begin};
    for (int block = 0; block < 2; ++block) {
      take(last, before_window, false);
      for (const std::uint32_t earlier : {0u, 1u, 1000u, kBlock}) {
        EXPECT_FALSE(is_after((begin - earlier) & (kAll - 1), before_window)) << begin << " - " << earlier;
      }
      last += kBlock - 4;
    }
  }
}

TEST(RequestNumbers, ThreadsGetDifferentOnes) {
  constexpr int kEach = 50'000;
  Number last{kAll - kEach}, before_window{kAll - kEach};
  std::vector<std::vector<std::uint32_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) mine.push_back(take(last, before_window, true));
      });
    }
  }
  std::set<std::uint32_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), taken.size() * kEach);
  EXPECT_FALSE(all.contains(0));
}

}  // namespace
}  // namespace lbf::capture::request_numbers
