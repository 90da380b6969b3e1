// See regions.h.
#include "spank_plugin/capture/regions.h"

namespace lbf::capture {

constinit TickClock tick_clock;  // the recorder's, copied
constinit std::atomic<bool> measuring_is_over{false};

namespace {

constexpr std::uint64_t kCostShare = 100;    // measuring takes such a part of the time at most
constexpr std::uint64_t kMemberCostNs = 60;  // a line from another processor and back
constexpr std::uint64_t kClockReads = 2;     // of each body that reads the CPU clock

constinit std::uint64_t region_cost = 0;  // ticks, for a team of one
constinit std::uint64_t member_cost = 0;  // ticks, for each further one
constinit std::uint32_t team_processors = 1;

struct RegionThread {
  RegionWatch watch;
  RegionSums sums;
  RegionTimes seen;
  std::uint64_t measured_again = 0;  // before it short regions are passed
  std::uint64_t long_bodies = 0;     // by a hash of the body
  std::uint64_t clocked_bodies = 0;
  std::uint32_t random = 1;
  bool passes = false;  // regions by: in one of which the wall time alone is read, and inside the runtime's entry
  // Of the innermost region that it is in.
  Region* region = nullptr;
  Region* task_of = nullptr;         // of the task that runs, in a body or after it
  const Region* ended_in = nullptr;  // where its last body ended; only tasks of that one know that it is still there
  MemberTimes* ended = nullptr;
  BodyTimes body;
  WaitMeter meter;
  bool waits = false;
  WaitMeter meter_after;  // since its last body ended: tasks that it runs behind that are work
  ReadingBudget readings;
};
thread_local constinit RegionThread me __attribute__((tls_model("initial-exec")));

std::uint64_t bit_of(const void* body) noexcept {
  return std::uint64_t{1} << ((reinterpret_cast<std::uintptr_t>(body) * 0x9e3779b97f4a7c15u) >> 58);
}

void set_bit(std::uint64_t& bits, std::uint64_t bit, std::uint64_t is_set) noexcept {
  bits = is_set != 0 ? bits | bit : bits & ~bit;
}

void note_length(const void* body, std::uint64_t wall, std::uint64_t cost) noexcept {
  const std::uint64_t bit = bit_of(body);
  set_bit(me.long_bodies, bit, wall >= kCostShare * cost);
  set_bit(me.clocked_bodies, bit, wall >= kClockReads * tick_clock.cpu_threshold);
}

std::uint64_t cpu_ticks_since(std::uint64_t begin_ns) noexcept {
  return ticks_from_ns(read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}

// From half of it to one and a half, so that regions which follow each other in one order are all met.
std::uint64_t about(std::uint64_t ticks) noexcept {
  me.random ^= me.random << 13;  // xorshift32
  me.random ^= me.random >> 17;
  me.random ^= me.random << 5;
  return ticks / 2 + ticks * (me.random >> 22) / 1024;
}

// Whether the regions' time is between two MPI calls: one inside a region ends the gap that it began in.
bool is_in_gap(std::uint64_t begin) noexcept {
  return me.watch.attention != nullptr && *me.watch.last_leave <= begin;
}

// The thread is done with PART of what METER is of, and begins the other one.
void note_change(WaitMeter& meter, WaitMeter::Part part) noexcept {
  constexpr std::uint64_t kPassed = 128;  // about as many in a row, and more where they pay for too few readings
  constexpr std::uint64_t kMostPassed = 1024;
  if (!meter.is_read()) return;
  const std::uint64_t cost = tick_clock.tick_read + tick_clock.tick_read / 2;
  const std::uint64_t now = ticks_now();
  const std::uint64_t passed = meter.passed_changes();
  me.sums.cost += cost + passed * tick_clock.tick_read / 4;
  meter.change(part, now);
  const std::uint64_t readings = me.readings.pay(now, cost);
  if (readings < (passed != 0 ? ReadingBudget::kRun : 1))
    meter.pass(static_cast<std::uint32_t>(about(passed != 0 ? smaller(2 * passed, kMostPassed) : kPassed)));
}

// The same in a task that runs after the body: its work is the member's.
void note_change_after_body(WaitMeter::Part part) noexcept {
  const std::uint64_t before = me.meter_after.worked();
  note_change(me.meter_after, part);
  const std::uint64_t worked = me.meter_after.worked() - before;
  if (worked == 0) return;
  me.ended->end = me.meter_after.read_at();
  me.ended->work += worked;
  me.ended->busy += worked;
  me.ended->path += worked;
}

}  // namespace

Region::Region(const void* body, void* data, std::uint64_t begin) noexcept
    : body_(body), data_(data), entered_by_(&me), begin_(begin), reads_cpu_((me.clocked_bodies & bit_of(body)) != 0) {
  me.passes = true;
  if (!reads_cpu_ || me.region != nullptr) return;
  cpu_begin_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  begin_ = ticks_now();  // a thread whose slice is over loses its processor in a system call first: before the region
}

Region::~Region() {
  const std::uint64_t end = ticks_now();
  const std::uint32_t team = members_.load(std::memory_order_acquire);
  const std::uint32_t measured = team < kMostMembers ? team : kMostMembers;
  const TeamProcessors processors = team <= team_processors ? TeamProcessors::kOwn : TeamProcessors::kShared;
  RegionTimes times = region_times(times_, measured, team, processors, begin_, end);
  const std::uint64_t cost = region_cost + (team > 1 ? (team - 1) * member_cost : 0);
  me.ended_in = nullptr;
  me.passes = false;
  me.measured_again = begin_ + about(kCostShare * cost);
  note_length(body_, times.wall, cost);
  if (me.region != nullptr) {
    me.body.inner_wall += times.wall;
    me.body.inner_work += times.work;
    me.body.inner_critical += times.critical + times.fork_join;
    return;
  }
  me.sums.cost += cost + (reads_cpu_ ? (2 + kClockReads) * tick_clock.cpu_read : 0);
  if (!is_in_gap(begin_)) return;
  if (reads_cpu_) {
    const std::uint64_t off = above(times.wall, cpu_ticks_since(cpu_begin_ns_));
    if (processors == TeamProcessors::kShared) times.fork_join = above(times.fork_join, off);
    me.sums.off += off;
  } else {
    me.sums.waited += above(times.wall, own_busy_);
  }
  me.sums.add(times, team);
  *me.watch.attention = 0;
}

Member::Member(Region& region) noexcept
    : region_(region),
      number_(region.members_.fetch_add(1, std::memory_order_relaxed)),
      outer_{me.region, me.body, me.meter, me.waits, me.passes} {
  me.region = &region;
  me.body = {};
  me.waits = false;
  me.passes = false;
  begin_ = ticks_now();  // what the system call of the clock takes is in the body, off the processor
  if (region.reads_cpu_) cpu_begin_ns_ = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  me.meter = WaitMeter(begin_);
}

Member::~Member() {
  BodyTimes body = me.body;
  const std::uint64_t cpu = region_.reads_cpu_ ? cpu_ticks_since(cpu_begin_ns_) : 0;
  const std::uint64_t end = ticks_now();
  me.meter.change(WaitMeter::Part::kWork, end);
  body.wall = end - begin_;
  body.waited = me.meter.waited();
  if (region_.reads_cpu_) body.off = above(body.wall, cpu);
  if (region_.entered_by_ == &me) region_.own_busy_ = above(body.wall, body.waited);
  me.region = outer_.region;
  me.body = outer_.body;
  me.meter = outer_.meter;
  me.waits = outer_.waits;
  me.passes = outer_.passes;
  me.ended_in = nullptr;
  if (number_ >= Region::kMostMembers) return;
  me.ended_in = &region_;
  me.meter_after = WaitMeter(end);
  me.ended = &region_.times_[number_];
  *me.ended = member_times(begin_, body);
}

// A runtime's wait may be another one of its entries (LLVM's GOMP_barrier): the outermost one counts.
TeamWait::TeamWait() noexcept : is_bodys_(me.region != nullptr && !me.waits), outer_waits_(me.waits) {
  me.waits = true;
  if (is_bodys_) note_change(me.meter, WaitMeter::Part::kWork);
}

TeamWait::~TeamWait() {
  me.waits = outer_waits_;
  if (is_bodys_) note_change(me.meter, WaitMeter::Part::kWait);
}

Region* current_region() noexcept {
  return me.region != nullptr ? me.region : me.task_of;
}

void charge_task() noexcept {
  me.sums.cost += tick_clock.tick_read / 2;
}

bool is_in_region() noexcept {
  return me.passes || current_region() != nullptr;
}

TeamTask::TeamTask(Region* region) noexcept : outer_task_of_(me.task_of), outer_waits_(me.waits) {
  if (me.region == region) {
    place_ = me.waits ? Place::kInWait : Place::kElsewhere;
  } else {
    place_ = me.ended_in == region && me.task_of == nullptr ? Place::kAfterBody : Place::kElsewhere;
  }
  me.task_of = region;
  me.waits = false;
  note(WaitMeter::Part::kWait);
}

TeamTask::~TeamTask() {
  me.waits = outer_waits_;
  me.task_of = outer_task_of_;
  note(WaitMeter::Part::kWork);
}

void TeamTask::note(WaitMeter::Part ended) const noexcept {
  if (place_ == Place::kInWait) note_change(me.meter, ended);
  if (place_ == Place::kAfterBody) note_change_after_body(ended);
}

PassedRegion::PassedRegion(const void* body, std::uint64_t begin) noexcept : body_(body), begin_(begin) {
  me.passes = true;
}

PassedRegion::~PassedRegion() {
  me.passes = false;
  const std::uint64_t wall = ticks_now() - begin_;
  note_length(body_, wall, region_cost);
  if (!is_in_gap(begin_)) return;
  ++me.sums.passed;
  me.sums.passed_wall += wall;
  me.sums.cost += 2 * tick_clock.tick_read;
  *me.watch.attention = 0;
}

RegionDecision decide_region(const void* body) noexcept {
  const bool is_nested = me.region != nullptr;
  if (me.passes || (!is_nested && me.watch.attention == nullptr) || is_measuring_over())
    return {RegionMeasure::kNot, 0};
  const std::uint64_t begin = ticks_now();
  if (begin >= me.measured_again || (me.long_bodies & bit_of(body)) != 0) return {RegionMeasure::kWhole, begin};
  return {is_nested ? RegionMeasure::kNot : RegionMeasure::kWall, begin};
}

namespace {

// As an entry does it, with a runtime that runs the body at once.
[[gnu::noinline]] void enter_empty_region() noexcept {
  Region region(nullptr, nullptr, ticks_now());
  asm volatile("" : : "r"(&region) : "memory");
  const Member member(region);
}

std::uint64_t start(const TickClock& clock, std::uint32_t processors) {
  constexpr int kRegions = 64;
  tick_clock = clock;
  measuring_is_over.store(false, std::memory_order_relaxed);
  team_processors = processors;
  member_cost = ticks_from_ns(kMemberCostNs);
  std::uint64_t attention = 0;
  const std::uint64_t last_leave = 0;
  const RegionThread before = me;
  me = RegionThread{};
  me.watch = {&attention, &last_leave};
  std::uint64_t least_ticks = kNever;
  for (int i = 0; i < kRegions; ++i) {
    const std::uint64_t begin = ticks_now();
    enter_empty_region();
    least_ticks = smaller(least_ticks, ticks_now() - begin);
  }
  me = before;
  region_cost = above(least_ticks, tick_clock.tick_read);
  return region_cost;
}

void watch(const RegionWatch& wanted) {
  me.watch = wanted;
  me.sums.clear();
  if (me.random == 1) me.random = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&me) >> 6) | 1;
}

void stop() {
  measuring_is_over.store(true, std::memory_order_relaxed);
}

RegionSums* sums() {
  return &me.sums;
}

RegionTimes* seen() {
  return &me.seen;
}

}  // namespace

constinit RegionHost region_host{start, watch, stop, sums, seen};

}  // namespace lbf::capture
