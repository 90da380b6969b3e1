// Collector, see collector.h.
#include "spank_plugin/relay/collector.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/unique_handle.h"
#include "spank_plugin/relay/process_probe.h"

namespace lbf::relay {
namespace {

constexpr std::uint64_t kScanIntervalNs = 50'000'000;
constexpr std::uint64_t kAliveIntervalNs = 100'000'000;
constexpr std::uint64_t kKeepAliveIntervalNs = 1'000'000'000;
constexpr std::uint64_t kCpuReadIntervalNs = 250'000'000;  // where the next quiet stretch may start
constexpr std::uint64_t kStatsIntervalNs = 2'000'000'000;
constexpr std::uint64_t kDrainBytesPerPass = 2 << 20;  // of one ring, so that no rank starves the others
constexpr std::size_t kMaxNotes = 100;  // a hostile directory must not fill the trace with notes
constexpr std::size_t kMaxRings = 65536;

struct CloseDir {
  void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

// "<pid>.<tid>.ring"; 0 for every other name.
std::int32_t pid_of_ring_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".ring";
  if (!name.ends_with(kSuffix)) return 0;
  name.remove_suffix(kSuffix.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), name.data() + dot, pid);
  const auto second = std::from_chars(name.data() + dot + 1, end, tid);
  if (first.ec != std::errc() || first.ptr != name.data() + dot || second.ec != std::errc() ||
      second.ptr != end) {
    return 0;
  }
  return pid > 1 && tid > 1 ? pid : 0;
}

}  // namespace

Result<Collector> Collector::make(CollectorOptions options) {
  Collector collector(std::move(options));
  collector.dir_.reset(
      ::open(collector.options_.ring_dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!collector.dir_) {
    return Error{ErrorCode::kIo,
                 "cannot open ring directory " + collector.options_.ring_dir + ": " + std::strerror(errno)};
  }
  return collector;
}

void Collector::note(const std::string& text, ClockReading now, BatchBuilder& out) {
  if (++notes_ > kMaxNotes) return;
  out.add_control(nlohmann::json{{"type", "note"}, {"text", text}}.dump(
                      -1, ' ', false, nlohmann::json::error_handler_t::replace),
                  now.monotonic_ns);
}

void Collector::scan(ClockReading now, BatchBuilder& out) {
  scanned_ns_ = now.monotonic_ns;
  // A descriptor of its own each time: closedir() closes it, and the position starts at the beginning.
  const int fd = ::openat(dir_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  const UniqueHandle<DIR*, CloseDir> dir(::fdopendir(fd));
  if (!dir) {
    ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::int32_t pid = pid_of_ring_name(entry->d_name);
    if (pid == 0 || known_files_.size() >= kMaxRings) continue;
    std::string name = entry->d_name;
    if (known_files_.contains(name)) continue;
    auto reader = RingReader::open(dir_.get(), name);
    if (!reader) {
      if (reader.error().code == ErrorCode::kNotFound) continue;  // not ready: the next scan
      note(reader.error().message, now, out);
      known_files_.insert(std::move(name));
      continue;
    }
    known_files_.insert(name);
    if (reader->identity().pid != pid || (reader->identity().clock_source == 0 && !has_tick_counter())) {
      note("ring " + name + " belongs to another process or uses a clock that this machine does not have",
           now, out);
      continue;
    }
    Process& process = processes_[pid];
    if (process.pid == 0) {
      process.pid = pid;
      process.start_time_clock = read_process_stat(pid).start_time_clock;
    }
    process.rings.push_back(Ring{std::move(name), std::move(*reader), {}, false});
  }
}

void Collector::close_ring(Process& process, Ring& ring, const Error& error, ClockReading now,
                           BatchBuilder& out) {
  ring.broken = true;
  note(error.message + "; the rest of rank " + std::to_string(process.rank) + " is lost", now, out);
  if (process.taken) {
    // What comes after cannot be known: say so in the stream, so that predictions become partial.
    Event gap;
    gap.kind = EventKind::kGap;
    gap.bytes = 1;
    if (!process.converter.exited()) out.add(process.rank, gap, now.monotonic_ns);
  }
}

bool Collector::take(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out) {
  // The ring of the thread that called MPI_Init says when the process began; it goes first.
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
    ++left_out_;
    if (left_out_ == 1) {
      note("process " + std::to_string(process.pid) + " (" + first.reader.identity().executable +
               ") is left out: " + why,
           now, out);
    }
    process.ended = true;
    return false;
  }
  ++taken_;
  process.taken = true;
  process.taken_ns = now.monotonic_ns;
  process.stats_ns = now.monotonic_ns;
  process.rank = status.rank;
  process.converter = RecordConverter(status.init_leave_ticks, status.world_size);
  const RingIdentity& id = first.reader.identity();
  const Seconds tick_s = id.clock_source == 0 ? seconds_per_tick : 1e-9;
  const std::uint64_t init_ticks =
      status.init_leave_ticks > id.start_ticks ? status.init_leave_ticks - id.start_ticks : 0;
  const nlohmann::json json{
      {"type", "process"},
      {"rank", status.rank},
      {"world_size", status.world_size},
      {"pid", process.pid},
      {"node_index", options_.node_index},
      {"slurm_procid", id.slurm_procid},
      {"executable", id.executable},
      {"library", status.library},
      {"thread_level", status.thread_level},
      {"start_realtime_ns", id.start_realtime_ns},
      {"init_s", static_cast<double>(init_ticks) * tick_s},
      {"cpu_threshold_ns",
       static_cast<std::uint64_t>(static_cast<double>(status.cpu_threshold_ticks) * tick_s * 1e9)}};
  out.add_control(json.dump(), now.monotonic_ns);
  return true;
}

std::uint64_t Collector::drain(Process& process, ClockReading now, Seconds seconds_per_tick,
                               BatchBuilder& out, PassResult& result) {
  std::uint64_t bytes = 0;
  const auto emit = [&](const Event& event) { out.add(process.rank, event, now.monotonic_ns); };
  Result<void> converted;
  const bool several = process.rings.size() > 1;
  merge_records_.clear();
  merge_values_.clear();
  for (Ring& ring : process.rings) {
    if (ring.broken) continue;
    const Seconds tick_s = ring.reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
    if (auto pending = ring.reader.pending_bytes();
        pending && *pending > ring.reader.identity().capacity_bytes / 4) {
      result.a_ring_was_full = true;
    }
    auto drained = ring.reader.drain(
        kDrainBytesPerPass, [&](const ring::Record& record, std::span<const std::uint64_t> values) {
          if (several) {
            merge_records_.push_back({record, 0, merge_values_.size(), values.size()});
            merge_values_.insert(merge_values_.end(), values.begin(), values.end());
          } else if (converted.ok()) {
            converted = process.converter.convert(record, values, tick_s, emit);
          }
        });
    if (!drained) {
      close_ring(process, ring, drained.error(), now, out);
    } else {
      bytes += *drained;
    }
  }
  if (several) {
    // One process is one sequence of events for the replay: its threads' records by the time they were
    // entered, within what one pass found. An adjust record belongs before the record that follows it in its
    // ring.
    std::uint64_t next_enter = std::numeric_limits<std::uint64_t>::max();
    for (auto it = merge_records_.rbegin(); it != merge_records_.rend(); ++it) {
      if (it->record.kind != ring::kRecordAdjust) next_enter = it->record.enter;
      it->enter = next_enter;
    }
    std::stable_sort(merge_records_.begin(), merge_records_.end(),
                     [](const PendingRecord& x, const PendingRecord& y) { return x.enter < y.enter; });
    const Seconds tick_s =
        process.rings.front().reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
    for (const PendingRecord& pending : merge_records_) {
      if (!converted.ok()) break;
      converted = process.converter.convert(
          pending.record, std::span(merge_values_).subspan(pending.values_begin, pending.values_count),
          tick_s, emit);
    }
  }
  if (!converted) {
    for (Ring& ring : process.rings) {
      if (!ring.broken) close_ring(process, ring, converted.error(), now, out);
    }
  }
  if (bytes > 0) process.stats_due = true;
  result.bytes += bytes;
  return bytes;
}

void Collector::keep_alive(Process& process, ClockReading now, BatchBuilder& out) {
  const Ring& ring = process.rings.front();
  // Threads of one process run at the same time: their processor times do not add up to its progress.
  if (process.rings.size() != 1 || ring.broken || process.converter.exited()) return;
  constexpr std::uint32_t kInProgram = 1;
  const std::uint64_t consumed = ring.reader.consumed_bytes();
  const bool quiet = process.cpu_known && process.cpu_at_bytes == consumed;
  if (now.monotonic_ns - process.cpu_read_ns < (quiet ? kKeepAliveIntervalNs : kCpuReadIntervalNs)) return;
  process.cpu_read_ns = now.monotonic_ns;
  // A quiet rank that is found in a call may be spinning in it: that time is no process time.
  const auto cpu_ns = ring.status.in_call == kInProgram
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

Seconds Collector::elapsed_s(const Process& process, ClockReading now, Seconds seconds_per_tick) const {
  const Ring& first = process.rings.front();
  const bool tsc = first.reader.identity().clock_source == 0;
  std::uint64_t end = 0;  // MPI_Finalize may be called by another thread than MPI_Init
  for (const Ring& ring : process.rings) end = std::max(end, ring.status.finalize_enter_ticks);
  if (end == 0) end = tsc ? now.ticks : now.monotonic_ns;
  const std::uint64_t begin = first.status.init_leave_ticks;
  return end > begin ? static_cast<double>(end - begin) * (tsc ? seconds_per_tick : 1e-9) : 0;
}

void Collector::write_stats(Process& process, ClockReading now, Seconds seconds_per_tick, BatchBuilder& out) {
  process.stats_ns = now.monotonic_ns;
  process.stats_due = false;
  std::map<std::uint16_t, std::pair<std::uint64_t, Seconds>> calls;
  std::uint64_t failed_polls = 0;
  std::uint64_t lost_records = 0;
  Seconds unread_gap_s = 0;
  Seconds capture_s = 0;
  for (const Ring& ring : process.rings) {
    const Seconds tick_s = ring.reader.identity().clock_source == 0 ? seconds_per_tick : 1e-9;
    failed_polls += ring.status.failed_polls;
    lost_records += ring.status.lost_records;
    unread_gap_s += static_cast<double>(ring.status.unread_gap_ticks) * tick_s;
    capture_s += static_cast<double>(ring.status.capture_ticks_estimate) * tick_s;
    if (auto totals = ring.reader.read_calls()) {
      for (const CallTotal& total : *totals) {
        auto& [count, seconds] = calls[total.function];
        count += total.count;
        seconds += static_cast<double>(total.ticks) * tick_s;
      }
    }
  }
  auto list = nlohmann::json::array();
  for (const auto& [function, total] : calls) list.push_back({function, total.first, total.second});
  const nlohmann::json json{{"type", "stats"},
                            {"rank", process.rank},
                            {"elapsed_s", elapsed_s(process, now, seconds_per_tick)},
                            {"calls", std::move(list)},
                            {"failed_polls", failed_polls},
                            {"lost_records", lost_records},
                            {"unread_gap_s", unread_gap_s},
                            {"capture_s", capture_s}};
  out.add_control(json.dump(), now.monotonic_ns);
}

void Collector::forget(Process& process) {
  for (const Ring& ring : process.rings) {
    ::unlinkat(dir_.get(), ring.file.c_str(), 0);
    known_files_.erase(ring.file);  // a later process may get the same pid
  }
}

void Collector::end(Process& process, const char* how, ClockReading now, Seconds seconds_per_tick,
                    BatchBuilder& out) {
  process.ended = true;
  if (!process.taken) return;
  process.converter.close([&](const Event& event) { out.add(process.rank, event, now.monotonic_ns); });
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
    process.alive_check_ns = now.monotonic_ns;
    const ProcessStat stat = read_process_stat(process.pid);
    alive = stat.alive && stat.start_time_clock == process.start_time_clock;
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
    const char* how = state == ring::ProcessState::kAborted     ? "aborted"
                      : state == ring::ProcessState::kFinalized ? "finalized"
                                                                : "killed";
    end(process, how, now, seconds_per_tick, out);
  } else {
    keep_alive(process, now, out);
    if (process.stats_due && now.monotonic_ns - process.stats_ns >= kStatsIntervalNs) {
      write_stats(process, now, seconds_per_tick, out);
    }
  }
}

PassResult Collector::pass(ClockReading now, const TickRate& rate, BatchBuilder& out) {
  PassResult result;
  if (scanned_ns_ == 0 || now.monotonic_ns - scanned_ns_ >= kScanIntervalNs) scan(now, out);
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
