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

// The mean of the last costs of a reading, where one that took COST is the next. One in which the thread lost its
// processor says nothing.
std::uint64_t mean_with(std::uint64_t mean, std::uint64_t cost) noexcept {
  return cost <= tick_clock.off_cpu_tolerance ? (7 * mean + cost) / 8 : mean;
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

ProcessClock::RunDelay ProcessClock::read_run_delay() noexcept {
  const std::uint64_t begin = ticks_now();
  RunDelay delay;
  rusage usage{};
  if (char text[96]; schedstat_fd_ >= 0) {
    const ssize_t length = pread(schedstat_fd_, text, sizeof(text), 0);
    const char* p = text;
    const char* const end = text + (length > 0 ? length : 0);
    parse_number(&p, end);  // field 1: CPU time, stale by up to a tick: not used
    delay.delay_ns = parse_number(&p, end);
  } else if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    delay.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
    delay.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
  }
  const std::uint64_t cost = ticks_now() - begin;
  spent_ticks_ += cost;
  delay_read_cost_ = mean_with(delay_read_cost_, cost);
  return delay;
}

std::uint64_t ProcessClock::take_delay_ticks(std::uint64_t off, bool in_call) noexcept {
  const RunDelay now = read_run_delay();
  const RunDelay before = std::exchange(reference_delay_, now);
  const std::uint64_t in_parts = std::exchange(off_in_parts_, 0);
  const std::uint64_t all_off = delay_share_.unread() + off;
  std::uint64_t delay = 0;
  if (schedstat_fd_ >= 0) {
    const std::uint64_t delay_ns = now.delay_ns > before.delay_ns ? now.delay_ns - before.delay_ns : 0;
    delay = delay_outside_parts(all_off, in_parts, ticks_from_ns(delay_ns));
  } else if (const std::uint64_t all = now.involuntary - before.involuntary + now.voluntary - before.voluntary;
             all > 0) {
    delay = all_off / all * (now.involuntary - before.involuntary);
  }
  return delay_share_.settle(off, delay, in_call);
}

void ProcessClock::read_clock() noexcept {
  const std::uint64_t begin = ticks_now();
  mark_.set();  // before it is read: a switch between the two is seen next time
  cpu_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  const std::uint64_t cost = ticks_now() - begin;
  spent_ticks_ += cost;
  read_cost_ = mean_with(read_cost_, cost);
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
  delay_share_ = DelayShare{};
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
  if (split.blocked > 0)  // off the processor: find out why
    split = split_gap(gap, cpu, trusted, take_delay_ticks(split.blocked, false), tick_clock.off_cpu_tolerance);
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
    if (wall > cpu + tick_clock.off_cpu_tolerance) {
      const std::uint64_t off = wall - cpu;
      const bool read = delay_share_.is_worth_reading(off, delay_read_cost_);
      in_call = delay_in_call(now - enter, wall, cpu, read ? take_delay_ticks(off, true) : delay_share_.estimate(off));
    }
    reference_cpu_ns_ = cpu_ns_;
    reference_ticks_ = looked_ticks_ = ticks_now();
  }
  if (now - enter < threshold_ && renew_after_ < 16 * threshold_) renew_after_ *= 2;
  return in_call > tick_clock.off_cpu_tolerance ? in_call : 0;
}

}  // namespace lbf::capture
