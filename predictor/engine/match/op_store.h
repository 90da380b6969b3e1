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
#include "predictor/engine/match/memory_account.h"
#include "predictor/engine/match/op.h"
#include "predictor/engine/match/region_table.h"
#include "predictor/engine/match/work_budget.h"

namespace lbf::engine {

// A cache line: most uses of a message touch most of it, and nothing near it.
struct alignas(64) Message {
  Bytes bytes = 0;  // from the send; valid once it was matched
  Rank src = kAnyRank;
  Rank dst = kAnyRank;
  std::uint32_t comm = 0;
  std::int32_t tag = 0;                // collectives: the collective's number on the communicator
  MessageIndex next = kNoMessage;      // the matcher's channel list, or the free list
  MessageIndex previous = kNoMessage;  // in the channel's list; of its first one it says nothing
  ProcessIndex sender = 0;             // process whose queue holds the send; valid once `sent`
  ProcessIndex receiver = kNobody;     // ... the receive, once one was posted
  std::uint32_t generation = 0;        // counts the messages that had this slot
  std::uint32_t expected = 0;          // ops that name it: those of the queues, and those still to come ...
  std::uint32_t pending = 0;           // ... and how often a replay has still to execute one; 0: the slot is free
  static constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};
  std::uint32_t plan_number = kNoNumber;  // in the collective that a plan is made of (repeated_collectives.h)
  bool sent = false;                      // the send was fed
  bool sync = false;                      // synchronous send: rendezvous whatever its size
  bool collective = false;
  bool internal = false;  // fork or join of an actor, or the end that was recorded of a one-ended message
  bool is_run = false;    // no message: `bytes` of them in a row whose one end was not recorded; `sender`: ghost
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
  static constexpr std::uint32_t kChunkOps = 20;
  // A reader's place in one queue. Starts as {}.
  struct Cursor {
    const Op* at = nullptr;
    const Op* end = nullptr;  // of the chunk
    std::uint32_t passed = 0;
  };

  // REQUIRES: readers >= 1: the replays that will read every queue.
  OpStore(Rank ranks, std::uint32_t readers);
  OpStore(const OpStore&) = delete;
  OpStore& operator=(const OpStore&) = delete;

  // --- the matcher's side
  ProcessIndex add_actor(Rank rank);
  // An actor on `rank`'s node that works for another one: its number is `which` (below `of_each`) of that
  // rank's.
  ProcessIndex add_actor_for(Rank rank, Rank for_rank, std::uint32_t which, std::uint32_t of_each);
  // An actor that plays the missing ends of messages of which only one was recorded. What it does takes no
  // time, so that its place in the order of processes says nothing.
  ProcessIndex add_ghost(Rank rank);
  // The op stays where it is until all readers passed it.
  [[gnu::always_inline]] Op& push(ProcessIndex process, const Op& op) {
    Queue& queue = queues_[process];
    if (queue.at == queue.end) [[unlikely]]
      lengthen(queue);
    Op& pushed = *queue.at++;
    pushed = op;
    ++queue.written;
    const bool further = op.kind == OpKind::kPost || op.kind == OpKind::kPeek;
    if (further && op.names_message()) expect(op.message());
    if (!queue.touched) [[unlikely]]
      touch(process);
    return pushed;
  }
  // REQUIRES: the last push() was to this process.
  Op& last(ProcessIndex process) { return queues_[process].at[-1]; }
  // Says which message a held kPost takes (kNoMessage: that will never be known) and lets it pass.
  void release(ProcessIndex process, Op& post, MessageIndex message);
  // The same for another op that is held: what it does is known now.
  void release(ProcessIndex process, Op& op) {
    op.flags &= static_cast<std::uint8_t>(~kOpHeld);
    touch(process);
  }
  // Rows: the work of kOpVaries ops by scenario, then what the plan has besides (procedure_plan.h). REQUIRES: before
  // the first row.
  void set_row_width(std::size_t width) { row_width_ = width; }
  // All zero. Gone when all readers executed the op that names it.
  RowIndex new_row();
  // Valid until the next new_row().
  Seconds* row(RowIndex index) { return &rows_[static_cast<std::size_t>(index) * row_width_]; }
  // Each message has a kSend and a kRecv. What further ops name it is counted when they are pushed, or before
  // (expect).
  [[gnu::always_inline]] MessageIndex new_message() {
    MessageIndex index = free_messages_;
    std::uint32_t generation = 0;
    if (index != kNoMessage) {
      free_messages_ = messages_[index].next;
      if (free_messages_ != kNoMessage) __builtin_prefetch(&messages_[free_messages_], 1);
      generation = messages_[index].generation;
    } else {
      index = static_cast<MessageIndex>(messages_.size());
      messages_.emplace_back();
    }
    Message& message = messages_[index];
    message = Message{};
    message.generation = generation;
    message.expected = kOpsOfAMessage;
    message.pending = kOpsOfAMessage * readers_;
    return index;
  }
  // The same, of a message that is sent already.
  MessageIndex new_sent_message(Rank from, Rank to, ProcessIndex sender, ProcessIndex receiver) {
    const MessageIndex index = new_message();
    Message& message = messages_[index];
    message.src = from;
    message.dst = to;
    message.sent = true;
    message.sender = sender;
    message.receiver = receiver;
    return index;
  }
  // One more op will name the message: a kWaitSend, which the message's slot has to wait for.
  void expect(MessageIndex index) {
    ++messages_[index].expected;
    messages_[index].pending += readers_;
  }
  // So many of the expected ops will not come. The slot is free once all replays executed the others.
  void withdraw(MessageIndex index, std::uint32_t ops) {
    Message& message = messages_[index];
    message.expected -= ops;
    message.pending -= ops * readers_;
    if (message.pending == 0) free_message(index);
  }
  void close(ProcessIndex process) { queues_[process].closed = true; }

  // --- the replays' side
  // The next op of the queue, or nullptr: nothing there (yet).
  const Op* front(ProcessIndex process, Cursor& cursor) {
    if (cursor.passed == queues_[process].written) return nullptr;
    if (cursor.at == cursor.end) [[unlikely]]
      enter_next_chunk(process, cursor);
    return (cursor.at->flags & kOpHeld) == 0 ? cursor.at : nullptr;
  }
  // REQUIRES: front() returned an op.
  static void pop(Cursor& cursor) {
    ++cursor.at;
    ++cursor.passed;
  }
  // Visits the ops that the reader has not passed, held ones too.
  template <typename Visit>
  void for_each_ahead(ProcessIndex process, const Cursor& cursor, Visit visit) const {
    const Op* at = cursor.at;
    const Op* end = cursor.end;
    for (std::uint32_t left = queues_[process].written - cursor.passed; left > 0; --left) {
      if (at == end) {
        const Chunk* chunk = end != nullptr ? chunk_of(end)->next : queues_[process].first;
        at = chunk->ops.data();
        end = at + kChunkOps;
      }
      visit(*at++);
    }
  }
  // The message will be asked for soon.
  void prefetch(MessageIndex index) const { messages_.prefetch(index); }
  // ... and that of the op behind the one that front() gave, if there is one: its message, or kNoMessage.
  MessageIndex prefetch_behind(ProcessIndex process, const Cursor& cursor) const {
    if (cursor.passed + 1 == queues_[process].written || cursor.at + 1 == cursor.end) return kNoMessage;
    if (!cursor.at[1].names_message()) return kNoMessage;
    prefetch(cursor.at[1].message());
    return cursor.at[1].message();
  }
  // The op's processor work in the scenario (0: as it ran).
  Seconds work_of(const Op& op, std::uint32_t scenario) const {
    if ((op.flags & kOpVaries) == 0 || scenario == 0) return op.work_s;
    return rows_[static_cast<std::size_t>(op.row()) * row_width_ + scenario - 1];
  }
  // The replay executed an op with a row.
  void note_row_use(const Op& op) {
    if ((op.flags & kOpRegions) != 0) return regions_.note_use(op.region());
    if (--row_pending_[op.row()] == 0) free_rows_.push_back(op.row());
  }
  // An op that the matcher pushes next.
  Op regions_op(const RegionWork& ran, Seconds ran_s, std::uint8_t flags) {
    return Op::in_regions(regions_.add(ran, readers_), ran_s, flags);
  }
  const RegionTable& regions() const { return regions_; }
  // The replay executed an op that names the message.
  void note_use(MessageIndex index) {
    if (--messages_[index].pending == 0) free_message(index);
  }

  // One more reader, which stands where another one does: then, for each process, with that one's cursor, and
  // for each message that it has used.
  void add_reader();
  void add_reader_of(ProcessIndex process, const Cursor& cursor);
  void add_uses(MessageIndex index, std::uint32_t uses) { messages_[index].pending -= uses; }

  Message& message(MessageIndex index) { return messages_[index]; }
  const Message& message(MessageIndex index) const { return messages_[index]; }
  std::size_t message_slots() const { return messages_.size(); }
  Rank ranks() const { return ranks_; }
  ProcessIndex processes() const { return static_cast<ProcessIndex>(queues_.size()); }
  bool is_actor(ProcessIndex process) const { return process >= static_cast<ProcessIndex>(ranks_); }
  Rank rank_of(ProcessIndex process) const { return queues_[process].rank; }
  // Total order of processes that does not depend on the order in which actors came into being.
  std::uint64_t order_of(ProcessIndex process) const {
    return (static_cast<std::uint64_t>(queues_[process].rank) << 32) | queues_[process].actor_number;
  }
  bool closed(ProcessIndex process) const { return queues_[process].closed; }
  // ... and the reader has passed all ops, held ones included.
  bool ended(ProcessIndex process, const Cursor& cursor) const {
    return queues_[process].closed && cursor.passed == queues_[process].written;
  }
  // What the store, and those who count on its account, hold.
  Bytes memory_bytes() const { return account_.bytes + messages_.size() * sizeof(Message); }
  MemoryAccount* account() { return &account_; }
  WorkBudget& budget() { return budget_; }
  const WorkBudget& budget() const { return budget_; }
  // Ops that the slowest reader has not passed, to the chunk.
  std::uint64_t ops_in_flight() const { return chunks_in_use_ * kChunkOps; }

  // Processes that got ops or were closed since clear_touched().
  const CountedVector<ProcessIndex>& touched() const { return touched_; }
  void touch(ProcessIndex process) {
    Queue& queue = queues_[process];
    if (queue.touched) return;
    queue.touched = true;
    touched_.push_back(process);
  }
  void clear_touched();

 private:
  static constexpr std::uint32_t kOpsOfAMessage = 2;
  struct Chunk {
    std::array<Op, kChunkOps> ops;
    Chunk* next;
    std::uint32_t readers_left;
  };
  struct Queue {
    Op* at = nullptr;  // where the next op goes, unless its chunk ends there
    Op* end = nullptr;
    Chunk* first = nullptr;     // valid until the last reader took its cursor from here
    std::uint32_t written = 0;  // ops, all in all; readers count along, both may wrap
    Rank rank = 0;
    // 0 for a rank, then 1, 2 ... per rank; with the highest bit those that work for other ranks.
    std::uint32_t actor_number = 0;
    bool closed = false;
    bool touched = false;
  };

  // `end` of the ops of a chunk -> the chunk.
  static const Chunk* chunk_of(const Op* end) { return reinterpret_cast<const Chunk*>(end - kChunkOps); }
  static Chunk* chunk_of(Op* end) { return reinterpret_cast<Chunk*>(end - kChunkOps); }
  // One more chunk at its end.
  void lengthen(Queue& queue);
  void enter_next_chunk(ProcessIndex process, Cursor& cursor);
  void free_chunk(Chunk* chunk);
  void free_message(MessageIndex index) {
    Message& message = messages_[index];
    ++message.generation;
    message.next = free_messages_;
    free_messages_ = index;
  }

  MemoryAccount account_;
  WorkBudget budget_;
  Rank ranks_;
  std::uint32_t readers_;
  CountedVector<Queue> queues_;
  CountedVector<std::uint32_t> actors_of_rank_;
  CountedVector<ProcessIndex> touched_;
  PagedArray<Message> messages_;
  MessageIndex free_messages_ = kNoMessage;
  std::size_t row_width_ = 0;
  CountedVector<Seconds> rows_;               // [row][row_width_]
  CountedVector<std::uint32_t> row_pending_;  // readers that have still to execute the row's op
  CountedVector<RowIndex> free_rows_;
  RegionTable regions_{&account_};
  std::vector<std::unique_ptr<Chunk[]>> slabs_;
  Chunk* free_chunks_ = nullptr;
  std::uint64_t chunks_in_use_ = 0;
};

}  // namespace lbf::engine
