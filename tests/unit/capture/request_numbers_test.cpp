// A window may have more requests than there are numbers: those that began in it must go on being told from
// those before it, and no number may be one of the relay's own. Once all completions went unrecorded from
// request 2^31 of a window on.
#include "spank_plugin/capture/request_numbers.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace lbf::capture::request_numbers_test {
namespace {

constexpr std::uint32_t kAll = RequestNumbers::kAll;
constexpr std::uint32_t kBlock = RequestNumbers::kBlock;
constexpr std::uint32_t kTaken = RequestNumbers::kTaken;

// As if N more had been given out: whole takings of a thread that gives none out.
void give_out(RequestNumbers& numbers, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n / kTaken; ++i) {
    RequestNumbers::Taken nobody;
    numbers.take(nobody, false);
  }
}

TEST(RequestNumbers, AreConsecutiveInOneThread) {
  for (const bool shared : {false, true}) {
    RequestNumbers numbers;
    RequestNumbers::Taken own;
    for (std::uint32_t i = 1; i < 10 * kTaken; ++i) ASSERT_EQ(numbers.take(own, shared), i);
  }
}

TEST(RequestNumbers, GoRoundBelowTheRelaysOwnWithoutZero) {
  for (const bool shared : {false, true}) {
    for (const std::uint32_t begin : {ring::kFirstRelayRequest - 3, ring::kFirstRelayRequest - kTaken - 1,
                                      ring::kFirstRelayRequest - kTaken, ring::kFirstRelayRequest - 1}) {
      RequestNumbers numbers{begin};
      RequestNumbers::Taken own;
      std::uint32_t last = begin;
      for (std::uint32_t i = 0; i < 4 * kTaken; ++i) {
        const std::uint32_t number = numbers.take(own, shared);
        ASSERT_GT(number, 0u) << begin << " + " << i;
        ASSERT_LT(number, ring::kFirstRelayRequest) << begin << " + " << i;
        ASSERT_TRUE(RequestNumbers::is_after(number, last));
        ASSERT_TRUE(numbers.is_of_window(number));
        last = number;
      }
    }
  }
}

TEST(RequestNumbers, OneIsAfterAnotherTheShorterWayRound) {
  EXPECT_TRUE(RequestNumbers::is_after(1, 0));
  EXPECT_FALSE(RequestNumbers::is_after(0, 1));
  EXPECT_FALSE(RequestNumbers::is_after(7, 7));
  EXPECT_TRUE(RequestNumbers::is_after(2, kAll - 1));
  EXPECT_FALSE(RequestNumbers::is_after(kAll - 1, 2));
  EXPECT_TRUE(RequestNumbers::is_after(kAll / 2 - 1, 0));
  EXPECT_FALSE(RequestNumbers::is_after(kAll / 2 + 1, 0));
  EXPECT_TRUE(RequestNumbers::is_after(5, 0xfffffff0U)) << "a counter that was not cut";
}

// Twice round in one window, wherever it begins; all but a thread's that takes some now and then are given out in
// takings.
TEST(RequestNumbers, AllOfAWindowAreAfterItsBegin) {
  for (const std::uint32_t begin : {0u, 1u, kBlock - 1, kAll / 2, kAll - 2}) {
    RequestNumbers numbers{begin};
    RequestNumbers::Taken seldom;
    std::vector<std::uint32_t> given;  // two a block, the newest last
    for (int block = 0; block < 16; ++block) {
      for (int near = 0; near < 2; ++near) {
        const std::uint32_t number = numbers.take(seldom, false);
        ASSERT_TRUE(number > 0 && number < kAll);
        ASSERT_TRUE(numbers.is_of_window(number)) << begin << " block " << block;
        given.push_back(number);
      }
      for (std::size_t i = 0; i < given.size(); ++i) {
        const std::size_t blocks_ago = (given.size() - 1 - i) / 2;
        if (blocks_ago <= 1) {
          EXPECT_TRUE(numbers.is_of_window(given[i])) << begin << " block " << block;
        } else if (blocks_ago == 3) {
          EXPECT_FALSE(numbers.is_of_window(given[i])) << begin << " block " << block;
        }
      }
      give_out(numbers, kBlock);
    }
  }
}

TEST(RequestNumbers, ThoseBeforeTheWindowStayBeforeIt) {
  for (const std::uint32_t begin : {kBlock, kAll / 2, kAll - 1, 5u}) {
    RequestNumbers numbers{begin};
    for (int block = 0; block < 2; ++block) {
      for (const std::uint32_t earlier : {0u, 1u, 1000u, kBlock})
        EXPECT_FALSE(numbers.is_of_window((begin - earlier) & (kAll - 1))) << begin << " - " << earlier;
      give_out(numbers, kBlock - 4 * kTaken);
    }
  }
}

// Else a request of the new window would have a number from before it.
TEST(RequestNumbers, WhatAThreadHasTakenIsVoidInTheNextWindow) {
  RequestNumbers numbers;
  RequestNumbers::Taken first, second;
  EXPECT_EQ(numbers.take(first, true), 1u);
  EXPECT_EQ(numbers.take(second, true), 1 + kTaken);
  numbers.begin_window();
  EXPECT_FALSE(numbers.is_of_window(1));
  EXPECT_FALSE(numbers.is_of_window(1 + kTaken));
  EXPECT_EQ(numbers.before_window(), 2 * kTaken);
  EXPECT_EQ(numbers.take(first, true), 1 + 2 * kTaken);
  EXPECT_TRUE(numbers.is_of_window(1 + 2 * kTaken));
}

TEST(RequestNumbers, ThreadsGetDifferentOnes) {
  constexpr std::uint32_t kEach = 50'000;
  RequestNumbers numbers{kAll - kEach};
  std::vector<std::vector<std::uint32_t>> taken(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : taken) {
      threads.emplace_back([&] {
        RequestNumbers::Taken own;
        for (std::uint32_t i = 0; i < kEach; ++i) mine.push_back(numbers.take(own, true));
      });
    }
  }
  std::set<std::uint32_t> all;
  for (const auto& mine : taken) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), taken.size() * kEach);
  EXPECT_FALSE(all.contains(0));
}

}  // namespace
}  // namespace lbf::capture::request_numbers_test