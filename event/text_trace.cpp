// Text trace, version 1: the reader streams line by line and keeps only what later lines can refer to (open
// receives, active requests, communicators); the writer is its inverse. Implements
// docs/formats/text-trace-v1.md.
#include "event/text_trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <istream>
#include <limits>
#include <memory>
#include <ostream>
#include <utility>

namespace lbf {
namespace {

constexpr Rank kMaxRanks = 1 << 24;
constexpr Seconds kMaxTimeS = 1e9;  // 31 years: beyond it is a mistake
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;
constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20;  // room for a `comm` line of 1 << 24 ranks
constexpr std::size_t kMaxProcedureNameBytes = 4096;
constexpr std::size_t kMaxCommGap = 65536;  // communicator numbers are dense: a wild one must not cost memory
constexpr std::size_t kReadBytes = std::size_t{256} << 10;

struct TextOp {
  std::string_view name;
  CollectiveOp op;
};
constexpr std::array<TextOp, 10> kTextOps{{{"allreduce", CollectiveOp::kAllreduce},
                                           {"barrier", CollectiveOp::kBarrier},
                                           {"bcast", CollectiveOp::kBcast},
                                           {"reduce", CollectiveOp::kReduce},
                                           {"gather", CollectiveOp::kGather},
                                           {"scatter", CollectiveOp::kScatter},
                                           {"allgather", CollectiveOp::kAllgather},
                                           {"alltoall", CollectiveOp::kAlltoall},
                                           {"reduce_scatter", CollectiveOp::kReduceScatterBlock},
                                           {"scan", CollectiveOp::kScan}}};

enum Key : unsigned {
  kTo = 1u << 0,
  kFrom = 1u << 1,
  kTag = 1u << 2,
  kBytes = 1u << 3,
  kComm = 1u << 4,
  kSync = 1u << 5,
  kReq = 1u << 6,
  kOp = 1u << 7,
  kRoot = 1u << 8,
  kOff = 1u << 9,
  kProc = 1u << 10,
};
struct KeyName {
  std::string_view name;
  Key key;
};
constexpr std::array<KeyName, 11> kKeyNames{{{"to", kTo},
                                             {"from", kFrom},
                                             {"tag", kTag},
                                             {"bytes", kBytes},
                                             {"comm", kComm},
                                             {"sync", kSync},
                                             {"req", kReq},
                                             {"op", kOp},
                                             {"root", kRoot},
                                             {"off", kOff},
                                             {"proc", kProc}}};

struct LineKind {
  std::string_view name;
  EventKind kind;
  unsigned required;
  unsigned optional;
};
constexpr std::array<LineKind, 11> kLineKinds{{
    {"compute", EventKind::kCompute, 0, 0},
    {"send", EventKind::kSend, kTo | kTag | kBytes, kComm | kSync},
    {"isend", EventKind::kIsend, kTo | kTag | kBytes | kReq, kComm | kSync},
    {"startRecv", EventKind::kStartRecv, kFrom | kTag, kComm | kReq},
    {"endRecv", EventKind::kEndRecv, kFrom | kTag | kBytes, kComm | kReq},
    {"wait", EventKind::kWait, kReq, 0},
    {"coll", EventKind::kCollective, kOp, kBytes | kRoot | kComm},
    {"blocked", EventKind::kBlocked, kOff, 0},
    {"enter", EventKind::kEnter, kProc, 0},
    {"leave", EventKind::kLeave, kProc, 0},
    {"exit", EventKind::kExit, 0, 0},
}};

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 60)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  if (text.size() > 60) out += "...";
  return out + "'";
}

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Well-formed UTF-8 without control characters (names end up in JSON, on terminals).
bool is_printable_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7f) return false;
    std::size_t length = 1;
    std::uint32_t code = lead;
    if (lead >= 0x80) {
      if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
        code = lead & 0x1Fu;
      } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        code = lead & 0x0Fu;
      } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        code = lead & 0x07u;
      } else {
        return false;
      }
      if (text.size() - i < length) return false;
      for (std::size_t k = 1; k < length; ++k) {
        const auto next = static_cast<unsigned char>(text[i + k]);
        if ((next & 0xC0u) != 0x80u) return false;
        code = code << 6 | (next & 0x3Fu);
      }
      const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
      if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
    }
    i += length;
  }
  return true;
}

constexpr std::array<double, 23> kPowersOf10 = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Short decimals exactly (a quotient of two exactly representable numbers is rounded once, hence correctly);
// everything else is std::from_chars' business. Returns false when this way does not apply.
bool parse_short_decimal(std::string_view text, double& value) {
  if (text.size() > 17) return false;
  std::uint64_t digits = 0;
  std::size_t after_point = 0;
  bool point = false;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      after_point += point ? 1 : 0;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      return false;
    }
  }
  if (digits > (std::uint64_t{1} << 53) || text.size() < (point ? 2u : 1u)) return false;
  value = static_cast<double>(digits) / kPowersOf10[after_point];
  return true;
}

// What is active under a request number, or the blocking receive that is posted.
struct Posted {
  EventKind kind = EventKind::kCompute;  // kCompute: nothing
  std::uint32_t comm = 0;
  Rank from = kAnyRank;  // rank in comm
  std::int32_t tag = kAnyTag;
};

// (rank, request) -> Posted: open addressing, because it is touched for most lines of a trace.
class ActiveRequests {
 public:
  ActiveRequests() : slots_(kInitialSlots) {}

  // nullptr: not active.
  Posted* find(std::uint64_t key) {
    for (std::size_t i = home(key);; i = next(i)) {
      if (slots_[i].posted.kind == EventKind::kCompute) return nullptr;
      if (slots_[i].key == key) return &slots_[i].posted;
    }
  }

  // REQUIRES: key is not active.
  void insert(std::uint64_t key, const Posted& posted) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    place(key, posted);
    ++size_;
  }

  // REQUIRES: key is active.
  void erase(std::uint64_t key) {
    std::size_t hole = home(key);
    while (slots_[hole].key != key || slots_[hole].posted.kind == EventKind::kCompute) hole = next(hole);
    // Close the gap: pull back whatever its probing had passed over the hole.
    for (std::size_t i = next(hole); slots_[i].posted.kind != EventKind::kCompute; i = next(i)) {
      const std::size_t wanted = home(slots_[i].key);
      const std::size_t mask = slots_.size() - 1;
      if (((i - wanted) & mask) >= ((i - hole) & mask)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole].posted.kind = EventKind::kCompute;
    --size_;
  }

 private:
  static constexpr std::size_t kInitialSlots = 1024;
  struct Slot {
    std::uint64_t key = 0;
    Posted posted;
  };

  std::size_t home(std::uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 29;
    key *= 0xBF58476D1CE4E5B9u;
    return static_cast<std::size_t>(key >> 20) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void place(std::uint64_t key, const Posted& posted) {
    std::size_t i = home(key);
    while (slots_[i].posted.kind != EventKind::kCompute) i = next(i);
    slots_[i] = {key, posted};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.posted.kind != EventKind::kCompute) place(slot.key, slot.posted);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

class Reader {
 public:
  Reader(std::istream& in, std::string_view name, const EventSink& sink)
      : in_(in), name_(name), sink_(sink) {}

  Result<TraceInfo> run() {
    while (next_line()) {
      strip_comment();
      skip_blanks();
      if (at_ == end_) continue;
      if (Result<void> done = read_line(); !done) return done.error();
    }
    if (stream_failed_) return Error{ErrorCode::kIo, std::string(name_) + ": cannot be read to its end"};
    if (line_too_long_) {
      ++line_number_;
      return fail("the line is longer than " + std::to_string(kMaxLineBytes >> 20) + " MiB");
    }
    if (!have_version_) {
      line_number_ = std::max<std::uint64_t>(line_number_, 1);
      return fail("the header is missing: the first line must be 'lbf-trace 1'");
    }
    if (info_.ranks == 0) return fail("the header is incomplete: a line 'ranks N' must follow 'lbf-trace 1'");
    return std::move(info_);
  }

 private:
  static constexpr std::size_t kChunkRanks = 4096;
  struct RankState {
    bool exited = false;
    Posted blocking;                               // the blocking receive that the next endRecv ends
    std::vector<std::uint32_t> undelivered_comms;  // defined, kCommCreate not handed on yet
  };
  struct Comm {
    std::vector<std::uint64_t> values;  // kCommCreate's: uid, 0, members
    std::vector<Rank> sorted;           // members, for look-up
    std::span<const std::uint64_t> members() const { return std::span(values).subspan(2); }
  };
  struct Keys {
    unsigned seen = 0;
    std::string_view text[kKeyNames.size()];
  };

  // --- input

  // Puts the next line into [at_, end_). False at the end of the input or on an error of the stream.
  bool next_line() {
    for (;;) {
      const std::size_t unread = buffer_.size() - buffer_at_;
      const void* newline = unread > scanned_
                                ? std::memchr(buffer_.data() + buffer_at_ + scanned_, '\n', unread - scanned_)
                                : nullptr;
      if (newline != nullptr || (input_ended_ && unread > 0)) {
        at_ = buffer_.data() + buffer_at_;
        end_ = newline != nullptr ? static_cast<const char*>(newline) : at_ + unread;
        buffer_at_ += static_cast<std::size_t>(end_ - at_) + (newline != nullptr ? 1 : 0);
        scanned_ = 0;
        ++line_number_;
        return true;
      }
      if (input_ended_) return false;
      scanned_ = unread;
      if (unread > kMaxLineBytes) {
        line_too_long_ = true;
        return false;
      }
      buffer_.erase(0, buffer_at_);
      buffer_at_ = 0;
      // Double for long lines, so that a line of n bytes costs O(n).
      const std::size_t wanted = std::max(kReadBytes, unread);
      buffer_.resize(unread + wanted);
      in_.read(buffer_.data() + unread, static_cast<std::streamsize>(wanted));
      buffer_.resize(unread + static_cast<std::size_t>(in_.gcount()));
      if (in_.bad()) {
        stream_failed_ = true;
        return false;
      }
      if (!in_) input_ended_ = true;
    }
  }

  // A comment starts at a '#' that starts a word.
  void strip_comment() {
    for (const char* p = at_;
         (p = static_cast<const char*>(std::memchr(p, '#', static_cast<std::size_t>(end_ - p)))) != nullptr;
         ++p) {
      if (p == at_ || is_blank(p[-1])) {
        end_ = p;
        return;
      }
    }
  }

  void skip_blanks() {
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }

  // The next word; empty at the end of the line.
  std::string_view word() {
    skip_blanks();
    const char* start = at_;
    while (at_ != end_ && !is_blank(*at_)) ++at_;
    return {start, static_cast<std::size_t>(at_ - start)};
  }

  Error fail(const std::string& what) const {
    return invalid_input(std::string(name_) + ":" + std::to_string(line_number_) + ": " + what);
  }

  // --- numbers

  Result<std::uint64_t> whole(std::string_view text, std::string_view what, std::uint64_t max) const {
    std::uint64_t value = 0;
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc::result_out_of_range || (code == std::errc() && value > max)) {
      return fail(std::string(what) + " " + quoted(text) + " is too large: at most " + std::to_string(max));
    }
    if (code != std::errc() || rest != text.data() + text.size()) {
      return fail(std::string(what) + " " + quoted(text) + " is not a whole number of at least 0");
    }
    return value;
  }

  Result<Seconds> seconds(std::string_view text, std::string_view what) const {
    double value = 0;
    if (!parse_short_decimal(text, value)) {
      const bool starts_as_number = !text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
      const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (starts_as_number && code == std::errc::result_out_of_range) {
        return fail(std::string(what) + " " + quoted(text) + " is out of range");
      }
      if (!starts_as_number || code != std::errc() || rest != text.data() + text.size()) {
        return fail(std::string(what) + " " + quoted(text) +
                    " is not a time: seconds, decimal, not negative, such as 0.25");
      }
    }
    if (!(value <= kMaxTimeS))
      return fail(std::string(what) + " " + quoted(text) + " is more than 1e9 seconds");
    return value;
  }

  // --- lines

  Result<void> read_line() {
    if (!have_version_) return read_version();
    if (*at_ >= '0' && *at_ <= '9') return read_event();
    const std::string_view first = word();
    if (first == "ranks") return read_ranks();
    if (first == "comm") return read_comm();
    if (first == "lbf-trace") return fail("a second 'lbf-trace' line; a file holds one trace");
    return fail(quoted(first) + " is neither a rank nor 'ranks' nor 'comm'");
  }

  Result<void> read_version() {
    if (word() != "lbf-trace") return fail("this is not a text trace: the first line must be 'lbf-trace 1'");
    const std::string_view version = word();
    if (version != "1" || !word().empty()) {
      return fail("text trace version " + quoted(version) +
                  " is not known here; this program reads version 1");
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
    chunks_.resize((static_cast<std::size_t>(*ranks) + kChunkRanks - 1) / kChunkRanks);
    return {};
  }

  Result<void> read_comm() {
    if (info_.ranks == 0) return fail("the line 'ranks N' must come before 'comm'");
    const Result<std::uint64_t> number =
        whole(word(), "communicator", std::numeric_limits<std::uint32_t>::max());
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
    if (const auto twice = std::adjacent_find(comm.sorted.begin(), comm.sorted.end());
        twice != comm.sorted.end()) {
      return fail("rank " + std::to_string(*twice) + " is in communicator " + std::to_string(*number) +
                  " twice");
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
    const auto* kind = std::find_if(kLineKinds.begin(), kLineKinds.end(),
                                    [&](const LineKind& k) { return k.name == kind_name; });
    if (kind == kLineKinds.end()) {
      return fail("unknown event kind " + quoted(kind_name) +
                  ": compute, send, isend, startRecv, endRecv, wait, coll, blocked, enter, leave or exit");
    }
    const Result<Seconds> process_s = seconds(word(), "process time");
    if (!process_s) return process_s.error();

    Keys keys;
    if (Result<void> done = read_keys(*kind, keys); !done) return done;
    RankState& state = state_of(rank);
    if (state.exited) return fail("rank " + std::to_string(rank) + " has an event after its exit");
    if (!state.undelivered_comms.empty()) {
      if (Result<void> done = deliver_comms(rank, state); !done) return done;
    }

    Event event;
    event.kind = kind->kind;
    event.process_s = *process_s;
    const Comm* comm = nullptr;
    if ((keys.seen & kComm) != 0) {
      if (Result<void> done = set_comm(rank, value_of(keys, kComm), event, comm); !done) return done;
    }
    if ((keys.seen & kBytes) != 0) {
      const Result<std::uint64_t> bytes = whole(value_of(keys, kBytes), "bytes", kMaxBytes);
      if (!bytes) return bytes.error();
      event.bytes = *bytes;
    }
    if (Result<void> done = set_kind_specific(rank, state, keys, comm, event); !done) return done;
    return sink_(rank, event);
  }

  static std::string_view value_of(const Keys& keys, Key key) {
    return keys.text[static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(key)))];
  }

  Result<void> read_keys(const LineKind& kind, Keys& keys) {
    for (std::string_view pair = word(); !pair.empty(); pair = word()) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) return fail(quoted(pair) + " is not of the form key=value");
      const std::string_view name = pair.substr(0, equals);
      const auto* key =
          std::find_if(kKeyNames.begin(), kKeyNames.end(), [&](const KeyName& k) { return k.name == name; });
      if (key == kKeyNames.end()) return fail("unknown key " + quoted(name));
      if (((kind.required | kind.optional) & key->key) == 0) {
        return fail("'" + std::string(kind.name) + "' has no key " + quoted(name));
      }
      if ((keys.seen & key->key) != 0) return fail("the key " + quoted(name) + " is given twice");
      keys.seen |= key->key;
      keys.text[key - kKeyNames.begin()] = pair.substr(equals + 1);
    }
    if (const unsigned missing = kind.required & ~keys.seen; missing != 0) {
      const auto& key = kKeyNames[static_cast<std::size_t>(std::countr_zero(missing))];
      return fail("'" + std::string(kind.name) + "' needs the key '" + std::string(key.name) + "='");
    }
    return {};
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
    const Result<std::uint64_t> number =
        whole(text, "communicator", std::numeric_limits<std::uint32_t>::max());
    if (!number) return number.error();
    if (*number == 0) return {};
    const auto found = comm_by_number_.find(static_cast<std::uint32_t>(*number));
    if (found == comm_by_number_.end()) {
      return fail("communicator " + std::to_string(*number) + " is not defined: a line 'comm " +
                  std::to_string(*number) + " RANK,RANK...' must come before");
    }
    comm = &comms_[found->second - 1];
    if (!std::binary_search(comm->sorted.begin(), comm->sorted.end(), rank)) {
      return fail("rank " + std::to_string(rank) + " is not a member of communicator " +
                  std::to_string(*number));
    }
    event.comm = found->second;
    return {};
  }

  // A rank in the communicator (nullptr: the world).
  Result<Rank> rank_in_comm(std::string_view text, std::string_view what, const Comm* comm) const {
    const Result<std::uint64_t> rank = whole(text, what, kMaxRanks);
    if (!rank) return rank.error();
    const std::uint64_t size =
        comm != nullptr ? comm->members().size() : static_cast<std::uint64_t>(info_.ranks);
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
    const Result<std::uint64_t> tag =
        whole(value_of(keys, kTag), "tag", std::numeric_limits<std::int32_t>::max());
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
    const Result<std::uint32_t> request = request_number(value_of(keys, kReq));
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
    const Result<Rank> to = rank_in_comm(value_of(keys, kTo), "to", comm);
    if (!to) return to.error();
    const Result<std::int32_t> tag = tag_of(keys);
    if (!tag) return tag.error();
    event.peer = world_rank(*to, comm);
    event.tag = *tag;
    if ((keys.seen & kSync) != 0) {
      const std::string_view sync = value_of(keys, kSync);
      if (sync != "0" && sync != "1") return fail("sync must be 0 or 1, not " + quoted(sync));
      if (sync == "1") event.flags |= kFlagSync;
    }
    if (event.kind == EventKind::kIsend) return start_request(rank, keys, {.kind = EventKind::kIsend}, event);
    return {};
  }

  Result<void> set_start_recv(Rank rank, RankState& state, const Keys& keys, const Comm* comm, Event& event) {
    Posted posted{.kind = EventKind::kStartRecv, .comm = event.comm};
    if (value_of(keys, kFrom) == "any") {
      event.flags |= kFlagWildcardSource;
    } else {
      const Result<Rank> from = rank_in_comm(value_of(keys, kFrom), "from", comm);
      if (!from) return from.error();
      posted.from = *from;
      event.peer = world_rank(*from, comm);
    }
    if (value_of(keys, kTag) == "any") {
      event.flags |= kFlagWildcardTag;
    } else {
      const Result<std::int32_t> tag = tag_of(keys);
      if (!tag) return tag.error();
      posted.tag = event.tag = *tag;
    }
    if ((keys.seen & kReq) != 0) return start_request(rank, keys, posted, event);
    if (state.blocking.kind != EventKind::kCompute) {
      return fail("rank " + std::to_string(rank) +
                  " is in a blocking receive already; its endRecv must come first, or give both a req=");
    }
    state.blocking = posted;
    return {};
  }

  Result<void> set_end_recv(Rank rank, RankState& state, const Keys& keys, const Comm* comm, Event& event) {
    const Result<Rank> from = rank_in_comm(value_of(keys, kFrom), "from", comm);
    if (!from) return from.error();
    const Result<std::int32_t> tag = tag_of(keys);
    if (!tag) return tag.error();
    event.peer = world_rank(*from, comm);
    event.tag = *tag;
    Posted posted;
    if ((keys.seen & kReq) != 0) {
      const Result<std::uint32_t> request = request_number(value_of(keys, kReq));
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
    const std::string_view list = value_of(keys, kReq);
    values_.clear();
    for (std::size_t start = 0;;) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      const Result<std::uint32_t> request = request_number(list.substr(start, comma - start));
      if (!request) return request.error();
      const std::uint64_t key = request_key(rank, *request);
      const Posted* found = active_.find(key);
      if (found == nullptr) return not_active(rank, *request);
      if (found->kind != EventKind::kIsend) {
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

  Result<void> set_collective(const Keys& keys, const Comm* comm, Event& event) {
    const std::string_view name = value_of(keys, kOp);
    const auto* op =
        std::find_if(kTextOps.begin(), kTextOps.end(), [&](const TextOp& o) { return o.name == name; });
    if (op == kTextOps.end()) {
      return fail(
          "unknown op " + quoted(name) +
          ": barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter or "
          "scan");
    }
    event.op = op->op;
    if ((keys.seen & kRoot) != 0) {
      const Result<Rank> root = rank_in_comm(value_of(keys, kRoot), "root", comm);
      if (!root) return root.error();
      event.root = *root;
    }
    return {};
  }

  Result<void> set_procedure(const Keys& keys, Event& event) {
    const std::string_view name = value_of(keys, kProc);
    if (name.empty()) return fail("proc= needs a name");
    auto found = procedure_by_name_.find(std::string(name));
    if (found == procedure_by_name_.end()) {
      if (name.size() > kMaxProcedureNameBytes) return fail("the procedure's name is longer than 4096 bytes");
      if (!is_printable_utf8(name)) return fail("the procedure's name is not printable UTF-8");
      found = procedure_by_name_.emplace(name, info_.procedures.size()).first;
      info_.procedures.emplace_back(name);
    }
    values_.assign(1, found->second);
    event.values = values_;
    return {};
  }

  Result<void> set_kind_specific(Rank rank, RankState& state, const Keys& keys, const Comm* comm,
                                 Event& event) {
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
      case EventKind::kBlocked: {
        const Result<Seconds> off_s = seconds(value_of(keys, kOff), "off");
        if (!off_s) return off_s.error();
        event.off_s = *off_s;
        return {};
      }
      case EventKind::kEnter:
      case EventKind::kLeave:
        return set_procedure(keys, event);
      case EventKind::kExit:
        if (state.blocking.kind != EventKind::kCompute) {
          return fail("rank " + std::to_string(rank) +
                      " exits inside a blocking receive: its endRecv is missing");
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

  std::istream& in_;
  std::string_view name_;
  const EventSink& sink_;

  std::string buffer_;
  std::size_t buffer_at_ = 0;
  std::size_t scanned_ = 0;  // bytes after buffer_at_ that are known to hold no newline
  bool input_ended_ = false;
  bool stream_failed_ = false;
  bool line_too_long_ = false;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::uint64_t line_number_ = 0;

  bool have_version_ = false;
  TraceInfo info_;
  std::vector<std::unique_ptr<RankState[]>> chunks_;
  std::vector<Comm> comms_;  // by dense index - 1
  std::unordered_map<std::uint32_t, std::uint32_t> comm_by_number_;
  std::unordered_map<std::string, std::uint64_t> procedure_by_name_;
  ActiveRequests active_;
  std::vector<std::uint64_t> values_;
};

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

Result<TraceInfo> read_text_trace(std::istream& in, std::string_view name, const EventSink& sink) {
  return Reader(in, name, sink).run();
}

TextTraceWriter::TextTraceWriter(std::ostream& out, Rank ranks, std::vector<std::string> procedures)
    : out_(out), ranks_(ranks), procedures_(std::move(procedures)) {
  out_ << "lbf-trace 1\nranks " << ranks << '\n';
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
      const CollectiveOp op = event.op == CollectiveOp::kCommCreate ? CollectiveOp::kAllreduce : event.op;
      const std::string_view name = text_op(op);
      if (name.empty()) {
        return fail("version 1 has no collective operation " + std::to_string(static_cast<int>(event.op)));
      }
      const Rank size = event.comm != 0 ? static_cast<Rank>(comm_members_[event.comm].size()) : ranks_;
      if (event.root < 0 || event.root >= size) return fail("its root is not in its communicator");
      start_line("coll", event.process_s);
      line_ += " op=";
      line_ += name;
      const Bytes bytes = event.op == CollectiveOp::kCommCreate ? 8 : event.bytes;
      if (bytes != 0) append_key(" bytes=", bytes);
      if (event.root != 0) append_key(" root=", static_cast<std::uint64_t>(event.root));
      append_comm();
      break;
    }
    case EventKind::kBlocked:
      start_line("blocked", event.process_s);
      line_ += " off=";
      append_seconds(line_, event.off_s);
      break;
    case EventKind::kEnter:
    case EventKind::kLeave: {
      if (event.values.empty()) return fail("a procedure event without a procedure");
      start_line(event.kind == EventKind::kEnter ? "enter" : "leave", event.process_s);
      const std::uint64_t id = event.values[0];
      line_ += " proc=";
      if (id < procedures_.size()) {
        line_ += procedures_[static_cast<std::size_t>(id)];
      } else {
        append_key("procedure", id);
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
