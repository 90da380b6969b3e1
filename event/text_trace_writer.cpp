// The writer of text traces (event/text_trace.h), the reader's inverse. Implements
// docs/formats/text-trace-v1.md.
#include <algorithm>
#include <array>
#include <charconv>
#include <ostream>
#include <utility>

#include "event/collective_op.h"
#include "event/text_trace.h"
#include "event/text_trace_format.h"

namespace lbf {
namespace {

using text_trace::kMaxBytes;
using text_trace::kMaxCommGap;
using text_trace::kMaxTimeS;
using text_trace::kOneSidedNames;
using text_trace::kTextOps;
using text_trace::TextOp;

std::string_view text_op(CollectiveOp op) {
  for (const TextOp& known : kTextOps) {
    if (known.op == op) return known.name;
  }
  return {};
}

void append_number(std::string& line, std::uint64_t value) {
  std::array<char, 24> digits;
  line.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

// The shortest decimal that reads back to the same double.
void append_seconds(std::string& line, Seconds value) {
  std::array<char, 400> digits;  // 1e9 .. 5e-324 without an exponent
  line.append(digits.data(),
              std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr);
}

constexpr const char* kBadTime = "a time is negative, not finite or more than 1e9 seconds";

bool writable_seconds(Seconds value) {
  return value >= 0 && value <= kMaxTimeS;
}

}  // namespace

TextTraceWriter::TextTraceWriter(std::ostream& out, Rank ranks, std::vector<std::string> procedures,
                                 std::string_view library, const std::vector<std::uint32_t>& node_of_rank)
    : out_(out), ranks_(ranks), procedures_(std::move(procedures)) {
  out_ << "lbf-trace 1\nranks " << ranks << '\n';
  if (!library.empty()) {
    std::string text(library.substr(0, text_trace::kMaxLibraryBytes));
    for (char& c : text) {
      if (c < ' ' || c > '~' || c == '"' || c == '#') c = '?';
    }
    out_ << "library \"" << text << "\"\n";
  }
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    out_ << (rank == 0 ? "nodes " : ",") << node_of_rank[rank];
  }
  if (!node_of_rank.empty()) out_ << '\n';
}

Error TextTraceWriter::fail(Rank rank, const std::string& what) {
  return invalid_input("text trace: event of rank " + std::to_string(rank) + ": " + what);
}

Result<void> TextTraceWriter::write_line() {
  line_ += '\n';
  out_ << line_;
  if (!out_) return Error{ErrorCode::kIo, "text trace: cannot be written"};
  return {};
}

Result<void> TextTraceWriter::add(Rank rank, const Event& event) {
  if (rank < 0 || rank >= ranks_) return fail(rank, "the rank is out of range");
  if (!writable_seconds(event.process_s) || !writable_seconds(event.off_s)) return fail(rank, kBadTime);
  if (event.bytes > kMaxBytes) return fail(rank, "the message is larger than " + std::to_string(kMaxBytes) + " bytes");
  if (event.kind == EventKind::kCommCreate) return add_communicator(rank, event);
  if (event.comm != 0) {
    if (event.comm >= comm_members_.size() || comm_members_[event.comm].empty()) {
      return fail(rank, "communicator " + std::to_string(event.comm) + " is not defined");
    }
    if (!comm_ranks_[event.comm].contains(rank)) return fail(rank, "it is not a member of its communicator");
  }
  line_.clear();
  if (Result<void> done = append_event(rank, event); !done) return done;
  return line_.empty() ? Result<void>() : write_line();
}

Result<void> TextTraceWriter::append_event(Rank rank, const Event& event) {
  switch (event.kind) {
    case EventKind::kCompute:
      start_line(rank, "compute", event.process_s);
      if (vain_looks(event) > 0) {
        line_ += " looks=" + std::to_string(vain_looks(event)) + " time=";
        append_seconds(line_, event.call_s);
      }
      return {};
    case EventKind::kKeepAlive:
    case EventKind::kPhase:
    case EventKind::kCommFree:
      if (event.process_s.ns() != 0) start_line(rank, "compute", event.process_s);
      return {};
    case EventKind::kSend:
    case EventKind::kIsend:
      return append_send(rank, event);
    case EventKind::kStartRecv:
    case EventKind::kRecv:
    case EventKind::kEndRecv:
      return append_receive(rank, event);
    case EventKind::kWait:
      return append_wait(rank, event);
    case EventKind::kCollective:
      return append_collective(rank, event);
    case EventKind::kBlocked:
      if (Result<void> done = append_blocked(rank, event.process_s, event.off_s); !done) return done;
      if (look_period_ns(event) > 0) {
        line_ += " every=";
        append_seconds(line_, seconds_from_ns(look_period_ns(event)));
      }
      return {};
    case EventKind::kIo:
      return append_blocked(rank, event.process_s, event.call_s);
    case EventKind::kPreempted:
      start_line(rank, "preempted", event.process_s);
      line_ += " off=";
      append_seconds(line_, event.off_s);
      if (delay_in_call_ns(event) > 0) {
        line_ += " delay=";
        append_seconds(line_, seconds_from_ns(delay_in_call_ns(event)));
      }
      return {};
    case EventKind::kOneSided:
    case EventKind::kOneSidedSync:
      return append_one_sided(rank, event);
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kProcedure:
      return append_procedure(rank, event);
    case EventKind::kRegions:
      return append_regions(rank, event);
    case EventKind::kDevice:
      if (event.values.size() < kDeviceValues) return fail(rank, "waits for a device without their numbers");
      start_line(rank, "device", event.process_s);
      append_key(" calls=", event.values[0]);
      line_ += " busy=";
      append_seconds(line_, seconds_from_ns(static_cast<Nanoseconds>(event.values[1])));
      return {};
    case EventKind::kExit:
      start_line(rank, "exit", event.process_s);
      return {};
    default:
      return fail(rank, "text trace version 1 has no events of kind " + std::to_string(static_cast<int>(event.kind)) +
                            " (docs/formats/text-trace-v1.md)");
  }
}

// --- communicators

Result<void> TextTraceWriter::add_communicator(Rank rank, const Event& event) {
  if (event.comm == 0 || event.comm > comm_members_.size() + kMaxCommGap) return fail(rank, "bad communicator number");
  if (event.values.size() < 3) return fail(rank, "a communicator without members");
  if (event.values[1] != 0) return fail(rank, "version 1 has no intercommunicators");
  if (comm_members_.size() <= event.comm) {
    comm_members_.resize(event.comm + 1);
    comm_ranks_.resize(event.comm + 1);
  }
  auto& members = comm_members_[event.comm];
  const auto given = event.values.subspan(2);
  if (!members.empty()) {  // another member's report of the same communicator
    if (!std::equal(given.begin(), given.end(), members.begin(), members.end(),
                    [](std::uint64_t a, Rank b) { return a == static_cast<std::uint64_t>(b); })) {
      return fail(rank, "communicator " + std::to_string(event.comm) + " was written with other members");
    }
    return {};
  }
  line_ = "comm ";
  append_number(line_, event.comm);
  char separator = ' ';
  std::vector<Rank> written;
  std::unordered_map<Rank, Rank> rank_in_comm;
  for (const std::uint64_t member : given) {
    if (member >= static_cast<std::uint64_t>(ranks_)) return fail(rank, "a member is out of range");
    const auto world_rank = static_cast<Rank>(member);
    if (!rank_in_comm.emplace(world_rank, static_cast<Rank>(written.size())).second) {
      return fail(rank, "a member is in the communicator twice");
    }
    written.push_back(world_rank);
    line_ += std::exchange(separator, ',');
    append_number(line_, member);
  }
  members = std::move(written);
  comm_ranks_[event.comm] = std::move(rank_in_comm);
  return write_line();
}

Rank TextTraceWriter::peer_in_comm(const Event& event) const {
  if (event.peer < 0 || event.peer >= ranks_) return kAnyRank;
  if (event.comm == 0) return event.peer;
  const auto found = comm_ranks_[event.comm].find(event.peer);
  return found != comm_ranks_[event.comm].end() ? found->second : kAnyRank;
}

// --- parts of a line

void TextTraceWriter::start_line(Rank rank, std::string_view kind, Seconds process_s) {
  append_number(line_, static_cast<std::uint64_t>(rank));
  line_ += ' ';
  line_ += kind;
  line_ += ' ';
  append_seconds(line_, process_s);
}

void TextTraceWriter::append_key(std::string_view key, std::uint64_t value) {
  line_ += key;
  append_number(line_, value);
}

void TextTraceWriter::append_comm(const Event& event) {
  if (event.comm != 0) append_key(" comm=", event.comm);
}

void TextTraceWriter::append_request(const Event& event) {
  if ((event.flags & kFlagHasRequest) != 0) append_key(" req=", event.request);
}

Result<void> TextTraceWriter::append_peer(Rank rank, std::string_view key, const Event& event) {
  const Rank peer = peer_in_comm(event);
  if (peer < 0) return fail(rank, "its peer " + std::to_string(event.peer) + " is not in its communicator");
  append_key(key, static_cast<std::uint64_t>(peer));
  return {};
}

Result<void> TextTraceWriter::append_tag(Rank rank, const Event& event) {
  if (event.tag < 0) return fail(rank, "its tag " + std::to_string(event.tag) + " is negative");
  append_key(" tag=", static_cast<std::uint64_t>(event.tag));
  return {};
}

// --- kinds

Result<void> TextTraceWriter::append_send(Rank rank, const Event& event) {
  const bool blocking = event.kind == EventKind::kSend;
  start_line(rank, blocking ? "send" : "isend", event.process_s);
  if (Result<void> done = append_peer(rank, " to=", event); !done) return done;
  if (Result<void> done = append_tag(rank, event); !done) return done;
  append_key(" bytes=", event.bytes);
  if (!blocking) {
    if ((event.flags & kFlagHasRequest) == 0) return fail(rank, "a non-blocking send without a request");
    append_request(event);
  }
  append_comm(event);
  if ((event.flags & kFlagSync) != 0) line_ += " sync=1";
  if ((event.flags & kFlagBuffered) != 0) line_ += " buffered=1";
  return {};
}

Result<void> TextTraceWriter::append_receive(Rank rank, const Event& event) {
  if (event.kind == EventKind::kEndRecv) {
    if (Result<void> done = append_end_recv(rank, event, event.process_s); !done) return done;
    append_request(event);
    return {};
  }
  if (Result<void> done = append_start_recv(rank, event); !done) return done;
  if (event.kind == EventKind::kStartRecv) {
    append_request(event);
    return {};
  }
  line_ += '\n';
  return append_end_recv(rank, event, 0);
}

Result<void> TextTraceWriter::append_start_recv(Rank rank, const Event& event) {
  start_line(rank, "startRecv", event.process_s);
  if ((event.flags & kFlagWildcardSource) != 0 || event.peer == kAnyRank) {
    line_ += " from=any";
  } else if (Result<void> done = append_peer(rank, " from=", event); !done) {
    return done;
  }
  if ((event.flags & kFlagWildcardTag) != 0 || event.tag == kAnyTag) {
    line_ += " tag=any";
  } else if (Result<void> done = append_tag(rank, event); !done) {
    return done;
  }
  append_comm(event);
  return {};
}

Result<void> TextTraceWriter::append_end_recv(Rank rank, const Event& event, Seconds process_s) {
  start_line(rank, "endRecv", process_s);
  if (Result<void> done = append_peer(rank, " from=", event); !done) return done;
  if (Result<void> done = append_tag(rank, event); !done) return done;
  append_key(" bytes=", event.bytes);
  append_comm(event);
  return {};
}

Result<void> TextTraceWriter::append_wait(Rank rank, const Event& event) {
  start_line(rank, "wait", event.process_s);
  if (event.values.empty()) {
    if ((event.flags & kFlagHasRequest) == 0) return fail(rank, "a wait without a request");
    append_request(event);
    return {};
  }
  std::string_view separator = " req=";
  for (const std::uint64_t request : event.values) append_key(std::exchange(separator, ","), request);
  return {};
}

Result<void> TextTraceWriter::append_collective(Rank rank, const Event& event) {
  const CollectiveOp op = collective_op(event);
  const bool creates = op == CollectiveOp::kCommCreate;  // written as the allreduce that it stands for
  const std::string_view name = text_op(creates ? CollectiveOp::kAllreduce : op);
  if (name.empty()) {
    return fail(rank, "version 1 has no collective operation " + std::string(name_of(op)));
  }
  const Rank size = event.comm != 0 ? static_cast<Rank>(comm_members_[event.comm].size()) : ranks_;
  if (event.root < 0 || event.root >= size) return fail(rank, "its root is not in its communicator");
  start_line(rank, "coll", event.process_s);
  line_ += " op=";
  line_ += name;
  const Bytes bytes = creates ? 8 : event.bytes;
  if (bytes != 0) append_key(" bytes=", bytes);
  if (event.root != 0) append_key(" root=", static_cast<std::uint64_t>(event.root));
  append_comm(event);
  return {};
}

Result<void> TextTraceWriter::append_blocked(Rank rank, Seconds process_s, Seconds off_s) {
  if (!writable_seconds(off_s)) return fail(rank, kBadTime);
  start_line(rank, "blocked", process_s);
  line_ += " off=";
  append_seconds(line_, off_s);
  return {};
}

Result<void> TextTraceWriter::append_one_sided(Rank rank, const Event& event) {
  if (event.kind == EventKind::kOneSidedSync) {
    start_line(rank, "oneSidedSync", event.process_s);
    if (event.peer != kAnyRank) {
      if (Result<void> done = append_peer(rank, " to=", event); !done) return done;
    }
  } else {
    start_line(rank, "oneSided", event.process_s);
    const auto op = static_cast<std::size_t>(one_sided_op(event));
    if (op >= kOneSidedNames.size()) return fail(rank, "an unknown one-sided operation");
    line_ += " op=";
    line_ += kOneSidedNames[op].name;
    if (Result<void> done = append_peer(rank, " to=", event); !done) return done;
    append_key(" bytes=", event.bytes);
  }
  append_comm(event);
  append_request(event);
  return {};
}

Result<void> TextTraceWriter::append_regions(Rank rank, const Event& event) {
  if (event.values.size() < kRegionValues) return fail(rank, "parallel regions without their numbers");
  start_line(rank, "regions", event.process_s);
  append_key(" count=", event.values[0]);
  append_key(" threads=", event.values[1]);
  for (const auto& [name, at] : {std::pair{" work=", 2}, std::pair{" critical=", 3}, std::pair{" fork=", 4}}) {
    line_ += name;
    append_seconds(line_, seconds_from_ns(static_cast<Nanoseconds>(event.values[static_cast<std::size_t>(at)])));
  }
  return {};
}

Result<void> TextTraceWriter::append_procedure(Rank rank, const Event& event) {
  const bool has_time = event.kind == EventKind::kProcedure;
  if (event.values.size() < (has_time ? kProcedureValues : 1)) {
    return fail(rank, "a procedure event without a procedure");
  }
  const bool enters = event.kind == EventKind::kEnter;
  start_line(rank, has_time ? "procedure" : enters ? "enter" : "leave", event.process_s);
  const std::uint64_t id = event.values[0];
  line_ += " proc=";
  if (id < procedures_.size()) {
    for (const char c : procedures_[static_cast<std::size_t>(id)]) line_ += c == ' ' || c == '#' ? '_' : c;
  } else {
    append_key("procedure", id);
  }
  if (!has_time) return {};
  line_ += " time=";
  append_seconds(line_, seconds_from_ns(static_cast<Nanoseconds>(event.values[1])));
  line_ += " self=";
  append_seconds(line_, seconds_from_ns(static_cast<Nanoseconds>(event.values[2])));
  append_key(" calls=", event.values[3]);
  return {};
}

}  // namespace lbf
