// Connections: the places that lbfd has for connections, and who gives his up. No peer has more than a part of them.
// When they are full, or a peer's part is, the connection that waits longest for its peer ends and a new one gets in:
// a client whose kept connection was ended opens another one (libcurl does it by itself).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "predictor/daemon/http/share_count.h"

namespace lbf::daemon {

class Connection {
 public:
  // Gives up its socket, without a word.
  virtual void close() = 0;

 protected:
  ~Connection() = default;
};

// What a connection waits for.
enum class ConnectionState {
  kBusy,        // lbfd, or a body, which has a time limit of its own
  kForRequest,  // its peer to send a whole header, or to go away
  kForReader,   // its peer to take an answer; after `stalled_after` without a byte that is as good as idle
};

// REQUIRES: used by one thread.
class Connections {
 public:
  using Clock = std::chrono::steady_clock;

  Connections(std::size_t most, std::size_t most_per_peer, Clock::duration stalled_after)
      : most_(most), most_per_peer_(most_per_peer), stalled_after_(stalled_after) {}

  // Whether there is a place, or one that somebody can be made to give up.
  bool have_room() const;
  // Makes room for a connection of PEER's. false: all that PEER may have are in use, or all there are.
  bool make_room(const std::string& peer);
  // Ends the connection that waits longest. false: none waits.
  bool end_longest_waiting();

  void add(Connection& connection, const std::string& peer);
  void remove(Connection& connection);
  void set_state(Connection& connection, ConnectionState state);
  // It moved bytes: among those that wait for the same it is the last again.
  void moved(Connection& connection);
  void close_waiting();

  std::size_t count() const { return entries_.size(); }

 private:
  using Order = std::map<std::uint64_t, Connection*>;  // by when they moved last
  struct Entry {
    std::string peer;
    ShareCount::Part part;
    ConnectionState state = ConnectionState::kBusy;
    std::uint64_t turn = 0;
    Clock::time_point moved_at = {};
  };

  bool has_stalled(const Entry& entry) const { return Clock::now() - entry.moved_at >= stalled_after_; }
  // Of PEER's, or of all (nullptr).
  Connection* longest_waiting(const std::string* peer) const;
  bool end(Connection* connection);
  void leave_order(const Entry& entry);
  void join_order(Connection& connection, Entry& entry);

  const std::size_t most_;
  const std::size_t most_per_peer_;
  const Clock::duration stalled_after_;
  ShareCount peers_;  // outlives the entries
  std::map<Connection*, Entry> entries_;
  std::uint64_t next_turn_ = 0;
  Order for_request_;
  Order for_reader_;
};

}  // namespace lbf::daemon
