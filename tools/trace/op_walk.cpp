#include "tools/trace/op_walk.h"

#include <algorithm>

namespace lbf::tools {
namespace {
constexpr std::uint32_t kEventsPerRound = 4096;
}

OpWalk::OpWalk(Rank ranks, Bytes eager_up_to, Visitor& visitor, Windows windows)
    : store_(ranks, 1), matcher_(ranks, store_, {.eager_up_to = eager_up_to}), visitor_(visitor), windows_(windows) {}

Result<void> OpWalk::feed(Rank rank, const Event& event) {
  if (event.kind == EventKind::kWindowClose && windows_ == Windows::kRefused) {
    return invalid_input(
        "the trace was recorded in windows (the overhead limit was reached, or MPI_Pcontrol(0) called): other tools "
        "need a whole one");
  }
  if (Result<void> fed = matcher_.feed(rank, event); !fed) return fed;
  if (++events_in_round_ < kEventsPerRound) return {};
  return advance();
}

Result<void> OpWalk::finish() {
  for (Rank rank = 0; rank < store_.ranks(); ++rank) matcher_.close(rank);
  if (Result<void> done = advance(); !done) return done;
  for (bool forced = true; forced;) {
    forced = false;
    for (engine::ProcessIndex process = 0; process < static_cast<engine::ProcessIndex>(processes_.size()); ++process) {
      if (!processes_[process].waits) continue;
      forced = true;
      processes_[process].waits = false;
      ++never_sent_;
      if (Result<void> done = run(process, Unsent::kIsPassed); !done) return done;
      if (Result<void> done = advance(); !done) return done;
    }
  }
  return {};
}

Result<void> OpWalk::advance() {
  events_in_round_ = 0;
  processes_.resize(store_.processes());
  if (slots_.size() < store_.message_slots()) slots_.resize(std::max(store_.message_slots(), 2 * slots_.size()));
  for (engine::ProcessIndex process : store_.touched()) {
    if (!processes_[process].waits) ready_.push_back(process);
  }
  store_.clear_touched();
  while (!ready_.empty()) {
    const engine::ProcessIndex process = ready_.back();
    ready_.pop_back();
    if (processes_[process].waits) continue;
    if (Result<void> done = run(process, Unsent::kWaits); !done) return done;
  }
  return {};
}

void OpWalk::add_to(ExportNotes& notes) const {
  notes.never_sent = never_sent_;
  notes.approximated_collectives = matcher_.stats().approximated_collectives;
  notes.unmodelled_calls = matcher_.stats().unmodelled_calls;
  notes.why_partial = matcher_.why_partial();
}

OpWalk::Slot& OpWalk::slot_of(engine::MessageIndex message) {
  return engine::current(slots_[message], store_.message(message));
}

Result<void> OpWalk::run(engine::ProcessIndex index, Unsent unsent) {
  Process& process = processes_[index];
  while (const engine::Op* op = store_.front(index, process.cursor)) {
    if (op->kind == engine::OpKind::kBlockEnd) {
      engine::OpStore::pop(process.cursor);
      continue;
    }
    const engine::Message* message = op->names_message() ? &store_.message(op->message()) : nullptr;
    bool sent = true;
    if (message != nullptr &&
        (op->kind == engine::OpKind::kRecv || op->kind == engine::OpKind::kLook || op->kind == engine::OpKind::kPeek)) {
      Slot& slot = slot_of(op->message());
      sent = slot.sent;
      if (!sent && unsent == Unsent::kWaits) {
        slot.waiter = index;
        process.waits = true;
        return {};
      }
      unsent = Unsent::kWaits;
    }
    if (Result<void> done = visitor_.visit(index, *op, message, sent); !done) return done;
    if (message != nullptr && op->kind == engine::OpKind::kSend) {
      Slot& slot = slot_of(op->message());
      slot.sent = true;
      if (slot.waiter != engine::kNobody) {
        processes_[slot.waiter].waits = false;
        ready_.push_back(slot.waiter);
        slot.waiter = engine::kNobody;
      }
    }
    if (message != nullptr) store_.note_use(op->message());
    if ((op->flags & engine::kOpHasRow) != 0) store_.note_row_use(*op);
    engine::OpStore::pop(process.cursor);
  }
  return {};
}

}  // namespace lbf::tools
