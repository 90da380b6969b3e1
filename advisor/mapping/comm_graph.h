// CommGraph: who exchanges how much with whom, and how much each rank computes.
//
// Place in the event's way: Event -> match -> *CommGraph* -> mapping search, bounds, advice. Collectives
// count as the messages of their algorithm. Memory: O(ranks + pairs that exchange messages), however long the
// trace.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace lbf::advisor {

// What a rank exchanges with one other rank.
struct Arc {
  Rank peer = 0;
  Bytes bytes_out = 0;
  Bytes bytes_in = 0;
  std::uint64_t messages_out = 0;
  std::uint64_t messages_in = 0;

  Bytes bytes() const { return bytes_out + bytes_in; }
  std::uint64_t messages() const { return messages_out + messages_in; }
};

class CommGraph {
 public:
  Rank ranks() const { return static_cast<Rank>(process_s_.size()); }
  // Of one rank, by peer; the peer has the same with out and in exchanged. None is to the rank itself.
  std::span<const Arc> arcs(Rank rank) const {
    const auto at = static_cast<std::size_t>(rank);
    return std::span(arcs_).subspan(first_[at], first_[at + 1] - first_[at]);
  }
  std::size_t pairs() const { return arcs_.size() / 2; }
  Bytes bytes() const { return bytes_; }  // all messages between different ranks
  std::uint64_t messages() const { return messages_; }
  Seconds process_s(Rank rank) const { return process_s_[static_cast<std::size_t>(rank)]; }
  // Off the processor, and in calls that are not modelled: no placement shortens it.
  Seconds blocked_s(Rank rank) const { return blocked_s_[static_cast<std::size_t>(rank)]; }
  Seconds total_process_s() const;

 private:
  friend class CommGraphBuilder;
  std::vector<std::size_t> first_;  // ranks + 1
  std::vector<Arc> arcs_;
  std::vector<Seconds> process_s_;
  std::vector<Seconds> blocked_s_;
  Bytes bytes_ = 0;
  std::uint64_t messages_ = 0;
};

class CommGraphBuilder {
 public:
  explicit CommGraphBuilder(Rank ranks);
  // REQUIRES: ranks of the program.
  void add_message(Rank from, Rank to, Bytes bytes);
  void add_process_time(Rank rank, Seconds process_s) { process_s_[static_cast<std::size_t>(rank)] += process_s; }
  void add_blocked_time(Rank rank, Seconds blocked_s) { blocked_s_[static_cast<std::size_t>(rank)] += blocked_s; }
  CommGraph finish() const;

 private:
  struct Flow {
    Bytes bytes = 0;
    std::uint64_t messages = 0;
  };
  std::unordered_map<std::uint64_t, Flow> flows_;  // from and to -> what flows
  std::vector<Seconds> process_s_;
  std::vector<Seconds> blocked_s_;
};

}  // namespace lbf::advisor
