// The writer of text traces (event/text_trace.h), the reader's inverse. Implements
// docs/formats/text-trace-v1.md.
#include <algorithm>
#include <array>
#include <charconv>
#include <ostream>
#include <utility>

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
  line.append(
      digits.data(),
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr);
}

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

Result<void> TextTraceWriter::add(Rank rank, const Event& event) {
  const auto fail = [&](const std::string& what) {
    return invalid_input("text trace: event of rank " + std::to_string(rank) + ": " + what);
  };
  if (rank < 0 || rank >= ranks_) return fail("the rank is out of range");
  if (!writable_seconds(event.process_s) || !writable_seconds(event.off_s)) {
    return fail("a time is negative, not finite or more than 1e9 seconds");
  }
  if (event.bytes > kMaxBytes)
    return fail("the message is larger than " + std::to_string(kMaxBytes) + " bytes");

  if (event.kind == EventKind::kCommCreate) {
    if (event.comm == 0 || event.comm > comm_members_.size() + kMaxCommGap)
      return fail("bad communicator number");
    if (event.values.size() < 3) return fail("a communicator without members");
    if (event.values[1] != 0) return fail("version 1 has no intercommunicators");
    if (comm_members_.size() <= event.comm) {
      comm_members_.resize(event.comm + 1);
      comm_ranks_.resize(event.comm + 1);
    }
    auto& members = comm_members_[event.comm];
    const auto given = event.values.subspan(2);
    if (!members.empty()) {  // another member's report of the same communicator
      if (!std::equal(given.begin(), given.end(), members.begin(), members.end(),
                      [](std::uint64_t a, Rank b) { return a == static_cast<std::uint64_t>(b); })) {
        return fail("communicator " + std::to_string(event.comm) + " was written with other members");
      }
      return {};
    }
    line_ = "comm ";
    append_number(line_, event.comm);
    char separator = ' ';
    std::vector<Rank> written;
    std::unordered_map<Rank, Rank> rank_in_comm;
    for (const std::uint64_t member : given) {
      if (member >= static_cast<std::uint64_t>(ranks_)) return fail("a member is out of range");
      const auto world_rank = static_cast<Rank>(member);
      if (!rank_in_comm.emplace(world_rank, static_cast<Rank>(written.size())).second) {
        return fail("a member is in the communicator twice");
      }
      written.push_back(world_rank);
      line_ += std::exchange(separator, ',');
      append_number(line_, member);
    }
    line_ += '\n';
    out_ << line_;
    members = std::move(written);
    comm_ranks_[event.comm] = std::move(rank_in_comm);
    if (!out_) return Error{ErrorCode::kIo, "text trace: cannot be written"};
    return {};
  }

  const std::unordered_map<Rank, Rank>* rank_in_comm = nullptr;
  if (event.comm != 0) {
    if (event.comm >= comm_members_.size() || comm_members_[event.comm].empty()) {
      return fail("communicator " + std::to_string(event.comm) + " is not defined");
    }
    rank_in_comm = &comm_ranks_[event.comm];
    if (rank_in_comm->find(rank) == rank_in_comm->end())
      return fail("it is not a member of its communicator");
  }
  const auto start_line = [&](std::string_view kind, Seconds process_s) {
    append_number(line_, static_cast<std::uint64_t>(rank));
    line_ += ' ';
    line_ += kind;
    line_ += ' ';
    append_seconds(line_, process_s);
  };
  const auto append_key = [&](std::string_view key, std::uint64_t value) {
    line_ += key;
    append_number(line_, value);
  };
  const auto append_comm = [&] {
    if (event.comm != 0) append_key(" comm=", event.comm);
  };
  // The peer as a rank in the communicator; -1: it is none of its members.
  const auto peer_in_comm = [&]() -> Rank {
    if (event.peer < 0 || event.peer >= ranks_) return -1;
    if (rank_in_comm == nullptr) return event.peer;
    const auto found = rank_in_comm->find(event.peer);
    return found != rank_in_comm->end() ? found->second : -1;
  };
  const bool has_request = (event.flags & kFlagHasRequest) != 0;
  const auto peer_and_tag = [&](std::string_view peer_key, bool wildcards) -> Result<void> {
    line_ += peer_key;
    if (wildcards && ((event.flags & kFlagWildcardSource) != 0 || event.peer == kAnyRank)) {
      line_ += "any";
    } else {
      const Rank peer = peer_in_comm();
      if (peer < 0) return fail("its peer " + std::to_string(event.peer) + " is not in its communicator");
      append_number(line_, static_cast<std::uint64_t>(peer));
    }
    if (wildcards && ((event.flags & kFlagWildcardTag) != 0 || event.tag == kAnyTag)) {
      line_ += " tag=any";
    } else {
      if (event.tag < 0) return fail("its tag " + std::to_string(event.tag) + " is negative");
      append_key(" tag=", static_cast<std::uint64_t>(event.tag));
    }
    return {};
  };

  line_.clear();
  switch (event.kind) {
    case EventKind::kCompute:
    case EventKind::kKeepAlive:
    case EventKind::kPhase:
    case EventKind::kCommFree:
      if (event.kind != EventKind::kCompute && event.process_s == 0) return {};
      start_line("compute", event.process_s);
      break;
    case EventKind::kSend:
    case EventKind::kIsend:
      start_line(event.kind == EventKind::kSend ? "send" : "isend", event.process_s);
      if (Result<void> done = peer_and_tag(" to=", false); !done) return done;
      append_key(" bytes=", event.bytes);
      if (event.kind == EventKind::kIsend) {
        if (!has_request) return fail("a non-blocking send without a request");
        append_key(" req=", event.request);
      }
      append_comm();
      if ((event.flags & kFlagSync) != 0) line_ += " sync=1";
      if ((event.flags & kFlagBuffered) != 0) line_ += " buffered=1";
      break;
    case EventKind::kStartRecv:
      start_line("startRecv", event.process_s);
      if (Result<void> done = peer_and_tag(" from=", true); !done) return done;
      append_comm();
      if (has_request) append_key(" req=", event.request);
      break;
    case EventKind::kRecv:
      start_line("startRecv", event.process_s);
      if (Result<void> done = peer_and_tag(" from=", true); !done) return done;
      append_comm();
      line_ += '\n';
      start_line("endRecv", 0);
      if (Result<void> done = peer_and_tag(" from=", false); !done) return done;
      append_key(" bytes=", event.bytes);
      append_comm();
      break;
    case EventKind::kEndRecv:
      start_line("endRecv", event.process_s);
      if (Result<void> done = peer_and_tag(" from=", false); !done) return done;
      append_key(" bytes=", event.bytes);
      append_comm();
      if (has_request) append_key(" req=", event.request);
      break;
    case EventKind::kWait: {
      start_line("wait", event.process_s);
      if (event.values.empty()) {
        if (!has_request) return fail("a wait without a request");
        append_key(" req=", event.request);
        break;
      }
      std::string_view separator = " req=";
      for (const std::uint64_t request : event.values) {
        append_key(std::exchange(separator, ","), request);
      }
      break;
    }
    case EventKind::kCollective: {
      const CollectiveOp op = collective_op(event) == CollectiveOp::kCommCreate ? CollectiveOp::kAllreduce : collective_op(event);
      const std::string_view name = text_op(op);
      if (name.empty()) {
        return fail("version 1 has no collective operation " + std::to_string(static_cast<int>(event.op_code)));
      }
      const Rank size = event.comm != 0 ? static_cast<Rank>(comm_members_[event.comm].size()) : ranks_;
      if (event.root < 0 || event.root >= size) return fail("its root is not in its communicator");
      start_line("coll", event.process_s);
      line_ += " op=";
      line_ += name;
      const Bytes bytes = collective_op(event) == CollectiveOp::kCommCreate ? 8 : event.bytes;
      if (bytes != 0) append_key(" bytes=", bytes);
      if (event.root != 0) append_key(" root=", static_cast<std::uint64_t>(event.root));
      append_comm();
      break;
    }
    case EventKind::kBlocked:
    case EventKind::kIo: {
      const Duration off_s = event.kind == EventKind::kIo ? event.call_s : event.off_s;
      if (!writable_seconds(off_s)) return fail("a time is negative, not finite or more than 1e9 seconds");
      start_line("blocked", event.process_s);
      line_ += " off=";
      append_seconds(line_, off_s);
      break;
    }
    case EventKind::kOneSided:
    case EventKind::kOneSidedSync: {
      const bool is_sync = event.kind == EventKind::kOneSidedSync;
      start_line(is_sync ? "oneSidedSync" : "oneSided", event.process_s);
      if (!is_sync) {
        const auto op = static_cast<std::size_t>(one_sided_op(event));
        if (op >= kOneSidedNames.size()) return fail("an unknown one-sided operation");
        line_ += " op=";
        line_ += kOneSidedNames[op].name;
      }
      if (!is_sync || event.peer != kAnyRank) {
        const Rank peer = peer_in_comm();
        if (peer < 0) return fail("its peer " + std::to_string(event.peer) + " is not in its communicator");
        append_key(" to=", static_cast<std::uint64_t>(peer));
      }
      if (!is_sync) append_key(" bytes=", event.bytes);
      append_comm();
      if (has_request) append_key(" req=", event.request);
      break;
    }
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kProcedure: {
      const bool has_time = event.kind == EventKind::kProcedure;
      if (event.values.size() < (has_time ? kProcedureValues : 1)) {
        return fail("a procedure event without a procedure");
      }
      start_line(has_time                            ? "procedure"
                 : event.kind == EventKind::kEnter ? "enter"
                                                     : "leave",
                 event.process_s);
      const std::uint64_t id = event.values[0];
      line_ += " proc=";
      if (id < procedures_.size()) {
        for (const char c : procedures_[static_cast<std::size_t>(id)]) line_ += c == ' ' || c == '#' ? '_' : c;
      } else {
        append_key("procedure", id);
      }
      if (has_time) {
        line_ += " time=";
        append_seconds(line_, static_cast<Seconds>(event.values[1]) * 1e-9);
        line_ += " self=";
        append_seconds(line_, static_cast<Seconds>(event.values[2]) * 1e-9);
        append_key(" calls=", event.values[3]);
      }
      break;
    }
    case EventKind::kExit:
      start_line("exit", event.process_s);
      break;
    default:
      return fail("text trace version 1 has no events of kind " +
                  std::to_string(static_cast<int>(event.kind)) + " (docs/formats/text-trace-v1.md)");
  }
  line_ += '\n';
  out_ << line_;
  if (!out_) return Error{ErrorCode::kIo, "text trace: cannot be written"};
  return {};
}

}  // namespace lbf
