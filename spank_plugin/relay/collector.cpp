// Collector, see collector.h.
#include "spank_plugin/relay/collector.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "event/mpi_function_table.h"
#include "event/procedure_table.h"
#include "spank_plugin/relay/freezer.h"
#include "spank_plugin/relay/process_probe.h"
#include "spank_plugin/relay/program_id.h"

namespace lbf::relay {
namespace {

constexpr std::uint64_t kAliveIntervalNs = 500'000'000;
constexpr std::uint64_t kKeepAliveIntervalNs = 1'000'000'000;
constexpr std::uint64_t kCpuReadIntervalNs = 250'000'000;  // where the next quiet stretch may start
constexpr std::uint64_t kStatsIntervalNs = 2'000'000'000;
constexpr std::uint64_t kDrainBytesPerPass = 2 << 20;  // of one ring, so that no rank starves the others
constexpr std::size_t kMaxNotes = 100;  // a hostile directory must not fill the trace with notes
constexpr std::size_t kMaxRings = 65536;
constexpr std::uint32_t kThreadSerialized = 2;  // MPI_THREAD_SERIALIZED; above it MPI_THREAD_MULTIPLE

}  // namespace

Result<Collector> Collector::make(CollectorOptions options) {
  if (options.directory == nullptr) {
    auto directory = RingDirectory::open(options.ring_dir);
    if (!directory) return directory.error();
    options.directory = std::move(*directory);
  }
  return Collector(std::move(options));
}

void Collector::note(const std::string& text, ClockReading now, BatchBuilder& out, Seconds stopped_s) {
  if (++notes_ > kMaxNotes) return;
  nlohmann::json json{{"type", "note"}, {"text", text}};
  if (stopped_s > 0) json["stopped_s"] = stopped_s;
  out.add_control(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), now.monotonic_ns);
}

void Collector::scan(ClockReading now, BatchBuilder& out) {
  rescan_ = false;
  for (RingDirectory::Ring& found : options_.directory->list(kMaxRings)) {
    // A thread's number may be given out again: its ring takes the place of the one before.
    const auto known = known_files_.find(found.name);
    if (known_files_.size() >= kMaxRings || (known != known_files_.end() && known->second == found.inode)) continue;
    if (options_.membership) {
      const Membership membership = options_.membership(found.pid);
      if (membership == Membership::kElsewhere) continue;
      if (membership == Membership::kSpawned) {
        known_files_[found.name] = found.inode;
        leave_out(found.pid, "", "MPI_Comm_spawn started it", now, out);
        continue;
      }
    }
    auto reader = RingReader::open(options_.directory->fd(), found.name);
    if (!reader) {
      if (reader.error().code == ErrorCode::kNotFound) {  // not ready: the next scan
        rescan_ = true;
        continue;
      }
      note(reader.error().message, now, out);
      known_files_[found.name] = found.inode;
      continue;
    }
    known_files_[found.name] = found.inode;
    if (reader->identity().pid != found.pid || (reader->identity().clock_source == 0 && !has_tick_counter())) {
      note("ring " + found.name + " belongs to another process or uses a clock that this machine does not have",
           now, out);
      continue;
    }
    Process& process = processes_[found.pid];
    if (process.pid == 0) {
      process.pid = found.pid;
      process.start_time_clock = read_process_stat(found.pid).start_time_clock;
    }
    process.rings.push_back(Ring{std::move(found.name), found.inode, std::move(*reader), {}, false});
    process.rings.back().number = ++rings_seen_;
    process.from_its_begin &= process.rings.back().reader.consumed_bytes() == 0;
  }
}

void Collector::leave_out(std::int32_t pid, const std::string& what, const std::string& why, ClockReading now,
                          BatchBuilder& out) {
  if (++left_out_ > 1) return;
  note("process " + std::to_string(pid) + (what.empty() ? "" : " (" + what + ")") + " is left out: " + why, now,
       out);
}

void Collector::close_ring(Process& process, Ring& ring, const Error& error, ClockReading now,
                           BatchBuilder& out) {
  ring.broken = true;
  ring.has_more = false;
  note(error.message + "; the rest of rank " + std::to_string(process.rank) + " is lost", now, out);
  if (process.taken) {
    // What comes after cannot be known: say so in the stream, so that predictions become partial.
    if (!process.converter.exited()) out.add(process.rank, gap_event(1), now.monotonic_ns);
  }
}

bool Collector::take(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out) {
  // A ring that says when the process began goes first: that of a thread that starts just now may be behind.
  const auto begun = std::find_if(process.rings.begin(), process.rings.end(), [](const Ring& ring) {
    return !ring.broken && ring.status.state != ring::ProcessState::kStarting &&
           ring.status.init_leave_ticks != 0;
  });
  if (begun == process.rings.end()) return false;
  std::iter_swap(process.rings.begin(), begun);
  const Ring& first = process.rings.front();
  const RingStatus& status = first.status;
  std::string why;
  if (options_.tasks > 0 && status.world_size != options_.tasks) {
    why = "its MPI_COMM_WORLD has " + std::to_string(status.world_size) + " processes, the step " +
          std::to_string(options_.tasks) + " tasks";
  } else if (status.rank < 0 || status.rank >= status.world_size) {
    why = "its rank " + std::to_string(status.rank) + " is outside its world";
  } else if (!ranks_taken_.insert(status.rank).second) {
    why = "another process has its rank " + std::to_string(status.rank);
  }
  if (!why.empty()) {
    leave_out(process.pid, first.reader.identity().executable, why, now, out);
    process.ended = true;
    return false;
  }
  ++taken_;
  process.taken = true;
  process.taken_ns = now.monotonic_ns;
  process.stats_ns = now.monotonic_ns;
  process.rank = status.rank;
  process.converter = RecordConverter(status.init_leave_ticks, status.world_size, process.from_its_begin);
  process.threaded = status.thread_level >= kThreadSerialized;
  const RingIdentity& id = first.reader.identity();
  const Seconds tick_s = id.clock_source == 0 ? seconds_per_tick : 1e-9;
  const std::uint64_t init_ticks =
      status.init_leave_ticks > id.start_ticks ? status.init_leave_ticks - id.start_ticks : 0;
  const ProgramId program = program_id_of(process.pid, id.executable);
  const nlohmann::json json{
      {"type", "process"},
      {"rank", status.rank},
      {"world_size", status.world_size},
      {"pid", process.pid},
      {"node_index", options_.node_index},
      {"slurm_procid", id.slurm_procid},
      {"executable", id.executable},
      {"build_id", program.build_id},
      {"script", program.script},
      {"library", status.library},
      {"thread_level", status.thread_level},
      {"start_realtime_ns", id.start_realtime_ns},
      {"init_s", static_cast<double>(init_ticks) * tick_s},
      {"cpu_threshold_ns",
       static_cast<std::uint64_t>(static_cast<double>(status.cpu_threshold_ticks) * tick_s * 1e9)}};
  // Names of files need not be UTF-8.
  out.add_control(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), now.monotonic_ns);
  return true;
}

Result<void> Collector::drain_ring(Ring& ring, const RecordSink& sink, PassResult& result) const {
  if (auto pending = ring.reader.pending_bytes()) {
    const auto capacity = static_cast<double>(ring.reader.identity().capacity_bytes);
    result.fullest = std::max(result.fullest, static_cast<double>(*pending) / capacity);
  }
  auto drained = ring.reader.drain(kDrainBytesPerPass, sink);
  if (!drained) return drained.error();
  result.bytes += *drained;
  ring.has_more = *drained >= kDrainBytesPerPass;
  return {};
}

std::uint64_t Collector::drain(Process& process, ClockReading now, Seconds seconds_per_tick,
                               BatchBuilder& out, PassResult& result) {
  const std::uint64_t before = result.bytes;
  process.threaded |= process.rings.size() > 1;
  const bool ticks = process.rings.front().reader.identity().clock_source == 0;
  const Seconds tick_s = ticks ? seconds_per_tick : 1e-9;
  // The thread that called MPI_Init knows it; others, when they have measured something.
  for (const Ring& ring : process.rings)
    process.call_ticks_256 = std::max(process.call_ticks_256, ring.status.procedures.call_ticks_256);
  const Seconds call_s = static_cast<double>(process.call_ticks_256) / 256 * tick_s;
  // Threads twice: whatever a record of the first round refers to is in the rings by the second one.
  for (std::size_t nth = 0; nth < process.rings.size() * (process.threaded ? 2 : 1); ++nth) {
    Ring& ring = process.rings[nth % process.rings.size()];
    if (ring.broken) continue;
    Result<void> done;
    if (process.threaded) {
      // A thread that is far ahead of the others waits in its ring.
      if (ring.held.size() * sizeof(ring::Record) + ring.held_values.size() * 8 >= kDrainBytesPerPass) {
        ring.has_more = true;
        continue;
      }
      done = drain_ring(
          ring,
          [&](const ring::Record& record, std::span<const std::uint64_t> values) {
            if (record.kind == ring::kRecordProcedure) return say_procedure(process, record, values, call_s, tick_s, now, out);
            hold_of_thread(process, ring, record, values, ticks ? now.ticks : now.monotonic_ns);
          },
          result);
    } else {
      const auto emit = [&](const Event& event) { add_event(process, event, now, out); };
      Result<void> converted;
      done = drain_ring(
          ring,
          [&](const ring::Record& record, std::span<const std::uint64_t> values) {
            if (record.kind == ring::kRecordProcedure) return say_procedure(process, record, values, call_s, tick_s, now, out);
            if (converted.ok()) converted = process.converter.convert(record, values, tick_s, emit);
          },
          result);
      if (!converted) done = std::move(converted);
    }
    if (!done) close_ring(process, ring, done.error(), now, out);
  }
  if (process.threaded) release(process, now, seconds_per_tick, false, out);
  if (result.bytes > before) {
    process.stats_due = true;
    // These records were written after the stop: what they did not hold of it was spent inside a call.
    if (!process.stopped) process.stopped_credit_s = 0;
  }
  return result.bytes - before;
}

// By a signal, or by its cgroup: Slurm stops its tasks and freezes their step.
bool Collector::is_stopped(Process& process, const ProcessStat& stat) {
  if (stat.stopped || (process.stopped && stat.uninterruptible)) return true;
  if (!process.freezer_file) process.freezer_file = freezer_file_of(process.pid);
  return is_frozen(*process.freezer_file);
}

// A process that is stopped neither works nor waits for anything that would end elsewhere sooner. The looks are
// half a second apart, so each end of a stop is known to a quarter of a second on average.
void Collector::observe_stop(Process& process, bool stopped, Seconds since_last_look_s) {
  if (!stopped && !process.stopped) return;
  const Seconds part_s = stopped && process.stopped ? since_last_look_s : since_last_look_s / 2;
  process.stopped_s += part_s;
  process.stopped_credit_s += part_s;
  process.stopped = stopped;
}

// The gap in which a process was stopped comes as blocked time: that much of it is taken away again.
void Collector::add_event(Process& process, const Event& event, ClockReading now, BatchBuilder& out) {
  if (event.kind == EventKind::kBlocked && process.stopped_credit_s > 0) {
    Event shorter = event;
    const Seconds taken_s = std::min<Seconds>(shorter.off_s, process.stopped_credit_s);
    shorter.off_s -= taken_s;
    process.stopped_credit_s -= taken_s;
    out.add(process.rank, shorter, now.monotonic_ns);
    return;
  }
  out.add(process.rank, event, now.monotonic_ns);
}

void Collector::keep_alive(Process& process, ClockReading now, BatchBuilder& out) {
  const Ring& ring = process.rings.front();
  // Threads of one process run at the same time: their processor times do not add up to its progress.
  if (process.rings.size() != 1 || ring.broken || process.converter.exited()) return;
  const std::uint64_t consumed = ring.reader.consumed_bytes();
  const bool quiet = process.cpu_known && process.cpu_at_bytes == consumed;
  if (now.monotonic_ns - process.cpu_read_ns < (quiet ? kKeepAliveIntervalNs : kCpuReadIntervalNs)) return;
  process.cpu_read_ns = now.monotonic_ns;
  // A quiet rank that is found in a call may be spinning in it: that time is no process time.
  const auto cpu_ns = ring.status.where == ring::kInProgram
                          ? read_thread_cpu_ns(process.pid, ring.reader.identity().tid)
                          : std::nullopt;
  if (quiet && cpu_ns && *cpu_ns > process.cpu_ns) {
    process.converter.keep_alive(seconds_from_ns(static_cast<Nanoseconds>(*cpu_ns - process.cpu_ns)),
                                 [&](const Event& event) { out.add(process.rank, event, now.monotonic_ns); });
  }
  process.cpu_known = cpu_ns.has_value();
  process.cpu_ns = cpu_ns.value_or(0);
  process.cpu_at_bytes = consumed;
}

std::uint64_t Collector::end_ticks(const Process& process, ClockReading now) const {
  std::uint64_t end = 0;  // MPI_Finalize may be called by another thread than MPI_Init
  for (const Ring& ring : process.rings) end = std::max(end, ring.status.finalize_enter_ticks);
  if (end != 0) return end;
  return process.rings.front().reader.identity().clock_source == 0 ? now.ticks : now.monotonic_ns;
}

Seconds Collector::elapsed_s(const Process& process, ClockReading now, Seconds seconds_per_tick) const {
  const Ring& first = process.rings.front();
  const bool tsc = first.reader.identity().clock_source == 0;
  const std::uint64_t end = end_ticks(process, now);
  const std::uint64_t begin = first.status.init_leave_ticks;
  return end > begin ? static_cast<double>(end - begin) * (tsc ? seconds_per_tick : 1e-9) : 0;
}

void Collector::Totals::add(const Ring& ring, Seconds tick_s) {
  failed_polls += ring.status.failed_polls;
  lost_records += ring.status.lost_records;
  abandoned_calls += ring.status.abandoned_calls;
  unread_gap_s += static_cast<double>(ring.status.unread_gap_ticks) * tick_s;
  capture_s += static_cast<double>(ring.status.capture_ticks_estimate) * tick_s;
  once_s += once_of(ring.status);
  const auto made = ring.reader.read_calls();
  if (!made) return;
  for (const CallTotal& total : *made) {
    auto& [count, seconds] = calls[total.function];
    count += total.count;
    seconds += static_cast<double>(total.ticks) * tick_s;
  }
}

void Collector::write_stats(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out) {
  process.stats_ns = now.monotonic_ns;
  process.stats_due = false;
  Totals totals = process.left;
  for (const Ring& ring : process.rings)
    totals.add(ring, ring.reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9);
  auto list = nlohmann::json::array();
  for (const auto& [function, total] : totals.calls) list.push_back({function, total.first, total.second});
  const nlohmann::json json{{"type", "stats"},
                            {"rank", process.rank},
                            {"elapsed_s", elapsed_s(process, now, seconds_per_tick)},
                            {"calls", std::move(list)},
                            {"failed_polls", totals.failed_polls},
                            {"lost_records", totals.lost_records},
                            {"abandoned_calls", totals.abandoned_calls},
                            {"events_without_communicator", process.converter.events_without_communicator()},
                            {"unread_gap_s", totals.unread_gap_s},
                            {"capture_s", totals.capture_s}};
  out.add_control(json.dump(), now.monotonic_ns);
}

void Collector::remove_file(const Ring& ring) {
  const auto known = known_files_.find(ring.file);
  if (known == known_files_.end() || known->second != ring.inode) return;  // another thread's by now
  ::unlinkat(options_.directory->fd(), ring.file.c_str(), 0);
  known_files_.erase(known);  // a later thread may get the same number
}

void Collector::forget(Process& process) {
  for (const Ring& ring : process.rings) remove_file(ring);
}

// The first ring stays: it says whose the process is. So do those of a run, or a capture, that is over: they say when that was.
void Collector::give_back(Process& process, Seconds seconds_per_tick) {
  for (std::size_t i = process.rings.size(); i-- > 1;) {
    Ring& ring = process.rings[i];
    const bool had_ended = std::exchange(ring.ended, ring.status.ended);
    if (!had_ended || ring.broken || ring.held.size() > ring.undated) continue;
    if (ring.status.state != ring::ProcessState::kRunning || ring.status.off) continue;
    const auto pending = ring.reader.pending_bytes();
    if (!pending || *pending > 0) continue;
    process.left.add(ring, ring.reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9);
    remove_file(ring);
    process.cpu_known = false;  // where one ring is left: what its thread used while there were more is no progress since
    process.rings.erase(process.rings.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Collector::end(Process& process, const char* how, ClockReading now, Seconds seconds_per_tick,
                    BatchBuilder& out) {
  process.ended = true;
  if (!process.taken) return;
  release(process, now, seconds_per_tick, true, out);
  const Seconds tick_s = process.rings.front().reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
  process.converter.close(end_ticks(process, now), tick_s,
                          [&](const Event& event) { out.add(process.rank, event, now.monotonic_ns); });
  if (process.stopped_s > 0) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%.1f", process.stopped_s);
    note("rank " + std::to_string(process.rank) + " was stopped (a suspended job?) for about " + seconds.data() +
             " s: in the measured time, but in no prediction",
         now, out, process.stopped_s);
  }
  write_stats(process, now, seconds_per_tick, out);
  const nlohmann::json json{{"type", "process_end"},
                            {"rank", process.rank},
                            {"how", how},
                            {"elapsed_s", elapsed_s(process, now, seconds_per_tick)}};
  out.add_control(json.dump(), now.monotonic_ns);
}

void Collector::look_at(Process& process, ClockReading now, Seconds seconds_per_tick, bool last_time,
                        BatchBuilder& out, PassResult& result) {
  // Whether it lives is read before its rings: what a dead process has written is there already.
  bool alive = true;
  if (last_time || now.monotonic_ns - process.alive_check_ns >= kAliveIntervalNs) {
    const Seconds since_last_look_s =
        process.alive_check_ns == 0 ? 0 : static_cast<double>(now.monotonic_ns - process.alive_check_ns) * 1e-9;
    process.alive_check_ns = now.monotonic_ns;
    const ProcessStat stat = read_process_stat(process.pid);
    alive = stat.alive && stat.start_time_clock == process.start_time_clock;
    observe_stop(process, is_stopped(process, stat), since_last_look_s);
  }
  ring::ProcessState state = ring::ProcessState::kStarting;
  for (Ring& ring : process.rings) {
    if (ring.broken) continue;
    auto status = ring.reader.read_status();
    if (!status) {
      close_ring(process, ring, status.error(), now, out);
      continue;
    }
    ring.status = std::move(*status);
    state = std::max(state, ring.status.state);
  }
  if (!process.taken && !take(process, now, seconds_per_tick, out)) {
    if (!alive || last_time) process.ended = true;  // never came out of MPI_Init, or no process of this step
    return;
  }
  meter(process, now, seconds_per_tick);
  if (list_) write_procedure_list(process, now, out);
  std::uint64_t bytes = drain(process, now, seconds_per_tick, out, result);
  if (!alive || last_time) {
    while (bytes > 0) {
      bytes = drain(process, now, seconds_per_tick, out, result);
      if (last_time && alive) break;  // it may write for ever
    }
  }
  if (process.converter.exited() && state == ring::ProcessState::kFinalized) {
    end(process, "finalized", now, seconds_per_tick, out);
  } else if (!alive || last_time) {
    const bool is_over = state == ring::ProcessState::kFinalized || state == ring::ProcessState::kBetweenSessions;
    const char* how = state == ring::ProcessState::kAborted ? "aborted" : is_over ? "finalized" : "killed";
    end(process, how, now, seconds_per_tick, out);
  } else {
    give_back(process, seconds_per_tick);
    keep_alive(process, now, out);
    if (process.stats_due && now.monotonic_ns - process.stats_ns >= kStatsIntervalNs) {
      // Before `elapsed_s`, which measured progress is a part of.
      const Seconds tick_s = process.rings.front().reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
      process.converter.tell_unrecorded(tick_s, [&](const Event& event) { out.add(process.rank, event, now.monotonic_ns); });
      write_stats(process, now, seconds_per_tick, out);
    }
  }
}

PassResult Collector::pass(ClockReading now, const TickRate& rate, BatchBuilder& out) {
  PassResult result;
  // A thread's ring is found before the records that were written after it: they may need its definitions.
  const std::uint64_t generation = options_.directory->generation();
  if (rescan_ || generation != scanned_generation_) {
    scanned_generation_ = generation;
    scan(now, out);
  }
  for (auto it = processes_.begin(); it != processes_.end();) {
    Process& process = it->second;
    look_at(process, now, rate.seconds_per_tick(), false, out, result);
    if (process.ended) {
      forget(process);
      it = processes_.erase(it);
    } else {
      ++it;
    }
  }
  // Not for a program without MPI, of which nothing will come.
  if (taken_ > 0 || !processes_.empty()) out.say_if_silent(now.monotonic_ns);
  out.flush_if_old(now.monotonic_ns);
  return result;
}

void Collector::finish(ClockReading now, const TickRate& rate, BatchBuilder& out) {
  scan(now, out);
  PassResult result;
  for (auto& [pid, process] : processes_) {
    look_at(process, now, rate.seconds_per_tick(), true, out, result);
    forget(process);
  }
  processes_.clear();
  if (left_out_ > 1) {
    note(std::to_string(left_out_) +
             " processes on this node were left out (not of the step's MPI_COMM_WORLD)",
         now, out);
  }
  out.flush();
}

}  // namespace lbf::relay
