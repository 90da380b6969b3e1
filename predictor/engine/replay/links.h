// Links: what messages between nodes share (contention models `bus` and `nic`, docs/engine.md "Contention").
//
// A link has a bandwidth and shares it equally among the connections that have a message in it. A connection
// (sender's rank, receiver's rank) has one message at a time in the links, further ones wait in the order in
// which they were sent. `bus`: all messages between nodes go through one link (the pseudoprocess of TSE Sec.
// 4). `nic`: each goes through the outgoing link of its node and the incoming link of the other at the same
// time, and is through when both have served it. A message alone takes the time of the network's table: what
// the links do not need of it is latency. Where they need longer than that (links let short bursts pass, a
// table of single messages shows it), the message arrives by the table and keeps its links busy for the rest.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/replay/event_queue.h"
#include "predictor/engine/replay/target.h"

namespace lbf::engine {

class Links {
 public:
  // A target whose network has no contention has no links.
  explicit Links(const Target& target);

  bool shared() const { return !links_.empty(); }
  Bytes memory_bytes() const;
  // A message starts at `start_s` (now or later), and would arrive `rest_s` after that if it were alone. Of exchanges:
  // of messages that are announced first (IS_RENDEZVOUS).
  // REQUIRES: shared(); its ranks are on different nodes; now_s does not go back from call to call.
  void add(MessageIndex index, const Message& message, bool is_rendezvous, std::uint32_t from_node,
           std::uint32_t to_node, Seconds start_s, Seconds rest_s, Seconds now_s);

  // Time of the next thing that happens in the links; kNeverS: nothing does.
  Seconds next_s() const;
  // Lets it happen. Returns the message that is through now, kNoMessage: none is. `latency_s`: from now until
  // it arrives. `generation`: the message's, when it started; nobody may have received it, and its slot may have
  // another one by now.
  MessageIndex advance(Seconds& latency_s, std::uint32_t& generation);

  // How much longer the rank would have waited for messages that began while the connection back had one in its links,
  // if all of those had taken turns (docs/adr/0008, "Exchanges"); of the rank with most. 0 but for `nic`: on a bus they
  // wait for each other anyway.
  Seconds exchange_s() const;

 private:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  static constexpr std::size_t kMaxLinksOfTransfer = 2;
  struct Transfer {
    MessageIndex message = kNoMessage;
    std::uint32_t generation = 0;  // of the message
    std::uint64_t connection = 0;
    bool is_rendezvous = false;
    Seconds start_s = 0;  // not in the links before
    Seconds work_s = 0;   // in a link of its own
    Seconds latency_s = 0;
    Seconds tail_s = 0;  // in a link of its own, after it has arrived
    Index links[kMaxLinksOfTransfer] = {kNone, kNone};
    std::uint32_t links_left = 0;
    Index next = kNone;  // of the connection, or free
  };
  struct Share {
    Seconds end;  // on the link's virtual clock
    std::uint64_t connection;
    Index transfer;
  };
  struct Link {
    Seconds time_s = 0;
    Seconds virtual_s = 0;      // time that each connection got since the link was last idle
    std::vector<Share> shares;  // heap by end
  };
  struct Connection {
    Index head = kNone;  // in the links, or about to be
    Index tail = kNone;
  };

  static bool later(const Share& a, const Share& b) {
    return a.end != b.end ? a.end > b.end : a.connection > b.connection;
  }
  void enter(Index transfer, Seconds now_s);
  void enter_or_set_timer(Index transfer, Seconds now_s);
  void schedule(Index link);
  void note_exchange(const Message& message, Seconds start_s);
  Contention model_;
  double bytes_per_s_;
  std::uint32_t nodes_;
  std::vector<Link> links_;  // bus: one; nic: outgoing of each node, then incoming of each node
  std::vector<Transfer> transfers_;
  Index free_transfers_ = kNone;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::vector<Seconds> exchange_s_;  // by receiver, as far as there is any
  EventQueue link_queue_;            // sources: links
  EventQueue start_queue_;           // sources: transfers that start later
};

}  // namespace lbf::engine
