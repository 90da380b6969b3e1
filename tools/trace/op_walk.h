// OpWalk: events -> ops, each visited once, for the exports that need the replay's view of a program
// (messages paired, requests resolved, collectives spelled out) and none of its times.
//
// Place in the event's way: Event -> match -> *Op* -> export. Visits a process's ops in their order, a
// receive or probe after its message's send. Memory: what is in flight, as in a replay.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "predictor/engine/match/matcher.h"
#include "predictor/engine/match/op_store.h"
#include "tools/trace/export_notes.h"

namespace lbf::tools {

class OpWalk {
 public:
  class Visitor {
   public:
    virtual ~Visitor() = default;
    // `message`: nullptr, or what the op names. `sent` is false for a receive or a probe whose message was
    // never sent (a partial trace). REQUIRES of the visitor: it keeps no reference.
    virtual Result<void> visit(engine::ProcessIndex process, const engine::Op& op, const engine::Message* message,
                               bool sent) = 0;
  };

  // What a trace that was recorded in windows is: an export's tool needs a whole one.
  enum class Windows { kRefused, kTaken };
  // Messages above `eager_up_to` bytes say when their receive is posted and when their send's buffer is free.
  OpWalk(Rank ranks, Bytes eager_up_to, Visitor& visitor, Windows windows = Windows::kRefused);

  // As Predictor::set_mpi.
  void set_mpi(const engine::MpiSetup& setup) { matcher_.set_mpi(setup); }
  // As Predictor::feed; also the visitor's errors.
  Result<void> feed(Rank rank, const Event& event);
  // No more events will come: visits what waits for messages that were never sent, too.
  Result<void> finish();

  const engine::OpStore& store() const { return store_; }
  const engine::Matcher& matcher() const { return matcher_; }
  // What it met that an export has to tell. REQUIRES: after finish().
  void add_to(ExportNotes& notes) const;

 private:
  struct Process {
    engine::OpStore::Cursor cursor;
    bool waits = false;
  };
  struct Slot {
    std::uint32_t generation = ~std::uint32_t{0};
    bool sent = false;
    engine::ProcessIndex waiter = engine::kNobody;
  };
  Result<void> advance();
  // What a receive of a message does that is not sent yet.
  enum class Unsent { kWaits, kIsPassed };
  Result<void> run(engine::ProcessIndex process, Unsent unsent);
  Slot& slot_of(engine::MessageIndex message);

  engine::OpStore store_;
  engine::Matcher matcher_;
  Visitor& visitor_;
  Windows windows_;
  std::vector<Process> processes_;
  std::vector<Slot> slots_;
  std::vector<engine::ProcessIndex> ready_;
  std::uint32_t events_in_round_ = 0;
  std::uint64_t never_sent_ = 0;  // receives and probes
};

// A tag for formats that have neither communicators nor messages of collectives: messages that this maps to
// one tag are on one channel, but for chance collisions between communicators. Point-to-point messages of
// MPI_COMM_WORLD keep theirs; the others get tags from 2^30 on, which programs hardly use.
constexpr std::uint32_t flat_tag(const engine::Message& message) {
  const auto tag = static_cast<std::uint32_t>(message.tag);
  if (message.collective) return 0x60000000U | ((message.comm * 0x9E3779B1U + tag) & 0x1FFFFFFFU);
  if (message.comm != 0) return 0x40000000U | (((message.comm - 1) * 0x9E3779B1U + tag) & 0x1FFFFFFFU);
  return tag;
}

}  // namespace lbf::tools
