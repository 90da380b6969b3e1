// ThreadRecords: the records of one of several threads of a process, until their turn. ThreadMerge puts those
// of all threads into one sequence, in the order in which they took effect.
//
// Place in the event's way: ring -> RingReader -> *ThreadRecords, ThreadMerge* -> RecordConverter. Implements
// docs/relay.md, "Threads".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/record_converter.h"

namespace lbf::relay {

// What a record is of its call. kFirst: it takes effect when the call begins, others follow. kBegin, kEnd: of
// a blocking call, which was one record.
enum class CallPart : std::uint8_t { kWhole, kFirst, kBegin, kEnd };

struct HeldRecord {
  ring::Record record;
  // When it took effect, never below the one before it in its ring; of an adjust record: that of the record
  // it belongs to.
  std::uint64_t order = 0;
  std::size_t values_begin = 0;
  std::size_t values_count = 0;
  // Of what bears the same time, written by several threads: a window's close comes first, the end of the
  // capture last.
  std::uint8_t turn = 1;
  CallPart part = CallPart::kWhole;
};

// Whether other threads may have been in MPI during a call.
enum class Concurrency : std::uint8_t { kAlone, kOtherThreads };

class ThreadRecords {
 public:
  // SPLIT_CALLS: how many calls of the process were split, which numbers their requests.
  void hold(const ring::Record& record, std::span<const std::uint64_t> values, Concurrency concurrency,
            std::uint32_t& split_calls);
  void clear();

  // What took effect at HORIZON or before.
  std::span<const HeldRecord> until(std::uint64_t horizon) const;
  std::span<const HeldRecord> all() const { return held_; }
  std::span<const std::uint64_t> values_of(const HeldRecord& held) const {
    return std::span(values_).subspan(held.values_begin, held.values_count);
  }
  // The first COUNT of them were handed on.
  void drop(std::size_t count);

  // As in the ring.
  std::size_t bytes() const { return held_.size() * sizeof(ring::Record) + values_.size() * sizeof(std::uint64_t); }
  // The record that they belong to has come.
  bool has_dated() const { return held_.size() > undated_; }
  std::uint64_t last_order() const { return last_order_; }

 private:
  void append(const ring::Record& record, std::span<const std::uint64_t> values, CallPart part = CallPart::kWhole);
  void append_first(const ring::Record& record, std::span<const std::uint64_t> values);
  void split_and_append(const ring::Record& record, std::span<const std::uint64_t> values, std::uint32_t& split_calls);

  void release_room();

  std::vector<HeldRecord> held_;
  std::vector<std::uint64_t> values_;
  std::size_t most_held_ = 0;  // since room was released
  std::size_t most_values_ = 0;
  std::uint32_t drops_ = 0;
  std::uint64_t last_order_ = 0;
  // The call of whose records more may follow a kFirst (0: none such), and when it was entered.
  std::uint16_t call_function_ = 0;
  std::uint64_t call_enter_ = 0;
  std::size_t undated_ = 0;  // adjust records at the end of `held_` whose own record has not come
};

// A call of such a function may have taken effect although its records are not there yet.
bool may_send(std::uint16_t function_id);
// The same of a receive's posting, which a synchronous send waits for.
bool may_post(std::uint16_t function_id);

class ThreadMerge {
 public:
  // Takes from each of THREADS what took effect at HORIZON or before.
  ThreadMerge(std::span<ThreadRecords* const> threads, std::uint64_t horizon);

  // Has CONVERTER convert the records in their order. Errors: those of RecordConverter::convert(); then
  // nothing is taken.
  Result<void> convert(RecordConverter& converter, Seconds tick_s, const RelayEventSink& sink);

 private:
  struct Entry {
    const ThreadRecords* thread;
    const HeldRecord* held;
  };
  // Two threads that first used a communicator at the same time: the one that defined it is behind the other.
  void define_ahead(std::uint32_t comm, RecordConverter& converter, const RelayEventSink& sink) const;

  std::span<ThreadRecords* const> threads_;
  std::vector<std::size_t> counts_;  // of each thread
  std::vector<Entry> merged_;
};

}  // namespace lbf::relay
