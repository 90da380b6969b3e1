// Ghosts: the processes that play the ends of messages which nobody recorded.
//
// Place in the event's way: a part of *match*. Between two capture windows a rank's calls are only counted
// (docs/adr/0010-capture-windows.md). Of a message that it sent or received then, and whose other end another
// rank recorded, the missing end is played by a ghost of the rank: at the moment at which the rank, in the
// replay, has reached the event that says so, without processor, flight or link. A ghost serves one such
// moment; when nothing refers to it any more it serves another of its rank.
#pragma once

#include <cstdint>

#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

class Ghosts {
 public:
  // REQUIRES: `store` outlives this.
  explicit Ghosts(OpStore& store) : store_(store), holds_(store.account()), idle_(store.account()) {}

  // A ghost of `rank` that is there as soon as the rank has come this far. Held once.
  ProcessIndex call(Rank rank) {
    CountedVector<ProcessIndex>& idle = idle_.try_emplace(rank, store_.account()).first->second;
    ProcessIndex ghost = 0;
    if (idle.empty()) {
      ghost = store_.add_ghost(rank);
    } else {
      ghost = idle.back();
      idle.pop_back();
    }
    holds_[ghost] = 1;
    const auto process = static_cast<ProcessIndex>(rank);
    const MessageIndex index = store_.new_sent_message(rank, rank, process, ghost);
    store_.message(index).internal = true;
    store_.push(ghost, Op::on_message(OpKind::kRecv, index, 0, 0, kOpInternal));
    store_.push(process, Op::on_message(OpKind::kSend, index, 0, 0, kOpInternal | kOpNonblocking));
    return ghost;
  }
  void hold(ProcessIndex ghost) { ++holds_[ghost]; }
  void let_go(ProcessIndex ghost) {
    const auto held = holds_.find(ghost);
    if (--held->second > 0) return;
    holds_.erase(held);
    idle_.find(store_.rank_of(ghost))->second.push_back(ghost);
  }

  // The ghost sends the message, which has its receive or gets it.
  void send(ProcessIndex ghost, MessageIndex index) {
    Message& message = store_.message(index);
    message.bytes = 0;
    message.sent = true;
    message.sync = false;
    message.internal = true;
    message.sender = ghost;
    store_.push(ghost, Op::on_message(OpKind::kSend, index, 0, 0, kOpInternal | kOpNonblocking));
  }
  // The ghost posts the receive of the message, which was sent or will be. Nobody waits for its arrival.
  void receive(ProcessIndex ghost, MessageIndex index) {
    store_.message(index).receiver = ghost;
    store_.push(ghost, Op::on_message(OpKind::kPost, index));
    store_.withdraw(index, 1);
  }

 private:
  OpStore& store_;
  CountedMap<ProcessIndex, std::uint64_t> holds_;
  CountedMap<Rank, CountedVector<ProcessIndex>> idle_;
};

}  // namespace lbf::engine
