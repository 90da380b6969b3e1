// CapturedProcess, see captured_process.h.
#include "spank_plugin/relay/captured_process.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

#include "spank_plugin/relay/launch.h"
#include "spank_plugin/relay/process_probe.h"
#include "spank_plugin/relay/program_id.h"
#include "spank_plugin/relay/thread_records.h"

namespace lbf::relay {
namespace {

constexpr std::uint64_t kAliveIntervalNs = 500'000'000;
constexpr std::uint64_t kKeepAliveIntervalNs = 1'000'000'000;
constexpr std::uint64_t kCpuReadIntervalNs = 250'000'000;  // where the next quiet stretch may start
constexpr std::uint64_t kStatsIntervalNs = 2'000'000'000;
constexpr std::uint32_t kThreadSerialized = 2;  // MPI_THREAD_SERIALIZED; above it MPI_THREAD_MULTIPLE

// A send or a receive that is under way holds the records of the process's other threads back for this long
// at most: what it began is known when it returns.
constexpr Seconds kLongestHoldS = 2;
// Where much waits already a send does so for a shorter time, and a receive not at all.
constexpr Seconds kLongestHoldOfMuchS = 0.25;
constexpr std::size_t kMuchBytes = std::size_t{1} << 20;  // of one thread
// While a thread waits longer in a receive, the others' records come so much later: who sent to it may be
// back from MPI_Ssend, and the thread has not had the processor since, on a loaded node for long.
constexpr Seconds kReceiverGraceS = 0.25;

std::string_view name_of_end(ring::ProcessState state) {
  switch (state) {
    case ring::ProcessState::kAborted:
      return protocol::kAborted;
    case ring::ProcessState::kFinalized:
    case ring::ProcessState::kBetweenSessions:
      return protocol::kFinalized;
    default:
      return protocol::kKilled;
  }
}

// As protocol::StatsRecord has them.
std::vector<std::string> names_of(std::uint32_t device_libraries) {
  std::vector<std::string> names;
  if ((device_libraries & ring::kCudaLibrary) != 0) names.emplace_back(protocol::kCuda);
  if ((device_libraries & ring::kHipLibrary) != 0) names.emplace_back(protocol::kHip);
  return names;
}

}  // namespace

CapturedProcess::CapturedProcess(std::int32_t pid)
    : pid_(pid), start_time_clock_(read_process_stat(pid).start_time_clock) {}

void CapturedProcess::add_ring(CapturedRing ring) {
  from_its_begin_ &= ring.reader.consumed_bytes() == 0;
  rings_.push_back(std::move(ring));
}

void CapturedProcess::close_ring(CapturedRing& ring, const Error& error, Pass& pass) {
  ring.broken = true;
  ring.has_more = false;
  pass.note(error.message + "; the rest of rank " + std::to_string(rank_) + " is lost");
  if (!taken_ || converter_.exited()) return;
  // What comes after cannot be known: say so in the stream, so that predictions become partial.
  pass.add(rank_, gap_event(1));
}

void CapturedProcess::observe_life(StepState step, const Pass& pass) {
  if (sealed_) return;
  alive_ = true;
  if (step == StepState::kRunning && pass.now_ns() - alive_check_ns_ < kAliveIntervalNs) return;
  const Seconds since_last_look_s =
      alive_check_ns_ == 0 ? 0 : static_cast<double>(pass.now_ns() - alive_check_ns_) * 1e-9;
  alive_check_ns_ = pass.now_ns();
  const ProcessStat stat = read_process_stat(pid_);
  alive_ = stat.alive && stat.start_time_clock == start_time_clock_;
  suspension_.observe(pid_, stat, since_last_look_s);
}

void CapturedProcess::read_status(Pass& pass) {
  state_ = ring::ProcessState::kStarting;
  for (CapturedRing& ring : rings_) {
    if (ring.broken) continue;
    auto status = ring.reader.read_status();
    if (!status) {
      close_ring(ring, status.error(), pass);
      continue;
    }
    ring.status = std::move(*status);
    state_ = std::max(state_, ring.status.state);
  }
}

bool CapturedProcess::find_first_ring() {
  const auto begun = std::find_if(rings_.begin(), rings_.end(), [](const CapturedRing& ring) {
    return !ring.broken && ring.status.state != ring::ProcessState::kStarting && ring.status.init_leave_ticks != 0;
  });
  if (begun == rings_.end()) return false;
  std::iter_swap(rings_.begin(), begun);
  return true;
}

void CapturedProcess::take(std::int32_t node_index, Pass& pass) {
  const CapturedRing& first = rings_.front();
  const RingStatus& status = first.status;
  taken_ = true;
  stats_ns_ = pass.now_ns();
  rank_ = status.rank;
  converter_ = RecordConverter(status.init_leave_ticks, status.world_size, from_its_begin_);
  threaded_ = status.thread_level >= kThreadSerialized;
  const RingIdentity& id = first.reader.identity();
  const std::uint64_t init_ticks =
      status.init_leave_ticks > id.start_ticks ? status.init_leave_ticks - id.start_ticks : 0;
  const ProgramId program = program_id_of(pid_, id.executable);
  protocol::ProcessRecord record;
  record.rank = status.rank;
  record.world_size = status.world_size;
  record.pid = pid_;
  record.node_index = node_index;
  record.slurm_procid = id.slurm_procid;
  record.executable = id.executable;
  record.build_id = program.build_id;
  record.script = program.script;
  record.library = status.library;
  record.mpi_settings = mpi_settings_of_process(pid_);
  record.thread_level = status.thread_level;
  record.start_realtime_ns = static_cast<std::int64_t>(id.start_realtime_ns);
  record.init_s = static_cast<double>(init_ticks) * tick_s(pass);
  record.cpu_threshold_ns =
      static_cast<std::int64_t>(static_cast<double>(status.cpu_threshold_ticks) * tick_s(pass) * 1e9);
  pass.add_control(record);
}

bool CapturedProcess::was_killed() const {
  return taken_ && name_of_end(state_) == protocol::kKilled;
}

Bytes CapturedProcess::held_bytes() const {
  Bytes bytes = 0;
  for (const CapturedRing& ring : rings_) bytes += ring.records.bytes();
  return bytes;
}

bool CapturedProcess::is_off() const {
  return std::any_of(rings_.begin(), rings_.end(), [](const CapturedRing& ring) { return ring.status.off; });
}

std::uint64_t CapturedProcess::end_ticks(const Pass& pass) const {
  std::uint64_t end = 0;  // MPI_Finalize may be called by another thread than MPI_Init
  for (const CapturedRing& ring : rings_) end = std::max(end, ring.status.finalize_enter_ticks);
  return end != 0 ? end : rings_.front().now_ticks(pass);
}

Seconds CapturedProcess::elapsed_s(const Pass& pass) const {
  const std::uint64_t end = end_ticks(pass);
  const std::uint64_t begin = rings_.front().status.init_leave_ticks;
  return end > begin ? static_cast<double>(end - begin) * tick_s(pass) : 0;
}

Seconds CapturedProcess::watched_s(const Pass& pass) const {
  const Seconds until_now_s = elapsed_s(pass);
  if (!is_off()) return until_now_s;
  std::uint64_t off = 0;
  for (const CapturedRing& ring : rings_) off = std::max(off, ring.status.off_ticks);
  const std::uint64_t begin = rings_.front().status.init_leave_ticks;
  if (off <= begin) return 0;
  return std::min(static_cast<double>(off - begin) * tick_s(pass), until_now_s);
}

void CapturedProcess::observe_cost(const PrimitiveCosts& primitives, const Pass& pass, RankCost& cost) {
  meter_.observe(pid_, rings_, given_back_, watched_s(pass), primitives, pass, cost);
}

void CapturedProcess::observe_delay(const DelayShares& shares, const RankCost& cost) {
  const Seconds since_s = std::max(cost.delayed_s - delay_.all_s, 0.0);
  delay_.all_s += since_s;
  delay_.others_s += shares.others * since_s;
  delay_.limited_s += shares.limited * since_s;
  converter_.set_others_share(shares.not_the_jobs());
}

void CapturedProcess::write_procedure_list(const protocol::ProcedureList& list, Pass& pass) {
  for (CapturedRing& ring : rings_) {
    if (ring.broken) continue;
    if (auto done = ring.reader.write_procedure_list(list.generation, protocol::lines_of(list)); !done)
      close_ring(ring, done.error(), pass);
  }
}

RelayEventSink CapturedProcess::sink(Pass& pass) {
  return [this, &pass](const Event& event) {
    if (!suspension_.is_owed()) [[likely]]
      return pass.add(rank_, event);
    Event shorter = event;
    suspension_.shorten(shorter);
    pass.add(rank_, shorter);
  };
}

void CapturedProcess::take_procedure(const ring::Record& record, std::span<const std::uint64_t> values,
                                     ProcedureClock clock, Pass& pass) {
  procedures_.take(rank_, record, values, clock, converter_, pass);
}

Result<void> CapturedProcess::drain_alone(CapturedRing& ring, ProcedureClock clock, Pass& pass) {
  const RelayEventSink emit = sink(pass);
  Result<void> converted;
  auto done = ring.drain(
      pass.ring_bytes(),
      [&](const ring::Record& record, std::span<const std::uint64_t> values) {
        if (record.kind == ring::kRecordProcedure) return take_procedure(record, values, clock, pass);
        if (converted.ok()) converted = converter_.convert(record, values, clock.tick_s, emit);
      },
      pass);
  return converted.ok() ? std::move(done) : std::move(converted);
}

Result<void> CapturedProcess::drain_thread(CapturedRing& ring, ProcedureClock clock, Pass& pass) {
  // A thread that is far ahead of the others waits in its ring.
  const Bytes held_before = ring.records.bytes();
  if (held_before >= pass.ring_bytes()) {
    ring.has_more = true;
    return {};
  }
  const std::uint64_t pass_begin = rings_.front().now_ticks(pass);
  auto done = ring.drain(
      pass.ring_bytes(),
      [&](const ring::Record& record, std::span<const std::uint64_t> values) {
        if (record.kind == ring::kRecordProcedure) return take_procedure(record, values, clock, pass);
        // What was over when the pass began has no other thread beside it whose ring was not there then.
        const bool concurrent = rings_.size() > 1 || std::max(record.enter, record.leave) >= pass_begin;
        ring.records.hold(record, values, concurrent ? Concurrency::kOtherThreads : Concurrency::kAlone, split_calls_);
      },
      pass);
  pass.held_bytes += ring.records.bytes() - held_before;
  // Long records of many threads: their exact order is worth less than the node's memory.
  if (pass.holds_too_much()) release(Release::kAll, pass);
  return done;
}

std::uint64_t CapturedProcess::drain(Pass& pass) {
  const std::uint64_t before = pass.result.bytes;
  const bool was_counting = converter_.is_counting();
  threaded_ |= rings_.size() > 1;
  // The thread that called MPI_Init knows it; others, when they have measured something.
  for (const CapturedRing& ring : rings_)
    procedure_call_ticks_256_ = std::max(procedure_call_ticks_256_, ring.status.procedures.call_ticks_256);
  const ProcedureClock clock{tick_s(pass), static_cast<double>(procedure_call_ticks_256_) / 256 * tick_s(pass)};
  // Threads twice: whatever a record of the first round refers to is in the rings by the second one.
  for (std::size_t nth = 0; nth < rings_.size() * (threaded_ ? 2 : 1); ++nth) {
    CapturedRing& ring = rings_[nth % rings_.size()];
    if (ring.broken) continue;
    auto done = threaded_ ? drain_thread(ring, clock, pass) : drain_alone(ring, clock, pass);
    if (!done) close_ring(ring, done.error(), pass);
  }
  if (threaded_) release(Release::kSettled, pass);
  if (pass.result.bytes > before) {
    stats_due_ = true;
    // The time between two windows comes at its end, whatever records come before.
    if (!was_counting || !converter_.is_counting()) suspension_.settle();
  }
  return pass.result.bytes - before;
}

// What took effect before this pass began and before any send or receive that is under way. Of a process that is gone:
// before what is still in its rings.
std::uint64_t CapturedProcess::settled_until(const Pass& pass) const {
  const std::uint64_t begin = rings_.front().now_ticks(pass);
  std::uint64_t horizon = begin;
  const Bytes much = std::min<Bytes>(kMuchBytes, pass.ring_bytes());
  const bool much_waits = std::any_of(rings_.begin(), rings_.end(), [much](const CapturedRing& ring) {
    return ring.records.all().size_bytes() >= much;
  });
  const auto ticks_of = [tick_s = tick_s(pass)](Seconds s) { return static_cast<std::uint64_t>(s / tick_s); };
  const std::uint64_t longest_hold = ticks_of(much_waits ? kLongestHoldOfMuchS : kLongestHoldS);
  for (const CapturedRing& ring : rings_) {
    if (ring.has_more) horizon = std::min(horizon, ring.records.last_order());
    if (sealed_ || ring.broken || ring.status.where != ring::kInCall) continue;
    const bool receives = may_post(ring.status.call_function) && rings_.size() > 1 && !much_waits;
    if (!receives && !may_send(ring.status.call_function)) continue;
    const std::uint64_t enter = ring.status.call_enter_ticks;
    if (enter < begin && begin - enter < longest_hold) horizon = std::min(horizon, enter);
    if (receives) horizon = std::min(horizon, begin - std::min(begin, ticks_of(kReceiverGraceS)));
  }
  return horizon;
}

// One process is one sequence of events for the replay: its threads' records in the order in which they took
// effect.
void CapturedProcess::release(Release what, Pass& pass) {
  const Bytes held_before = held_bytes();
  std::vector<ThreadRecords*> threads;
  for (CapturedRing& ring : rings_) threads.push_back(&ring.records);
  ThreadMerge merge(threads, what == Release::kAll ? std::numeric_limits<std::uint64_t>::max() : settled_until(pass));
  if (const auto done = merge.convert(converter_, tick_s(pass), sink(pass)); !done) {
    for (CapturedRing& ring : rings_) {
      ring.records.clear();
      if (!ring.broken) close_ring(ring, done.error(), pass);
    }
  }
  pass.held_bytes -= held_before - held_bytes();
}

void CapturedProcess::keep_alive(Pass& pass) {
  const CapturedRing& ring = rings_.front();
  // Threads of one process run at the same time: their processor times do not add up to its progress.
  if (rings_.size() != 1 || ring.broken || converter_.exited()) return;
  const std::uint64_t consumed = ring.reader.consumed_bytes();
  const bool quiet = progress_.known && progress_.consumed_bytes == consumed;
  if (pass.now_ns() - progress_.read_ns < (quiet ? kKeepAliveIntervalNs : kCpuReadIntervalNs)) return;
  // In another PID namespace only the first thread's number is known here: the process's.
  const RingIdentity& id = ring.reader.identity();
  const std::int32_t tid = id.tid == id.pid ? pid_ : pid_ == id.pid ? id.tid : 0;
  // A quiet rank that is found in a call may be spinning in it: that time is no process time.
  const auto cpu_ns = ring.status.where == ring::kInProgram ? read_thread_cpu_ns(pid_, tid) : std::nullopt;
  if (quiet && cpu_ns && *cpu_ns > progress_.cpu_ns) {
    converter_.keep_alive(seconds_from_ns(static_cast<Nanoseconds>(*cpu_ns - progress_.cpu_ns)),
                          [&](const Event& event) { pass.add(rank_, event); });
  }
  progress_ = {cpu_ns.has_value(), cpu_ns.value_or(0), pass.now_ns(), consumed};
}

void CapturedProcess::write_stats(Pass& pass) {
  stats_ns_ = pass.now_ns();
  stats_due_ = false;
  RingTotals totals = given_back_;
  for (const CapturedRing& ring : rings_) totals.add(ring, pass);
  protocol::StatsRecord record;
  record.rank = rank_;
  record.elapsed_s = elapsed_s(pass);
  record.calls.emplace();
  for (const auto& [function, total] : totals.calls) record.calls->push_back({function, total.first, total.second});
  record.failed_polls = totals.failed_polls;
  record.lost_records = totals.lost_records;
  record.abandoned_calls = totals.abandoned_calls;
  record.events_without_communicator = converter_.events_without_communicator();
  record.unread_gap_s = totals.unread_gap_s;
  record.capture_s = totals.capture_s;
  record.delayed_s = delay_.all_s;
  record.others_s = delay_.others_s;
  record.limited_s = delay_.limited_s;
  record.devices = names_of(totals.device_libraries);
  pass.add_control(record);
}

// The first ring stays: it says whose the process is. So do those of a run, or a capture, that is over: they
// say when that was.
void CapturedProcess::give_back_rings(KnownRings& files, const Pass& pass) {
  for (std::size_t i = rings_.size(); i-- > 1;) {
    CapturedRing& ring = rings_[i];
    const bool had_ended = std::exchange(ring.ended, ring.status.ended);
    if (!had_ended || ring.broken || ring.records.has_dated()) continue;
    if (ring.status.state != ring::ProcessState::kRunning || ring.status.off) continue;
    const auto pending = ring.reader.pending_bytes();
    if (!pending || *pending > 0) continue;
    given_back_.add(ring, pass);
    files.remove(ring.file, ring.inode);
    progress_.known = false;  // where one ring is left: what its thread used while there were more is no progress since
    rings_.erase(rings_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void CapturedProcess::end(std::string_view how, Pass& pass) {
  ended_ = true;
  release(Release::kAll, pass);
  converter_.close(end_ticks(pass), tick_s(pass), sink(pass));
  if (suspension_.total_s() > 0) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%.1f", suspension_.total_s());
    pass.note("rank " + std::to_string(rank_) + " was stopped (a suspended job?) for about " + seconds.data() +
                  " s: in the measured time, but in no prediction",
              suspension_.total_s());
  }
  write_stats(pass);
  pass.add_control(protocol::ProcessEndRecord{rank_, std::string(how), elapsed_s(pass)});
}

CapturedProcess::Drained CapturedProcess::drain_rest(Pass& pass) {
  // Another process may have them mapped, and go on writing.
  sealed_ = true;
  for (CapturedRing& ring : rings_) ring.reader.seal();
  while (drain(pass) > 0) {
    if (!pass.has_room()) return Drained::kSome;
  }
  return Drained::kAll;
}

void CapturedProcess::drain_rings(StepState step, KnownRings& files, Pass& pass) {
  const bool is_over = !alive_ || step == StepState::kEnded;
  if (alive_) {
    drain(pass);
    if (is_over) drain(pass);  // it may write for ever
  } else if (drain_rest(pass) == Drained::kSome) {
    return;  // the others are looked at, and the next pass goes on
  }
  if (is_over || (converter_.exited() && state_ == ring::ProcessState::kFinalized))
    return end(name_of_end(state_), pass);
  give_back_rings(files, pass);
  keep_alive(pass);
  if (!stats_due_ || pass.now_ns() - stats_ns_ < kStatsIntervalNs) return;
  // Before `elapsed_s`, which measured progress is a part of.
  converter_.report_unrecorded_time(tick_s(pass), [&](const Event& event) { pass.add(rank_, event); });
  write_stats(pass);
}

}  // namespace lbf::relay
