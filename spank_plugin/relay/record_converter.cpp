// RecordConverter, see record_converter.h.
#include "spank_plugin/relay/record_converter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "event/mpi_function_table.h"
#include "event/procedure_table.h"
#include "event/wire.h"

namespace lbf::relay {
namespace {

std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

bool has_op(EventKind kind) {
  return is_collective(kind) || kind == EventKind::kOneSided || kind == EventKind::kIo || kind == EventKind::kSkipped;
}

bool has_world_peer(EventKind kind) {
  return is_point_to_point(kind) || kind == EventKind::kOneSided || kind == EventKind::kOneSidedSync ||
         kind == EventKind::kSkipped;
}

// Ticks as nanoseconds times 2^48: a rank's run to some nanoseconds, ticks of up to 65 us.
constexpr unsigned kRateBits = 48;
constexpr Nanoseconds kLongestNs = Nanoseconds{1} << 56;  // the wire's

// Functions that look whether a message is there, and do not wait for it.
bool is_look(std::uint16_t function_id) {
  const MpiFunction* const function = mpi_function(function_id);
  if (function == nullptr) return false;
  switch (function->role) {
    case MpiRole::kTest:
    case MpiRole::kTestany:
    case MpiRole::kTestall:
    case MpiRole::kTestsome:
    case MpiRole::kIprobe:
    case MpiRole::kImprobe:
      return true;
    default:
      return false;
  }
}

// ... or wait.
bool ends_wait(std::uint16_t function_id) {
  const MpiFunction* const function = mpi_function(function_id);
  if (function == nullptr) return false;
  switch (function->role) {
    case MpiRole::kWait:
    case MpiRole::kWaitany:
    case MpiRole::kWaitall:
    case MpiRole::kWaitsome:
    case MpiRole::kRequestGetStatus:
    case MpiRole::kRecv:
    case MpiRole::kMrecv:
    case MpiRole::kProbe:
    case MpiRole::kMprobe:
      return true;
    default:
      return is_look(function_id);
  }
}

// Equal to 1 %: an event with another number costs a shape of its own in its batch (docs/formats/wire-v1.md).
std::uint64_t rounded(std::uint64_t number) {
  constexpr int kBits = 7;
  const int width = std::bit_width(number);
  const int low = width > kBits ? width - kBits : 0;
  const std::uint64_t half = low > 0 ? std::uint64_t{1} << (low - 1) : 0;
  return (number + half) >> low << low;
}

// SHARE of TICKS; 0: so little that it is noise, as in the capture (docs/capture.md, "Process time").
std::uint64_t worth_an_event(std::uint64_t ticks, double share, Seconds seconds_per_tick) {
  constexpr Seconds kLeastS = 20e-6;
  const double part = static_cast<double>(ticks) * share;
  return part * seconds_per_tick < kLeastS ? 0 : std::min(ticks, static_cast<std::uint64_t>(part));
}

Error bad_record(const ring::Record& record, const std::string& what) {
  return invalid_input("a record of kind " + std::to_string(record.kind) + " with " + what);
}

}  // namespace

Duration RecordConverter::Rounding::take(std::uint64_t ticks, Seconds seconds_per_tick) {
  constexpr std::uint64_t kOneNs = std::uint64_t{1} << kRateBits;
  const auto rate =
      static_cast<std::uint64_t>(std::clamp(seconds_per_tick * 1e9 * static_cast<double>(kOneNs) + 0.5, 0.0, 0x1p63));
  const unsigned __int128 exact = static_cast<unsigned __int128>(ticks) * rate + rest_;
  rest_ = static_cast<std::uint64_t>(exact) & (kOneNs - 1);
  const unsigned __int128 ns = exact >> kRateBits;
  return Duration::of_ns(ns <= kLongestNs ? static_cast<Nanoseconds>(ns) : kLongestNs);
}

Result<void> RecordConverter::convert(const ring::Record& record, std::span<const std::uint64_t> values,
                                      Seconds seconds_per_tick, const RelayEventSink& sink) {
  if (record.kind == ring::kRecordAdjust) {
    const ring::Adjustment adjustment = ring::adjustment_of(record);
    preempted_ticks_ = add_saturating(preempted_ticks_, adjustment.preempted);
    waiting_ticks_ = add_saturating(waiting_ticks_, adjustment.waiting);
    delayed_end_ticks_ = add_saturating(delayed_end_ticks_, adjustment.delayed_end);
    blocked_ticks_ = add_saturating(blocked_ticks_, adjustment.blocked);
    look_sleep_ticks_ = add_saturating(look_sleep_ticks_, adjustment.look_sleep);
    look_sleeps_ += adjustment.look_sleeps;
    const ring::Looks looks = ring::looks_of(values);
    looks_.count = add_saturating(looks_.count, looks.count);
    looks_.between = add_saturating(looks_.between, looks.between);
    looks_.timed = add_saturating(looks_.timed, looks.timed);
    looks_.cpu = add_saturating(looks_.cpu, looks.cpu);
    return {};
  }
  if (exited_) return {};  // MPI_Finalize was reached: nothing after it can be replayed

  Event event;
  event.kind = static_cast<EventKind>(record.kind);
  event.flags = record.flags;
  event.function = record.function;
  event.tag = record.tag;
  event.comm = record.comm;
  event.request = (record.flags & kFlagHasRequest) != 0 ? record.request : 0;
  event.bytes = record.bytes;
  event.values = values;
  if (has_op(event.kind)) {
    const std::uint32_t op = ring::op_code(record);
    if (op >= op_count(event.kind)) return bad_record(record, "an operation that does not exist");
    event.op_code = static_cast<std::uint8_t>(op);
  }
  if (is_collective(event.kind)) {
    event.root = ring::root_of(record);
    if (event.root >= world_size_ || (event.root < 0 && event.root != kRootIsMe && event.root != kRootIsElsewhere)) {
      return bad_record(record, "a root outside the world");
    }
  } else {
    event.peer = record.peer;
    if (record.peer < kAnyRank || record.peer >= world_size_) {
      // Only these name a rank; what the others leave in the field means nothing.
      if (has_world_peer(event.kind)) return bad_record(record, "a peer outside the world");
      event.peer = kAnyRank;
    }
  }
  if (event.kind == EventKind::kCommCreate) {
    if (auto checked = check_definition(record, values); !checked) return checked;
    note_definition(record.comm);
  }
  if (event.kind == EventKind::kProcedure) {
    if (auto taken = take_procedure(record, values, seconds_per_tick, event); !taken) return taken;
  }
  if (event.kind == EventKind::kGap) definitions_known_ = true;  // what is not known now was lost
  if (!is_defined(event.comm)) {
    ++events_without_communicator_;
    event = gap_event(1);
    event.function = record.function;
  }

  const std::uint64_t leave = std::max(record.leave, record.enter);
  const bool is_before_call = event.kind == EventKind::kRegions || event.kind == EventKind::kDevice;
  const std::uint64_t whole_gap = record.enter > last_leave_ticks_ ? record.enter - last_leave_ticks_ : 0;
  const std::uint64_t all_blocked = std::min(blocked_ticks_, whole_gap);
  // The call behind these tells what the looks, and the sleep between them, were.
  const std::uint64_t kept_sleep = is_before_call ? std::min(look_sleep_ticks_, all_blocked) : 0;
  const std::uint64_t gap = whole_gap - kept_sleep;
  const std::uint64_t blocked = all_blocked - kept_sleep;
  const std::uint64_t preempted = std::min(std::exchange(preempted_ticks_, 0), gap - blocked);
  const std::uint64_t waiting = std::min(std::exchange(waiting_ticks_, 0), gap - blocked - preempted);
  const VainLooks looks = is_before_call ? VainLooks{} : take_vain_looks(record.function, waiting);
  std::uint64_t process = gap - blocked - preempted - waiting + looks.between;
  std::uint64_t rest = 0;  // of the gap, for the next record
  if (is_before_call) {
    const Result<std::uint64_t> wall =
        event.kind == EventKind::kRegions ? check_regions(record, values) : check_device_waits(record, values);
    if (!wall) return wall.error();
    rest = process - std::min(*wall, process);
    process -= rest;
    rest += waiting + kept_sleep;
    waiting_ticks_ = waiting;
  }
  const std::uint64_t by_others = closed_ ? 0 : worth_an_event(preempted, others_share_, seconds_per_tick);
  const std::uint64_t delayed_end = closed_ ? 0 : worth_an_event(delayed_end_ticks_, others_share_, seconds_per_tick);
  delayed_end_ticks_ = 0;
  unrecorded_ticks_ += preempted - by_others;
  if (!is_before_call) unrecorded_ticks_ += waiting - looks.cpu - looks.between;
  // What threads spend in calls side by side passes once.
  const std::uint64_t begin = std::max(record.enter, last_leave_ticks_);
  blocked_ticks_ = kept_sleep;
  last_leave_ticks_ = std::max(last_leave_ticks_, leave) - rest;

  const Duration process_s = process_rounding_.take(process, seconds_per_tick);
  const Duration taken = Duration::of_ns(std::min(credit_.ns(), process_s.ns()));
  event.process_s = process_s;
  event.process_s -= taken;
  credit_ -= taken;
  if (event.kind == EventKind::kRegions) set_region_values(ring::regions_of(values.data()), event);
  if (event.kind == EventKind::kDevice) set_device_values(ring::device_waits_of(values.data()), event);
  std::uint64_t call = leave > begin ? leave - begin : 0;
  // How long the window was is known at its end, with what is in none of its events.
  if (event.kind == EventKind::kWindowClose || event.kind == EventKind::kExit)
    call = add_saturating(call, std::exchange(unrecorded_ticks_, 0));
  event.call_s = call_rounding_.take(call, seconds_per_tick);
  if ((by_others | delayed_end) != 0) add_preempted(by_others, delayed_end, seconds_per_tick, sink);
  if (blocked > 0) add_blocked(blocked, event, seconds_per_tick, sink);
  look_sleep_ticks_ = kept_sleep;
  if (kept_sleep == 0) look_sleeps_ = 0;
  if (looks.count > 0) sink(vain_looks_event(looks.count, call_rounding_.take(looks.cpu, seconds_per_tick)));
  exited_ = event.kind == EventKind::kExit;
  if (event.kind == EventKind::kWindowClose) closed_ = true;
  if (event.kind == EventKind::kSkipped && skipped_side(event) == SkippedSide::kEverything) off_ = true;
  if (event.kind == EventKind::kWindowOpen) {
    closed_ = false;
    unrecorded_ticks_ = 0;
    window_ = window_number(event);
  }
  sink(event);
  return {};
}

void RecordConverter::add_preempted(std::uint64_t gap, std::uint64_t delayed_end, Seconds seconds_per_tick,
                                    const RelayEventSink& sink) {
  Event event = event_of_kind(EventKind::kPreempted);
  event.off_s = preempted_rounding_.take(gap, seconds_per_tick);
  const auto delay_ns = static_cast<std::uint64_t>(delayed_rounding_.take(delayed_end, seconds_per_tick).ns());
  set_delayed_end(event, static_cast<Nanoseconds>(rounded(delay_ns)));
  sink(event);
}

void RecordConverter::add_blocked(std::uint64_t blocked, const Event& event, Seconds seconds_per_tick,
                                  const RelayEventSink& sink) {
  const bool looks = look_sleeps_ > 0 && is_look(event.function);
  const std::uint64_t look_sleep = looks ? std::min(look_sleep_ticks_, blocked) : 0;
  Event off = event_of_kind(EventKind::kBlocked);
  if (look_sleep < blocked) {
    off.off_s = off_rounding_.take(blocked - look_sleep, seconds_per_tick);
    sink(off);
  }
  if (look_sleep == 0) return;
  off.off_s = off_rounding_.take(look_sleep, seconds_per_tick);
  const std::uint64_t period_ns = static_cast<std::uint64_t>(off.off_s.ns()) / look_sleeps_;
  set_look_period(off, static_cast<Nanoseconds>(rounded(period_ns)));
  sink(off);
}

// Who looks, finds nothing, and then sends, or ends its round of looks in another way, did not wait.
RecordConverter::VainLooks RecordConverter::take_vain_looks(std::uint16_t function, std::uint64_t waiting) {
  const ring::Looks looks = std::exchange(looks_, {});
  if (looks.count == 0 || ends_wait(function)) return {};
  timed_vain_looks_ = add_saturating(timed_vain_looks_, looks.timed);
  timed_vain_cpu_ = add_saturating(timed_vain_cpu_, looks.cpu);
  VainLooks vain;
  vain.count = rounded(std::min(looks.count, static_cast<std::uint64_t>(kLongestNs)));
  if (timed_vain_looks_ > 0) {
    const unsigned __int128 cpu = static_cast<unsigned __int128>(looks.count) * timed_vain_cpu_ / timed_vain_looks_;
    vain.cpu = cpu < waiting ? static_cast<std::uint64_t>(cpu) : waiting;
  }
  vain.between = std::min(looks.between, waiting - vain.cpu);
  return vain;
}

Result<void> RecordConverter::check_definition(const ring::Record& record,
                                               std::span<const std::uint64_t> values) const {
  if (record.comm == 0) return bad_record(record, "the number of MPI_COMM_WORLD");
  if (values.size() < 3 || values[1] > values.size() - 2) return bad_record(record, "a broken member list");
  const auto world = static_cast<std::uint64_t>(world_size_);
  if (std::any_of(values.begin() + 2, values.end(), [world](std::uint64_t rank) { return rank >= world; })) {
    return bad_record(record, "a member outside the world");
  }
  return {};
}

void RecordConverter::name_procedure(std::uint32_t id) {
  if (id >= kMaxProcedures) return;
  if (named_procedures_.size() <= id) named_procedures_.resize(id + std::size_t{1});
  named_procedures_[id] = true;
}

// Ticks become nanoseconds; what lbfd would refuse the batch for is refused here.
Result<void> RecordConverter::take_procedure(const ring::Record& record, std::span<const std::uint64_t> values,
                                             Seconds seconds_per_tick, Event& event) {
  if (values.size() != kProcedureValues) return bad_record(record, "other values than a procedure's");
  const auto nanoseconds = [&](std::uint64_t ticks) { return static_cast<double>(ticks) * seconds_per_tick * 1e9; };
  if (values[2] > values[1] || !(nanoseconds(values[1]) < static_cast<double>(kLongestNs)))
    return bad_record(record, "a procedure's time that cannot be");
  event.peer = kAnyRank;
  event.tag = kAnyTag;
  const bool named = all_procedures_named_ ? values[0] < kMaxProcedures
                                           : values[0] < named_procedures_.size() && named_procedures_[values[0]];
  if (!named) {
    event.kind = EventKind::kCompute;
    event.values = {};
    return {};
  }
  procedure_values_ = {values[0], static_cast<std::uint64_t>(nanoseconds(values[1])),
                       static_cast<std::uint64_t>(nanoseconds(values[2])), values[3]};
  event.values = procedure_values_;
  return {};
}

Result<std::uint64_t> RecordConverter::check_regions(const ring::Record& record,
                                                     std::span<const std::uint64_t> values) {
  if (values.size() != ring::kRegionWords) return bad_record(record, "other values than those of regions");
  const ring::Regions regions = ring::regions_of(values.data());
  if (regions.regions == 0 || regions.threads == 0 || regions.critical > regions.work)
    return bad_record(record, "regions that cannot be");
  return regions.wall;
}

Result<std::uint64_t> RecordConverter::check_device_waits(const ring::Record& record,
                                                          std::span<const std::uint64_t> values) {
  if (values.size() != ring::kDeviceWords) return bad_record(record, "other values than those of waits for a device");
  const ring::DeviceWaits waits = ring::device_waits_of(values.data());
  if (waits.calls == 0 || waits.busy > waits.wall) return bad_record(record, "waits for a device that cannot be");
  return waits.wall;
}

// What keep-alives gave in advance, and what did not fit into the gap, is not known to be a part of it.
bool RecordConverter::begin_part(Event& event) {
  has_parts_ = true;
  event.peer = kAnyRank;
  event.tag = kAnyTag;
  event.values = {};
  if (event.process_s.ns() != 0) return true;
  event.kind = EventKind::kCompute;
  return false;
}

void RecordConverter::set_region_values(const ring::Regions& regions, Event& event) {
  if (!begin_part(event)) return;
  const double share = static_cast<double>(event.process_s.ns()) / static_cast<double>(regions.wall);
  const auto nanoseconds = [&](std::uint64_t ticks) {
    return static_cast<std::uint64_t>(
        std::min(static_cast<double>(ticks) * share, static_cast<double>(kLongestNs - 1)));
  };
  region_values_ = {regions.regions, std::min(regions.threads, kMostRegionThreads), nanoseconds(regions.work),
                    nanoseconds(regions.critical), nanoseconds(regions.fork_join)};
  event.values = region_values_;
}

void RecordConverter::set_device_values(const ring::DeviceWaits& waits, Event& event) {
  if (!begin_part(event)) return;
  const double share = static_cast<double>(waits.busy) / static_cast<double>(waits.wall);
  const auto wall_ns = static_cast<std::uint64_t>(event.process_s.ns());
  const auto busy_ns = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(wall_ns)));
  device_values_ = {waits.calls, std::min(busy_ns, wall_ns)};
  event.values = device_values_;
}

void RecordConverter::note_definition(std::uint32_t comm) {
  if (comm >= kMaxTraceCommunicators) return;  // more of one rank than the whole trace may have
  if (defined_.size() <= comm) defined_.resize(comm + std::size_t{1});
  defined_[comm] = true;
}

void RecordConverter::define_ahead(const ring::Record& record, std::span<const std::uint64_t> values,
                                   const RelayEventSink& sink) {
  if (exited_ || record.kind != static_cast<std::uint8_t>(EventKind::kCommCreate)) return;
  if (!check_definition(record, values) || (record.comm < defined_.size() && defined_[record.comm])) return;
  note_definition(record.comm);
  if (!is_defined(record.comm)) return;
  Event event;
  event.kind = EventKind::kCommCreate;
  event.function = record.function;
  event.comm = record.comm;
  event.values = values;
  sink(event);
}

void RecordConverter::keep_alive(Seconds process_s, const RelayEventSink& sink) {
  if (exited_ || has_parts_ || !(process_s > 0)) return;
  Event event = event_of_kind(EventKind::kKeepAlive);
  event.process_s = process_s;
  credit_ += event.process_s;
  sink(event);
}

void RecordConverter::report_unrecorded_time(Seconds seconds_per_tick, const RelayEventSink& sink) {
  if (exited_ || closed_ || unrecorded_ticks_ == 0) return;
  Event event;
  event.kind = EventKind::kKeepAlive;
  event.call_s = call_rounding_.take(std::exchange(unrecorded_ticks_, 0), seconds_per_tick);
  sink(event);
}

void RecordConverter::close(std::uint64_t end_ticks, Seconds seconds_per_tick, const RelayEventSink& sink) {
  if (exited_) return;
  exited_ = true;
  if (closed_) {
    if (!off_) sink(skipped_event(SkippedSide::kEverything, 1));
    Event open = window_open_event(window_);
    const std::uint64_t ticks = end_ticks > last_leave_ticks_ ? end_ticks - last_leave_ticks_ : 0;
    open.call_s = call_rounding_.take(ticks, seconds_per_tick);
    sink(open);
  }
  Event event;
  event.kind = EventKind::kExit;
  if (!closed_) event.call_s = call_rounding_.take(unrecorded_ticks_, seconds_per_tick);
  sink(event);
}

}  // namespace lbf::relay
