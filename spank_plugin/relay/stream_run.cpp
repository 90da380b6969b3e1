// StreamRun, see stream_run.h.
#include "spank_plugin/relay/stream_run.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "protocol/control_records.h"
#include "spank_plugin/relay/cost_record.h"

namespace lbf::relay {
namespace {

// A program that sleeps holds its processors all the same: so much of their time counts as used when the budget is
// filled, else the relay's first 20 ms would close the capture of every program that waits for something.
constexpr double kLeastBusyShare = 0.1;
// Decisions are not closer together, unless the last one asked for it: each reads every rank's clock.
constexpr std::uint64_t kDecisionIntervalNs = 10'000'000;
constexpr std::uint64_t kCostIntervalNs = 2'000'000'000;

Seconds clock_s(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Nanoseconds realtime_offset_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<Nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec - static_cast<Nanoseconds>(monotonic_ns());
}

std::uint64_t max_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

std::optional<CostControl> control_of(const RelayOptions& options, const StepIdentity& identity,
                                      const PrimitiveCosts& primitives) {
  if (!identity.overhead_limit) return std::nullopt;
  CostSettings settings;
  settings.limit = *identity.overhead_limit;
  settings.relay_limit = options.cpu_limit;
  settings.seed = window_seed(identity.key);
  settings.ranks = std::max(identity.local_tasks > 0 ? identity.local_tasks : 1U, 1U);
  settings.alone = identity.local_tasks > 0 && static_cast<std::int64_t>(identity.local_tasks) == identity.tasks;
  settings.primitives = primitives;
  return CostControl(settings);
}

// Those of the job, in whose cgroup the relay is.
std::uint32_t own_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::max(std::thread::hardware_concurrency(), 1U);
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
}

// Adds the processor time of this thread between its begin and its end.
class CpuSpan {
 public:
  explicit CpuSpan(Seconds* to) : to_(to) {}
  ~CpuSpan() { *to_ += so_far_s(); }
  CpuSpan(const CpuSpan&) = delete;
  CpuSpan& operator=(const CpuSpan&) = delete;
  Seconds so_far_s() const { return clock_s(CLOCK_THREAD_CPUTIME_ID) - begin_s_; }

 private:
  Seconds* to_;
  Seconds begin_s_ = clock_s(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace

StreamRun::StreamRun(const RelayOptions& options, const StepIdentity& identity, std::string description,
                     const PrimitiveCosts& primitives, Collector collector, const RequestFunction& request)
    : identity_(identity),
      primitives_(primitives),
      collector_(std::move(collector)),
      memory_bytes_(options.memory_limit_bytes),
      sender_({{identity.key, identity.stream, options.server, std::move(description)},
               options.spool_dir,
               options.spool_limit_bytes},
              {options.memory_limit_bytes, options.network_limit_bytes_per_s}, request),
      builder_([this](std::unique_ptr<BatchEncoder> batch) { sender_.submit(std::move(batch)); }),
      control_(control_of(options, identity, primitives)),
      realtime_offset_ns_(realtime_offset_ns()),
      held_up_(own_processors()) {}

cost::CaptureState StreamRun::capture_state() const {
  return control_ ? control_->state() : cost::CaptureState::kOpen;
}

std::uint64_t StreamRun::wake_ns() const {
  if (!control_ || decided_ns_ == 0 || collector_.idle()) return std::numeric_limits<std::uint64_t>::max();
  const Nanoseconds until_ns = control_->until_ns();
  if (until_ns > std::numeric_limits<Nanoseconds>::max() / 2) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::max<Nanoseconds>(until_ns - realtime_offset_ns_, 0));
}

// Records that wait for their turn count as batches do.
Bytes StreamRun::room_bytes() const {
  return memory_bytes_ - std::min<Bytes>(memory_bytes_, sender_.waiting_bytes() + collector_.held_bytes());
}

// Always true: what the sender has no room for at the deadline is dropped.
bool StreamRun::wait_for_room(std::uint64_t deadline_ns) {
  constexpr std::chrono::milliseconds kInterval{1};
  while (sender_.overloaded() && monotonic_ns() < deadline_ns) std::this_thread::sleep_for(kInterval);
  if (!sender_.overloaded() || dropped_) return true;
  dropped_ = true;
  const protocol::NoteRecord note{
      "lbfd and the spool were too slow for what was left at the end: the rest of this node's events is missing", 0};
  builder_.add_control(protocol::encode(note), monotonic_ns());
  builder_.discard_events();
  return true;
}

void StreamRun::note(const std::string& text) {
  builder_.add_control(protocol::encode(protocol::NoteRecord{text, 0}), monotonic_ns());
}

double StreamRun::pass(ClockReading now, const TickRate& rate) {
  const CpuSpan span(&pass_cpu_s_);
  if (sender_.overloaded()) return 0;
  if (sender_.lost()) builder_.discard_events();
  if (auto list = sender_.procedure_list_after(collector_.procedure_list_generation())) {
    collector_.give_procedure_list(std::move(list));
  }
  const PassResult drained =
      collector_.pass(now, rate, builder_, {room_bytes(), [this] { return !sender_.overloaded(); }});
  note_drained(drained.bytes);
  if (!begun_ && collector_.processes_taken() > 0) {
    once_cpu_s_ = cpu_s() + span.so_far_s();
    begun_ = true;
  }
  if (control_ && !collector_.costs().empty() &&
      (now.monotonic_ns - decided_ns_ >= kDecisionIntervalNs || now.monotonic_ns >= wake_ns())) {
    regulate(now, rate);
  }
  if (now.monotonic_ns - cost_written_ns_ >= kCostIntervalNs) write_cost(now.monotonic_ns);
  // When the last process has ended the step mostly does, too: what waits then is what its end waits for.
  const bool was_at_rest = std::exchange(at_rest_, collector_.idle());
  if (at_rest_ && !was_at_rest) builder_.flush();
  return drained.fullest;
}

// Which records counting left is known once those of the last window are out of the rings.
void StreamRun::note_drained(Bytes bytes) {
  if (capture_state() != cost::CaptureState::kCounting) {
    counting_passes_ = 0;
    worked_off_ = false;
    return;
  }
  if (worked_off_) counting_bytes_ += bytes;
  ++counting_passes_;
  worked_off_ |= counting_passes_ >= 2 && bytes < kMostRingBytesPerPass;
}

void StreamRun::regulate(ClockReading now, const TickRate& rate) {
  cost::NodeUsage usage;
  Seconds delayed_s = 0;
  for (const auto& [rank, cost] : collector_.costs()) {
    delayed_s += cost.delayed_s;
    usage.program_cpu_s += cost.program_cpu_s();
    usage.capture_s += cost.observed.high_s();
    usage.recorded_calls += cost.recorded_calls;
    usage.counted_calls += cost.counted_calls;
  }
  if (decided_ns_ != 0) {
    held_s_ += static_cast<double>(collector_.costs().size()) *
               seconds_from_ns(static_cast<Nanoseconds>(now.monotonic_ns - decided_ns_));
  }
  usage.program_cpu_s = std::max(usage.program_cpu_s, kLeastBusyShare * held_s_);
  usage.relay_cpu_s = std::max(running_cpu_s(), 0.0);
  held_up_.see(usage.relay_cpu_s, delayed_s, collector_.costs().size());
  usage.held_up_s = held_up_.total_s();
  usage.counting_bytes = counting_bytes_;
  if (was_pressed_) pressed_s_ += seconds_from_ns(static_cast<Nanoseconds>(now.monotonic_ns - decided_ns_));
  was_pressed_ = sender_.pressed();
  usage.must_close = was_pressed_;
  if (was_pressed_ && !pressed_noted_) {
    pressed_noted_ = true;
    const protocol::NoteRecord note{
        "more waits to be sent than the relay's limits of memory and network allow: the program is captured in windows",
        0};
    builder_.add_control(protocol::encode(note), now.monotonic_ns);
  }
  if (!history_told_) {
    if (const DeliveryTotals totals = sender_.totals(); totals.registered) {
      control_->expect(totals.history);
      history_told_ = true;
    }
  }
  decided_ns_ = now.monotonic_ns;
  const std::vector<RingUse> rings = collector_.ring_uses();
  collector_.give_orders(control_->decide(grid_ns(now.monotonic_ns), usage, rings), now, rate, builder_);
}

void StreamRun::write_cost(std::uint64_t now_ns) {
  std::uint64_t calls = 0;
  for (const auto& [rank, cost] : collector_.costs()) calls += cost.recorded_calls + cost.counted_calls + 1;
  if (calls == calls_written_) return;  // nobody called since, or nobody is there
  cost_written_ns_ = now_ns;
  calls_written_ = calls;
  builder_.add_control(cost_record({identity_.stream, control_ ? &*control_ : nullptr, primitives_,
                                    std::max(running_cpu_s(), 0.0), once_cpu_s(), pressed_s_, held_up_.total_s()},
                                   collector_.costs()),
                       now_ns);
}

// Of ranks that ended without MPI_Finalize. Where the program is the task itself, Slurm's word of the task is the
// rank's.
void StreamRun::write_task_ends(const protocol::TaskEnds& ends, std::uint64_t now_ns) {
  if (!ends.killed_by.empty())
    builder_.add_control(protocol::encode(protocol::StepKilledRecord{ends.killed_by}), now_ns);
  for (const auto& [pid, rank] : collector_.unfinished()) {
    const auto found = ends.status_of_pid.find(pid);
    if (found == ends.status_of_pid.end()) continue;
    const int status = found->second;
    protocol::TaskExitRecord record{rank, {}, {}};
    if (WIFEXITED(status)) record.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) record.signal = WTERMSIG(status);
    builder_.add_control(protocol::encode(record), now_ns);
  }
}

void StreamRun::drain_rest(ClockReading now, const TickRate& rate, std::uint64_t deadline_ns,
                           const protocol::TaskEnds& ends) {
  {
    const CpuSpan span(&pass_cpu_s_);
    collector_.finish(now, rate, builder_, {room_bytes(), [=, this] { return wait_for_room(deadline_ns); }});
  }
  const DeliveryTotals totals = sender_.totals();
  const std::uint64_t now_ns = monotonic_ns();
  write_task_ends(ends, now_ns);
  calls_written_ = 0;  // the last one in any case
  write_cost(now_ns);
  protocol::RelayRecord record;
  record.node_index = identity_.stream;
  record.cpu_s = cpu_s();
  record.max_rss_bytes = max_rss_bytes();
  record.bytes_sent = totals.bytes_sent;
  record.batches = totals.batches;
  record.spooled_batches = totals.spooled_batches;
  record.lost_batches = totals.lost_batches;
  record.discarded_events = builder_.discarded_events();
  record.processes = collector_.processes_taken();
  record.processes_left_out = collector_.processes_left_out();
  builder_.add_control(protocol::encode(record), now_ns);
  builder_.flush();
}

RelayResult StreamRun::finish(const std::string& reason, std::uint64_t deadline_ns) {
  RelayResult result;
  result.outcome = sender_.finish(reason, deadline_ns);
  result.trouble = sender_.trouble();
  return result;
}

}  // namespace lbf::relay
