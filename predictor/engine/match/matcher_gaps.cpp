// Matcher, gaps part: what passed between two calls besides a process's own work. See matcher.h.
#include <algorithm>

#include "predictor/engine/match/matcher.h"

namespace lbf::engine {

// Procedures that are moved take the time with them: it is as it ran.
void Matcher::emit_regions(Rank rank, const Event& event) {
  if (event.process_s.ns() == 0 || event.values.size() < kRegionValues) return emit_plain(rank, event);
  const auto time_s = [&](std::size_t at) { return seconds_from_ns(static_cast<Nanoseconds>(event.values[at])); };
  const RegionWork ran{time_s(2), time_s(3), time_s(4), static_cast<double>(event.values[0]),
                       static_cast<std::uint32_t>(std::clamp<std::uint64_t>(event.values[1], 1, kMostRegionThreads))};
  stats_.region_threads = std::max(stats_.region_threads, ran.threads);
  emit(static_cast<ProcessIndex>(rank), store_.regions_op(ran, event.process_s, kOpEndsEvent));
}

// Off the processor and on it, each as long as it was.
void Matcher::emit_device(Rank rank, const Event& event) {
  if (event.values.size() < kDeviceValues) return emit_plain(rank, event);
  const auto process = static_cast<ProcessIndex>(rank);
  const Nanoseconds all_ns = event.process_s.ns();
  const auto busy_ns = static_cast<Nanoseconds>(std::min(event.values[1], static_cast<std::uint64_t>(all_ns)));
  const Nanoseconds off_ns = all_ns - busy_ns;
  if (off_ns > 0) emit(process, Op::plain(OpKind::kBlocked, 0, seconds_from_ns(off_ns)));
  emit(process, Op::plain(OpKind::kDevice, 0, seconds_from_ns(busy_ns) + event.call_s, kOpEndsEvent));
}

// What other programs took of the processor.
void Matcher::emit_preempted(Rank rank, const Event& event) {
  const auto process = static_cast<ProcessIndex>(rank);
  const Seconds in_call_s = seconds_from_ns(delayed_end_ns(event));
  stats_.other_programs_s += event.off_s + in_call_s;
  const bool is_last = in_call_s <= 0 && event.call_s <= 0;
  emit(process, Op::plain(OpKind::kPreempted, event.process_s, event.off_s + in_call_s, is_last ? kOpEndsEvent : 0));
  // What delayed the call before was measured in that call.
  if (!is_last) emit(process, Op::plain(OpKind::kCompute, 0, event.call_s - in_call_s, kOpEndsEvent));
}

}  // namespace lbf::engine
