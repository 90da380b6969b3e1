// Connections, see connections.h.
#include "predictor/daemon/http/connections.h"

#include <utility>
#include <vector>

namespace lbf::daemon {

Connection* Connections::longest_waiting(const std::string* peer) const {
  const auto is_meant = [&](Connection* connection) {
    return peer == nullptr || entries_.at(connection).peer == *peer;
  };
  for (const auto& [turn, connection] : for_request_) {
    if (is_meant(connection)) return connection;
  }
  for (const auto& [turn, connection] : for_reader_) {
    if (!has_stalled(entries_.at(connection))) return nullptr;  // nor have those behind it
    if (is_meant(connection)) return connection;
  }
  return nullptr;
}

bool Connections::end(Connection* connection) {
  if (connection == nullptr) return false;
  remove(*connection);
  connection->close();
  return true;
}

bool Connections::have_room() const {
  return count() < most_ || longest_waiting(nullptr) != nullptr;
}

bool Connections::end_longest_waiting() {
  return end(longest_waiting(nullptr));
}

bool Connections::make_room(const std::string& peer) {
  if (peers_.of(peer) >= most_per_peer_ && !end(longest_waiting(&peer))) return false;
  return count() < most_ || end_longest_waiting();
}

void Connections::add(Connection& connection, const std::string& peer) {
  entries_.emplace(&connection, Entry{.peer = peer, .part = ShareCount::Part(peers_, peer)});
}

void Connections::leave_order(const Entry& entry) {
  if (entry.state == ConnectionState::kForRequest) for_request_.erase(entry.turn);
  if (entry.state == ConnectionState::kForReader) for_reader_.erase(entry.turn);
}

void Connections::join_order(Connection& connection, Entry& entry) {
  entry.turn = next_turn_++;
  entry.moved_at = Clock::now();
  if (entry.state == ConnectionState::kForRequest) for_request_.emplace(entry.turn, &connection);
  if (entry.state == ConnectionState::kForReader) for_reader_.emplace(entry.turn, &connection);
}

void Connections::remove(Connection& connection) {
  const auto found = entries_.find(&connection);
  if (found == entries_.end()) return;
  leave_order(found->second);
  entries_.erase(found);
}

void Connections::set_state(Connection& connection, ConnectionState state) {
  const auto found = entries_.find(&connection);
  if (found == entries_.end()) return;
  leave_order(found->second);
  found->second.state = state;
  join_order(connection, found->second);
}

void Connections::moved(Connection& connection) {
  const auto found = entries_.find(&connection);
  if (found != entries_.end()) set_state(connection, found->second.state);
}

void Connections::close_waiting() {
  std::vector<Connection*> waiting;
  for (const auto& [turn, connection] : for_request_) waiting.push_back(connection);
  for (Connection* const connection : waiting) end(connection);
}

}  // namespace lbf::daemon
