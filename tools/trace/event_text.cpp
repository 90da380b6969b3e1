#include "tools/trace/event_text.h"

#include <array>
#include <charconv>
#include <utility>

#include "event/collective_op.h"
#include "event/mpi_function_table.h"

namespace lbf::tools {
namespace {

constexpr std::array<std::string_view, kEventKindCount> kKinds{
    "compute",  "send",       "isend",       "startRecv",  "endRecv",   "recv",    "wait",      "probe",
    "coll",     "icoll",      "blocked",     "unmodelled", "enter",     "leave",   "alive",     "commCreate",
    "commFree", "cancel",     "requestFree", "phase",      "gap",       "exit",    "oneSided",  "oneSidedSync",
    "io",       "windowOpen", "windowClose", "skipped",    "procedure", "regions", "preempted", "device"};
constexpr std::array<std::string_view, kOneSidedOpCount> kOneSidedOps{
    "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap", "lock"};
void append(std::string& line, std::string_view key, std::int64_t value) {
  line += ' ';
  line += key;
  line += '=';
  line += std::to_string(value);
}

void append_seconds(std::string& line, Seconds value) {
  std::array<char, 32> digits;
  line.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

}  // namespace

std::string_view kind_name(EventKind kind) {
  const auto number = static_cast<std::size_t>(kind);
  return number < kKinds.size() ? kKinds[number] : "unknown";
}

std::string_view one_sided_name(OneSidedOp op) {
  const auto number = static_cast<std::size_t>(op);
  return number < kOneSidedOps.size() ? kOneSidedOps[number] : "unknown";
}

std::string_view call_name(const Event& event) {
  if (const MpiFunction* function = mpi_function(event.function)) return function->name;
  if (event.kind == EventKind::kCollective || event.kind == EventKind::kIcollective) {
    return name_of(collective_op(event));
  }
  return kind_name(event.kind);
}

std::string event_line(Rank rank, const Event& event) {
  std::string line = std::to_string(rank);
  line += ' ';
  line += kind_name(event.kind);
  line += ' ';
  append_seconds(line, event.process_s);
  const bool is_collective = event.kind == EventKind::kCollective || event.kind == EventKind::kIcollective;
  const auto has = [&event](EventFlags flag) { return (event.flags & flag) != 0; };
  const auto endpoint = [&](std::string_view key, bool bytes) {
    line += ' ';
    line += key;
    line += '=';
    line += event.peer == kAnyRank ? std::string("any") : std::to_string(event.peer);
    line += event.tag == kAnyTag ? std::string(" tag=any") : " tag=" + std::to_string(event.tag);
    if (has(kFlagWildcardSource)) line += " anySource=1";
    if (has(kFlagWildcardTag)) line += " anyTag=1";
    if (bytes) line += " bytes=" + std::to_string(event.bytes);
  };
  switch (event.kind) {
    case EventKind::kSend:
    case EventKind::kIsend:
      endpoint("to", true);
      break;
    case EventKind::kStartRecv:
    case EventKind::kProbe:
      endpoint("from", false);
      break;
    case EventKind::kEndRecv:
    case EventKind::kRecv:
      endpoint("from", true);
      break;
    case EventKind::kCollective:
    case EventKind::kIcollective:
      line += " op=";
      line += name_of(collective_op(event));
      line += " bytes=" + std::to_string(event.bytes);
      append(line, "root", event.root);
      if (has(kFlagInPlace)) line += " inPlace=1";
      break;
    case EventKind::kOneSided:
      line += " op=";
      line += one_sided_name(one_sided_op(event));
      append(line, "to", event.peer);
      line += " bytes=" + std::to_string(event.bytes);
      break;
    case EventKind::kOneSidedSync:
      line += event.peer == kAnyRank ? std::string(" to=all") : " to=" + std::to_string(event.peer);
      break;
    case EventKind::kIo:
      if (io_direction(event) == IoDirection::kRead) line += " read=" + std::to_string(event.bytes);
      if (io_direction(event) == IoDirection::kWrite) line += " written=" + std::to_string(event.bytes);
      break;
    case EventKind::kCompute:
      if (vain_looks(event) > 0) line += " looks=" + std::to_string(vain_looks(event));
      break;
    case EventKind::kBlocked:
      line += " off=";
      append_seconds(line, event.off_s);
      if (look_period_ns(event) > 0) {
        line += " every=";
        append_seconds(line, seconds_from_ns(look_period_ns(event)));
      }
      break;
    case EventKind::kPreempted:
      line += " off=";
      append_seconds(line, event.off_s);
      if (delay_in_call_ns(event) > 0) {
        line += " delay=";
        append_seconds(line, seconds_from_ns(delay_in_call_ns(event)));
      }
      break;
    case EventKind::kPhase:
      append(line, "level", event.tag);
      break;
    case EventKind::kGap:
      line += " lost=" + std::to_string(lost_events(event));
      break;
    default:
      break;
  }
  if (has(kFlagHasRequest)) append(line, "req", event.request);
  if (event.comm != 0 || event.kind == EventKind::kCommCreate) append(line, "comm", event.comm);
  if (has(kFlagSync)) line += " sync=1";
  if (has(kFlagBuffered)) line += " buffered=1";
  if (!event.values.empty()) {
    line += event.kind == EventKind::kWait                                       ? " reqs="
            : event.kind == EventKind::kEnter || event.kind == EventKind::kLeave ? " proc="
            : event.kind == EventKind::kProcedure                                ? " proc,time_ns,self_ns,calls="
            : event.kind == EventKind::kRegions    ? " count,threads,work_ns,critical_ns,fork_ns="
            : event.kind == EventKind::kDevice     ? " calls,busy_ns="
            : event.kind == EventKind::kCommCreate ? " uid,L,members="
            : is_collective                        ? " counts="
                                                   : " values=";
    char separator = '\0';
    for (const std::uint64_t value : event.values) {
      if (std::exchange(separator, ',') != '\0') line += ',';
      line += std::to_string(value);
    }
  }
  if (event.call_s > 0) {
    line += " call=";
    append_seconds(line, event.call_s);
  }
  if (event.function != 0) {
    line += ' ';
    line += mpi_function_name(event.function);
  }
  return line;
}

}  // namespace lbf::tools
