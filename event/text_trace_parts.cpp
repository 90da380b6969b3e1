#include "event/text_trace_parts.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace lbf::text_trace {

Result<void> read_regions(const Lines& line, const Keys& keys, std::vector<std::uint64_t>& values) {
  values.clear();
  for (const auto& [key, name, most] :
       {std::tuple{kCount, "count", kMaxBytes}, std::tuple{kThreads, "threads", kMostRegionThreads}}) {
    const Result<std::uint64_t> number = line.whole(keys.value(key), name, most);
    if (!number) return number.error();
    if (*number == 0) return line.fail(std::string(name) + "= is 0");
    values.push_back(*number);
  }
  for (const auto& [key, name] :
       {std::pair{kWork, "work"}, std::pair{kCritical, "critical"}, std::pair{kFork, "fork"}}) {
    const Result<Seconds> time_s = keys.has(key) ? line.seconds(keys.value(key), name) : Result<Seconds>(0.0);
    if (!time_s) return time_s.error();
    values.push_back(static_cast<std::uint64_t>(std::llround(*time_s * 1e9)));
  }
  if (values[3] > values[2]) return line.fail("critical= is more than work=");
  return {};
}

Result<void> read_device_wait(const Lines& line, const Keys& keys, Duration time, std::vector<std::uint64_t>& values) {
  const Result<std::uint64_t> calls = line.whole(keys.value(kCalls), "calls", kMaxBytes);
  if (!calls) return calls.error();
  if (*calls == 0) return line.fail("calls= is 0");
  const Result<Seconds> busy_s =
      keys.has(kBusy) ? line.seconds(keys.value(kBusy), "busy") : Result<Seconds>(Seconds{time});
  if (!busy_s) return busy_s.error();
  constexpr Nanoseconds kRounded = 1;
  const Nanoseconds busy_ns = Duration(*busy_s).ns();
  if (busy_ns > time.ns() + kRounded) return line.fail("busy= is more than the time");
  values = {*calls, static_cast<std::uint64_t>(std::min(busy_ns, time.ns()))};
  return {};
}

Result<void> read_looks(const Lines& line, const Keys& keys, Event& event) {
  if (!keys.has(kLooks)) return keys.has(kTime) ? Result<void>(line.fail("time= without looks=")) : Result<void>();
  const Result<std::uint64_t> looks = line.whole(keys.value(kLooks), "looks", kMaxBytes);
  if (!looks) return looks.error();
  const Result<Seconds> time_s = keys.has(kTime) ? line.seconds(keys.value(kTime), "time") : Result<Seconds>(0.0);
  if (!time_s) return time_s.error();
  const Duration process_s = event.process_s;
  event = vain_looks_event(*looks, Duration(*time_s));
  event.process_s = process_s;
  return {};
}

}  // namespace lbf::text_trace
