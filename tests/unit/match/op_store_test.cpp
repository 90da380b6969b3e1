#include "predictor/engine/match/op_store.h"

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

Op naming(OpKind kind, MessageIndex message) {
  Op op;
  op.kind = kind;
  op.message = message;
  return op;
}

TEST(OpStore, MessageSlotsAreFreeWhenAllReplaysExecutedWhatNamesThem) {
  OpStore store(1, 2);
  const MessageIndex first = store.new_message();
  store.push(0, naming(OpKind::kSend, first));
  store.push(0, naming(OpKind::kRecv, first));
  for (int use = 0; use < 3; ++use) store.used(first);
  EXPECT_NE(store.new_message(), first);
  store.used(first);
  EXPECT_EQ(store.new_message(), first);
}

TEST(OpStore, AMessageThatNobodyReceivesIsFreeAfterItsSend) {
  OpStore store(1, 2);
  const MessageIndex message = store.new_message();
  store.push(0, naming(OpKind::kSend, message));
  store.used(message);
  store.withdraw(message, 1);
  EXPECT_NE(store.new_message(), message);
  store.used(message);
  EXPECT_EQ(store.new_message(), message);
}

TEST(OpStore, AWaitThatWillNotComeFreesTheSlot) {
  OpStore store(1, 1);
  const MessageIndex message = store.new_message();
  store.expect(message);
  store.push(0, naming(OpKind::kSend, message));
  store.push(0, naming(OpKind::kRecv, message));
  store.used(message);
  store.used(message);
  const std::uint32_t generation = store.message(message).generation;
  EXPECT_NE(store.new_message(), message);
  store.withdraw(message, 1);
  EXPECT_EQ(store.new_message(), message);
  EXPECT_NE(store.message(message).generation, generation);
}

TEST(OpStore, NobodyPassesAHeldPostUntilItsMessageIsKnown) {
  OpStore store(1, 1);
  Op op = naming(OpKind::kPost, kNoMessage);
  op.flags = kOpHeld;
  Op& held = store.push(0, op);
  store.push(0, work(1));
  OpStore::Cursor cursor;
  EXPECT_EQ(store.front(0, cursor), nullptr);
  const MessageIndex message = store.new_message();
  store.clear_touched();
  store.release(0, held, message);
  EXPECT_EQ(store.touched().size(), 1U);
  ASSERT_NE(store.front(0, cursor), nullptr);
  EXPECT_EQ(store.front(0, cursor)->message, message);
}

TEST(OpStore, AReaderThatJoinsReadsWhatTheOtherHasLeft) {
  OpStore store(1, 1);
  OpStore::Cursor old;
  for (std::uint32_t i = 0; i < 3 * OpStore::kChunkOps; ++i) store.push(0, work(i));
  for (std::uint32_t i = 0; i < OpStore::kChunkOps + 5; ++i) {
    ASSERT_NE(store.front(0, old), nullptr);
    OpStore::pop(old);
  }
  OpStore::Cursor joined = old;
  store.add_reader();
  store.add_reader_of(0, joined);
  for (OpStore::Cursor* cursor : {&old, &joined}) {
    for (std::uint32_t i = OpStore::kChunkOps + 5; i < 3 * OpStore::kChunkOps; ++i) {
      ASSERT_NE(store.front(0, *cursor), nullptr);
      EXPECT_EQ(store.front(0, *cursor)->work_s, i);
      OpStore::pop(*cursor);
    }
  }
  EXPECT_LE(store.ops_in_flight(), OpStore::kChunkOps);
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
