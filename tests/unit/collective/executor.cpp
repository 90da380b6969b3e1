#include "executor.h"

#include <deque>
#include <map>
#include <unordered_map>

namespace lbf {

Outcome run(const std::vector<engine::CollectiveCall>& calls, std::uint32_t group_size) {
  struct InFlight {
    Bytes bytes;
    Members knows;
  };
  const auto members = static_cast<std::uint32_t>(calls.size());
  Outcome outcome;
  std::vector<std::vector<engine::CollectiveStep>> steps(members);
  for (std::uint32_t member = 0; member < members; ++member) {
    auto expanded = engine::expand_collective(calls[member], steps[member]);
    if (!expanded) {
      outcome.problem = "member " + std::to_string(member) + ": " + expanded.error().message;
      return outcome;
    }
    outcome.approximated = outcome.approximated || expanded->approximated;
    outcome.most_steps = std::max<std::uint64_t>(outcome.most_steps, steps[member].size());
    outcome.knows.emplace_back();
    outcome.knows.back().set(member);
  }

  const auto peer_of = [&](std::uint32_t member, const engine::CollectiveStep& step) {
    const bool inter = calls[member].remote_size > 0;
    const bool first_group = member < group_size;
    return step.peer + (inter && first_group != step.local_group ? group_size : 0);
  };
  std::unordered_map<std::uint64_t, std::deque<InFlight>> channels;
  const auto channel = [&](std::uint64_t from, std::uint64_t to) -> std::deque<InFlight>& {
    return channels[from << 32 | to];
  };

  std::vector<std::size_t> next(members, 0);
  std::deque<std::uint32_t> runnable;
  std::vector<bool> queued(members, true);
  for (std::uint32_t member = 0; member < members; ++member) runnable.push_back(member);
  while (!runnable.empty()) {
    const std::uint32_t member = runnable.front();
    runnable.pop_front();
    queued[member] = false;
    while (next[member] < steps[member].size()) {
      const engine::CollectiveStep& step = steps[member][next[member]];
      const std::uint32_t peer = peer_of(member, step);
      if (peer >= members || peer == member) {
        outcome.problem = "member " + std::to_string(member) + " talks to " + std::to_string(peer);
        return outcome;
      }
      if (step.kind == engine::CollectiveStep::Kind::kSend) {
        channel(member, peer).push_back({step.bytes, outcome.knows[member]});
        outcome.bytes += step.bytes;
        ++outcome.messages;
        if (!queued[peer]) {
          queued[peer] = true;
          runnable.push_back(peer);
        }
      } else {
        std::deque<InFlight>& incoming = channel(peer, member);
        if (incoming.empty()) break;
        if (incoming.front().bytes != step.bytes) {
          outcome.problem = "member " + std::to_string(member) + " expects " + std::to_string(step.bytes) +
                            " bytes from " + std::to_string(peer) + " and gets " +
                            std::to_string(incoming.front().bytes);
          return outcome;
        }
        outcome.knows[member] |= incoming.front().knows;
        incoming.pop_front();
      }
      ++next[member];
    }
  }
  for (std::uint32_t member = 0; member < members; ++member) {
    if (next[member] < steps[member].size()) {
      outcome.problem = "deadlock: member " + std::to_string(member) + " waits in step " +
                        std::to_string(next[member]) + " for " +
                        std::to_string(peer_of(member, steps[member][next[member]]));
      return outcome;
    }
  }
  for (const auto& [key, messages] : channels) {
    if (!messages.empty()) {
      outcome.problem = std::to_string(messages.size()) + " messages from " + std::to_string(key >> 32) + " to " +
                        std::to_string(key & 0xFFFFFFFF) + " are never received";
      return outcome;
    }
  }
  return outcome;
}

}  // namespace lbf
