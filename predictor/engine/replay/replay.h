// Replay: executes ops on one or several targets. Two kinds behind this interface: DedicatedReplay (no node
// has more ranks than processors) and SharedReplay (processes share processors).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/replay/composed.h"
#include "predictor/engine/replay/path_notes.h"
#include "predictor/engine/replay/target.h"
#include "predictor/engine/replay/window_clocks.h"

namespace lbf::engine {

// Before, and not only by rounding: what depends on the order of two times must be the same for times that
// are the same but were computed on different ways.
inline bool is_before(Seconds a_s, Seconds b_s) {
  constexpr double kSameTime = 1e-10;
  return a_s < b_s - kSameTime * std::max(1.0, a_s);
}

// When a process that looks once in each PERIOD from SINCE on finds what is there from THERE on.
template <typename Clock>
Clock first_look_s(const Clock& since_s, const Clock& there_s, Seconds period_s) {
  using std::max;
  if (value_of(there_s) <= value_of(since_s) || !(period_s > 0)) return there_s;
  const double periods = (value_of(there_s) - value_of(since_s)) / period_s;
  Clock look_s = since_s;
  add(look_s, Term::kBlocked, std::ceil(periods - 1e-9) * period_s);
  return max(there_s, look_s);
}

// REQUIRES: a kWindowClose.
inline WindowClocks::Closing closing_of(const Op& op) {
  if ((op.flags & kOpScoped) != 0) return WindowClocks::Closing::kScoped;
  return (op.flags & kOpInWork) != 0 ? WindowClocks::Closing::kInWork : WindowClocks::Closing::kAfterCall;
}

// What a process waits for: the message, or that its message has a receive.
enum class Awaited : std::uint8_t { kMessage, kReceive };

// Where a process stands.
struct ProcessStatus {
  enum class State : std::uint8_t {
    kNeedsEvents,        // all its ops are executed, more may come
    kWaiting,            // for `message`, whose send was not executed yet
    kWaitingForReceive,  // its rendezvous `message` waits for a receive that was not posted yet
    kRunning,            // works, is blocked, or waits for a message under way
    kDone,               // exited, or closed and all its ops are executed
  };
  State state = State::kNeedsEvents;
  std::uint64_t events_done = 0;  // events of the program completed
  MessageIndex message = kNoMessage;
};

class TimelineRecorder;

class Replay {
 public:
  virtual ~Replay() = default;
  // Executes what the store's ops allow, as far as the store's budget goes. REQUIRES: called before
  // OpStore::clear_touched() each time ops were added.
  virtual void advance() = 0;
  // Predicted time of `rank`'s last replayed event on target `k` of this replay, and the measured time there.
  virtual Seconds finish_s(std::size_t k, Rank rank) const = 0;
  virtual Seconds measured_s(Rank rank) const = 0;
  virtual bool exited(Rank rank) const = 0;
  // What finish_s() is made of; nullptr: this replay's clocks do not know.
  virtual const Composed* composition(std::size_t /*k*/, Rank /*rank*/) const { return nullptr; }
  // What composition() is made of by place; empty: nobody asked for it. And the rank's own work on that target.
  virtual std::vector<PathPart> path_parts(std::size_t /*k*/, Rank /*rank*/) const { return {}; }
  virtual Seconds worked_s(std::size_t /*k*/, Rank /*rank*/) const { return 0; }
  // See Links::exchange_s(); 0 without links.
  virtual Seconds exchange_s() const { return 0; }
  // What it holds, once it has room for all processes and messages of the store.
  virtual Bytes memory_bytes() const = 0;
  const WindowClocks& window_clocks() const { return window_clocks_; }
  virtual ProcessStatus status(ProcessIndex process) const = 0;
  // Ops of the first target from here on. REQUIRES: before the first op; `timeline` outlives the replay.
  virtual void record(TimelineRecorder* timeline) = 0;
  // If the program is stuck on some targets and not on others, takes some out into a replay of their own, which goes
  // on. `moved`: their numbers k here, ascending; the others keep their order. nullptr: nothing to part. Call it when
  // no more events will come.
  virtual std::unique_ptr<Replay> split_stuck(std::vector<std::size_t>& /*moved*/) { return nullptr; }

 protected:
  WindowClocks window_clocks_;
};

// True when no node of the target has more ranks than processors, and no link or memory domain is shared, so that
// nobody ever waits for a processor, a link or memory.
bool is_dedicated(const Target& target);

}  // namespace lbf::engine
