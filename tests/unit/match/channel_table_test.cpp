#include "predictor/engine/match/channel_table.h"

#include <gtest/gtest.h>

namespace lbf {
namespace {

const ChannelKey kKey{0, 1, 2, 3};

class Channels : public testing::Test {
 protected:
  MessageIndex send(const ChannelKey& key = kKey) {
    const MessageIndex message = table_.take_send(key, paired_);
    store_.message(message).sent = true;
    return message;
  }
  MessageIndex receive(const ChannelKey& key = kKey) { return table_.take_receive(key, paired_); }
  // What all replays do with a message.
  void finish(MessageIndex message) { store_.withdraw(message, 2); }
  OpStore store_{4, 1};
  Ghosts ghosts_{store_};
  ChannelTable table_{store_, ghosts_};
  bool paired_ = false;
};

TEST_F(Channels, PairInOrderWhicheverSideIsAhead) {
  const MessageIndex s1 = send();
  EXPECT_FALSE(paired_);
  const MessageIndex s2 = send();
  EXPECT_EQ(receive(), s1);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(receive(), s2);
  const MessageIndex r3 = receive();
  const MessageIndex r4 = receive();
  EXPECT_EQ(send(), r3);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(send(), r4);
}

TEST_F(Channels, DifferInEveryPartOfTheKey) {
  send({0, 1, 2, 3});
  for (const ChannelKey& other : {ChannelKey{1, 1, 2, 3}, {0, 0, 2, 3}, {0, 1, 3, 3}, {0, 1, 2, 4}}) {
    receive(other);
    EXPECT_FALSE(paired_);
  }
}

TEST_F(Channels, AProbeSeesWhatTheNextReceiveTakes) {
  const MessageIndex early = table_.peek(kKey, paired_);  // nothing sent yet
  EXPECT_EQ(table_.peek(kKey, paired_), early);
  EXPECT_EQ(send(), early);
  EXPECT_EQ(receive(), early);
  const MessageIndex late = send();
  EXPECT_EQ(table_.peek(kKey, paired_), late);
  EXPECT_TRUE(paired_);
  EXPECT_EQ(receive(), late);
}

TEST_F(Channels, AReturnedPlaceIsTheNextReceives) {
  const MessageIndex sent = send();
  EXPECT_EQ(receive(), sent);
  table_.return_receive(kKey, sent);
  EXPECT_EQ(receive(), sent);
  const MessageIndex open = receive();
  const MessageIndex last = receive();
  table_.return_receive(kKey, last);
  EXPECT_EQ(send(), open);
  send();
  EXPECT_FALSE(paired_);  // nobody waits for the second
}

TEST_F(Channels, ACancelledSendIsGone) {
  const MessageIndex first = send();
  const MessageIndex second = send();
  EXPECT_TRUE(table_.cancel_send(kKey, first));
  EXPECT_EQ(receive(), second);
  EXPECT_FALSE(table_.cancel_send(kKey, second));  // taken
  const MessageIndex third = send();
  EXPECT_TRUE(table_.cancel_send(kKey, third));
  receive();
  EXPECT_FALSE(paired_);
}

TEST_F(Channels, MemoryFollowsWhatIsInFlight) {
  for (std::int32_t tag = 0; tag < 100000; ++tag) {  // a new tag each time
    const ChannelKey key{0, 0, 1, tag};
    const MessageIndex message = send(key);
    ASSERT_EQ(receive(key), message);
    finish(message);
  }
  EXPECT_EQ(store_.message_slots(), 1u);
  std::size_t outstanding = 0;
  table_.for_each_outstanding([&](MessageIndex, bool) { ++outstanding; });
  EXPECT_EQ(outstanding, 0u);
}

// --- what was only counted between two capture windows

TEST_F(Channels, WhatNeitherSideRecordedIsNoMessage) {
  const ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, true, 3, ghost);
  const MessageIndex sent = send();
  table_.skip(kKey, false, 3, ghosts_.call(2));
  EXPECT_EQ(receive(), sent);
  EXPECT_TRUE(paired_);
}

TEST_F(Channels, AGhostSendsWhatWasReceivedOnly) {
  const MessageIndex posted = receive();
  const ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, true, 2, ghost);
  EXPECT_TRUE(store_.message(posted).sent);
  EXPECT_EQ(store_.message(posted).sender, ghost);
  const MessageIndex later = receive();  // the second one
  EXPECT_FALSE(paired_);
  EXPECT_EQ(store_.message(later).sender, ghost);
  EXPECT_TRUE(store_.message(later).internal);
  const MessageIndex real = receive();
  EXPECT_FALSE(store_.message(real).sent);
  EXPECT_EQ(send(), real);
}

TEST_F(Channels, AGhostReceivesWhatWasSentOnly) {
  const MessageIndex sent = send();
  const ProcessIndex ghost = ghosts_.call(2);
  table_.skip(kKey, false, 2, ghost);
  EXPECT_EQ(store_.message(sent).receiver, ghost);
  EXPECT_EQ(store_.message(send()).receiver, ghost);
  const MessageIndex real = send();
  EXPECT_EQ(store_.message(real).receiver, kNobody);
  EXPECT_EQ(receive(), real);
}

TEST_F(Channels, AProbedMessageWhoseReceiveWasSkippedIsGone) {
  const MessageIndex sent = send();
  const MessageIndex next = send();
  EXPECT_EQ(table_.peek(kKey, paired_), sent);
  table_.skip(kKey, false, 1, ghosts_.call(2));
  EXPECT_EQ(receive(), next);
}

TEST_F(Channels, AGhostThatNobodyNeedsServesItsRankAgain) {
  const ProcessIndex ghost = ghosts_.call(1);
  table_.skip(kKey, true, 1, ghost);
  ghosts_.let_go(ghost);
  EXPECT_NE(ghosts_.call(1), ghost);  // its run is still there
  receive();
  EXPECT_EQ(ghosts_.call(1), ghost);
}

}  // namespace
}  // namespace lbf
