// Collector: the records of a process's threads, merged into one sequence (docs/relay.md, "Threads").
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "event/mpi_function_table.h"
#include "spank_plugin/relay/collector.h"

namespace lbf::relay {
namespace {

// A send that is under way holds the records of the process's other threads back for this long at most.
constexpr Seconds kLongestHoldS = 0.25;

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
    case MpiRole::kCollective:
    case MpiRole::kCommCreate:
    case MpiRole::kCommCreateFromGroup:
      return true;
    default:
      return false;
  }
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
void Collector::hold(Ring& ring, const ring::Record& record, std::span<const std::uint64_t> values) const {
  HeldRecord held{record, 0, ring.held_values.size(), values.size()};
  ring.held_values.insert(ring.held_values.end(), values.begin(), values.end());
  if (record.kind == ring::kRecordAdjust) {
    ++ring.undated;
    ring.held.push_back(held);
    return;
  }
  held.turn = turn_of(record);
  const bool of_same_call = (record.flags & kFlagCallBegin) == 0;
  if (begins_something(record)) {  // what a call begins, it begins all at once (MPI_Sendrecv, MPI_Startall)
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

// A collective that other threads ran beside begins where its call began and ends where it returned: each thread
// may have one under way on a communicator of its own, in another order on each rank.
void Collector::hold_collective(Process& process, Ring& ring, const ring::Record& record,
                                std::span<const std::uint64_t> values) const {
  ring::Record begin = record;
  begin.kind = static_cast<std::uint8_t>(EventKind::kIcollective);
  begin.flags |= kFlagHasRequest | kFlagBlockingCall;
  begin.request = ring::kFirstRelayRequest | process.split_collectives++;
  begin.leave = begin.enter;
  hold(ring, begin, values);
  ring::Record end{};
  end.words_and_op = ring::kRecordWords;
  end.kind = static_cast<std::uint8_t>(EventKind::kWait);
  end.flags = kFlagHasRequest;
  end.function = record.function;
  end.enter = record.enter;
  end.leave = record.leave;
  end.request = begin.request;
  hold(ring, end, {});
}

// One process is one sequence of events for the replay: its threads' records in the order in which they took
// effect. Released is what took effect before this pass began and before any send that is under way.
void Collector::release(Process& process, ClockReading now, Seconds seconds_per_tick, bool everything,
                        BatchBuilder& out) {
  const bool ticks = process.rings.front().reader.identity().clock_source == 0;
  const Seconds tick_s = ticks ? seconds_per_tick : 1e-9;
  std::uint64_t horizon = std::numeric_limits<std::uint64_t>::max();
  if (!everything) {
    const std::uint64_t begin = ticks ? now.ticks : now.monotonic_ns;
    horizon = begin;
    for (const Ring& ring : process.rings) {
      if (ring.has_more) horizon = std::min(horizon, ring.last_order);
      const std::uint64_t enter = ring.status.call_enter_ticks;
      const bool sends =
          !ring.broken && ring.status.where == ring::kInCall && may_send(ring.status.call_function);
      if (sends && enter < begin && static_cast<double>(begin - enter) * tick_s < kLongestHoldS) {
        horizon = std::min(horizon, enter);
      }
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
  for (const auto& entry : merged_) {
    const ring::Record& record = entry.second->record;
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
