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

// Parallel regions of a rank, in seconds at speed 1 (docs/adr/0012-threads.md, "Model").
struct RegionTotal {
  Seconds ran_s = 0;          // of process_s, as they ran
  Seconds alone_s = 0;        // of the work that of one thread
  Seconds divided_s = 0;      // the rest, which any number of threads share
  std::uint32_t threads = 0;  // of the largest team; 0: there are none
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
  const RegionTotal& regions(Rank rank) const { return regions_[static_cast<std::size_t>(rank)]; }
  std::uint32_t most_threads() const;  // of any region; 0: there are none
  // What a processor of speed 1 takes at least with so many threads; 0: as many as ran.
  Seconds least_s(Rank rank, std::uint32_t threads) const;
  // Of all threads.
  Seconds work_s(Rank rank) const;
  // Off the processor, and in calls that are not modelled: no placement shortens it.
  Seconds blocked_s(Rank rank) const { return blocked_s_[static_cast<std::size_t>(rank)]; }
  Seconds total_process_s() const;

 private:
  friend class CommGraphBuilder;
  std::vector<std::size_t> first_;  // ranks + 1
  std::vector<Arc> arcs_;
  std::vector<Seconds> process_s_;
  std::vector<RegionTotal> regions_;
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
  // RAN_S of process time that was added, too.
  void add_regions(Rank rank, const RegionTotal& regions);
  void add_blocked_time(Rank rank, Seconds blocked_s) { blocked_s_[static_cast<std::size_t>(rank)] += blocked_s; }
  CommGraph finish() const;

 private:
  struct Flow {
    Bytes bytes = 0;
    std::uint64_t messages = 0;
  };
  std::unordered_map<std::uint64_t, Flow> flows_;  // from and to -> what flows
  std::vector<Seconds> process_s_;
  std::vector<RegionTotal> regions_;
  std::vector<Seconds> blocked_s_;
};

}  // namespace lbf::advisor
