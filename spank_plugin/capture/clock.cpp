// Clocks of the capture; see clock.h. Implements docs/capture.md, "Process time".
#include "spank_plugin/capture/clock.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <utility>

namespace lbf::capture {

constinit TickClock tick_clock;

namespace {

bool tsc_is_invariant() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && ((d >> 8) & 1) != 0;
#else
  return false;
#endif
}

// Next decimal number at or after `*p`, which is moved behind it.
std::uint64_t parse_number(const char** p, const char* end) noexcept {
  while (*p < end && (**p < '0' || **p > '9')) ++*p;
  std::uint64_t value = 0;
  for (; *p < end && **p >= '0' && **p <= '9'; ++*p) value = value * 10 + static_cast<std::uint64_t>(**p - '0');
  return value;
}

}  // namespace

void clock_start() noexcept {
  tick_clock.tsc = tsc_is_invariant();
  switch_marks_start();
  // The reading with the shortest distance between its two tick readings is the one least disturbed.
  std::uint64_t best = kNever;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::uint64_t before = ticks_now();
    const std::uint64_t monotonic = read_clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t realtime = read_clock_ns(CLOCK_REALTIME);
    const std::uint64_t after = ticks_now();
    if (after - before >= best) continue;
    best = after - before;
    tick_clock.start_ticks = before + (after - before) / 2;
    tick_clock.start_monotonic_ns = monotonic;
    tick_clock.start_realtime_ns = realtime;
  }
  tick_clock.tick_read = kNever;
  for (int attempt = 0; attempt < 64; ++attempt) {
    const std::uint64_t before = ticks_now();
    const std::uint64_t cost = ticks_now() - before;
    if (cost < tick_clock.tick_read) tick_clock.tick_read = cost;
  }
}

void clock_calibrate() noexcept {
  if (tick_clock.tsc) {
    const std::uint64_t ticks = ticks_now() - tick_clock.start_ticks;
    const std::uint64_t ns = read_clock_ns(CLOCK_MONOTONIC) - tick_clock.start_monotonic_ns;
    if (ns > 0) tick_clock.ticks_per_ns = static_cast<double>(ticks) / static_cast<double>(ns);
  }
  std::uint64_t cheapest = kNever;
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = ticks_now();
    read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const std::uint64_t cost = ticks_now() - before;
    if (cost < cheapest) cheapest = cost;
  }
  tick_clock.cpu_read = cheapest;
  const std::uint64_t amortised = cheapest * kReadsInThreshold;
  const std::uint64_t wanted = ticks_from_ns(kDefaultCpuThresholdNs);
  tick_clock.off_cpu_tolerance = ticks_from_ns(kOffCpuToleranceNs);
  tick_clock.pure_loop = ticks_from_ns(kPureLoopNs);
  tick_clock.trusted_mark = ticks_from_ns(kTrustedMarkNs);
  tick_clock.cpu_threshold = amortised > wanted ? amortised : wanted;
}

void ProcessClock::open() noexcept {
  schedstat_fd_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  mark_.open();
}

void ProcessClock::close() noexcept {
  mark_.close();
  if (schedstat_fd_ >= 0) ::close(schedstat_fd_);
  schedstat_fd_ = -1;
}

ProcessClock::RunDelay ProcessClock::read_run_delay() const noexcept {
  RunDelay delay;
  if (schedstat_fd_ >= 0) {
    char text[96];
    const ssize_t length = pread(schedstat_fd_, text, sizeof(text), 0);
    if (length > 0) {
      const char* p = text;
      parse_number(&p, text + length);  // field 1: CPU time, stale by up to a tick: not used
      delay.delay_ns = parse_number(&p, text + length);
      return delay;
    }
  }
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    delay.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
    delay.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
  }
  return delay;
}

std::uint64_t ProcessClock::take_delay_ticks(const RunDelay& now, std::uint64_t off) noexcept {
  const RunDelay before = std::exchange(reference_delay_, now);
  const std::uint64_t in_parts = std::exchange(off_in_parts_, 0);
  if (schedstat_fd_ >= 0) return delay_outside_parts(off, in_parts, ticks_from_ns(now.delay_ns - before.delay_ns));
  const std::uint64_t involuntary = now.involuntary - before.involuntary;
  const std::uint64_t all = involuntary + now.voluntary - before.voluntary;
  return all == 0 ? 0 : off / all * involuntary;
}

void ProcessClock::read_clock() noexcept {
  const std::uint64_t begin = ticks_now();
  mark_.set();  // before it is read: a switch between the two is seen next time
  cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t cost = ticks_now() - begin;
  spent_ticks_ += cost;
  // One in which the thread lost its processor says nothing.
  if (cost <= tick_clock.off_cpu_tolerance) read_cost_ = (7 * read_cost_ + cost) / 8;
  threshold_ = std::clamp(kReadsInThreshold * read_cost_, tick_clock.cpu_threshold,
                          std::max(tick_clock.cpu_threshold, tick_clock.trusted_mark));
}

bool ProcessClock::was_on_processor(std::uint64_t ticks, std::uint64_t now) noexcept {
  if (ticks >= tick_clock.trusted_mark || now - reference_ticks_ >= 10 * tick_clock.trusted_mark || !mark_.intact())
    return false;
  const double since_reference = static_cast<double>(now - reference_ticks_);
  cpu_ns_ = reference_cpu_ns_ + static_cast<std::uint64_t>(since_reference / tick_clock.ticks_per_ns);
  looked_ticks_ = now;
  return true;
}

void ProcessClock::renew() noexcept {
  read_clock();
  reference_cpu_ns_ = cpu_ns_;
  reference_ticks_ = looked_ticks_ = ticks_now();
  reference_delay_ = read_run_delay();
  off_in_parts_ = 0;
  renew_after_ = threshold_;
}

void ProcessClock::begin_run(std::uint64_t ticks) noexcept {
  reference_ticks_ = looked_ticks_ = ticks;
  renew_after_ = threshold_;
}

GapSplit ProcessClock::end_gap(std::uint64_t last_leave, std::uint64_t enter, std::uint64_t in_parts) noexcept {
  const std::uint64_t gap = enter - last_leave;
  const bool was_on = was_on_processor(gap, enter);
  if (!was_on) read_clock();
  renew_after_ = threshold_;
  if (was_on) return {};
  const std::uint64_t now = ticks_now();
  const std::uint64_t trusted = last_leave > reference_ticks_ ? last_leave - reference_ticks_ : 0;
  const std::uint64_t own_cpu = ticks_from_ns(cpu_ns_ - reference_cpu_ns_);
  const std::uint64_t cpu = own_cpu + in_parts;
  const GapSplit without_parts = split_gap(gap, own_cpu, trusted, 0, 0);
  off_in_parts_ += in_parts < without_parts.blocked ? in_parts : without_parts.blocked;  // the rest of them spun
  GapSplit split = split_gap(gap, cpu, trusted, 0, tick_clock.off_cpu_tolerance);
  if (split.blocked > 0) {  // off the processor: find out why; costs nothing that the program would notice now
    const std::uint64_t delay = take_delay_ticks(read_run_delay(), split.blocked);
    split = split_gap(gap, cpu, trusted, delay, tick_clock.off_cpu_tolerance);
  }
  reference_cpu_ns_ = cpu_ns_;
  reference_ticks_ = looked_ticks_ = now;
  return split;
}

std::uint64_t ProcessClock::renew_after_call(std::uint64_t enter, std::uint64_t now) noexcept {
  std::uint64_t in_call = 0;
  if (!was_on_processor(now - enter, now)) {
    read_clock();
    const std::uint64_t wall = now - reference_ticks_;
    const std::uint64_t cpu = ticks_from_ns(cpu_ns_ - reference_cpu_ns_);
    if (wall > cpu + tick_clock.off_cpu_tolerance)
      in_call = delay_in_call(now - enter, wall, cpu, take_delay_ticks(read_run_delay(), wall - cpu));
    reference_cpu_ns_ = cpu_ns_;
    reference_ticks_ = looked_ticks_ = ticks_now();
  }
  if (now - enter < threshold_ && renew_after_ < 16 * threshold_) renew_after_ *= 2;
  return in_call > tick_clock.off_cpu_tolerance ? in_call : 0;
}

}  // namespace lbf::capture
