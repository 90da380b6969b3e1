// StepTotals, see step_totals.h.
#include "predictor/daemon/steps/step_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "event/mpi_function_table.h"

namespace lbf::daemon {
namespace {

// "3", "3, 5", "3, 5, 6 and 12 more"
std::string listed(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, ranks.size()); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

ProgramProfile::Watched watched_of(const std::vector<StreamCost>& costs) {
  ProgramProfile::Watched out;
  bool all_said = !costs.empty();
  for (const StreamCost& cost : costs) {
    out.recorded_calls += cost.recorded_calls;
    out.counted_calls += cost.counted_calls;
    out.recording_s += cost.recording_s;
    out.capture_s += cost.node.direct_s;
    out.watched_s += cost.watched_s.value_or(0);
    out.program_cpu_s += cost.node.program_cpu_s;
    all_said = all_said && cost.watched_s;
  }
  if (!all_said) out.watched_s = 0;
  return out;
}

// "9 (SIGKILL)"
std::string signal_text(std::uint64_t signal) {
  const char* name = signal < static_cast<std::uint64_t>(_NSIG) ? ::sigabbrev_np(static_cast<int>(signal)) : nullptr;
  return name == nullptr ? std::to_string(signal) : fmt::format("{} (SIG{})", signal, name);
}

// Of what has a model, only the communicator can be in the way.
bool needs_communicator(MpiRole role) {
  switch (role) {
    case MpiRole::kSend:
    case MpiRole::kIsend:
    case MpiRole::kRecv:
    case MpiRole::kIrecv:
    case MpiRole::kSendrecv:
    case MpiRole::kSendrecvReplace:
    case MpiRole::kProbe:
    case MpiRole::kCollective:
      return true;
    default:
      return false;
  }
}

// Nothing of it counts but times and bytes.
bool is_message_or_work(EventKind kind) {
  switch (kind) {
    case EventKind::kCompute:
    case EventKind::kSend:
    case EventKind::kIsend:
    case EventKind::kStartRecv:
    case EventKind::kEndRecv:
    case EventKind::kRecv:
    case EventKind::kWait:
    case EventKind::kCollective:
    case EventKind::kIcollective:
      return true;
    default:
      return false;
  }
}

bool starts_or_ends(MpiRole role) {
  return role == MpiRole::kInit || role == MpiRole::kInitThread || role == MpiRole::kFinalize ||
         role == MpiRole::kSessionInit || role == MpiRole::kSessionFinalize;
}

}  // namespace

void StepTotals::begin() {
  slot_of_rank_.assign(static_cast<std::size_t>(ranks_), kSilent);
  closed_.assign(static_cast<std::size_t>(ranks_), false);
}

void StepTotals::clear() {
  slot_of_rank_ = {};
  rank_totals_ = {};
  closed_ = {};
  stream_totals_ = {};
  calls_bytes_ = 0;
}

Bytes StepTotals::memory_bytes() const {
  Bytes bytes = slot_of_rank_.capacity() * sizeof(std::uint32_t) + rank_totals_.size() * sizeof(RankTotals) +
                closed_.capacity() / 8 + calls_bytes_;
  for (const auto& [number, stream] : stream_totals_) {
    bytes += sizeof(StreamTotals) + 64;
    if (stream.cost) bytes += stream.cost->ranks.capacity() * sizeof(db::RankCostRecord);
  }
  return bytes;
}

StepTotals::RankTotals& StepTotals::of(Rank rank) {
  std::uint32_t& slot = slot_of_rank_[static_cast<std::size_t>(rank)];
  if (slot == kSilent) {
    slot = static_cast<std::uint32_t>(rank_totals_.size());
    rank_totals_.emplace_back();
  }
  return rank_totals_[slot];
}

const StepTotals::RankTotals& StepTotals::known_of(Rank rank) const {
  static const RankTotals silent;
  const std::uint32_t slot = slot_of_rank_[static_cast<std::size_t>(rank)];
  return slot == kSilent ? silent : rank_totals_[slot];
}

bool StepTotals::take_events(std::uint32_t stream, Rank rank, std::span<const Event> events) {
  RankTotals& totals = of(rank);
  totals.has_events = true;
  totals.stream = stream;
  any_rank_seen_ = true;
  profile_.take_events(events, totals.scope);
  for (const Event& event : events) {
    if (event.kind == EventKind::kUnmodelled) {
      CallTotal& total = unmodelled_events_[event.function];
      ++total.calls;
      total.total_s += event.call_s;
      const MpiFunction* function = mpi_function(event.function);
      if (function != nullptr && function->role == MpiRole::kSpawn) spawned_processes_ += event.bytes;
    }
    if (event.kind == EventKind::kBlocked && look_period_ns(event) > 0) look_sleep_s_ += event.off_s;
    if (event.kind == EventKind::kRegions && event.values.size() >= kRegionValues) {
      regions_.threads = std::max(regions_.threads, event.values[1]);
      regions_.wall_s += event.process_s;
      regions_.work_s += seconds_from_ns(static_cast<Nanoseconds>(event.values[2]));
    }
    if (event.kind == EventKind::kDevice && event.values.size() >= kDeviceValues) {
      devices_.waits += event.values[0];
      devices_.wall_s += event.process_s;
      devices_.busy_s += std::min(seconds_from_ns(static_cast<Nanoseconds>(event.values[1])), Seconds{event.process_s});
    }
    if (event.kind == EventKind::kIo) {
      ++io_.calls;
      io_.total_s += event.call_s;
      if (io_direction(event) == IoDirection::kRead) io_.bytes_read += event.bytes;
      if (io_direction(event) == IoDirection::kWrite) io_.bytes_written += event.bytes;
    }
  }
  const bool is_closed = closed_[static_cast<std::size_t>(rank)];
  if (is_closed) remarks_.add_reason(fmt::format("events of rank {} came after its end", rank));
  return !is_closed;
}

bool StepTotals::is_plain(Rank rank, const Rounds& rounds) const {
  return !closed_[static_cast<std::size_t>(rank)] &&
         std::ranges::all_of(rounds.events, [](const Event& event) { return is_message_or_work(event.kind); });
}

void StepTotals::take_rounds(std::uint32_t stream, Rank rank, const Rounds& rounds) {
  RankTotals& totals = of(rank);
  totals.has_events = true;
  totals.stream = stream;
  any_rank_seen_ = true;
  profile_.take_rounds(rounds);
}

// Each node's relay takes a rank once, of a world as large as the step.
void StepTotals::report_identity(std::uint32_t stream, Rank rank, const protocol::ProcessRecord& record) {
  const RankTotals& totals = known_of(rank);
  const std::int64_t world_size = record.world_size.value_or(ranks_);
  if (world_size == 1 && ranks_ > 1)
    return remarks_.add_reason(
        "each process is alone in its MPI_COMM_WORLD, rank 0 of 1: the MPI library got nothing from Slurm; start the "
        "step with srun --mpi=pmix (srun --mpi=list names what there is)");
  if (world_size != ranks_)
    remarks_.add_reason(fmt::format("MPI_COMM_WORLD has {} ranks, the step {} tasks", world_size, ranks_));
  if (!totals.process_seen) return;
  if (totals.has_events && totals.stream != stream) {
    remarks_.add_reason(
        fmt::format("two processes call themselves rank {}, one on node {} and one on node {}: several MPI programs in "
                    "one step (mpirun inside srun?)",
                    rank, totals.stream, stream));
  } else if (totals.pid != record.pid) {
    remarks_.add_reason(fmt::format(
        "two processes on node {} call themselves rank {}: two runs have this step's number", stream, rank));
  }
}

void StepTotals::take(std::uint32_t stream, Rank rank, const protocol::ProcessRecord& record) {
  RankTotals& totals = of(rank);
  any_rank_seen_ = true;
  report_identity(stream, rank, record);
  if (!std::exchange(totals.process_seen, true)) ++processes_seen_;
  totals.pid = record.pid;
  profile_.take_process(rank, record);
  totals.init_s = record.init_s;
  if (record.thread_level >= 3) {
    remarks_.add_note("MPI_THREAD_MULTIPLE: calls of a rank's threads are replayed as one sequence");
  }
}

void StepTotals::take(std::uint32_t, Rank rank, const protocol::StatsRecord& record) {
  RankTotals& totals = of(rank);
  totals.elapsed_s = std::max(totals.elapsed_s, record.elapsed_s);
  totals.lost_records = record.lost_records;
  totals.abandoned_calls = record.abandoned_calls;
  totals.events_without_communicator = record.events_without_communicator;
  totals.unread_gap_s = record.unread_gap_s;
  totals.capture_s = record.capture_s;
  totals.delayed_s = record.delayed_s;
  totals.others_s = record.others_s;
  totals.limited_s = record.limited_s;
  const auto has = [&](std::string_view name) {
    return std::find(record.devices.begin(), record.devices.end(), name) != record.devices.end();
  };
  totals.has_cuda = has(protocol::kCuda);
  totals.has_hip = has(protocol::kHip);
  if (!record.calls) return;
  calls_bytes_ -= totals.calls.capacity() * sizeof(protocol::FunctionTotal);
  // Of what comes twice the last one counts.
  std::map<std::uint64_t, protocol::FunctionTotal> calls;
  for (const protocol::FunctionTotal& call : *record.calls) {
    if (call.function <= mpi_function_count()) calls.insert_or_assign(call.function, call);
  }
  totals.calls.clear();
  totals.calls.reserve(calls.size());
  for (const auto& [function, call] : calls) totals.calls.push_back(call);
  calls_bytes_ += totals.calls.capacity() * sizeof(protocol::FunctionTotal);
}

void StepTotals::take(std::uint32_t, Rank rank, const protocol::ProcessEndRecord& record) {
  of(rank).how = record.how;
  of(rank).elapsed_s = std::max(of(rank).elapsed_s, record.elapsed_s);
}

void StepTotals::take(std::uint32_t, Rank rank, const protocol::TaskExitRecord& record) {
  of(rank).exit_code = record.exit_code;
  of(rank).signal = record.signal;
}

void StepTotals::take(std::uint32_t, Rank, const protocol::StepKilledRecord& record) {
  constexpr std::size_t kMostBytes = 80;
  killed_by_ = record.by.substr(0, kMostBytes);
}

void StepTotals::take(std::uint32_t stream, Rank, const protocol::NoteRecord& record) {
  longest_stop_s_ = std::max(longest_stop_s_, record.stopped_s);
  if (!record.text.empty()) remarks_.add_note(fmt::format("node {}: {}", stream, record.text));
}

void StepTotals::take(std::uint32_t stream, Rank, const protocol::CostRecord& record) {
  stream_totals_[stream].cost = stream_cost_of(record, stream, ranks_);
}

void StepTotals::take(std::uint32_t stream, Rank, const protocol::RelayRecord& record) {
  StreamTotals& totals = stream_totals_[stream];
  totals.relay_cpu_s = record.cpu_s;
  totals.sent_bytes = record.bytes_sent;
  totals.relay_lost_batches = record.lost_batches;
  totals.processes_left_out = record.processes_left_out;
}

void StepTotals::take(std::uint32_t, Rank, const protocol::ProcessorsRecord& record) {
  if (!(record.passed_s > 0)) return;
  const auto percent = [&](Seconds part_s) { return std::min(100 * part_s / record.passed_s, 100.0); };
  stolen_percent_ = std::max(stolen_percent_, percent(record.stolen_s));
  softirq_percent_ = std::max(softirq_percent_, percent(record.softirq_s));
}

bool StepTotals::close(Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  const bool was_open = !closed_[index];
  closed_[index] = true;
  return was_open;
}

bool StepTotals::all_processes_seen() const {
  return processes_seen_ == ranks_;
}

Seconds StepTotals::counted_s() const {
  Seconds sum_s = 0;
  for_each_rank([&](const RankTotals& rank) { sum_s += rank.elapsed_s; });
  return sum_s;
}

std::uint64_t StepTotals::lost_records() const {
  std::uint64_t sum = 0;
  for_each_rank([&](const RankTotals& rank) { sum += rank.lost_records; });
  return sum;
}

std::vector<StreamCost> StepTotals::costs() const {
  std::vector<StreamCost> costs;
  for (const auto& [number, stream] : stream_totals_) {
    if (stream.cost) costs.push_back(*stream.cost);
  }
  return costs;
}

// --- the end

// How a rank ended that called neither MPI_Finalize nor MPI_Abort.
std::string StepTotals::end_of(const RankTotals& totals) const {
  const bool by_slurm = !totals.signal || *totals.signal == SIGTERM || *totals.signal == SIGKILL;
  if (!killed_by_.empty() && !totals.exit_code && by_slurm) return "killed by " + killed_by_ + " before MPI_Finalize";
  if (totals.signal) return "killed by signal " + signal_text(*totals.signal) + " before MPI_Finalize";
  if (totals.exit_code) return fmt::format("ended without MPI_Finalize (exit {})", *totals.exit_code);
  return "ended without MPI_Finalize";
}

void StepTotals::report_unfinished() {
  std::map<std::string, std::vector<Rank>> ranks_of_end;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const RankTotals& totals = known_of(rank);
    if (totals.how == protocol::kKilled) ranks_of_end[end_of(totals)].push_back(rank);
  }
  for (const auto& [end, ranks] : ranks_of_end) remarks_.add_reason(end + ": rank " + listed(ranks));
}

void StepTotals::report_ranks(const std::vector<StreamState>& streams) {
  std::vector<Rank> aborted;
  std::vector<Rank> unfinished;
  std::vector<Rank> never_seen;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const RankTotals& totals = known_of(rank);
    if (totals.how == protocol::kAborted) aborted.push_back(rank);
    if (!totals.process_seen && !totals.has_events) {
      never_seen.push_back(rank);
    } else if (totals.how.empty()) {
      unfinished.push_back(rank);
    }
  }
  if (any_rank_seen_) {
    if (const std::string programs = profile_.several(); !programs.empty())
      remarks_.add_note("several programs, by their lowest ranks: " + programs);
    report_unfinished();
    if (!aborted.empty()) remarks_.add_reason("called MPI_Abort: rank " + listed(aborted));
    if (!never_seen.empty()) remarks_.add_reason("never seen: rank " + listed(never_seen));
    if (!unfinished.empty()) remarks_.add_reason("the end was not seen of rank " + listed(unfinished));
    if (const std::uint64_t lost = lost_records(); lost > 0)
      remarks_.add_reason(fmt::format("{} events were lost where the program ran (ring full)", lost));
    return;
  }
  const bool left_out = std::any_of(stream_totals_.begin(), stream_totals_.end(),
                                    [](const auto& stream) { return stream.second.processes_left_out > 0; });
  const bool lost =
      std::any_of(streams.begin(), streams.end(), [](const StreamState& state) { return state.end->lost_batches > 0; });
  if (!left_out && !lost) remarks_.add_reason("no MPI program was seen (no process came out of MPI_Init)");
}

void StepTotals::report_stream(const std::string& node, const StreamState& state) {
  if (!state.damage.empty()) remarks_.add_reason(state.damage);
  const StreamTotals& totals = stream_totals_[state.stream];
  const std::uint64_t lost = std::max(state.end->lost_batches, totals.relay_lost_batches);
  if (state.end->reason == kReasonTraceLimit) {
    remarks_.add_reason(
        fmt::format("the step's traces reached step_trace_limit_mb: later events of node {} were not kept", node));
  } else if (state.end->reason == kReasonMemoryLimit) {
    remarks_.add_reason(
        fmt::format("the step's communicators need more memory than lbfd has for it (step_memory_mb): later events of "
                    "node {} were not kept",
                    node));
  } else if (state.end->reason == kReasonRelayKilled) {
    remarks_.add_reason(fmt::format("the relay of node {} was killed: what it had not sent is lost", node));
  } else if (lost > 0) {
    const std::string& why = state.end->why;
    remarks_.add_reason(fmt::format("node {} lost {} batches{}", node, lost, why.empty() ? why : ": " + why));
  }
  if (totals.processes_left_out > 0) {
    remarks_.add_reason(fmt::format("{} {} of node {} left out (a note says why)", totals.processes_left_out,
                                    totals.processes_left_out == 1 ? "process" : "processes", node));
  }
  if (state.end->last_sequence >= state.next_sequence && state.end->lost_batches == 0) {
    remarks_.add_reason(fmt::format("node {} ended before all of its batches were here", node));
  }
  if (state.end->reason == kReasonStreamTimeout) {
    remarks_.add_reason(state.durable_bytes == 0 ? fmt::format("node {} never sent anything", node)
                                                 : fmt::format("node {} fell silent before the step's end", node));
  }
}

void StepTotals::report_end(const StepTrace& trace, const std::vector<StreamState>& streams) {
  report_ranks(streams);
  for (const StreamState& state : streams) report_stream(trace.description().nodes[state.stream], state);
}

// --- what people see

void StepTotals::describe(const StepTrace& trace, db::StepRecord& record, std::vector<std::string>& notes) const {
  record.events = events_;
  Seconds measured_s = 0;
  Seconds elapsed_s = 0;
  bool any_outside = false;
  for_each_rank([&](const RankTotals& rank) {
    measured_s = std::max(measured_s, rank.elapsed_s - rank.scope.outside_s);
    elapsed_s = std::max(elapsed_s, rank.elapsed_s);
    any_outside = any_outside || rank.scope.outside_s > 0;
    record.capture_s += rank.capture_s;
  });
  if (measured_s > 0) record.measured_s = measured_s;
  if (any_outside) {
    notes.push_back(fmt::format("predicted: the part that the program asked for with MPI_Pcontrol, {:.3g} of {:.3g} s",
                                measured_s, elapsed_s));
  }
  record.longest_stop_s = longest_stop_s_;
  for (const StreamState& state : trace.streams()) {
    record.stored_bytes += state.durable_bytes;
    const auto stream = stream_totals_.find(state.stream);
    const Bytes sent_bytes = stream == stream_totals_.end() ? 0 : stream->second.sent_bytes;
    record.wire_bytes += std::max<Bytes>(sent_bytes, state.durable_bytes);
  }
  for (const auto& [number, stream] : stream_totals_) record.relay_cpu_s += stream.relay_cpu_s;
  record.threads = regions_.threads;
  record.regions_s = regions_.wall_s;
  record.region_work_s = regions_.work_s;
  describe_calls(record);
  describe_other_programs(record);
  describe_devices(record);
  note_calls(record, notes);
  note_regions(trace.description().threads_per_task, record, notes);
  note_devices(record, notes);
}

void StepTotals::describe_calls(db::StepRecord& record) const {
  std::vector<CallTotal> totals(mpi_function_count() + 1);
  for_each_rank([&](const RankTotals& rank) {
    for (const protocol::FunctionTotal& call : rank.calls) {
      totals[call.function].calls += call.count;
      totals[call.function].total_s += call.total_s;
    }
  });
  for (std::size_t id = 1; id < totals.size(); ++id) {
    const MpiFunction* function = mpi_function(static_cast<std::uint16_t>(id));
    if (function == nullptr) continue;
    CallTotal total = totals[id];
    if (total.calls > 0) {
      record.calls.push_back({std::string(function->name), total.calls, total.total_s});
      if (!starts_or_ends(function->role)) record.mpi_s += total.total_s;
    }
    // A function of another role can still leave single calls unmodelled; those came as events.
    const bool is_unmodelled = function->role == MpiRole::kUnmodelled || function->role == MpiRole::kSpawn;
    if (!is_unmodelled || total.calls == 0) {
      const auto found = unmodelled_events_.find(static_cast<std::uint16_t>(id));
      total = found == unmodelled_events_.end() ? CallTotal{} : found->second;
    }
    if (total.calls > 0) {
      record.unmodelled_calls.push_back({std::string(function->name), total.calls, total.total_s});
      record.unmodelled_s += total.total_s;
    }
  }
  const auto by_time = [](const db::CallRecord& a, const db::CallRecord& b) { return a.total_s > b.total_s; };
  std::stable_sort(record.calls.begin(), record.calls.end(), by_time);
  std::stable_sort(record.unmodelled_calls.begin(), record.unmodelled_calls.end(), by_time);
}

void StepTotals::describe_other_programs(db::StepRecord& record) const {
  for_each_rank([&](const RankTotals& rank) {
    if (rank.others_s + rank.limited_s <= record.others_s + record.limited_s) return;
    record.delayed_s = rank.delayed_s;
    record.others_s = rank.others_s;
    record.limited_s = rank.limited_s;
  });
  record.stolen_percent = stolen_percent_;
  record.softirq_percent = softirq_percent_;
}

void StepTotals::describe_devices(db::StepRecord& record) const {
  bool has_cuda = false;
  bool has_hip = false;
  for_each_rank([&](const RankTotals& rank) {
    has_cuda = has_cuda || rank.has_cuda;
    has_hip = has_hip || rank.has_hip;
  });
  if (has_cuda) record.devices = protocol::kCuda;
  if (has_hip) record.devices += std::string(has_cuda ? "," : "") + std::string(protocol::kHip);
  record.device_s = devices_.wall_s;
  record.device_busy_s = devices_.busy_s;
}

void StepTotals::note_devices(const db::StepRecord& record, std::vector<std::string>& notes) const {
  const std::string name = record.devices.empty() ? "a device" : record.devices;
  if (devices_.wall_s > 0) {
    notes.push_back(
        fmt::format("ranks waited {:.3g} s{} for {}, kept on every target: {}, {:.0f} % of it on the processor",
                    devices_.wall_s, share_of_time(devices_.wall_s, record), name,
                    counted(devices_.waits, "call", "calls"), 100 * devices_.busy_s / devices_.wall_s));
  } else if (!record.devices.empty()) {
    notes.push_back(fmt::format(
        "{} is loaded, and no call that waits for a device was seen: how long ranks waited is not known", name));
  }
}

std::string StepTotals::share_of_time(Seconds part_s, const db::StepRecord& record) const {
  const bool in_part = profile_.has_windows();
  const Seconds all_s = in_part ? profile_.recorded_s() : record.measured_s.value_or(0) * static_cast<double>(ranks_);
  if (!(all_s > 0)) return {};
  return fmt::format(" ({:.1f} % of the ranks' time{})", 100 * part_s / all_s, in_part ? " that was seen" : "");
}

void StepTotals::note_calls(const db::StepRecord& record, std::vector<std::string>& notes) const {
  Seconds init_s = 0;
  Seconds unread_gap_s = 0;
  std::uint64_t abandoned_calls = 0;
  std::uint64_t events_without_communicator = 0;
  for_each_rank([&](const RankTotals& rank) {
    abandoned_calls += rank.abandoned_calls;
    events_without_communicator += rank.events_without_communicator;
    init_s = std::max(init_s, rank.init_s);
    unread_gap_s += rank.unread_gap_s;
  });
  if (init_s > 0)
    notes.push_back(fmt::format("MPI_Init took {:.3g} s; measured and predicted times begin after it", init_s));
  if (record.unmodelled_s > 0) {
    notes.push_back(record.mpi_s > 0
                        ? fmt::format("{:.1f} % of MPI time unmodelled", 100 * record.unmodelled_s / record.mpi_s)
                        : fmt::format("{:.3g} s of MPI time unmodelled", record.unmodelled_s));
  }
  std::uint64_t without_communicator = 0;
  for (const auto& [id, total] : unmodelled_events_) {
    const MpiFunction* const function = mpi_function(id);
    if (function != nullptr && needs_communicator(function->role)) without_communicator += total.calls;
  }
  if (without_communicator > 0) {
    notes.push_back(
        fmt::format("{} messages and collectives unmodelled: their communicator is shared with another "
                    "program, or the rank had more than 57,344 at once",
                    without_communicator));
  }
  if (io_.calls > 0) {
    notes.push_back(fmt::format("MPI-IO took {:.3g} s{}, kept on every target: {}, {} bytes read, {} written",
                                io_.total_s, share_of_time(io_.total_s, record), counted(io_.calls, "call", "calls"),
                                io_.bytes_read, io_.bytes_written));
  }
  if (look_sleep_s_ > 0) {
    notes.push_back(
        fmt::format("{:.3g} s{} were slept between looks for messages: on every target such a wait ends at the first "
                    "look after the "
                    "message came",
                    look_sleep_s_, share_of_time(look_sleep_s_, record)));
  }
  if (spawned_processes_ > 0) {
    notes.push_back(fmt::format("{} spawned: not in the picture, and neither are the calls to them",
                                counted(spawned_processes_, "process was", "processes were")));
  }
  if (abandoned_calls > 0) {
    notes.push_back(fmt::format("{} left by longjmp or by an exception: kept as unmodelled time",
                                counted(abandoned_calls, "MPI call was", "MPI calls were")));
  }
  if (events_without_communicator > 0) {
    notes.push_back(fmt::format("{} on a communicator whose definition was lost: not replayed, kept as lost",
                                counted(events_without_communicator, "event was", "events were")));
  }
  if (unread_gap_s > 0 && record.measured_s.value_or(0) > 0) {
    const double percent = 100 * unread_gap_s / (*record.measured_s * static_cast<double>(ranks_));
    if (percent >= 1) {
      notes.push_back(
          fmt::format("{:.1f} % of the time is wall time of gaps too short for the processor clock", percent));
    }
  }
}

void StepTotals::note_regions(std::uint32_t given, const db::StepRecord& record,
                              std::vector<std::string>& notes) const {
  if (!(regions_.wall_s > 0)) return;
  const std::string of_given =
      given == 0 || given == regions_.threads ? std::string() : fmt::format(" (each rank was given {})", given);
  notes.push_back(fmt::format("parallel regions took {:.3g} s{}: {}{}, of which {:.2g} work at a time", regions_.wall_s,
                              share_of_time(regions_.wall_s, record), counted(regions_.threads, "thread", "threads"),
                              of_given, regions_.work_s / regions_.wall_s));
}

std::optional<db::ProgramRun> StepTotals::program() const {
  std::vector<std::uint64_t> calls(mpi_function_count() + 1, 0);
  for_each_rank([&](const RankTotals& rank) {
    for (const protocol::FunctionTotal& call : rank.calls) calls[call.function] += call.count;
  });
  return profile_.run(calls, slot_of_rank_.size(), counted_s(), watched_of(costs()));
}

}  // namespace lbf::daemon
