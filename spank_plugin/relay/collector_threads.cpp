// Collector: the records of a process's threads, merged into one sequence (docs/relay.md, "Threads").
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "event/mpi_function_table.h"
#include "spank_plugin/relay/collector.h"

namespace lbf::relay {
namespace {

// A send or a receive that is under way holds the records of the process's other threads back for this long at most: what it
// began is known when it returns.
constexpr Seconds kLongestHoldS = 2;
// Where much waits already a send does so for a shorter time, and a receive not at all.
constexpr Seconds kLongestHoldOfMuchS = 0.25;
constexpr std::size_t kMuchBytes = std::size_t{1} << 20;  // of one thread
// While a thread waits longer in a receive, the others' records come so much later: who sent to it may be back from MPI_Ssend,
// and the thread has not had the processor since.
constexpr Seconds kReceiverGraceS = 0.05;

// Records that take effect for other ranks when their call begins: a message is on its way, although the call
// may return long after it was received. Everything else has happened when the call returns.
bool begins_something(const ring::Record& record) {
  switch (static_cast<EventKind>(record.kind)) {
    case EventKind::kSend:
    case EventKind::kIsend:
    case EventKind::kStartRecv:
    case EventKind::kIcollective:
      return true;
    default:
      return false;
  }
}

// A call of such a function may have taken effect although its records are not there yet.
bool may_send(std::uint16_t function_id) {
  const MpiFunction* function = mpi_function(function_id);
  if (function == nullptr) return false;
  switch (function->role) {
    case MpiRole::kSend:
    case MpiRole::kIsend:
    case MpiRole::kSendrecv:
    case MpiRole::kSendrecvReplace:
    case MpiRole::kStart:
    case MpiRole::kStartall:
    case MpiRole::kWinPost:
    case MpiRole::kWinComplete:
    case MpiRole::kWinFence:
    case MpiRole::kCollective:
    case MpiRole::kCommCreate:
    case MpiRole::kCommCreateFromGroup:
      return true;
    default:
      return false;
  }
}

// The same of a receive's posting, which a synchronous send waits for.
bool may_post(std::uint16_t function_id) {
  const MpiFunction* function = mpi_function(function_id);
  if (function == nullptr) return false;
  switch (function->role) {
    case MpiRole::kRecv:
    case MpiRole::kIrecv:
    case MpiRole::kMprobe:
    case MpiRole::kImprobe:
      return true;
    default:
      return false;
  }
}

// Of a call of ROLE more records follow the one of KIND, which waits for no other rank: MPI_Sendrecv posts its receive,
// MPI_Win_fence defines its window and completes its operations before its barrier.
bool goes_on(MpiRole role, EventKind kind) {
  switch (role) {
    case MpiRole::kSendrecv:
    case MpiRole::kSendrecvReplace:
      return kind == EventKind::kStartRecv;
    case MpiRole::kWinFence:
      return kind == EventKind::kOneSidedSync || kind == EventKind::kCommCreate;
    default:
      return false;
  }
}

// The call of which nothing came between BEGIN and END.
ring::Record whole_call(ring::Record begin, const ring::Record& end) {
  switch (static_cast<EventKind>(begin.kind)) {
    case EventKind::kIsend:
      begin.kind = static_cast<std::uint8_t>(EventKind::kSend);
      break;
    case EventKind::kStartRecv:
      begin.kind = static_cast<std::uint8_t>(EventKind::kRecv);
      break;
    default:
      begin.kind = static_cast<std::uint8_t>(EventKind::kCollective);
      begin.flags &= static_cast<std::uint8_t>(~kFlagBlockingCall);
  }
  begin.flags &= static_cast<std::uint8_t>(~kFlagHasRequest);
  begin.request = 0;
  begin.leave = end.leave;
  return begin;
}

// HeldRecord::turn.
std::uint8_t turn_of(const ring::Record& record) {
  if (record.kind == static_cast<std::uint8_t>(EventKind::kWindowClose)) return 0;
  const bool ends = record.kind == static_cast<std::uint8_t>(EventKind::kSkipped) &&
                    record.words_and_op >> 24 == static_cast<std::uint32_t>(SkippedSide::kEverything);
  return ends ? 2 : 1;
}

}  // namespace

// An adjust record belongs before the record that follows it in its ring.
void Collector::hold(Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values, HeldPart part) const {
  HeldRecord held{record, 0, ring.held_values.size(), values.size()};
  held.part = part;
  ring.held_values.insert(ring.held_values.end(), values.begin(), values.end());
  if (record.kind == ring::kRecordAdjust) {
    ++ring.undated;
    ring.held.push_back(held);
    return;
  }
  held.turn = turn_of(record);
  const bool of_same_call = (record.flags & kFlagCallBegin) == 0;
  if (part == HeldPart::kFirst || begins_something(record)) {  // what a call begins, it begins all at once (MPI_Sendrecv, MPI_Startall)
    held.order = of_same_call ? ring.last_order : record.enter;
  } else {
    held.order = std::max(record.enter, record.leave);
  }
  held.order = std::max(held.order, ring.last_order);  // a hostile ring's clock may go backwards
  ring.last_order = held.order;
  for (std::size_t i = ring.held.size() - ring.undated; i < ring.held.size(); ++i) {
    ring.held[i].order = held.order;
    ring.held[i].turn = held.turn;
  }
  ring.undated = 0;
  ring.held.push_back(held);
}

// A blocking call that other threads ran beside begins where it was entered and ends where it returned: each thread may
// have one under way, in another order on each rank. What nothing came between is put together again in release().
void Collector::hold_in_parts(Process& process, Ring& ring, const ring::Record& record,
                              std::span<const std::uint64_t> values) const {
  ring::Record begin = record;
  ring::Record end{};
  end.words_and_op = ring::kRecordWords;
  end.kind = static_cast<std::uint8_t>(EventKind::kWait);
  switch (static_cast<EventKind>(record.kind)) {
    case EventKind::kSend:
      begin.kind = static_cast<std::uint8_t>(EventKind::kIsend);
      break;
    case EventKind::kRecv:
      begin.kind = static_cast<std::uint8_t>(EventKind::kStartRecv);
      end = record;
      end.kind = static_cast<std::uint8_t>(EventKind::kEndRecv);
      break;
    default:
      begin.kind = static_cast<std::uint8_t>(EventKind::kIcollective);
      begin.flags |= kFlagBlockingCall;
  }
  begin.flags |= kFlagHasRequest;
  begin.request = ring::kFirstRelayRequest | process.split_calls++;
  begin.leave = begin.enter;
  hold(ring, begin, values, HeldPart::kBegin);
  end.flags = kFlagHasRequest;
  end.function = record.function;
  end.enter = record.enter;
  end.leave = record.leave;
  end.request = begin.request;
  hold(ring, end, {}, HeldPart::kEnd);
}

// A record of one of several threads.
void Collector::hold_of_thread(Process& process, Ring& ring, const ring::Record& record,
                               std::span<const std::uint64_t> values, std::uint64_t pass_begin) const {
  const auto kind = static_cast<EventKind>(record.kind);
  const bool is_collective = kind == EventKind::kCollective;
  // What was over when the pass began has no other thread beside it whose ring was not there then.
  const bool several = process.rings.size() > 1 || std::max(record.enter, record.leave) >= pass_begin;
  if ((record.flags & kFlagCallBegin) != 0) {
    const MpiFunction* const function = several ? mpi_function(record.function) : nullptr;
    const bool is_first = function != nullptr && goes_on(function->role, kind);
    ring.call_function = is_first ? record.function : 0;
    ring.call_enter = record.enter;
    if (is_first) return hold_first(ring, record, values);
    // A message of no bytes is on its way at once.
    const bool sends = kind == EventKind::kSend && (record.flags & kFlagBuffered) == 0 &&
                       (record.bytes > 0 || (record.flags & kFlagSync) != 0);
    const bool in_parts = several && (is_collective || sends || kind == EventKind::kRecv);
    return in_parts ? hold_in_parts(process, ring, record, values) : hold(ring, record, values);
  }
  if (ring.call_function == 0 || record.function != ring.call_function) return hold(ring, record, values);
  ring::Record later = record;
  later.enter = std::min(ring.call_enter, record.leave);
  if (is_collective || kind == EventKind::kSend) return hold_in_parts(process, ring, later, values);
  if (kind == EventKind::kEndRecv) return hold(ring, later, values);
  if (kind == EventKind::kOneSidedSync) return hold_first(ring, later, values);
  hold(ring, record, values);
}

// The time of its call is that of what ends it.
void Collector::hold_first(Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values) const {
  ring::Record begin = record;
  begin.leave = begin.enter;
  hold(ring, begin, values, HeldPart::kFirst);
}

// One process is one sequence of events for the replay: its threads' records in the order in which they took
// effect. Released is what took effect before this pass began and before any send or receive that is under way.
void Collector::release(Process& process, ClockReading now, Seconds seconds_per_tick, bool everything,
                        BatchBuilder& out) {
  const bool ticks = process.rings.front().reader.identity().clock_source == 0;
  const Seconds tick_s = ticks ? seconds_per_tick : 1e-9;
  std::uint64_t horizon = std::numeric_limits<std::uint64_t>::max();
  if (!everything) {
    const std::uint64_t begin = ticks ? now.ticks : now.monotonic_ns;
    horizon = begin;
    const bool much_waits = std::any_of(process.rings.begin(), process.rings.end(), [](const Ring& ring) {
      return ring.held.size() * sizeof(HeldRecord) >= kMuchBytes;
    });
    const auto ticks_of = [tick_s](Seconds s) { return static_cast<std::uint64_t>(s / tick_s); };
    const std::uint64_t longest_hold = ticks_of(much_waits ? kLongestHoldOfMuchS : kLongestHoldS);
    for (const Ring& ring : process.rings) {
      if (ring.has_more) horizon = std::min(horizon, ring.last_order);
      if (ring.broken || ring.status.where != ring::kInCall) continue;
      const bool receives = may_post(ring.status.call_function) && process.rings.size() > 1 && !much_waits;
      if (!receives && !may_send(ring.status.call_function)) continue;
      const std::uint64_t enter = ring.status.call_enter_ticks;
      if (enter < begin && begin - enter < longest_hold) horizon = std::min(horizon, enter);
      if (receives) horizon = std::min(horizon, begin - std::min(begin, ticks_of(kReceiverGraceS)));
    }
  }
  merged_.clear();
  const auto released = [&](const Ring& ring) {
    const auto end = ring.held.end() - static_cast<std::ptrdiff_t>(ring.undated);
    if (everything) return end;
    return std::partition_point(ring.held.begin(), end,
                                [&](const HeldRecord& held) { return held.order <= horizon; });
  };
  for (const Ring& ring : process.rings) {
    for (auto held = ring.held.begin(); held != released(ring); ++held) merged_.emplace_back(&ring, &*held);
  }
  std::stable_sort(merged_.begin(), merged_.end(), [](const auto& x, const auto& y) {
    return std::tie(x.second->order, x.second->turn) < std::tie(y.second->order, y.second->turn);
  });

  const auto emit = [&](const Event& event) { add_event(process, event, now, out); };
  const auto values_of = [](const std::pair<const Ring*, const HeldRecord*>& entry) {
    return std::span(entry.first->held_values)
        .subspan(entry.second->values_begin, entry.second->values_count);
  };
  Result<void> converted;
  for (std::size_t i = 0; i < merged_.size(); ++i) {
    const auto& entry = merged_[i];
    ring::Record record = entry.second->record;
    if (entry.second->part == HeldPart::kBegin && i + 1 < merged_.size() && merged_[i + 1].second == entry.second + 1)
      record = whole_call(record, merged_[++i].second->record);
    if (record.kind != ring::kRecordAdjust &&
        record.kind != static_cast<std::uint8_t>(EventKind::kCommCreate) &&
        !process.converter.is_defined(record.comm)) {
      // Two threads that first used it at the same time: the one that defined it is behind the other here.
      for (const Ring& ring : process.rings) {
        for (const HeldRecord& other : ring.held) {
          if (other.record.comm == record.comm) {
            process.converter.define_ahead(other.record, values_of({&ring, &other}), emit);
          }
        }
      }
    }
    converted = process.converter.convert(record, values_of(entry), tick_s, emit);
    if (!converted.ok()) break;
  }
  if (!converted) {
    for (Ring& ring : process.rings) {
      ring.held.clear();
      ring.held_values.clear();
      ring.undated = 0;
      if (!ring.broken) close_ring(process, ring, converted.error(), now, out);
    }
    return;
  }
  for (Ring& ring : process.rings) {
    ring.held.erase(ring.held.begin(), released(ring));
    const std::size_t done = ring.held.empty() ? ring.held_values.size() : ring.held.front().values_begin;
    ring.held_values.erase(ring.held_values.begin(),
                           ring.held_values.begin() + static_cast<std::ptrdiff_t>(done));
    for (HeldRecord& held : ring.held) held.values_begin -= done;
  }
}

}  // namespace lbf::relay
