// ThreadRecords and ThreadMerge, see thread_records.h.
#include "spank_plugin/relay/thread_records.h"

#include <algorithm>
#include <tuple>

#include "event/mpi_function_table.h"

namespace lbf::relay {
namespace {

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

// Of a call of ROLE more records follow the one of KIND, which waits for no other rank: MPI_Sendrecv posts
// its receive, MPI_Win_fence defines its window and completes its operations before its barrier.
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

// HeldRecord::turn. Who closes a window writes what was in its last gap, regions and waits for devices, at the same
// tick.
std::uint8_t turn_of(const ring::Record& record) {
  switch (static_cast<EventKind>(record.kind)) {
    case EventKind::kWindowClose:
    case EventKind::kRegions:
    case EventKind::kDevice:
      return 0;
    default:
      return ring::skips_everything(record) ? 2 : 1;
  }
}

}  // namespace

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

// An adjust record belongs before the record that follows it in its ring.
void ThreadRecords::append(const ring::Record& record, std::span<const std::uint64_t> values, CallPart part) {
  HeldRecord held{record, 0, values_.size(), values.size()};
  held.part = part;
  values_.insert(values_.end(), values.begin(), values.end());
  if (record.kind == ring::kRecordAdjust) {
    ++undated_;
    held_.push_back(held);
    return;
  }
  held.turn = turn_of(record);
  const bool of_same_call = (record.flags & kFlagCallBegin) == 0;
  if (part == CallPart::kFirst ||
      begins_something(record)) {  // what a call begins, it begins all at once (MPI_Sendrecv, MPI_Startall)
    held.order = of_same_call ? last_order_ : record.enter;
  } else {
    held.order = std::max(record.enter, record.leave);
  }
  held.order = std::max(held.order, last_order_);  // a hostile ring's clock may go backwards
  last_order_ = held.order;
  for (std::size_t i = held_.size() - undated_; i < held_.size(); ++i) {
    held_[i].order = held.order;
    held_[i].turn = held.turn;
  }
  undated_ = 0;
  held_.push_back(held);
}

// The time of its call is that of what ends it.
void ThreadRecords::append_first(const ring::Record& record, std::span<const std::uint64_t> values) {
  ring::Record begin = record;
  begin.leave = begin.enter;
  append(begin, values, CallPart::kFirst);
}

// A blocking call that other threads ran beside begins where it was entered and ends where it returned: each
// thread may have one under way, in another order on each rank. What nothing came between is put together
// again in ThreadMerge.
void ThreadRecords::split_and_append(const ring::Record& record, std::span<const std::uint64_t> values,
                                     std::uint32_t& split_calls) {
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
  begin.request = ring::kFirstRelayRequest | split_calls++;
  begin.leave = begin.enter;
  append(begin, values, CallPart::kBegin);
  end.flags = kFlagHasRequest;
  end.function = record.function;
  end.enter = record.enter;
  end.leave = record.leave;
  end.request = begin.request;
  append(end, {}, CallPart::kEnd);
}

void ThreadRecords::hold(const ring::Record& record, std::span<const std::uint64_t> values, Concurrency concurrency,
                         std::uint32_t& split_calls) {
  const auto kind = static_cast<EventKind>(record.kind);
  const bool is_collective = kind == EventKind::kCollective;
  const bool several = concurrency == Concurrency::kOtherThreads;
  if ((record.flags & kFlagCallBegin) != 0) {
    const MpiFunction* const function = several ? mpi_function(record.function) : nullptr;
    const bool is_first = function != nullptr && goes_on(function->role, kind);
    call_function_ = is_first ? record.function : 0;
    call_enter_ = record.enter;
    if (is_first) return append_first(record, values);
    // A message of no bytes is on its way at once.
    const bool sends = kind == EventKind::kSend && (record.flags & kFlagBuffered) == 0 &&
                       (record.bytes > 0 || (record.flags & kFlagSync) != 0);
    const bool in_parts = several && (is_collective || sends || kind == EventKind::kRecv);
    return in_parts ? split_and_append(record, values, split_calls) : append(record, values);
  }
  if (call_function_ == 0 || record.function != call_function_) return append(record, values);
  ring::Record later = record;
  later.enter = std::min(call_enter_, record.leave);
  if (is_collective || kind == EventKind::kSend) return split_and_append(later, values, split_calls);
  if (kind == EventKind::kEndRecv) return append(later, values);
  if (kind == EventKind::kOneSidedSync) return append_first(later, values);
  append(record, values);
}

void ThreadRecords::clear() {
  held_.clear();
  values_.clear();
  undated_ = 0;
}

std::span<const HeldRecord> ThreadRecords::until(std::uint64_t horizon) const {
  const auto dated_end = held_.end() - static_cast<std::ptrdiff_t>(undated_);
  const auto end =
      std::partition_point(held_.begin(), dated_end, [&](const HeldRecord& held) { return held.order <= horizon; });
  return {held_.begin(), end};
}

void ThreadRecords::drop(std::size_t count) {
  most_held_ = std::max(most_held_, held_.size());
  most_values_ = std::max(most_values_, values_.size());
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
  const std::size_t done = held_.empty() ? values_.size() : held_.front().values_begin;
  values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(done));
  for (HeldRecord& held : held_) held.values_begin -= done;
  release_room();
}

// What a burst or a long record took, when it is over for a while.
void ThreadRecords::release_room() {
  constexpr std::uint32_t kDrops = 32;
  constexpr std::size_t kKeptBytes = std::size_t{64} << 10;
  if (++drops_ % kDrops != 0) return;
  const auto is_unused = [](std::size_t most, std::size_t capacity, std::size_t item_bytes) {
    return capacity * item_bytes > kKeptBytes && most < capacity / 4;
  };
  if (is_unused(most_held_, held_.capacity(), sizeof(HeldRecord))) held_.shrink_to_fit();
  if (is_unused(most_values_, values_.capacity(), sizeof(std::uint64_t))) values_.shrink_to_fit();
  most_held_ = held_.size();
  most_values_ = values_.size();
}

ThreadMerge::ThreadMerge(std::span<ThreadRecords* const> threads, std::uint64_t horizon) : threads_(threads) {
  std::size_t all = 0;
  for (const ThreadRecords* thread : threads_) {
    counts_.push_back(thread->until(horizon).size());
    all += counts_.back();
  }
  merged_.reserve(all);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    for (const HeldRecord& held : threads_[i]->all().first(counts_[i])) merged_.push_back({threads_[i], &held});
  }
  std::stable_sort(merged_.begin(), merged_.end(), [](const Entry& x, const Entry& y) {
    return std::tie(x.held->order, x.held->turn) < std::tie(y.held->order, y.held->turn);
  });
}

void ThreadMerge::define_ahead(std::uint32_t comm, RecordConverter& converter, const RelayEventSink& sink) const {
  for (const ThreadRecords* thread : threads_) {
    for (const HeldRecord& other : thread->all()) {
      if (other.record.comm == comm) converter.define_ahead(other.record, thread->values_of(other), sink);
    }
  }
}

Result<void> ThreadMerge::convert(RecordConverter& converter, Seconds tick_s, const RelayEventSink& sink) {
  for (std::size_t i = 0; i < merged_.size(); ++i) {
    const Entry& entry = merged_[i];
    ring::Record record = entry.held->record;
    if (entry.held->part == CallPart::kBegin && i + 1 < merged_.size() && merged_[i + 1].held == entry.held + 1)
      record = whole_call(record, merged_[++i].held->record);
    const bool uses_comm =
        record.kind != ring::kRecordAdjust && record.kind != static_cast<std::uint8_t>(EventKind::kCommCreate);
    if (uses_comm && !converter.is_defined(record.comm)) define_ahead(record.comm, converter, sink);
    if (auto done = converter.convert(record, entry.thread->values_of(*entry.held), tick_s, sink); !done) return done;
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) threads_[i]->drop(counts_[i]);
  return {};
}

}  // namespace lbf::relay
