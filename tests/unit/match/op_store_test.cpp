#include "predictor/match/op_store.h"

#include <gtest/gtest.h>

namespace lbf {
namespace {

Op work(double seconds) {
  Op op;
  op.work_s = seconds;
  return op;
}

TEST(OpStore, EachReaderReadsEverythingInOrder) {
  OpStore store(2, 2);
  OpStore::Cursor fast;
  OpStore::Cursor slow;
  EXPECT_EQ(store.front(1, fast), nullptr);
  constexpr int kOps = 1000;
  for (int i = 0; i < kOps; ++i) {
    store.push(1, work(i));
    ASSERT_NE(store.front(1, fast), nullptr);
    EXPECT_EQ(store.front(1, fast)->work_s, i);
    OpStore::pop(fast);
    EXPECT_EQ(store.front(1, fast), nullptr);
  }
  for (int i = 0; i < kOps; ++i) {
    ASSERT_EQ(store.front(1, slow)->work_s, i);
    OpStore::pop(slow);
  }
  EXPECT_EQ(store.front(1, slow), nullptr);
  EXPECT_EQ(store.front(0, slow = {}), nullptr);
}

TEST(OpStore, ChunksReturnWhenAllReadersPassed) {
  OpStore store(1, 2);
  OpStore::Cursor a;
  OpStore::Cursor b;
  for (std::uint32_t i = 0; i < 100 * OpStore::kChunkOps; ++i) {
    store.push(0, work(0));
    ASSERT_NE(store.front(0, a), nullptr);
    OpStore::pop(a);
    ASSERT_NE(store.front(0, b), nullptr);
    OpStore::pop(b);
  }
  EXPECT_LE(store.ops_in_flight(), 2 * OpStore::kChunkOps);
}

TEST(OpStore, MessageSlotsAreFreeWhenAllReplaysReceived) {
  OpStore store(1, 2);
  const MessageIndex first = store.new_message();
  store.sent(first);
  store.received(first);
  EXPECT_NE(store.new_message(), first);
  store.sent(first);
  store.received(first);
  EXPECT_EQ(store.new_message(), first);
}

TEST(OpStore, DiscardedMessagesAreFreeWhenAllReplaysSent) {
  OpStore store(1, 2);
  const MessageIndex message = store.new_message();
  store.discard(message);
  store.sent(message);
  EXPECT_NE(store.new_message(), message);
  store.sent(message);
  EXPECT_EQ(store.new_message(), message);
}

TEST(OpStore, OrderOfActorsDoesNotDependOnWhenTheyCame) {
  OpStore one(2, 1);
  OpStore other(2, 1);
  const ProcessIndex a0 = one.add_actor(0);
  const ProcessIndex a1 = one.add_actor(1);
  const ProcessIndex b1 = other.add_actor(1);
  const ProcessIndex b0 = other.add_actor(0);
  EXPECT_EQ(one.order_of(a0), other.order_of(b0));
  EXPECT_EQ(one.order_of(a1), other.order_of(b1));
  EXPECT_LT(one.order_of(0), one.order_of(a0));
  EXPECT_LT(one.order_of(a0), one.order_of(1));
}

}  // namespace
}  // namespace lbf
