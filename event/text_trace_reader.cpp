// The reader of text traces (event/text_trace.h): streams line by line and keeps only what later lines can
// refer to: open receives, active requests, communicators. Implements docs/formats/text-trace-v1.md.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "event/procedure_table.h"
#include "event/text_trace.h"
#include "event/text_trace_format.h"
#include "event/text_trace_lines.h"
#include "event/text_trace_parts.h"
#include "event/text_trace_requests.h"

namespace lbf {
namespace text_trace {
namespace {

class Reader : private Lines {
 public:
  Reader(std::istream& in, std::string_view name, const EventSink& sink) : Lines(in, name), name_(name), sink_(sink) {}

  // Stops before the first event.
  Result<TraceInfo> run_header() {
    header_only_ = true;
    return run();
  }

  Result<TraceInfo> run() {
    while (next_line()) {
      strip_comment();
      skip_blanks();
      if (at_end()) continue;
      if (header_only_ && have_version_ && is_event()) break;
      if (Result<void> done = read_line(); !done) return done.error();
    }
    if (stream_failed()) return Error{ErrorCode::kIo, std::string(name_) + ": cannot be read to its end"};
    if (line_too_long()) {
      set_line_number(line_number() + 1);
      return fail("the line is longer than " + std::to_string(longest_line_bytes() >> 20) +
                  " MiB: is this a text trace, with a line for each event?");
    }
    if (!have_version_) {
      set_line_number(std::max<std::uint64_t>(line_number(), 1));
      return fail("the header is missing: the first line must be 'lbf-trace 1'");
    }
    if (info_.ranks == 0) return fail("the header is incomplete: a line 'ranks N' must follow 'lbf-trace 1'");
    return std::move(info_);
  }

 private:
  static constexpr std::size_t kChunkRanks = 4096;
  struct RankState {
    bool exited = false;
    Seconds process_s = 0;  // parts of a nanosecond that no event has yet
    Seconds off_s = 0;
    Posted blocking;                               // the blocking receive that the next endRecv ends
    std::vector<std::uint32_t> undelivered_comms;  // defined, kCommCreate not handed on yet
  };
  struct Comm {
    std::vector<std::uint64_t> values;  // kCommCreate's: uid, 0, members
    std::vector<Rank> sorted;           // members, for look-up
    std::span<const std::uint64_t> members() const { return std::span(values).subspan(2); }
  };

  // --- lines

  Result<void> read_line() {
    if (!have_version_) return read_version();
    if (is_event()) {
      have_event_ = true;
      return read_event();
    }
    const std::string_view first = word();
    if (first == "ranks") return read_ranks();
    if (first == "comm") return read_comm();
    if (first == "library") return read_library();
    if (first == "nodes") return read_nodes();
    if (first == "lbf-trace") return fail("a second 'lbf-trace' line; a file holds one trace");
    return fail(quoted(first) + " is neither a rank nor 'ranks', 'comm', 'library' or 'nodes'");
  }
  bool is_event() const { return peek() >= '0' && peek() <= '9'; }

  Result<void> read_version() {
    if (word() != "lbf-trace") return fail("this is not a text trace: the first line must be 'lbf-trace 1'");
    const std::string_view version = word();
    if (version != "1" || !word().empty()) {
      return fail("text trace version " + quoted(version) + " is not known here; this program reads version 1");
    }
    have_version_ = true;
    return {};
  }

  Result<void> read_ranks() {
    if (info_.ranks != 0) return fail("a second 'ranks' line");
    const Result<std::uint64_t> ranks = whole(word(), "ranks", kMaxRanks);
    if (!ranks) return ranks.error();
    if (*ranks < 1) return fail("ranks must be at least 1");
    if (!word().empty()) return fail("more than one number after 'ranks'");
    info_.ranks = static_cast<Rank>(*ranks);
    allow_ranks(info_.ranks);
    chunks_.resize((static_cast<std::size_t>(*ranks) + kChunkRanks - 1) / kChunkRanks);
    return {};
  }

  Result<void> read_library() {
    if (info_.ranks == 0 || have_event_) {
      return fail("the line 'library' belongs behind 'ranks N' and before the first event");
    }
    if (!info_.library.empty()) return fail("a second 'library' line");
    const std::string_view text = rest();
    if (text.size() < 3 || text.front() != '"' || text.back() != '"') {
      return fail("the library's name stands between quotes, as in library \"Open MPI v4.1.4\"");
    }
    const std::string_view library = text.substr(1, text.size() - 2);
    if (library.size() > kMaxLibraryBytes) {
      return fail("the library's name is longer than " + std::to_string(kMaxLibraryBytes) + " bytes");
    }
    if (library.find('"') != std::string_view::npos || !is_printable_utf8(library)) {
      return fail("the library's name has a quote or a character in it that cannot be printed");
    }
    info_.library = library;
    return {};
  }

  Result<void> read_nodes() {
    if (info_.ranks == 0 || have_event_) {
      return fail("the line 'nodes' belongs behind 'ranks N' and before the first event");
    }
    if (!info_.node_of_rank.empty()) return fail("a second 'nodes' line");
    std::string_view list = word();
    if (!word().empty()) return fail("blanks in the list of nodes; write them as in 0,0,1");
    const auto ranks = static_cast<std::size_t>(info_.ranks);
    while (true) {
      const std::size_t comma = list.find(',');
      const Result<std::uint64_t> node = whole(list.substr(0, comma), "node", kMaxRanks - 1);
      if (!node) return node.error();
      info_.node_of_rank.push_back(static_cast<std::uint32_t>(*node));
      if (comma == std::string_view::npos || info_.node_of_rank.size() > ranks) break;
      list.remove_prefix(comma + 1);
    }
    if (info_.node_of_rank.size() != ranks) {
      return fail("'nodes' has one number for each rank: " + std::to_string(ranks));
    }
    return {};
  }

  Result<void> read_comm() {
    if (info_.ranks == 0) return fail("the line 'ranks N' must come before 'comm'");
    const Result<std::uint64_t> number = whole(word(), "communicator", std::numeric_limits<std::uint32_t>::max());
    if (!number) return number.error();
    if (*number == 0) return fail("communicator 0 is the world; number others from 1");
    const auto index = static_cast<std::uint32_t>(comms_.size() + 1);
    if (!comm_by_number_.emplace(static_cast<std::uint32_t>(*number), index).second) {
      return fail("communicator " + std::to_string(*number) + " is defined already");
    }
    const std::string_view list = word();
    if (!word().empty()) return fail("the members of a communicator are separated by commas, without blanks");
    Comm comm;
    comm.values = {index, 0};
    for (std::size_t start = 0;;) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      const Result<std::uint64_t> member = whole(list.substr(start, comma - start), "member", kMaxRanks);
      if (!member) return member.error();
      if (*member >= static_cast<std::uint64_t>(info_.ranks)) {
        return fail("member " + std::to_string(*member) + " of communicator " + std::to_string(*number) +
                    " is not a rank: ranks go from 0 to " + std::to_string(info_.ranks - 1));
      }
      comm.values.push_back(*member);
      comm.sorted.push_back(static_cast<Rank>(*member));
      if (comma == list.size()) break;
      start = comma + 1;
    }
    std::sort(comm.sorted.begin(), comm.sorted.end());
    if (const auto twice = std::adjacent_find(comm.sorted.begin(), comm.sorted.end()); twice != comm.sorted.end()) {
      return fail("rank " + std::to_string(*twice) + " is in communicator " + std::to_string(*number) + " twice");
    }
    for (const Rank member : comm.sorted) state_of(member).undelivered_comms.push_back(index);
    comms_.push_back(std::move(comm));
    return {};
  }

  Result<void> read_event() {
    if (info_.ranks == 0) return fail("the line 'ranks N' must come before the first event");
    const Result<std::uint64_t> rank_number = whole(word(), "rank", kMaxRanks);
    if (!rank_number) return rank_number.error();
    if (*rank_number >= static_cast<std::uint64_t>(info_.ranks)) {
      return fail("rank " + std::to_string(*rank_number) + " is out of range: ranks go from 0 to " +
                  std::to_string(info_.ranks - 1));
    }
    const auto rank = static_cast<Rank>(*rank_number);
    const std::string_view kind_name = word();
    const auto* kind =
        std::find_if(kLineKinds.begin(), kLineKinds.end(), [&](const LineKind& k) { return k.name == kind_name; });
    if (kind == kLineKinds.end()) {
      std::string known;
      for (const LineKind& one : kLineKinds) known.append(known.empty() ? "" : ", ").append(one.name);
      return fail("unknown event kind " + quoted(kind_name) + ": there are " + known);
    }
    const Result<Seconds> process_s = seconds(word(), "process time");
    if (!process_s) return process_s.error();

    const Result<Keys> found_keys = read_keys(*kind);
    if (!found_keys) return found_keys.error();
    const Keys& keys = *found_keys;
    RankState& state = state_of(rank);
    if (state.exited) return fail("rank " + std::to_string(rank) + " has an event after its exit");
    if (!state.undelivered_comms.empty()) {
      if (Result<void> done = deliver_comms(rank, state); !done) return done;
    }

    Event event;
    event.kind = kind->kind;
    state.process_s += *process_s;
    event.process_s = take_whole_ns(state.process_s);
    const Comm* comm = nullptr;
    if (keys.has(kComm)) {
      if (Result<void> done = set_comm(rank, keys.value(kComm), event, comm); !done) return done;
    }
    if (keys.has(kBytes)) {
      const Result<std::uint64_t> bytes = whole(keys.value(kBytes), "bytes", kMaxBytes);
      if (!bytes) return bytes.error();
      event.bytes = *bytes;
    }
    if (Result<void> done = set_kind_specific(rank, state, keys, comm, event); !done) return done;
    return sink_(rank, event);
  }

  Result<void> deliver_comms(Rank rank, RankState& state) {
    for (const std::uint32_t index : state.undelivered_comms) {
      Event event;
      event.kind = EventKind::kCommCreate;
      event.comm = index;
      event.values = comms_[index - 1].values;
      if (Result<void> done = sink_(rank, event); !done) return done;
    }
    state.undelivered_comms.clear();
    return {};
  }

  Result<void> set_comm(Rank rank, std::string_view text, Event& event, const Comm*& comm) {
    const Result<std::uint64_t> number = whole(text, "communicator", std::numeric_limits<std::uint32_t>::max());
    if (!number) return number.error();
    if (*number == 0) return {};
    const auto found = comm_by_number_.find(static_cast<std::uint32_t>(*number));
    if (found == comm_by_number_.end()) {
      return fail("communicator " + std::to_string(*number) + " is not defined: a line 'comm " +
                  std::to_string(*number) + " RANK,RANK...' must come before");
    }
    comm = &comms_[found->second - 1];
    if (!std::binary_search(comm->sorted.begin(), comm->sorted.end(), rank)) {
      return fail("rank " + std::to_string(rank) + " is not a member of communicator " + std::to_string(*number));
    }
    event.comm = found->second;
    return {};
  }

  // A rank in the communicator (nullptr: the world).
  Result<Rank> rank_in_comm(std::string_view text, std::string_view what, const Comm* comm) const {
    const Result<std::uint64_t> rank = whole(text, what, kMaxRanks);
    if (!rank) return rank.error();
    const std::uint64_t size = comm != nullptr ? comm->members().size() : static_cast<std::uint64_t>(info_.ranks);
    if (*rank >= size) {
      return fail(std::string(what) + "=" + std::to_string(*rank) +
                  " is out of range: the communicator's ranks go from 0 to " + std::to_string(size - 1));
    }
    return static_cast<Rank>(*rank);
  }

  static Rank world_rank(Rank rank, const Comm* comm) {
    return comm != nullptr ? static_cast<Rank>(comm->members()[static_cast<std::size_t>(rank)]) : rank;
  }

  Result<std::int32_t> tag_of(const Keys& keys) const {
    const Result<std::uint64_t> tag = whole(keys.value(kTag), "tag", std::numeric_limits<std::int32_t>::max());
    if (!tag) return tag.error();
    return static_cast<std::int32_t>(*tag);
  }

  static std::uint64_t request_key(Rank rank, std::uint32_t request) {
    return static_cast<std::uint64_t>(rank) << 32 | request;
  }

  Result<std::uint32_t> request_number(std::string_view text) const {
    const Result<std::uint64_t> number = whole(text, "request", std::numeric_limits<std::uint32_t>::max());
    if (!number) return number.error();
    return static_cast<std::uint32_t>(*number);
  }

  // Gives `event` the new request of the line and notes what is active under it.
  Result<void> start_request(Rank rank, const Keys& keys, const Posted& posted, Event& event) {
    const Result<std::uint32_t> request = request_number(keys.value(kReq));
    if (!request) return request.error();
    const std::uint64_t key = request_key(rank, *request);
    if (active_.find(key) != nullptr) {
      return fail("request " + std::to_string(*request) + " of rank " + std::to_string(rank) +
                  " is active already; it can be used again after its wait or endRecv");
    }
    active_.insert(key, posted);
    event.request = *request;
    event.flags |= kFlagHasRequest;
    return {};
  }

  Error not_active(Rank rank, std::uint32_t request) const {
    return fail("request " + std::to_string(request) + " of rank " + std::to_string(rank) + " is not active");
  }

  Result<void> set_send(Rank rank, const Keys& keys, const Comm* comm, Event& event) {
    const Result<Rank> to = rank_in_comm(keys.value(kTo), "to", comm);
    if (!to) return to.error();
    const Result<std::int32_t> tag = tag_of(keys);
    if (!tag) return tag.error();
    event.peer = world_rank(*to, comm);
    event.tag = *tag;
    for (const auto& [key, name, flag] :
         {std::tuple{kSync, "sync", kFlagSync}, {kBuffered, "buffered", kFlagBuffered}}) {
      if (!keys.has(key)) continue;
      const std::string_view value = keys.value(key);
      if (value != "0" && value != "1") return fail(std::string(name) + " must be 0 or 1, not " + quoted(value));
      if (value == "1") event.flags |= flag;
    }
    if (event.kind == EventKind::kIsend) return start_request(rank, keys, {.kind = EventKind::kIsend}, event);
    return {};
  }

  Result<void> set_start_recv(Rank rank, RankState& state, const Keys& keys, const Comm* comm, Event& event) {
    Posted posted{.kind = EventKind::kStartRecv, .comm = event.comm};
    if (keys.value(kFrom) == "any") {
      event.flags |= kFlagWildcardSource;
    } else {
      const Result<Rank> from = rank_in_comm(keys.value(kFrom), "from", comm);
      if (!from) return from.error();
      posted.from = *from;
      event.peer = world_rank(*from, comm);
    }
    if (keys.value(kTag) == "any") {
      event.flags |= kFlagWildcardTag;
    } else {
      const Result<std::int32_t> tag = tag_of(keys);
      if (!tag) return tag.error();
      posted.tag = event.tag = *tag;
    }
    if (keys.has(kReq)) return start_request(rank, keys, posted, event);
    if (state.blocking.kind != EventKind::kCompute) {
      return fail("rank " + std::to_string(rank) +
                  " is in a blocking receive already; its endRecv must come first, or give both a req=");
    }
    state.blocking = posted;
    return {};
  }

  Result<void> set_end_recv(Rank rank, RankState& state, const Keys& keys, const Comm* comm, Event& event) {
    const Result<Rank> from = rank_in_comm(keys.value(kFrom), "from", comm);
    if (!from) return from.error();
    const Result<std::int32_t> tag = tag_of(keys);
    if (!tag) return tag.error();
    event.peer = world_rank(*from, comm);
    event.tag = *tag;
    Posted posted;
    if (keys.has(kReq)) {
      const Result<std::uint32_t> request = request_number(keys.value(kReq));
      if (!request) return request.error();
      const std::uint64_t key = request_key(rank, *request);
      const Posted* found = active_.find(key);
      if (found == nullptr) return not_active(rank, *request);
      if (found->kind != EventKind::kStartRecv) {
        return fail("request " + std::to_string(*request) + " of rank " + std::to_string(rank) +
                    " is a send; 'wait' completes it");
      }
      posted = *found;
      active_.erase(key);
      event.request = *request;
      event.flags |= kFlagHasRequest;
    } else {
      if (state.blocking.kind == EventKind::kCompute) {
        return fail("rank " + std::to_string(rank) +
                    " ends a receive that it did not start: a startRecv without req= must come before");
      }
      posted = std::exchange(state.blocking, Posted{});
    }
    if (posted.comm != event.comm) return fail("endRecv is in another communicator than its startRecv");
    if (posted.from != kAnyRank && posted.from != *from) {
      return fail("endRecv from=" + std::to_string(*from) +
                  " does not match its startRecv from=" + std::to_string(posted.from));
    }
    if (posted.tag != kAnyTag && posted.tag != *tag) {
      return fail("endRecv tag=" + std::to_string(*tag) +
                  " does not match its startRecv tag=" + std::to_string(posted.tag));
    }
    return {};
  }

  Result<void> set_wait(Rank rank, const Keys& keys, Event& event) {
    const std::string_view list = keys.value(kReq);
    values_.clear();
    for (std::size_t start = 0;;) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      const Result<std::uint32_t> request = request_number(list.substr(start, comma - start));
      if (!request) return request.error();
      const std::uint64_t key = request_key(rank, *request);
      const Posted* found = active_.find(key);
      if (found == nullptr) return not_active(rank, *request);
      if (found->kind == EventKind::kStartRecv) {
        return fail("request " + std::to_string(*request) + " of rank " + std::to_string(rank) +
                    " is a receive; 'endRecv ... req=" + std::to_string(*request) + "' ends it");
      }
      active_.erase(key);
      values_.push_back(*request);
      if (comma == list.size()) break;
      start = comma + 1;
    }
    if (values_.size() == 1) {
      event.request = static_cast<std::uint32_t>(values_[0]);
      event.flags |= kFlagHasRequest;
    } else {
      event.values = values_;
    }
    return {};
  }

  Result<void> set_one_sided(Rank rank, const Keys& keys, const Comm* comm, Event& event) {
    if (keys.has(kTo)) {
      const Result<Rank> to = rank_in_comm(keys.value(kTo), "to", comm);
      if (!to) return to.error();
      event.peer = world_rank(*to, comm);
    }
    if (event.kind == EventKind::kOneSidedSync) return {};
    const std::string_view name = keys.value(kOp);
    const auto* op = std::find_if(kOneSidedNames.begin(), kOneSidedNames.end(),
                                  [&](const OneSidedName& o) { return o.name == name; });
    if (op == kOneSidedNames.end()) {
      return fail("unknown op " + quoted(name) +
                  ": put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap or lock");
    }
    set_op(event, op->op);
    if (!keys.has(kReq)) return {};
    return start_request(rank, keys, {.kind = EventKind::kOneSided}, event);
  }

  Result<void> set_collective(const Keys& keys, const Comm* comm, Event& event) {
    const std::string_view name = keys.value(kOp);
    const auto* op = std::find_if(kTextOps.begin(), kTextOps.end(), [&](const TextOp& o) { return o.name == name; });
    if (op == kTextOps.end()) {
      return fail("unknown op " + quoted(name) +
                  ": barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter or "
                  "scan");
    }
    set_op(event, op->op);
    if (keys.has(kRoot)) {
      const Result<Rank> root = rank_in_comm(keys.value(kRoot), "root", comm);
      if (!root) return root.error();
      event.root = *root;
    }
    return {};
  }

  Result<void> set_procedure(const Keys& keys, Event& event) {
    const std::string_view name = keys.value(kProc);
    if (name.empty()) return fail("proc= needs a name");
    auto found = procedure_by_name_.find(std::string(name));
    if (found == procedure_by_name_.end()) {
      if (name.size() > kMaxProcedureNameBytes) return fail("the procedure's name is longer than 4096 bytes");
      if (!is_printable_utf8(name)) return fail("the procedure's name is not printable UTF-8");
      found = procedure_by_name_.emplace(name, info_.procedures.size()).first;
      info_.procedures.emplace_back(name);
    }
    values_.assign(1, found->second);
    if (event.kind == EventKind::kProcedure) {
      if (Result<void> done = set_procedure_time(keys); !done) return done;
    }
    event.values = values_;
    return {};
  }

  // Whole nanoseconds, as on the wire.
  Result<void> set_procedure_time(const Keys& keys) {
    const Result<Seconds> time_s = seconds(keys.value(kTime), "time");
    if (!time_s) return time_s.error();
    const Result<Seconds> self_s = keys.has(kSelf) ? seconds(keys.value(kSelf), "self") : time_s;
    if (!self_s) return self_s.error();
    if (*self_s > *time_s) return fail("self= is more than time=");
    std::uint64_t calls = 1;
    if (keys.has(kCalls)) {
      const Result<std::uint64_t> given = whole(keys.value(kCalls), "calls", kMaxBytes);
      if (!given) return given.error();
      calls = *given;
    }
    for (const Seconds part_s : {*time_s, *self_s}) {
      values_.push_back(static_cast<std::uint64_t>(std::llround(part_s * 1e9)));
    }
    values_.push_back(calls);
    return {};
  }

  Result<void> set_values(Result<void> read, Event& event) {
    if (read) event.values = values_;
    return read;
  }

  Result<void> set_kind_specific(Rank rank, RankState& state, const Keys& keys, const Comm* comm, Event& event) {
    switch (event.kind) {
      case EventKind::kSend:
      case EventKind::kIsend:
        return set_send(rank, keys, comm, event);
      case EventKind::kStartRecv:
        return set_start_recv(rank, state, keys, comm, event);
      case EventKind::kEndRecv:
        return set_end_recv(rank, state, keys, comm, event);
      case EventKind::kWait:
        return set_wait(rank, keys, event);
      case EventKind::kCollective:
        return set_collective(keys, comm, event);
      case EventKind::kOneSided:
      case EventKind::kOneSidedSync:
        return set_one_sided(rank, keys, comm, event);
      case EventKind::kCompute:
        return read_looks(*this, keys, event);
      case EventKind::kBlocked:
      case EventKind::kPreempted: {
        const Result<Seconds> off_s = seconds(keys.value(kOff), "off");
        if (!off_s) return off_s.error();
        state.off_s += *off_s;
        event.off_s = take_whole_ns(state.off_s);
        if (keys.has(kEvery)) {
          const Result<Seconds> every_s = seconds(keys.value(kEvery), "every");
          if (!every_s) return every_s.error();
          set_look_period(event, Duration(*every_s).ns());
        }
        if (keys.has(kDelay)) {
          const Result<Seconds> delay_s = seconds(keys.value(kDelay), "delay");
          if (!delay_s) return delay_s.error();
          set_delayed_end(event, Duration(*delay_s).ns());
        }
        return {};
      }
      case EventKind::kEnter:
      case EventKind::kLeave:
      case EventKind::kProcedure:
        return set_procedure(keys, event);
      case EventKind::kRegions:
        return set_values(read_regions(*this, keys, values_), event);
      case EventKind::kDevice:
        return set_values(read_device_wait(*this, keys, event.process_s, values_), event);
      case EventKind::kExit:
        if (state.blocking.kind != EventKind::kCompute) {
          return fail("rank " + std::to_string(rank) + " exits inside a blocking receive: its endRecv is missing");
        }
        state.exited = true;
        return {};
      default:
        return {};
    }
  }

  RankState& state_of(Rank rank) {
    // In chunks on demand: a header that claims 1 << 24 ranks must not cost the memory for them.
    auto& chunk = chunks_[static_cast<std::size_t>(rank) / kChunkRanks];
    if (chunk == nullptr) chunk = std::make_unique<RankState[]>(kChunkRanks);
    return chunk[static_cast<std::size_t>(rank) % kChunkRanks];
  }

  std::string_view name_;
  const EventSink& sink_;
  bool header_only_ = false;
  bool have_version_ = false;
  bool have_event_ = false;
  TraceInfo info_;
  std::vector<std::unique_ptr<RankState[]>> chunks_;
  std::vector<Comm> comms_;  // by dense index - 1
  std::unordered_map<std::uint32_t, std::uint32_t> comm_by_number_;
  std::unordered_map<std::string, std::uint64_t> procedure_by_name_;
  ActiveRequests active_;
  std::vector<std::uint64_t> values_;
};

}  // namespace
}  // namespace text_trace

Result<TraceInfo> read_text_trace(std::istream& in, std::string_view name, const EventSink& sink) {
  return text_trace::Reader(in, name, sink).run();
}

Result<TraceInfo> read_text_trace_header(std::istream& in, std::string_view name) {
  const EventSink ignore = [](Rank, const Event&) -> Result<void> { return {}; };
  return text_trace::Reader(in, name, ignore).run_header();
}

}  // namespace lbf
