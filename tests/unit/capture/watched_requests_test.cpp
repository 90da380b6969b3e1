#include "spank_plugin/capture/watched_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace lbf::capture::watched_requests_test {
namespace {

std::vector<std::uint32_t> ids_of(WatchedRequests& watched) {
  std::vector<std::uint32_t> ids;
  watched.for_each([&](const WatchedRequests::Node& node) { ids.push_back(node.id); });
  return ids;
}

TEST(WatchedRequests, KeepPostingOrder) {
  WatchedRequests watched;
  ASSERT_TRUE(watched.open());
  EXPECT_TRUE(watched.empty());
  std::mt19937 random(3);
  std::vector<std::pair<std::uint16_t, std::uint32_t>> expected;
  for (std::uint32_t id = 1; id < 20'000; ++id) {
    expected.emplace_back(watched.add(id * 8, id, 0, true, true), id);
    if (random() % 3 != 0) {
      const auto gone = expected.begin() + static_cast<std::ptrdiff_t>(random() % expected.size());
      WatchedRequests::Node* const node = watched.find(gone->first, gone->second);
      ASSERT_NE(node, nullptr);
      EXPECT_EQ(node->handle, gone->second * 8);
      watched.remove(node);
      EXPECT_EQ(watched.find(gone->first, gone->second), nullptr) << "its number is somebody else's, or free";
      expected.erase(gone);
    }
    if (id % 1000 != 0) continue;
    std::vector<std::uint32_t> ids;
    for (const auto& [at, expected_id] : expected) ids.push_back(expected_id);
    ASSERT_EQ(ids_of(watched), ids);
  }
}

TEST(WatchedRequests, AnUnwatchedRequestIsNotFound) {
  WatchedRequests watched;
  ASSERT_TRUE(watched.open());
  EXPECT_EQ(watched.find(0, 0), nullptr);
  EXPECT_EQ(watched.find(0, 7), nullptr);
  const std::uint16_t at = watched.add(8, 7, 0, true, false);
  EXPECT_EQ(watched.find(at, 8), nullptr) << "another request had the number before";
}

TEST(WatchedRequests, FullIsSaidAndRoomComesBack) {
  WatchedRequests watched;
  ASSERT_TRUE(watched.open());
  std::uint16_t last = 0;
  for (std::uint32_t id = 1; id <= 65535; ++id) last = watched.add(id, id, 0, true, true);
  ASSERT_NE(last, 0);
  EXPECT_EQ(watched.add(70'000, 70'000, 0, true, true), 0);
  watched.remove(watched.find(last, 65535));
  EXPECT_NE(watched.add(70'000, 70'000, 0, true, true), 0);
}

TEST(WatchedRequests, CountsThoseThatWaitForAPlace) {
  WatchedRequests watched;
  ASSERT_TRUE(watched.open());
  watched.add(8, 1, 0, true, true);
  const std::uint16_t second = watched.add(16, 2, 0, true, false);
  const std::uint16_t third = watched.add(24, 3, 0, true, false);
  watched.add(32, 4, 0, false, false);  // an MPI_Comm_idup
  EXPECT_EQ(watched.waiting(), 2u);
  const auto anybody = [](const WatchedRequests::Node&) { return true; };
  EXPECT_TRUE(watched.any_before(watched.find(second, 2), anybody));
  EXPECT_FALSE(watched.any_before(watched.find(second, 2), [](const auto& node) { return node.id == 3; }));
  watched.place(*watched.find(second, 2));
  EXPECT_EQ(watched.waiting(), 1u);
  EXPECT_FALSE(watched.any_before(nullptr, [](const auto& node) { return node.id == 2; })) << "it has its place";
  watched.remove(watched.find(second, 2));
  EXPECT_EQ(watched.waiting(), 1u);
  watched.remove(watched.find(third, 3));
  EXPECT_EQ(watched.waiting(), 0u);
}

}  // namespace
}  // namespace lbf::capture::watched_requests_test