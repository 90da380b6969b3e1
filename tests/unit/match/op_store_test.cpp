#include "predictor/engine/match/op_store.h"

#include <gtest/gtest.h>

namespace lbf::op_store_test {
namespace {

engine::Op work(double seconds) {
  return engine::Op::plain(engine::OpKind::kCompute, seconds, 0);
}

TEST(OpStore, EachReaderReadsEverythingInOrder) {
  engine::OpStore store(2, 2);
  engine::OpStore::Cursor fast;
  engine::OpStore::Cursor slow;
  EXPECT_EQ(store.front(1, fast), nullptr);
  constexpr int kOps = 1000;
  for (int i = 0; i < kOps; ++i) {
    store.push(1, work(i));
    ASSERT_NE(store.front(1, fast), nullptr);
    EXPECT_EQ(store.front(1, fast)->work_s, i);
    engine::OpStore::pop(fast);
    EXPECT_EQ(store.front(1, fast), nullptr);
  }
  for (int i = 0; i < kOps; ++i) {
    ASSERT_EQ(store.front(1, slow)->work_s, i);
    engine::OpStore::pop(slow);
  }
  EXPECT_EQ(store.front(1, slow), nullptr);
  EXPECT_EQ(store.front(0, slow = {}), nullptr);
}

TEST(OpStore, ChunksReturnWhenAllReadersPassed) {
  engine::OpStore store(1, 2);
  engine::OpStore::Cursor a;
  engine::OpStore::Cursor b;
  for (std::uint32_t i = 0; i < 100 * engine::OpStore::kChunkOps; ++i) {
    store.push(0, work(0));
    ASSERT_NE(store.front(0, a), nullptr);
    engine::OpStore::pop(a);
    ASSERT_NE(store.front(0, b), nullptr);
    engine::OpStore::pop(b);
  }
  EXPECT_LE(store.ops_in_flight(), 2 * engine::OpStore::kChunkOps);
}

TEST(OpStore, MessageSlotsAreFreeWhenAllReplaysExecutedWhatNamesThem) {
  engine::OpStore store(1, 2);
  const engine::MessageIndex first = store.new_message();
  store.push(0, engine::Op::on_message(engine::OpKind::kSend, first));
  store.push(0, engine::Op::on_message(engine::OpKind::kRecv, first));
  for (int use = 0; use < 3; ++use) store.note_use(first);
  EXPECT_NE(store.new_message(), first);
  store.note_use(first);
  EXPECT_EQ(store.new_message(), first);
}

TEST(OpStore, AMessageThatNobodyReceivesIsFreeAfterItsSend) {
  engine::OpStore store(1, 2);
  const engine::MessageIndex message = store.new_message();
  store.push(0, engine::Op::on_message(engine::OpKind::kSend, message));
  store.note_use(message);
  store.withdraw(message, 1);
  EXPECT_NE(store.new_message(), message);
  store.note_use(message);
  EXPECT_EQ(store.new_message(), message);
}

TEST(OpStore, AWaitThatWillNotComeFreesTheSlot) {
  engine::OpStore store(1, 1);
  const engine::MessageIndex message = store.new_message();
  store.expect(message);
  store.push(0, engine::Op::on_message(engine::OpKind::kSend, message));
  store.push(0, engine::Op::on_message(engine::OpKind::kRecv, message));
  store.note_use(message);
  store.note_use(message);
  const std::uint32_t generation = store.message(message).generation;
  EXPECT_NE(store.new_message(), message);
  store.withdraw(message, 1);
  EXPECT_EQ(store.new_message(), message);
  EXPECT_NE(store.message(message).generation, generation);
}

TEST(OpStore, NobodyPassesAHeldPostUntilItsMessageIsKnown) {
  engine::OpStore store(1, 1);
  engine::Op op = engine::Op::on_message(engine::OpKind::kPost, engine::kNoMessage);
  op.flags = engine::kOpHeld;
  engine::Op& held = store.push(0, op);
  store.push(0, work(1));
  engine::OpStore::Cursor cursor;
  EXPECT_EQ(store.front(0, cursor), nullptr);
  const engine::MessageIndex message = store.new_message();
  store.clear_touched();
  store.release(0, held, message);
  EXPECT_EQ(store.touched().size(), 1U);
  ASSERT_NE(store.front(0, cursor), nullptr);
  EXPECT_EQ(store.front(0, cursor)->message(), message);
}

TEST(OpStore, AReaderThatJoinsReadsWhatTheOtherHasLeft) {
  engine::OpStore store(1, 1);
  engine::OpStore::Cursor old;
  for (std::uint32_t i = 0; i < 3 * engine::OpStore::kChunkOps; ++i) store.push(0, work(i));
  for (std::uint32_t i = 0; i < engine::OpStore::kChunkOps + 5; ++i) {
    ASSERT_NE(store.front(0, old), nullptr);
    engine::OpStore::pop(old);
  }
  engine::OpStore::Cursor joined = old;
  store.add_reader();
  store.add_reader_of(0, joined);
  for (engine::OpStore::Cursor* cursor : {&old, &joined}) {
    for (std::uint32_t i = engine::OpStore::kChunkOps + 5; i < 3 * engine::OpStore::kChunkOps; ++i) {
      ASSERT_NE(store.front(0, *cursor), nullptr);
      EXPECT_EQ(store.front(0, *cursor)->work_s, i);
      engine::OpStore::pop(*cursor);
    }
  }
  EXPECT_LE(store.ops_in_flight(), engine::OpStore::kChunkOps);
}

TEST(OpStore, OrderOfActorsDoesNotDependOnWhenTheyCame) {
  engine::OpStore one(2, 1);
  engine::OpStore other(2, 1);
  const engine::ProcessIndex a0 = one.add_actor(0);
  const engine::ProcessIndex a1 = one.add_actor(1);
  const engine::ProcessIndex b1 = other.add_actor(1);
  const engine::ProcessIndex b0 = other.add_actor(0);
  EXPECT_EQ(one.order_of(a0), other.order_of(b0));
  EXPECT_EQ(one.order_of(a1), other.order_of(b1));
  EXPECT_LT(one.order_of(0), one.order_of(a0));
  EXPECT_LT(one.order_of(a0), one.order_of(1));
}

}  // namespace
}  // namespace lbf::op_store_test