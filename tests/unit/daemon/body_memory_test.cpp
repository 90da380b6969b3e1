// The memory of request bodies: a bound for all, a part for each user, and no bodies that wait for each other.
#include "predictor/daemon/http/body_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lbf::daemon::body_memory_test {
namespace {

class BodyMemoryTest : public testing::Test {
 protected:
  // Whether it is there at once.
  bool grow(BodyMemory::Body body, Bytes bytes) {
    const std::size_t before = granted_;
    memory_.grow(body, bytes, [this] { ++granted_; });
    return granted_ > before;
  }

  BodyMemory memory_{100, 40};
  std::size_t granted_ = 0;
};

TEST_F(BodyMemoryTest, AnAnnouncedBodyHoldsNothing) {
  for (int i = 0; i < 1000; ++i) memory_.open("a");
  EXPECT_EQ(memory_.held_bytes(), 0U);
  EXPECT_TRUE(grow(memory_.open("a"), 40));
}

TEST_F(BodyMemoryTest, AUserHasAPartAndTheOthersTheRest) {
  const auto first = memory_.open("a");
  EXPECT_TRUE(grow(first, 40));
  EXPECT_FALSE(grow(memory_.open("a"), 10));
  EXPECT_TRUE(grow(memory_.open("b"), 40));
  EXPECT_EQ(memory_.held_bytes(), 80U);
  memory_.close(first);
  EXPECT_EQ(granted_, 3U);
  EXPECT_EQ(memory_.held_bytes(), 50U);
}

TEST_F(BodyMemoryTest, AllTogetherHaveABound) {
  std::vector<BodyMemory::Body> bodies;
  for (const char* user : {"a", "b", "c"}) {
    bodies.push_back(memory_.open(user));
    const bool at_once = grow(bodies.back(), 40);
    EXPECT_EQ(at_once, *user != 'c');
  }
  memory_.complete(bodies[0]);
  EXPECT_EQ(granted_, 2U);  // read, and not yet given back
  memory_.close(bodies[0]);
  EXPECT_EQ(granted_, 3U);
}

// Each holds half of what it needs, and nothing is left: the oldest goes on.
TEST_F(BodyMemoryTest, BodiesDoNotWaitForEachOther) {
  const auto first = memory_.open("a");
  const auto second = memory_.open("a");
  EXPECT_TRUE(grow(first, 20));
  EXPECT_TRUE(grow(second, 20));
  EXPECT_FALSE(grow(second, 60));
  EXPECT_TRUE(grow(first, 60));
  EXPECT_EQ(memory_.held_bytes(), 80U);
  memory_.complete(first);
  EXPECT_EQ(granted_, 3U);  // not both at once: the first one's memory comes back
  memory_.close(first);
  EXPECT_EQ(granted_, 4U);
  EXPECT_EQ(memory_.held_bytes(), 60U);
}

TEST_F(BodyMemoryTest, OfAllTheOldestPassesTheBound) {
  BodyMemory::Body bodies[4];
  for (int i = 0; i < 4; ++i) {
    bodies[i] = memory_.open(std::to_string(i));
    EXPECT_TRUE(grow(bodies[i], 25));
  }
  EXPECT_FALSE(grow(bodies[3], 30));
  EXPECT_FALSE(grow(bodies[1], 30));
  EXPECT_TRUE(grow(bodies[0], 40));
  EXPECT_EQ(memory_.held_bytes(), 115U);
  memory_.complete(bodies[0]);
  EXPECT_EQ(granted_, 5U);
  memory_.close(bodies[0]);
  EXPECT_EQ(granted_, 7U);
  EXPECT_EQ(memory_.held_bytes(), 85U);
}

TEST_F(BodyMemoryTest, WhatIsClosedWhileItWaitsIsForgotten) {
  const auto first = memory_.open("a");
  const auto second = memory_.open("a");
  EXPECT_TRUE(grow(first, 40));
  EXPECT_FALSE(grow(second, 40));
  memory_.close(second);
  memory_.close(first);
  EXPECT_EQ(granted_, 1U);
  EXPECT_EQ(memory_.held_bytes(), 0U);
  memory_.close(first);
  EXPECT_EQ(memory_.held_bytes(), 0U);
}

}  // namespace
}  // namespace lbf::daemon::body_memory_test
