// TimelineObserver: when each op took place on a target, for pictures of a predicted run (lbf-trace export).
//
// Place in the event's way: match -> Op -> replay -> *TimelineOp*. A replay that is not observed pays one
// comparison per op. What the times mean is docs/engine.md, "The model".
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "predictor/engine/match/op_store.h"

namespace lbf::engine {

// One op of one process. begin_s <= acted_s <= waited_s <= end_s.
struct TimelineOp {
  ProcessIndex process = 0;
  Rank rank = 0;       // whose op it is ...
  bool actor = false;  // ... or whose non-blocking collective's
  OpKind kind = OpKind::kCompute;
  std::uint8_t flags = 0;        // OpFlags
  std::uint64_t event = 0;       // the rank's event that it belongs to, 1 = its first; 0 for an actor
  Seconds begin_s = kNeverS;     // the process took it up
  Seconds acted_s = kNeverS;     // its processor work was done; a message of a kSend left then
  Seconds waited_s = kNeverS;    // what it waited for was there (a kRecv: its message); kBlocked: it was over
  Seconds end_s = kNeverS;       // ... and the receiver's protocol processing done; kCopy, kReduce: their own work
  std::uint64_t message_id = 0;  // the same for the send and the receive of a message, of no other; 0: none
  Message message;               // valid if message_id is not 0
  std::uint16_t function = 0;    // MPI function, with a ProcedurePlan only
  Seconds work_s = 0;            // at speed 1, without protocol processing
  // Of the plan's profiled procedures, each one's exclusive part of work_s; nullptr: none. Valid during the call.
  const Seconds* self_s = nullptr;
};

class TimelineObserver {
 public:
  virtual ~TimelineObserver() = default;
  // When the op is over; the ops of one process in their order.
  virtual void on_op(const TimelineOp& op) = 0;
  // A kSend whose message is ready to leave, at acted_s; before the on_op of the receive, which that of a send that
  // waits need not be.
  virtual void on_ready(const TimelineOp& /*op*/) {}
};

// The replays' side: what is known of the op that each process has in hand.
class TimelineRecorder {
 public:
  // REQUIRES: both outlive the recorder.
  // `profiled_at`: where in a row the profiled procedures begin.
  TimelineRecorder(OpStore& store, TimelineObserver& observer, std::size_t profiled_at)
      : store_(store), observer_(observer), profiled_at_(profiled_at) {}

  void take(ProcessIndex process, const Op& op, std::uint64_t events_done, Seconds now_s) {
    if (in_hand_.size() <= process) in_hand_.resize(store_.processes());
    TimelineOp& taken = in_hand_[process];
    taken = TimelineOp{};
    taken.process = process;
    taken.rank = store_.rank_of(process);
    taken.actor = store_.is_actor(process);
    taken.kind = op.kind;
    taken.flags = op.flags;
    taken.event = taken.actor ? 0 : events_done + 1;
    taken.begin_s = now_s;
    taken.function = op.function;
    taken.work_s = op.work_s;
    row_of_.resize(in_hand_.size(), kNoMessage);
    row_of_[process] = (op.flags & kOpVaries) != 0 ? op.row() : kNoMessage;
  }
  // The first call after take() counts.
  void note_action(ProcessIndex process, Seconds now_s) {
    Seconds& acted_s = in_hand_[process].acted_s;
    if (acted_s == kNeverS) acted_s = now_s;
  }
  void note_wait_end(ProcessIndex process, Seconds now_s) { in_hand_[process].waited_s = now_s; }
  // REQUIRES: the message is still the op's: before OpStore::used().
  void note_message(ProcessIndex process, MessageIndex index) {
    TimelineOp& op = in_hand_[process];
    op.message = store_.message(index);
    op.message_id = (static_cast<std::uint64_t>(op.message.generation) << 32) + index + 1;
    if (op.kind == OpKind::kSend) observer_.on_ready(op);
  }
  void finish(ProcessIndex process, Seconds now_s) {
    TimelineOp& op = in_hand_[process];
    op.end_s = now_s;
    if (op.waited_s == kNeverS) op.waited_s = now_s;
    if (op.acted_s == kNeverS) op.acted_s = op.waited_s;
    op.self_s = row_of_[process] != kNoMessage ? store_.row(row_of_[process]) + profiled_at_ : nullptr;
    observer_.on_op(op);
    op.self_s = nullptr;
  }

 private:
  OpStore& store_;
  TimelineObserver& observer_;
  std::size_t profiled_at_;
  std::vector<TimelineOp> in_hand_;   // by process
  std::vector<MessageIndex> row_of_;  // ... and the row of its op
};

}  // namespace lbf::engine
