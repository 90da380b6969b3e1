// See primitive_probe.h.
#include "spank_plugin/relay/primitive_probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <vector>

#include "base/cpu_time.h"
#include "base/scoped_fd.h"
#include "event/event.h"
#include "event/wire.h"
#include "spank_plugin/capture/ring.h"
#include "spank_plugin/relay/process_probe.h"
#include "spank_plugin/relay/tick_rate.h"

namespace lbf::relay {
namespace {

constexpr int kRounds = 3;
constexpr std::size_t kRecords = 1024;  // of a round: 48 KiB, so that a second level cache holds them
constexpr std::size_t kCounts = 4096;
constexpr std::size_t kEvents = 4096;
constexpr std::size_t kLooks = 32;
// Where no scratch ring can be had: as it was seen on a virtual machine with slow system calls.
constexpr Seconds kDefaultLookedS = 10e-6;

template <typename Work>
Seconds best_once_s(std::size_t executions, const Work& work) {
  Seconds best_s = 1;
  for (int round = 0; round < kRounds; ++round) {
    const Seconds begin_s = thread_cpu_s();
    for (std::size_t i = 0; i < executions; ++i) work(i);
    best_s = std::min(best_s, (thread_cpu_s() - begin_s) / static_cast<double>(executions));
  }
  return best_s;
}

// As a recorded call: the clock at its begin and at its end, its counters, one record.
Seconds recorded_once_s() {
  const std::vector<ring::Record> empty(kRecords);
  auto records = std::make_unique<std::vector<ring::Record>>(empty);
  std::atomic<std::uint64_t> head{0};
  ring::CallCounter counter{};
  return best_once_s(kRecords, [&](std::size_t i) {
    const std::uint64_t enter = read_ticks();
    ring::Record& record = (*records)[i];
    record = ring::Record{};
    record.words_and_op = ring::kRecordWords;
    record.peer = static_cast<std::int32_t>(i & 7);
    record.enter = enter;
    record.leave = read_ticks();
    counter.count.store(counter.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    counter.ticks.store(record.leave - enter, std::memory_order_relaxed);
    head.store(i * sizeof(ring::Record), std::memory_order_release);
  });
}

// As a counted call: one probe of a table of channels.
Seconds counted_once_s() {
  struct Slot {
    std::atomic<std::uint64_t> place{0};
    std::atomic<std::uint64_t> count{0};
  };
  auto table = std::make_unique<std::array<Slot, 1024>>();
  return best_once_s(kCounts, [&](std::size_t i) {
    const std::uint64_t place = i & 15;
    Slot& slot = (*table)[(place * 0x9e3779b97f4a7c15U) >> 54];
    if (slot.place.load(std::memory_order_relaxed) != place) {
      slot.place.store(place, std::memory_order_relaxed);
    }
    slot.count.store(slot.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  });
}

Seconds relayed_once_s() {
  BatchEncoder encoder;
  Event event;
  event.kind = EventKind::kSend;
  const Seconds begin_s = thread_cpu_s();
  for (std::size_t i = 0; i < kEvents; ++i) {
    event.process_s = 1e-6 * static_cast<double>(i % 97);
    event.call_s = 1e-7 * static_cast<double>(i % 31);
    event.peer = static_cast<Rank>(i & 7);
    encoder.add(0, event);
  }
  (void)encoder.finish(0, 1);
  return (thread_cpu_s() - begin_s) / static_cast<double>(kEvents);
}

// As a look at a ring in which nothing is new: its header, its indices, the rank's processor clock, its control word.
Seconds looked_once_s() {
  constexpr std::size_t kHeaderBytes = offsetof(ring::Header, calls);
  const ScopedFd ring(::memfd_create("lbf-probe", MFD_CLOEXEC));
  if (!ring || ::ftruncate(ring.get(), sizeof(ring::Header)) != 0) return kDefaultLookedS;
  std::array<std::byte, kHeaderBytes> header{};
  std::uint64_t word = 0;
  bool ok = true;
  const Seconds once_s = best_once_s(kLooks, [&](std::size_t i) {
    ok &= ::pread(ring.get(), header.data(), header.size(), 0) == static_cast<ssize_t>(header.size());
    ok &= ::pread(ring.get(), &word, sizeof word, offsetof(ring::Header, head)) == static_cast<ssize_t>(sizeof word);
    ok &= read_process_cpu_ns(::getpid()).has_value();
    word = i;
    ok &= ::pwrite(ring.get(), &word, sizeof word, offsetof(ring::Header, grant)) == static_cast<ssize_t>(sizeof word);
  });
  return ok ? once_s : kDefaultLookedS;
}

}  // namespace

PrimitiveCosts measure_primitives() {
  return {recorded_once_s(), counted_once_s(), relayed_once_s(), looked_once_s()};
}

}  // namespace lbf::relay
