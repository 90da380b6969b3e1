// CapturedRing, see captured_ring.h.
#include "spank_plugin/relay/captured_ring.h"

#include <algorithm>

namespace lbf::relay {

Seconds CapturedRing::once_s() const {
  // Starting the capture of one thread does not take longer, whatever its ring says.
  constexpr std::uint64_t kMostOnceNs = 10'000'000'000;
  return static_cast<double>(std::min(status.once_cpu_ns, kMostOnceNs)) * 1e-9;
}

Result<void> CapturedRing::drain(Bytes limit_bytes, const RecordSink& sink, Pass& pass) {
  if (auto pending = reader.pending_bytes()) {
    const auto capacity = static_cast<double>(reader.identity().capacity_bytes);
    pass.result.fullest = std::max(pass.result.fullest, static_cast<double>(*pending) / capacity);
  }
  auto drained = reader.drain(limit_bytes, sink);
  if (!drained) return drained.error();
  pass.result.bytes += *drained;
  has_more = *drained >= limit_bytes;
  if (has_more) pass.result.fullest = 1;  // the next pass is due at once
  return {};
}

void RingTotals::add(const CapturedRing& ring, const Pass& pass) {
  const Seconds tick_s = ring.tick_s(pass);
  failed_polls += ring.status.failed_polls;
  lost_records += ring.status.lost_records;
  abandoned_calls += ring.status.abandoned_calls;
  unread_gap_s += static_cast<double>(ring.status.unread_gap_ticks) * tick_s;
  capture_s += static_cast<double>(ring.status.capture_ticks_estimate) * tick_s;
  once_s += ring.once_s();
  device_libraries |= ring.status.device_libraries;
  const auto made = ring.reader.read_calls();
  if (!made) return;
  for (const FunctionTotal& total : *made) {
    auto& [count, seconds] = calls[total.function];
    count += total.count;
    seconds += static_cast<double>(total.ticks) * tick_s;
  }
}

}  // namespace lbf::relay
