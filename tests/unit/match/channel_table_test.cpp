#include "predictor/engine/match/channel_table.h"

#include <gtest/gtest.h>

namespace lbf::channel_table_test {
namespace {

const engine::ChannelKey kKey{0, 1, 2, 3};

class Channels : public testing::Test {
 protected:
  engine::MessageIndex send(const engine::ChannelKey& key = kKey) {
    const engine::MessageIndex message = table_.take_send(key, paired_);
    store_.message(message).sent = true;
    return message;
  }
  engine::MessageIndex receive(const engine::ChannelKey& key = kKey) { return table_.take_receive(key, paired_); }
  // What all replays do with a message.
  void finish(engine::MessageIndex message) { store_.withdraw(message, 2); }
  engine::OpStore store_{4, 1};
  engine::Ghosts ghosts_{store_};
  engine::ChannelTable table_{store_, ghosts_};
  bool paired_ = false;
};

TEST_F(Channels, PairInOrderWhicheverSideIsAhead) {
  const engine::MessageIndex s1 = send();
  EXPECT_FALSE(paired_);
  const engine::MessageIndex s2 = send();
  EXPECT_EQ(receive(), s1);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(receive(), s2);
  const engine::MessageIndex r3 = receive();
  const engine::MessageIndex r4 = receive();
  EXPECT_EQ(send(), r3);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(send(), r4);
}

TEST_F(Channels, DifferInEveryPartOfTheKey) {
  send({0, 1, 2, 3});
  for (const engine::ChannelKey& other : {engine::ChannelKey{1, 1, 2, 3}, {0, 0, 2, 3}, {0, 1, 3, 3}, {0, 1, 2, 4}}) {
    receive(other);
    EXPECT_FALSE(paired_);
  }
}

TEST_F(Channels, AProbeSeesWhatTheNextReceiveTakes) {
  const engine::MessageIndex early = table_.peek(kKey, paired_);  // nothing sent yet
  EXPECT_EQ(table_.peek(kKey, paired_), early);
  EXPECT_EQ(send(), early);
  EXPECT_EQ(receive(), early);
  const engine::MessageIndex late = send();
  EXPECT_EQ(table_.peek(kKey, paired_), late);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(receive(), late);
}

TEST_F(Channels, AReturnedPlaceIsTheNextReceives) {
  const engine::MessageIndex sent = send();
  EXPECT_EQ(receive(), sent);
  table_.return_receive(kKey, sent);
  EXPECT_EQ(receive(), sent);
  const engine::MessageIndex open = receive();
  const engine::MessageIndex last = receive();
  table_.return_receive(kKey, last);
  EXPECT_EQ(send(), open);
  send();
  EXPECT_FALSE(paired_);  // nobody waits for the second
}

TEST_F(Channels, ACancelledSendIsGone) {
  const engine::MessageIndex first = send();
  const engine::MessageIndex second = send();
  EXPECT_TRUE(table_.cancel_send(kKey, first));
  EXPECT_EQ(receive(), second);
  EXPECT_FALSE(table_.cancel_send(kKey, second));  // taken
  const engine::MessageIndex third = send();
  EXPECT_TRUE(table_.cancel_send(kKey, third));
  receive();
  EXPECT_FALSE(paired_);
}

TEST_F(Channels, MemoryFollowsWhatIsInFlight) {
  for (std::int32_t tag = 0; tag < 100000; ++tag) {  // a new tag each time
    const engine::ChannelKey key{0, 0, 1, tag};
    const engine::MessageIndex message = send(key);
    ASSERT_EQ(receive(key), message);
    finish(message);
  }
  EXPECT_EQ(store_.message_slots(), 1u);
  std::size_t outstanding = 0;
  table_.for_each_outstanding([&](engine::MessageIndex, bool) { ++outstanding; });
  EXPECT_EQ(outstanding, 0u);
}

// --- what was only counted between two capture windows

TEST_F(Channels, WhatNeitherSideRecordedIsNoMessage) {
  const engine::ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, engine::ChannelEnd::kSends, 3, ghost);
  const engine::MessageIndex sent = send();
  table_.skip(kKey, engine::ChannelEnd::kReceives, 3, ghosts_.call(2));
  EXPECT_EQ(receive(), sent);
  EXPECT_TRUE(paired_);
}

TEST_F(Channels, AGhostSendsWhatWasReceivedOnly) {
  const engine::MessageIndex posted = receive();
  const engine::ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, engine::ChannelEnd::kSends, 2, ghost);
  EXPECT_TRUE(store_.message(posted).sent);
  EXPECT_EQ(store_.message(posted).sender, ghost);
  const engine::MessageIndex later = receive();  // the second one
  EXPECT_FALSE(paired_);
  EXPECT_EQ(store_.message(later).sender, ghost);
  EXPECT_TRUE(store_.message(later).internal);
  const engine::MessageIndex real = receive();
  EXPECT_FALSE(store_.message(real).sent);
  EXPECT_EQ(send(), real);
}

TEST_F(Channels, AGhostReceivesWhatWasSentOnly) {
  const engine::MessageIndex sent = send();
  const engine::ProcessIndex ghost = ghosts_.call(2);
  table_.skip(kKey, engine::ChannelEnd::kReceives, 2, ghost);
  EXPECT_EQ(store_.message(sent).receiver, ghost);
  EXPECT_EQ(store_.message(send()).receiver, ghost);
  const engine::MessageIndex real = send();
  EXPECT_EQ(store_.message(real).receiver, engine::kNobody);
  EXPECT_EQ(receive(), real);
}

TEST_F(Channels, AProbedMessageWhoseReceiveWasSkippedIsGone) {
  const engine::MessageIndex sent = send();
  const engine::MessageIndex next = send();
  EXPECT_EQ(table_.peek(kKey, paired_), sent);
  table_.skip(kKey, engine::ChannelEnd::kReceives, 1, ghosts_.call(2));
  EXPECT_EQ(receive(), next);
}

TEST_F(Channels, AGhostThatNobodyNeedsServesItsRankAgain) {
  const engine::ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, engine::ChannelEnd::kSends, 1, ghost);
  ghosts_.let_go(ghost);
  EXPECT_NE(ghosts_.call(1), ghost);  // its run is still there
  receive();
  EXPECT_EQ(ghosts_.call(1), ghost);
}

}  // namespace
}  // namespace lbf::channel_table_test