// lbf-calibrate: what it makes of first contacts and turns.
#include "tools/calibrate/calibrate_contacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "predictor/engine/network/network.h"
#include "tools/calibrate/calibrate_table.h"

namespace lbf::calibrate_contacts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

tools::Contacts read_contacts(std::initializer_list<const char*> lines) {
  tools::Contacts measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_contact_line(line, measured).ok()) << line;
  return measured;
}

tools::Turns read_turns(std::initializer_list<const char*> lines) {
  tools::Turns measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_turn_line(line, measured).ok()) << line;
  return measured;
}

tools::PingPong read(std::initializer_list<const char*> lines) {
  tools::PingPong measured;
  for (const char* line : lines) EXPECT_TRUE(tools::read_pingpong_line(line, measured).ok()) << line;
  return measured;
}

TEST(ContactLines, AreAddedUpOverTheStarts) {
  const tools::Contacts measured = read_contacts(
      {"peer 10000000", "first remote 400000", "first remote -5", "first self 7000", "end", "peer 9000000", "end"});
  EXPECT_EQ(measured.complete, 2);
  EXPECT_THAT(measured.peer_ns, ElementsAre(10000000, 9000000));
  EXPECT_THAT(measured.first_remote_ns, ElementsAre(400000, -5));
  EXPECT_THAT(measured.first_self_node_ns, ElementsAre(7000));
}

TEST(ContactLines, ForeignOutputIsRefused) {
  for (const char* line : {"", "Welcome", "peer", "peer x", "peer 1 2", "peer1", "first 5", "first remote",
                           "first other 5", "end now", "turn 5"}) {
    tools::Contacts measured;
    EXPECT_FALSE(tools::read_contact_line(line, measured).ok()) << line;
  }
}

TEST(TurnLines, AreAddedUpAndForeignOutputIsRefused) {
  const tools::Turns measured = read_turns({"turn 450", "turn -3", "switch 1500", "end"});
  EXPECT_TRUE(measured.complete);
  EXPECT_THAT(measured.turn_ns, ElementsAre(450, -3));
  EXPECT_THAT(measured.switch_ns, ElementsAre(1500));
  for (const char* line : {"", "turn", "turn x", "switch", "switch 1 2", "turn 1 2", "end now", "peer 5"}) {
    tools::Turns refused;
    EXPECT_FALSE(tools::read_turn_line(line, refused).ok()) << line;
  }
}

TEST(NetworkFile, HasFirstContactsAndTurns) {
  const tools::PingPong remote = read({"node 0 a", "node 1 b", "batch 0 20000", "end"});
  const tools::PingPong self_node = read({"node 0 a", "node 1 a", "batch 0 1000", "end"});
  // 11 ms (third quartile) for the very first, of which 0.4 ms (median) are what each first one takes.
  const tools::Contacts contacts =
      read_contacts({"peer 2000000", "peer 10000000", "peer 12000000", "first remote 400000", "first remote 300000",
                     "first remote 9000000", "first self 7000", "end"});
  const tools::Turns remote_turns = read_turns({"turn 2600", "turn 2700", "turn 900000", "switch 5700", "end"});
  const tools::Turns self_node_turns = read_turns({"turn 450", "switch 1400", "switch 1600", "end"});
  tools::Calibration calibration;
  calibration.name = "lan";
  calibration.remote = remote;
  calibration.self_node = self_node;
  calibration.contacts = contacts;
  calibration.remote_turns = remote_turns;
  calibration.self_node_turns = self_node_turns;
  const std::string text = tools::network_file(calibration);
  const auto network = engine::Network::parse(text, "lan.toml");
  ASSERT_TRUE(network.ok()) << network.error().message << "\n" << text;
  EXPECT_NEAR(network->path(1).first_message_s, 0.4e-3, 1e-12);
  EXPECT_NEAR(network->path(1).first_peer_s, 10.6e-3, 1e-12);
  EXPECT_NEAR(network->path(1).turn_s, 2.7e-6, 1e-12);
  EXPECT_NEAR(network->path(0).first_message_s, 7e-6, 1e-12);
  EXPECT_EQ(network->path(0).first_peer_s, 0);
  EXPECT_NEAR(network->path(0).turn_s, 0.45e-6, 1e-12);
  EXPECT_NEAR(network->path(1).switch_s, 5.7e-6, 1e-12);
  EXPECT_NEAR(network->path(0).switch_s, 1.5e-6, 1e-12);
  // Quartiles, mean and samples, so that the distribution is not hidden.
  EXPECT_THAT(text, HasSubstr("first_of_two_new_ranks_us = [6000.000, 10000.000, 11000.000, 8000.000, 3]"));
  EXPECT_THAT(text, HasSubstr("first_remote_us = [350.000, 400.000, 4700.000, 3233.333, 3]"));
  EXPECT_THAT(text, HasSubstr("self_node_turn_us = [0.450, 0.450, 0.450, 0.450, 1]"));
  EXPECT_THAT(text, HasSubstr("self_node_switch_us = [1.450, 1.500, 1.550, 1.500, 2]"));
}

TEST(ContactKeys, AreLeftOutWhereNothingWasMeasuredAndNeverNegative) {
  EXPECT_EQ(tools::contact_keys(tools::Locality::kRemote, {}, {}), "");
  const tools::Contacts nothing;
  const tools::Turns no_turns;
  EXPECT_EQ(tools::contact_keys(tools::Locality::kRemote, nothing, no_turns), "");
  const tools::Contacts noise = read_contacts({"peer 5", "first remote 100", "first self -7"});
  const tools::Turns noisy_turns = read_turns({"turn -5", "switch -7"});
  EXPECT_EQ(tools::contact_keys(tools::Locality::kRemote, noise, noisy_turns),
            "first_message_us = 0.100\nfirst_peer_us = 0.000\nturn_us = 0.000\nswitch_us = 0.000\n");
  EXPECT_EQ(tools::contact_keys(tools::Locality::kSelfNode, noise, {}), "first_message_us = 0.000\n");
}

// Half a round trip was 3 us, of which 1.4 are the switch from one rank to the other; shorter than that is
// noise.
TEST(NetworkFile, OfOneProcessorHasTheSwitchOnce) {
  const tools::PingPong self_node = read({"node 0 a", "node 1 a", "yield 1", "batch 0 1300", "batch 8 3000", "end"});
  const tools::Turns turns = read_turns({"turn 450", "switch 1400", "end"});
  tools::Calibration calibration;
  calibration.name = "one";
  calibration.self_node = self_node;
  calibration.self_node_turns = turns;
  const auto network = engine::Network::parse(tools::network_file(calibration), "one.toml");
  ASSERT_TRUE(network.ok()) << network.error().message;
  const engine::PathCost& path = network->path(0);
  EXPECT_NEAR(path.send_cpu.at(8) + path.flight.at(8) + path.recv_cpu.at(8) + path.switch_s, 3e-6, 1e-12);
  EXPECT_NEAR(path.send_cpu.at(8), 0.8e-6, 1e-12);
  EXPECT_EQ(path.send_cpu.at(0), 0);
}

// Two ranks on one processor: it worked all the time that a message took.
TEST(SplitCosts, OnOneProcessorAllIsWork) {
  const auto shared = tools::split_costs(read({"node 0 a", "node 1 a", "yield 1", "batch 8 3000"}));
  EXPECT_NEAR(shared.at(8).send_cpu_s, 1.5e-6, 1e-12);
  EXPECT_NEAR(shared.at(8).recv_cpu_s, 1.5e-6, 1e-12);
  EXPECT_EQ(shared.at(8).flight_s, 0);
  EXPECT_TRUE(tools::split_costs(read({"node 0 a", "node 1 a", "yield 0", "batch 8 3000"})).empty());
  EXPECT_TRUE(tools::split_costs(read({"node 0 a", "node 1 b", "yield 1", "batch 8 3000"})).empty());
}

}  // namespace
}  // namespace lbf::calibrate_contacts_test