#include "skeleton/operation_links.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace lbf::skeleton {
namespace {

struct Channel {
  Rank source = 0;
  Rank destination = 0;
  std::uint32_t comm = 0;
  std::int32_t tag = 0;
  bool operator==(const Channel&) const = default;
};

struct ChannelHash {
  std::size_t operator()(const Channel& channel) const {
    std::uint64_t hash = static_cast<std::uint32_t>(channel.source);
    for (const std::uint32_t part :
         {static_cast<std::uint32_t>(channel.destination), channel.comm, static_cast<std::uint32_t>(channel.tag)}) {
      hash = (hash ^ part) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

constexpr OperationId kNone = ~0u;

class Linker {
 public:
  explicit Linker(const ProgramTrace& trace) : trace_(trace) {}

  Result<OperationLinks> link() {
    if (trace_.operations() >= kNone - 1) {
      return Error{ErrorCode::kLimit, "the trace has more than 4294967293 operations"};
    }
    links_.first_of_rank.push_back(0);
    for (const auto& operations : trace_.ranks) {
      links_.first_of_rank.push_back(links_.first_of_rank.back() + static_cast<OperationId>(operations.size()));
    }
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank) {
      if (Result<void> read = read_rank(rank); !read) return read.error();
    }
    if (Result<void> matched = match_messages(); !matched) return matched.error();
    for (std::uint32_t comm = 0; comm < next_collective_.size(); ++comm) {
      if (Result<void> complete = check_members(comm); !complete) return complete.error();
    }
    sort_pairs();
    return std::move(links_);
  }

 private:
  struct Traffic {
    std::vector<OperationId> sends;
    std::vector<OperationId> completions;  // of the receives in the order of posting
  };

  std::uint32_t channel(const Channel& wanted) {
    const auto [found, made] = channels_.emplace(wanted, static_cast<std::uint32_t>(traffic_.size()));
    if (made) traffic_.emplace_back();
    return found->second;
  }

  Result<void> read_rank(std::size_t rank) {
    const std::vector<Operation>& operations = trace_.ranks[rank];
    const OperationId first = links_.first_of_rank[rank];
    const Rank me = static_cast<Rank>(rank);
    // Of the receives under way, by slot: where their completions go.
    std::vector<std::pair<std::uint32_t, std::size_t>> pending;
    for (OperationId i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      switch (operation.kind) {
        case OperationKind::kSend:
        case OperationKind::kIsend:
          traffic_[channel({me, operation.peer, operation.comm, operation.tag})].sends.push_back(first + i);
          break;
        case OperationKind::kRecv:
          traffic_[channel({operation.peer, me, operation.comm, operation.tag})].completions.push_back(first + i);
          break;
        case OperationKind::kIrecv: {
          if (operation.slot >= pending.size()) pending.resize(operation.slot + 1, {kNone, 0});
          pending[operation.slot] = {kNone, 0};
          if (operation.peer < 0) break;  // cancelled
          const std::uint32_t to = channel({operation.peer, me, operation.comm, operation.tag});
          pending[operation.slot] = {to, traffic_[to].completions.size()};
          traffic_[to].completions.push_back(kNone);
          break;
        }
        case OperationKind::kWait:
          for (const std::uint64_t slot : trace_.values_of(operation)) {
            if (slot >= pending.size() || pending[slot].first == kNone) continue;
            traffic_[pending[slot].first].completions[pending[slot].second] = first + i;
            pending[slot].first = kNone;
          }
          break;
        case OperationKind::kCollective:
        case OperationKind::kIcollective:
        case OperationKind::kEnd:
          if (Result<void> done = join(rank, operation, first + i); !done) return done;
          break;
        default:
          break;
      }
    }
    return {};
  }

  // The k-th collective of a communicator is the same one on all its members. The end of the ranks counts as
  // the last collective of the world.
  Result<void> join(std::size_t rank, const Operation& operation, OperationId id) {
    if (operation.comm >= next_collective_.size()) {
      next_collective_.resize(operation.comm + 1);
      collectives_.resize(operation.comm + 1);
    }
    const std::size_t k = next_collective_[operation.comm][static_cast<Rank>(rank)]++;
    std::vector<OperationId>& firsts = collectives_[operation.comm];
    if (k == firsts.size()) {
      firsts.push_back(id);
      return {};
    }
    const auto& [other_rank, other] = operation_of(firsts[k]);
    if (std::tuple(other->kind, other->op, other->root) != std::tuple(operation.kind, operation.op, operation.root)) {
      return invalid_input("collective " + std::to_string(k + 1) + " of communicator " +
                           std::to_string(operation.comm) + " is another one on rank " + std::to_string(rank) +
                           " than on rank " + std::to_string(other_rank));
    }
    pairs_.emplace_back(firsts[k], id);
    return {};
  }

  Result<void> check_members(std::uint32_t comm) const {
    if (collectives_[comm].empty()) return {};
    for (const Rank member : trace_.comms[comm]) {
      const auto found = next_collective_[comm].find(member);
      if (found != next_collective_[comm].end() && found->second == collectives_[comm].size()) continue;
      return invalid_input("rank " + std::to_string(member) + " takes part in fewer collectives of communicator " +
                           std::to_string(comm) + " than others: the trace is partial");
    }
    return {};
  }

  std::pair<std::size_t, const Operation*> operation_of(OperationId id) const {
    const auto after = std::upper_bound(links_.first_of_rank.begin(), links_.first_of_rank.end(), id);
    const std::size_t rank = static_cast<std::size_t>(after - links_.first_of_rank.begin()) - 1;
    return {rank, &trace_.ranks[rank][id - links_.first_of_rank[rank]]};
  }

  Result<void> match_messages() {
    for (const auto& [key, index] : channels_) {
      const Traffic& traffic = traffic_[index];
      if (traffic.sends.size() != traffic.completions.size()) {
        const bool lost = traffic.sends.size() > traffic.completions.size();
        return invalid_input("rank " + std::to_string(key.source) + " sends rank " + std::to_string(key.destination) +
                             " " + std::to_string(traffic.sends.size()) + " messages with tag " +
                             std::to_string(key.tag) + ", which receives " +
                             std::to_string(traffic.completions.size()) +
                             (lost ? ": some are never received" : ": the trace is partial"));
      }
      for (std::size_t i = 0; i < traffic.sends.size(); ++i) {
        if (traffic.completions[i] == kNone) {
          return invalid_input("rank " + std::to_string(key.destination) + " never completes a receive from rank " +
                               std::to_string(key.source) + ": the trace is partial");
        }
        pairs_.emplace_back(traffic.sends[i], traffic.completions[i]);
      }
    }
    channels_ = {};
    traffic_ = {};
    return {};
  }

  void sort_pairs() {
    const std::size_t operations = links_.first_of_rank.back();
    links_.begin.assign(operations + 1, 0);
    for (const auto& [a, b] : pairs_) {
      ++links_.begin[a + 1];
      ++links_.begin[b + 1];
    }
    for (std::size_t i = 0; i < operations; ++i) links_.begin[i + 1] += links_.begin[i];
    links_.other.resize(2 * pairs_.size());
    std::vector<std::uint32_t> next(links_.begin.begin(), links_.begin.end() - 1);
    for (const auto& [a, b] : pairs_) {
      links_.other[next[a]++] = b;
      links_.other[next[b]++] = a;
    }
  }

  const ProgramTrace& trace_;
  OperationLinks links_;
  std::unordered_map<Channel, std::uint32_t, ChannelHash> channels_;
  std::vector<Traffic> traffic_;
  std::vector<std::unordered_map<Rank, std::size_t>> next_collective_;  // by communicator, rank
  std::vector<std::vector<OperationId>> collectives_;                   // by communicator: on the first member
  std::vector<std::pair<OperationId, OperationId>> pairs_;
};

}  // namespace

Result<OperationLinks> link_operations(const ProgramTrace& trace) {
  return Linker(trace).link();
}

}  // namespace lbf::skeleton
