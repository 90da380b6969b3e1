// OpStore: the ops and messages between the matcher and the replays.
//
// One queue of ops per process, written once by the matcher and read by every replay through a cursor of its
// own; a chunk goes back to the pool when all readers passed it. Messages live in recycled slots. So memory
// is O(processes + what is in flight), however long the trace (TSE Sec. 2.1: "the DAG data structure for a
// reported event is freed once both its local and remote successors are reported").
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/paged_array.h"
#include "base/units.h"
#include "predictor/match/op.h"

namespace lbf {

// What may still come that names a message (Message::to_come).
enum MessageUse : std::uint8_t {
  kSendToCome = 1,
  kReceiveToCome = 2,
  kWaitToCome = 4,  // a kWaitSend
};

// A cache line: most uses of a message touch most of it, and nothing near it.
struct alignas(64) Message {
  Bytes bytes = 0;  // from the send; valid once it was matched
  Rank src = kAnyRank;
  Rank dst = kAnyRank;
  std::uint32_t comm = 0;
  std::int32_t tag = 0;             // collectives: the collective's number on the communicator
  MessageIndex next = kNoMessage;   // the matcher's channel list, or the free list
  ProcessIndex sender = 0;          // process whose queue holds the send; valid once `sent`
  ProcessIndex receiver = kNobody;  // ... the receive, once one was posted
  std::uint32_t generation = 0;     // counts the messages that had this slot
  std::uint32_t ops = 0;            // ops that name it ...
  std::uint32_t uses = 0;           // ... and how often replays executed one of them
  std::uint8_t to_come = kSendToCome | kReceiveToCome;
  bool sent = false;  // the send was fed
  bool sync = false;  // synchronous send: rendezvous whatever its size
  bool collective = false;
  bool internal = false;  // fork or join of an actor
};
static_assert(sizeof(Message) == 64);

// What a reader notes of each message slot is of the message that the slot held before as long as the
// generations differ: forgets that.
template <typename Slot>
Slot& current(Slot& slot, const Message& message) {
  if (slot.generation != message.generation) {
    slot = Slot{};
    slot.generation = message.generation;
  }
  return slot;
}

class OpStore {
 public:
  static constexpr std::uint32_t kChunkOps = 62;
  struct Chunk {
    std::array<Op, kChunkOps> ops;
    Chunk* next;
    std::uint32_t filled;
    std::uint32_t readers_left;
  };
  // A reader's place in one queue. Starts as {}.
  struct Cursor {
    Chunk* chunk = nullptr;
    std::uint32_t next = 0;
  };

  // REQUIRES: readers >= 1: the replays that will read every queue.
  OpStore(Rank ranks, std::uint32_t readers);

  // --- the matcher's side
  ProcessIndex add_actor(Rank rank);
  // The op stays where it is until all readers passed it.
  Op& push(ProcessIndex process, const Op& op) {
    Queue& queue = queues_[process];
    if (queue.last == nullptr || queue.last->filled == kChunkOps) lengthen(queue);
    Op& pushed = queue.last->ops[queue.last->filled++];
    pushed = op;
    if (op.message != kNoMessage) ++messages_[op.message].ops;
    touch(process);
    return pushed;
  }
  // Says which message a held kPost takes (kNoMessage: that will never be known) and lets it pass.
  void release(ProcessIndex process, Op& post, MessageIndex message);
  MessageIndex new_message() {
    if (free_messages_ == kNoMessage) {
      messages_.emplace_back();
      return static_cast<MessageIndex>(messages_.size() - 1);
    }
    const MessageIndex index = free_messages_;
    Message& message = messages_[index];
    free_messages_ = message.next;
    const std::uint32_t generation = message.generation;
    message = Message{};
    message.generation = generation;
    return index;
  }
  // These uses (MessageUse) will not come, or all their ops were pushed. The slot is free once nothing is to
  // come and all replays executed what names it.
  void settle(MessageIndex index, std::uint8_t uses) {
    Message& message = messages_[index];
    message.to_come &= static_cast<std::uint8_t>(~uses);
    if (message.to_come == 0 && message.uses == message.ops * readers_) free_message(index);
  }
  void close(ProcessIndex process) { queues_[process].closed = true; }

  // --- the replays' side
  // The next op of the queue, or nullptr: nothing there (yet).
  const Op* front(ProcessIndex process, Cursor& cursor) {
    if (cursor.chunk == nullptr) {
      cursor.chunk = queues_[process].first;
      if (cursor.chunk == nullptr) return nullptr;
    }
    if (cursor.next == cursor.chunk->filled) {
      if (cursor.next < kChunkOps || cursor.chunk->next == nullptr) return nullptr;
      Chunk* passed = cursor.chunk;
      cursor.chunk = passed->next;  // a chunk is linked in when its first op is written
      cursor.next = 0;
      if (--passed->readers_left == 0) free_chunk(passed);
    }
    const Op* op = &cursor.chunk->ops[cursor.next];
    return (op->flags & kOpHeld) == 0 ? op : nullptr;
  }
  // REQUIRES: front() returned an op.
  static void pop(Cursor& cursor) { ++cursor.next; }
  // The replay executed an op that names the message.
  void used(MessageIndex index) {
    Message& message = messages_[index];
    if (++message.uses == message.ops * readers_ && message.to_come == 0) free_message(index);
  }

  // One more reader, which stands where another one does: then, for each process, with that one's cursor, and
  // for each message that it has used.
  void add_reader() { ++readers_; }
  void add_reader_of(ProcessIndex process, const Cursor& cursor);
  void add_uses(MessageIndex index, std::uint32_t uses) { messages_[index].uses += uses; }

  Message& message(MessageIndex index) { return messages_[index]; }
  const Message& message(MessageIndex index) const { return messages_[index]; }
  std::size_t message_slots() const { return messages_.size(); }
  Rank ranks() const { return ranks_; }
  ProcessIndex processes() const { return static_cast<ProcessIndex>(queues_.size()); }
  bool is_actor(ProcessIndex process) const { return process >= static_cast<ProcessIndex>(ranks_); }
  Rank rank_of(ProcessIndex process) const { return queues_[process].rank; }
  // Total order of processes that does not depend on the order in which actors came into being.
  std::uint64_t order_of(ProcessIndex process) const {
    return (static_cast<std::uint64_t>(queues_[process].rank) << 24) | queues_[process].actor_number;
  }
  bool closed(ProcessIndex process) const { return queues_[process].closed; }
  // Ops that the slowest reader has not passed, to the chunk.
  std::uint64_t ops_in_flight() const { return chunks_in_use_ * kChunkOps; }

  // Processes that got ops or were closed since clear_touched().
  const std::vector<ProcessIndex>& touched() const { return touched_; }
  void touch(ProcessIndex process) {
    Queue& queue = queues_[process];
    if (queue.touched) return;
    queue.touched = true;
    touched_.push_back(process);
  }
  void clear_touched();

 private:
  struct Queue {
    Chunk* first = nullptr;  // valid until the last reader took its cursor from here
    Chunk* last = nullptr;
    Rank rank = 0;
    std::uint32_t actor_number = 0;  // 0 for a rank, then 1, 2 ... per rank
    bool closed = false;
    bool touched = false;
  };

  // One more chunk at its end.
  void lengthen(Queue& queue);
  void free_chunk(Chunk* chunk);
  void free_message(MessageIndex index) {
    Message& message = messages_[index];
    ++message.generation;
    message.next = free_messages_;
    free_messages_ = index;
  }

  Rank ranks_;
  std::uint32_t readers_;
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> actors_of_rank_;
  std::vector<ProcessIndex> touched_;
  PagedArray<Message> messages_;
  MessageIndex free_messages_ = kNoMessage;
  std::vector<std::unique_ptr<Chunk[]>> slabs_;
  Chunk* free_chunks_ = nullptr;
  std::uint64_t chunks_in_use_ = 0;
};

}  // namespace lbf
