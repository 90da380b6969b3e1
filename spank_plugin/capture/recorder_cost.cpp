// Recorder, cost part: what a recorded and a counted call take with everything in the cache (C_obs_ideal; Hollingsworth
// & Miller, Sec. 3.2), and what of it the samples do not see (sampling.h). See recorder.h; docs/capture.md, "Cost
// sampling".
//
// Place in the event's way: when a thread's ring is made (thread_ring.cpp), before its first event.
#include <algorithm>
#include <initializer_list>

#include "spank_plugin/capture/recorder.h"

namespace lbf::capture {
namespace {

constexpr int kBatches = 16;
constexpr int kCalls = 32;  // their records fit the smallest ring
constexpr int kSampledBatches = 16;

using SendFunction = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

// In the MPI library's place.
[[gnu::noinline]] int no_send(const void*, int, MPI_Datatype, int, int, MPI_Comm) noexcept {
  asm volatile("");
  return MPI_SUCCESS;
}
constinit SendFunction next_send = no_send;

SendFunction next_function() noexcept {
  return __atomic_load_n(&next_send, __ATOMIC_RELAXED);
}

// As the wrappers of MPI_Send are made (generate_wrappers.py), but that nothing is behind them where they do not begin.
constexpr int kDidNotBegin = -1;
[[gnu::noinline]] int recorded_send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                                    MPI_Comm comm) noexcept {
  const SendFunction next = next_function();
  Call call(0);
  if (!call.begin()) return kDidNotBegin;
  call.forward();
  const int result = next(buf, count, datatype, dest, tag, comm);
  call.returned();
  if (result == MPI_SUCCESS) record::send(call, 0, count, datatype, dest, tag, comm);
  call.finish();
  return result;
}
template <class Counted>
[[gnu::noinline]] int counted_send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                                   MPI_Comm comm) noexcept {
  Counted call(0);
  if (!call.begin(SkippedSide::kSends, key_of(comm), dest, tag)) [[unlikely]]
    return kDidNotBegin;
  const SendFunction next = next_function();
  call.forward();
  const int result = next(buf, count, datatype, dest, tag, comm);
  call.returned();
  if (result == MPI_SUCCESS) [[likely]]
    call.count();
  call.finish();
  return result;
}

// kCalls of them; false: not all began.
bool call_all(SendFunction send) noexcept {
  int result = MPI_SUCCESS;
  for (int i = 0; i < kCalls; ++i) result |= send(nullptr, 1, MPI_Datatype{}, 0, 0, library.comm_world);
  return result == MPI_SUCCESS;
}

// Ticks of a batch, the fastest of several; 0: none was whole. `prepare` comes before each.
template <class Prepare>
std::uint64_t fastest_batch(SendFunction send, Prepare prepare) noexcept {
  std::uint64_t least = kNever;
  for (int i = 0; i < kBatches; ++i) {
    prepare();
    const std::uint64_t begin = ticks_now();
    const bool whole = call_all(send);
    const std::uint64_t ticks = ticks_now() - begin;
    if (whole && ticks < least) least = ticks;
  }
  return least == kNever ? 0 : least;
}

std::uint64_t per_call_256(std::uint64_t batch, std::uint64_t without) noexcept {
  return batch > without ? (batch - without) * 256 / kCalls : 0;
}

// How much of a counted call its samples miss where nothing has to come into the cache. They are not trusted to tell
// less.
CountedIdeal measure_counted(Thread& thread, SendFunction send, std::uint64_t without) noexcept {
  ring::Header& header = *thread.header;
  CountedIdeal ideal;
  thread.attention.counted_at = kNever;
  // Other threads make communicators meanwhile: what was remembered is void then, until it is remembered again.
  const auto remember = [&] {
    const ChannelEnd end{0, 0, 0, SkippedSide::kSends};
    thread.counts.remember(process.comm_epoch.load(std::memory_order_relaxed), end, key_of(library.comm_world), 0, 0);
  };
  ideal.whole_256 = per_call_256(fastest_batch(send, remember), without);
  thread.cost.counted = Sampler{};
  header.counted.sampled.store(0, std::memory_order_relaxed);
  header.counted.sampled_ticks.store(0, std::memory_order_relaxed);
  for (int i = 0; i < kSampledBatches * kCalls; ++i) {
    thread.attention.counted_at = header.counted.executions.load(std::memory_order_relaxed);  // timed, each of them
    if (send(nullptr, 1, MPI_Datatype{}, 0, 0, library.comm_world) != MPI_SUCCESS) remember();
  }
  const std::uint64_t sampled = header.counted.sampled.load(std::memory_order_relaxed);
  if (sampled == 0) return ideal;
  const std::uint64_t seen_256 = header.counted.sampled_ticks.load(std::memory_order_relaxed) * 256 / sampled;
  ideal.unseen_256 = ideal.whole_256 > seen_256 ? ideal.whole_256 - seen_256 : 0;
  return ideal;
}

}  // namespace

void measure_ideal(Thread& thread) noexcept {
  ring::Header& header = *thread.header;
  std::byte* const data = reinterpret_cast<std::byte*>(&header) + header.header_bytes;
  thread.attention.expected_control.store(control_word(header), std::memory_order_relaxed);
  thread.mode.epoch = process.mode.epoch.load(std::memory_order_acquire);
  // Sends of no type, so that MPI is not asked; its size is remembered, as those of the program's types are.
  type_size_slot(thread, MPI_Datatype{}) = {MPI_Datatype{}, process.type_epoch.load(std::memory_order_relaxed), 0};
  available_thread = &thread;
  std::uint64_t without = fastest_batch(next_function(), [] {});
  thread.mode.counting = false;
  thread.attention.recorded_at = kNever;
  thread.attention.counted_at = 0;
  const std::uint64_t recorded = fastest_batch(recorded_send, [&] {
    thread.ring = RingWriter{};
    thread.ring.attach(&header, data, header.capacity_bytes, thread.bytes_there);
  });
  // Once more: a microsecond may have been one in which the processor's other thread was busy.
  without = std::min(without, fastest_batch(next_function(), [] {}));
  thread.counts.count({0, 0, 0, SkippedSide::kSends});
  thread.mode.counting = true;
  thread.attention.recorded_at = 0;
  const CountedIdeal counted = measure_counted(thread, counted_send<CountedCall>, without);
  thread.cost.shared_counted_ideal = measure_counted(thread, counted_send<SharedCountedCall>, without);
  thread.mode.counting = false;
  available_thread = nullptr;
  thread.attention.recorded_at = 0;
  thread.attention.counted_at = 0;
  thread.mode.epoch = 0;
  thread.attention.expected_control.store(kNever, std::memory_order_relaxed);
  thread.counts.take_changes([](const ChannelEnd&, std::uint64_t) { return true; });
  thread.ring = RingWriter{};
  thread.ring.attach(&header, data, header.capacity_bytes, thread.bytes_there);
  for (std::atomic<std::uint64_t>* counter :
       {&header.head, &header.lost_records, &header.recorded.executions, &header.counted.executions,
        &header.counted.sampled, &header.counted.sampled_ticks, &header.capture_ticks_estimate,
        &header.unread_gap_ticks, &header.call_enter_ticks, &header.calls[0].count, &header.calls[0].ticks}) {
    counter->store(0, std::memory_order_relaxed);
  }
  header.in_call.store(ring::kWhereUnknown, std::memory_order_relaxed);
  header.recorded.ideal_ticks_256.store(per_call_256(recorded, without), std::memory_order_relaxed);
  header.counted.ideal_ticks_256.store(counted.whole_256, std::memory_order_relaxed);
  thread.cost.recorded = Sampler{};
  thread.cost.counted = Sampler{};
  thread.cost.counted.set_unseen(counted.unseen_256);
}

void use_shared_ideal(Thread& thread) noexcept {
  if (thread.cost.shared_counted_ideal.whole_256 == 0) return;
  thread.header->counted.ideal_ticks_256.store(thread.cost.shared_counted_ideal.whole_256, std::memory_order_relaxed);
  thread.cost.counted.set_unseen(thread.cost.shared_counted_ideal.unseen_256);
}

}  // namespace lbf::capture
