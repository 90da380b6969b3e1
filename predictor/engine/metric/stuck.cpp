#include "predictor/engine/metric/stuck.h"

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace lbf::engine {
namespace {

constexpr std::size_t kMaxChainInMessage = 8;

class StuckProgram {
 public:
  StuckProgram(const Replay& replay, const OpStore& store, const Matcher& matcher)
      : replay_(replay), store_(store), matcher_(matcher) {}

  std::optional<Error> cause() const {
    for (ProcessIndex process = 0; process < static_cast<ProcessIndex>(store_.ranks()); ++process) {
      if (waits(replay_.status(process))) return cause(process);
    }
    return std::nullopt;
  }

 private:
  std::string place(ProcessIndex process) const {
    const std::string rank = "rank " + std::to_string(store_.rank_of(process));
    if (store_.is_actor(process)) return "a non-blocking collective of " + rank;
    return rank + " (event " + std::to_string(replay_.status(process).events_done + 1) + ")";
  }

  static std::string awaited(const Message& message, Rank other) {
    const std::string comm = ", communicator " + std::to_string(message.comm);
    if (message.collective) {
      return "rank " + std::to_string(other) + ", collective " +
             std::to_string(static_cast<std::uint32_t>(message.tag) + 1) + comm;
    }
    return "rank " + std::to_string(other) + ", tag " + std::to_string(message.tag) + comm;
  }

  static bool waits(const ProcessStatus& status) {
    return status.state == ProcessStatus::State::kWaiting || status.state == ProcessStatus::State::kWaitingForReceive;
  }

  // What the process waits for: "for a message from rank 1, tag 5, communicator 0".
  std::string reason(const ProcessStatus& status) const {
    const Message& message = store_.message(status.message);
    if (status.state == ProcessStatus::State::kWaiting) return "for a message from " + awaited(message, message.src);
    return "until its message is received by " + awaited(message, message.dst);
  }

  // The processes of `chain` wait for each other, the last one for the first.
  Error cycle(std::span<const ProcessIndex> chain, bool relies_on_buffering) const {
    std::string text = "cyclic wait: ";
    std::size_t named = 0;
    for (const ProcessIndex process : chain) {
      if (++named > kMaxChainInMessage) {
        text += "... waits for ";
        break;
      }
      text += place(process) + " waits " + reason(replay_.status(process)) + "; ";
    }
    text += "back at " + place(chain.front());
    if (relies_on_buffering) {
      text += " (messages above the eager limit: the program relies on the library's buffers)";
    }
    return invalid_input(text);
  }

  // What the process waits for never comes.
  Error other_side_missing(ProcessIndex process, const ProcessStatus& status) const {
    const Message& message = store_.message(status.message);
    const bool for_receive = status.state == ProcessStatus::State::kWaitingForReceive;
    const Rank rank = for_receive ? message.dst : message.src;
    std::string text = store_.is_actor(process) ? place(process) + " waits"
                                                : "rank " + std::to_string(store_.rank_of(process)) +
                                                      " waits at its event " + std::to_string(status.events_done + 1);
    text += " " + reason(status) + (for_receive ? ", which never does" : ", that was never sent");
    if (!matcher_.exited(rank)) {
      text += ": rank " + std::to_string(rank) + " stopped after its event " + std::to_string(matcher_.events_of(rank));
    }
    if (!matcher_.why_partial().empty()) text += " (" + matcher_.why_partial() + ")";
    return invalid_input(text);
  }

  // Follows who waits for whom from `start` to the cause.
  Error cause(ProcessIndex start) const {
    std::vector<ProcessIndex> chain;
    std::unordered_map<ProcessIndex, std::size_t> place_in_chain;
    ProcessIndex process = start;
    bool relies_on_buffering = false;
    for (;;) {
      const auto [seen, is_new] = place_in_chain.try_emplace(process, chain.size());
      if (!is_new) {
        return cycle(std::span(chain).subspan(seen->second), relies_on_buffering);
      }
      chain.push_back(process);
      const ProcessStatus status = replay_.status(process);
      const Message& message = store_.message(status.message);
      const bool for_receive = status.state == ProcessStatus::State::kWaitingForReceive;
      relies_on_buffering = relies_on_buffering || (for_receive && !message.sync);
      const ProcessIndex other = for_receive ? message.receiver : message.sender;
      if (for_receive ? other == kNobody : !message.sent) {
        return other_side_missing(process, status);
      }
      if (!waits(replay_.status(other))) {
        // The other side is known and its process can go on: it only lacks a round of replay.
        return invalid_input(place(process) + " waits " + reason(status) + ", which is still to be replayed");
      }
      process = other;
    }
  }

  const Replay& replay_;
  const OpStore& store_;
  const Matcher& matcher_;
};

}  // namespace

std::optional<Error> what_holds_up(const Replay& replay, const OpStore& store, const Matcher& matcher) {
  return StuckProgram(replay, store, matcher).cause();
}

}  // namespace lbf::engine
