// Who gives his connection up when there are too many.
#include "predictor/daemon/http/connections.h"

#include <gtest/gtest.h>

#include <deque>

namespace lbf::daemon::connections_test {
namespace {

class ConnectionsTest : public testing::Test {
 protected:
  struct Fake final : Connection {
    void close() override { is_closed = true; }
    bool is_closed = false;
  };

  // nullptr: there is no room.
  Fake* open(Connections& connections, const std::string& peer, ConnectionState state) {
    if (!connections.make_room(peer)) return nullptr;
    Fake& made = fakes_.emplace_back();
    connections.add(made, peer);
    connections.set_state(made, state);
    return &made;
  }

  static constexpr auto kSilent = ConnectionState::kForRequest;
  static constexpr auto kBusy = ConnectionState::kBusy;
  static constexpr auto kReads = ConnectionState::kForReader;
  static constexpr auto kNever = std::chrono::hours(1);
  std::deque<Fake> fakes_;
};

TEST_F(ConnectionsTest, TheOneThatWaitsLongestGoes) {
  Connections connections(3, 3, kNever);
  Fake* const first = open(connections, "a", kSilent);
  Fake* const second = open(connections, "b", kSilent);
  open(connections, "c", kSilent);
  connections.set_state(*first, kBusy);
  connections.set_state(*first, kSilent);  // it sent a request meanwhile
  EXPECT_NE(open(connections, "d", kSilent), nullptr);
  EXPECT_TRUE(second->is_closed);
  EXPECT_FALSE(first->is_closed);
  EXPECT_EQ(connections.count(), 3U);
}

TEST_F(ConnectionsTest, APeerHasAPartAndEndsItsOwn) {
  Connections connections(8, 2, kNever);
  Fake* const other = open(connections, "a", kSilent);
  Fake* const first = open(connections, "b", kSilent);
  open(connections, "b", kSilent);
  open(connections, "b", kSilent);
  EXPECT_TRUE(first->is_closed);
  EXPECT_FALSE(other->is_closed);
  EXPECT_EQ(connections.count(), 3U);
}

TEST_F(ConnectionsTest, APeerWhoseConnectionsAreAllInUseGetsNoMore) {
  Connections connections(8, 2, kNever);
  open(connections, "b", kBusy);
  open(connections, "b", kBusy);
  EXPECT_EQ(open(connections, "b", kSilent), nullptr);
  EXPECT_NE(open(connections, "a", kSilent), nullptr);
}

TEST_F(ConnectionsTest, RequestsUnderWayAreNotEnded) {
  Connections connections(2, 2, kNever);
  open(connections, "a", kBusy);
  EXPECT_TRUE(connections.have_room());
  Fake* const reader = open(connections, "b", kReads);
  EXPECT_FALSE(connections.have_room());
  EXPECT_EQ(open(connections, "c", kSilent), nullptr);
  connections.remove(*reader);
  EXPECT_NE(open(connections, "c", kSilent), nullptr);
}

TEST_F(ConnectionsTest, AnAnswerThatNobodyReadsCountsAsIdle) {
  Connections connections(2, 2, std::chrono::seconds(0));
  Fake* const first = open(connections, "a", kReads);
  Fake* const second = open(connections, "b", kReads);
  connections.moved(*first);
  EXPECT_NE(open(connections, "c", kSilent), nullptr);
  EXPECT_TRUE(second->is_closed);
  EXPECT_FALSE(first->is_closed);
}

}  // namespace
}  // namespace lbf::daemon::connections_test
