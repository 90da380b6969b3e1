#include "tools/trace/export_ti.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "tools/trace/op_walk.h"
#include "tools/trace/trace_output.h"

namespace lbf::tools {
namespace {

constexpr std::size_t kLinesMemory = std::size_t{64} << 20;
constexpr Bytes kMaxCount = std::numeric_limits<std::int32_t>::max();
// Lines of a rank that wait for the size of a receive before them.
constexpr std::size_t kMaxWaitingLines = 65536;

std::string number(double value) {
  std::array<char, 32> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

// What a message is counted in where SimGrid's int cannot hold its bytes: its datatypes of 8 (MPI_DOUBLE) and 32 bytes
// (MPI_C_LONG_DOUBLE_COMPLEX), with their numbers.
struct CountUnit {
  Bytes bytes;
  const char* datatype;
};
constexpr std::array<CountUnit, 2> kCountUnits{{{8, " 0"}, {32, " 27"}}};
constexpr Bytes kMaxMessage = kMaxCount * kCountUnits.back().bytes;

// The action of a blocking collective of all ranks; empty: SimGrid's replay has none, or cannot hold its
// counts.
std::string action_of(const Event& event, Rank ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  const auto list = [&](std::size_t first) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += ' ' + std::to_string(event.values[first + i]);
    return text;
  };
  const auto sum = [&](std::size_t first) {
    Bytes total = 0;
    for (std::size_t i = 0; i < size; ++i) total += std::min(event.values[first + i], kMaxCount + 1);
    return total;
  };
  const bool fits = event.bytes <= kMaxCount;
  const std::string bytes = ' ' + std::to_string(event.bytes);
  const std::string root = ' ' + std::to_string(event.root);
  if (!fits) return {};
  switch (collective_op(event)) {
    case CollectiveOp::kBarrier:
      return "barrier";
    case CollectiveOp::kBcast:
      return "bcast" + bytes + root;
    case CollectiveOp::kReduce:
      return "reduce" + bytes + " 0" + root;
    case CollectiveOp::kAllreduce:
      return "allreduce" + bytes + " 0";
    case CollectiveOp::kCommCreate:
      return "allreduce 8 0";
    case CollectiveOp::kGather:
      return "gather" + bytes + bytes + root;
    case CollectiveOp::kScatter:
      return "scatter" + bytes + bytes + root;
    case CollectiveOp::kAllgather:
      return "allgather" + bytes + bytes;
    case CollectiveOp::kAlltoall:
      return "alltoall" + bytes + bytes;
    case CollectiveOp::kScan:
      return "scan" + bytes + " 0";
    case CollectiveOp::kExscan:
      return "exscan" + bytes + " 0";
    case CollectiveOp::kReduceScatterBlock: {
      std::string text = "reducescatter";
      for (Rank i = 0; i < ranks; ++i) text += bytes;
      return text + " 0";
    }
    case CollectiveOp::kReduceScatter:
      return event.values.size() == size && sum(0) <= kMaxCount ? "reducescatter" + list(0) + " 0" : std::string();
    case CollectiveOp::kAllgatherv:
      return event.values.size() == size && sum(0) <= kMaxCount ? "allgatherv" + bytes + list(0) : std::string();
    case CollectiveOp::kAlltoallv: {
      if (event.values.size() != 2 * size || sum(0) > kMaxCount || sum(size) > kMaxCount) return {};
      return "alltoallv " + std::to_string(sum(0)) + list(0) + ' ' + std::to_string(sum(size)) + list(size);
    }
    default:
      return {};
  }
}

class TiWriter final : public TiExport, private OpWalk::Visitor {
 public:
  TiWriter(Rank ranks, std::string path, double flops_per_second)
      : path_(std::move(path)),
        flops_per_second_(flops_per_second),
        limit_(std::clamp<std::size_t>(kLinesMemory / static_cast<std::size_t>(ranks), 512, std::size_t{256} << 10)),
        ranks_(static_cast<std::size_t>(ranks)),
        walk_(ranks, 0, *this) {}

  Result<void> start() {
    std::error_code error;
    folder_ = path_ + "_files";
    std::filesystem::create_directories(folder_, error);
    if (error) return Error{ErrorCode::kIo, folder_ + ": cannot be made: " + error.message()};
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
      ScopedFd fd(::open(name_of(rank).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (fd.get() < 0) return io_error(rank);
      add_line(rank, "init");
    }
    return {};
  }

  void set_mpi(const engine::MpiSetup& setup) override { walk_.set_mpi(setup); }
  Result<void> feed(Rank rank, const Event& event) override {
    if (event.kind == EventKind::kOneSided) {
      return invalid_input("SimGrid's time-independent traces have no one-sided communication");
    }
    if (event.kind == EventKind::kProbe) ++notes_.left_out_probes;
    if (event.kind == EventKind::kIcollective) ++notes_.late_collectives;
    if ((event.flags & kFlagSync) != 0) ++notes_.synchronous_sends;
    const bool is_buffered =
        (event.flags & kFlagBuffered) != 0 && (event.kind == EventKind::kSend || event.kind == EventKind::kIsend);
    const bool is_collective = event.kind == EventKind::kCollective && event.comm == 0;
    if (rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size() && (is_collective || is_buffered)) {
      Special special{walk_.matcher().events_of(rank) + 1, ""};
      if (is_collective) special.action = action_of(event, static_cast<Rank>(ranks_.size()));
      if (is_buffered || !special.action.empty()) {
        ranks_[static_cast<std::size_t>(rank)].special.push_back(std::move(special));
      }
    }
    return walk_.feed(rank, event);
  }

  Result<ExportNotes> finish() override {
    if (Result<void> done = walk_.finish(); !done) return done.error();
    Result<std::unique_ptr<TraceOutput>> list = TraceOutput::open(path_);
    if (!list) return list.error();
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
      for (Line& line : ranks_[static_cast<std::size_t>(rank)].waiting) complete(line, kMaxCount);
      drain(rank);
      if (Result<void> done = flush(rank); !done) return done.error();
      if (Result<void> done = (*list)->write(name_of(rank) + "\n"); !done) return done.error();
    }
    if (Result<void> done = (*list)->commit(); !done) return done.error();
    walk_.add_to(notes_);
    return notes_;
  }

 private:
  // An event whose ops do not say all.
  struct Special {
    std::uint64_t event;
    std::string action;  // the collective that is written for its ops; empty: a buffered send
  };
  // "RANK irecv SOURCE TAG" whose size is not known yet, or a complete line.
  struct Line {
    std::string text;
    bool complete = true;
  };
  struct RankState {
    std::uint64_t events_done = 0;
    std::deque<Special> special;   // fed, their ops not visited
    std::deque<Line> waiting;      // lines from the first incomplete one on
    std::uint64_t lines_gone = 0;  // lines before them
    std::string pending;           // for the rank's file
  };
  // What is known of a message; of another one that had its slot before if the generation differs.
  struct Note {
    std::uint32_t generation = ~std::uint32_t{0};
    bool posted = false;
    bool started = false;            // its send is an isend
    std::uint64_t post_line = 0;     // number of the irecv's line among the rank's
    std::vector<std::string> lines;  // a join: what the actor did
  };

  std::string name_of(Rank rank) const { return folder_ + '/' + std::to_string(rank) + ".txt"; }
  Error io_error(Rank rank) const {
    return {ErrorCode::kIo, name_of(rank) + ": cannot be written: " + std::strerror(errno)};
  }

  Note& note(const engine::Op& op, const engine::Message& message) {
    if (notes_of_message_.size() <= op.message()) notes_of_message_.resize(walk_.store().message_slots());
    Note& known = notes_of_message_[op.message()];
    if (known.generation != message.generation) {
      known = Note{};
      known.generation = message.generation;
    }
    return known;
  }

  // --- lines

  // " COUNT" in bytes, else " COUNT DATATYPE".
  std::string count_of(Bytes bytes) {
    if (bytes <= kMaxCount) return ' ' + std::to_string(bytes);
    largest_message_ = std::max(largest_message_, bytes);
    for (const CountUnit& unit : kCountUnits) {
      const Bytes count = bytes / unit.bytes + (bytes % unit.bytes != 0 ? 1 : 0);
      if (count > kMaxCount) continue;
      notes_.rounded_sizes += bytes % unit.bytes != 0 ? 1 : 0;
      return ' ' + std::to_string(count) + unit.datatype;
    }
    return {};  // check_sizes()
  }
  Result<void> check_sizes() const {
    if (largest_message_ <= kMaxMessage) return {};
    return invalid_input("a message has " + std::to_string(largest_message_) +
                         " bytes: a time-independent trace counts " + std::to_string(kMaxMessage) + " at most");
  }

  void complete(Line& line, Bytes bytes) {
    if (line.complete) return;
    line.text += count_of(bytes);
    line.complete = true;
  }
  // Numbers count all lines of the rank.
  std::uint64_t add_line(Rank rank, const std::string& action, bool is_complete = true) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    state.waiting.push_back({std::to_string(rank) + ' ' + action, is_complete});
    if (state.waiting.size() > kMaxWaitingLines) complete(state.waiting.front(), kMaxCount);
    drain(rank);
    return state.lines_gone + state.waiting.size() - 1;
  }
  void drain(Rank rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    while (!state.waiting.empty() && state.waiting.front().complete) {
      state.pending += state.waiting.front().text;
      state.pending += '\n';
      state.waiting.pop_front();
      ++state.lines_gone;
    }
  }
  Result<void> flush(Rank rank) {
    std::string& pending = ranks_[static_cast<std::size_t>(rank)].pending;
    // Opened each time: there may be more ranks than files that a process may have open.
    ScopedFd fd(::open(name_of(rank).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (fd.get() < 0) return io_error(rank);
    for (std::size_t at = 0; at < pending.size();) {
      const ssize_t done = ::write(fd.get(), pending.data() + at, pending.size() - at);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return io_error(rank);
      at += static_cast<std::size_t>(done);
    }
    pending.clear();
    return {};
  }

  // --- ops

  Result<void> visit(engine::ProcessIndex index, const engine::Op& op, const engine::Message* message,
                     bool sent) override {
    const Rank rank = walk_.store().rank_of(index);
    if (walk_.store().is_actor(index)) {
      visit_actor(index, op, message);
      return check_sizes();
    }
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    if (op.work_s > 0) add_line(rank, "compute " + number(op.work_s * flops_per_second_));
    const bool ends_event = (op.flags & engine::kOpEndsEvent) != 0;
    const bool is_special = !state.special.empty() && state.special.front().event == state.events_done + 1;
    if (!is_special || state.special.front().action.empty()) {
      visit_op(rank, op, message, sent, is_special);
    } else if (ends_event) {
      add_line(rank, state.special.front().action);
    }
    if (is_special && ends_event) state.special.pop_front();
    if (ends_event) ++state.events_done;
    if (Result<void> fit = check_sizes(); !fit) return fit;
    return state.pending.size() >= limit_ ? flush(rank) : Result<void>();
  }

  std::string send_action(const engine::Op& op, const engine::Message& message, bool buffered) {
    // SimGrid keeps the requests that no wait takes: what is not waited for is written as a send.
    const bool starts = (op.flags & engine::kOpNonblocking) != 0 && !buffered && (message.bytes > 0 || message.sync);
    note(op, message).started = starts;
    return (starts ? "isend " : "send ") + std::to_string(message.dst) + ' ' + std::to_string(flat_tag(message)) +
           count_of(message.bytes);
  }
  static std::string wait_action(const engine::Message& message) {
    return "wait " + std::to_string(message.src) + ' ' + std::to_string(message.dst) + ' ' +
           std::to_string(flat_tag(message));
  }
  static std::string source_and_tag(const engine::Message& message) {
    return std::to_string(message.src) + ' ' + std::to_string(flat_tag(message));
  }

  void visit_op(Rank rank, const engine::Op& op, const engine::Message* message, bool sent, bool buffered) {
    const bool internal = (op.flags & engine::kOpInternal) != 0;
    switch (op.kind) {
      case engine::OpKind::kSend:
        if (!internal) add_line(rank, send_action(op, *message, buffered));
        break;
      case engine::OpKind::kWaitSend:
        if (note(op, *message).started) add_line(rank, wait_action(*message));
        break;
      case engine::OpKind::kPost:
        if (message == nullptr) break;
        note(op, *message).posted = true;
        note(op, *message).post_line = add_line(rank, "irecv " + source_and_tag(*message), false);
        break;
      case engine::OpKind::kRecv:
        visit_receive(rank, op, *message, sent);
        break;
      case engine::OpKind::kBlocked:
      case engine::OpKind::kDevice:
        if (op.call_s > 0) add_line(rank, "sleep " + number(op.call_s));
        break;
      case engine::OpKind::kExit:
        add_line(rank, "finalize");
        break;
      case engine::OpKind::kLook:
      case engine::OpKind::kPeek:
      case engine::OpKind::kCompute:
      case engine::OpKind::kWindowOpen:
      case engine::OpKind::kWindowClose:
      case engine::OpKind::kBlockEnd:
      case engine::OpKind::kCopy:
      case engine::OpKind::kReduce:
      case engine::OpKind::kPreempted:
      case engine::OpKind::kDelayed:
      case engine::OpKind::kVainLooks:
        break;
    }
  }

  void visit_receive(Rank rank, const engine::Op& op, const engine::Message& message, bool sent) {
    Note& known = note(op, message);
    if ((op.flags & engine::kOpInternal) != 0) {
      for (const std::string& line : known.lines) add_line(rank, line);
      return;
    }
    if (!known.posted) {
      if (sent) add_line(rank, "recv " + source_and_tag(message) + count_of(message.bytes));
      return;
    }
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    if (known.post_line >= state.lines_gone) {
      complete(state.waiting[static_cast<std::size_t>(known.post_line - state.lines_gone)], message.bytes);
      drain(rank);
    }
    if (sent) add_line(rank, wait_action(message));
  }

  // A non-blocking collective happens where it is waited for: a rank is one sequence of actions in SimGrid.
  void visit_actor(engine::ProcessIndex index, const engine::Op& op, const engine::Message* message) {
    if (actor_lines_.size() <= index) actor_lines_.resize(walk_.store().processes());
    std::vector<std::string>& lines = actor_lines_[index];
    const bool internal = (op.flags & engine::kOpInternal) != 0;
    switch (op.kind) {
      case engine::OpKind::kSend:
        if (internal) {
          note(op, *message).lines = std::exchange(lines, {});
        } else {
          lines.push_back(send_action(op, *message, false));
        }
        break;
      case engine::OpKind::kWaitSend:
        if (note(op, *message).started) lines.push_back(wait_action(*message));
        break;
      case engine::OpKind::kPost:
        note(op, *message).posted = true;
        note(op, *message).post_line = lines.size();
        lines.push_back("irecv " + source_and_tag(*message));
        break;
      case engine::OpKind::kRecv:
        if (internal) break;
        if (note(op, *message).posted) {
          lines[static_cast<std::size_t>(note(op, *message).post_line)] += count_of(message->bytes);
          lines.push_back(wait_action(*message));
        } else {
          lines.push_back("recv " + source_and_tag(*message) + count_of(message->bytes));
        }
        break;
      default:
        break;
    }
  }

  std::string path_;
  std::string folder_;
  double flops_per_second_;
  std::size_t limit_;  // of a rank's `pending`
  std::vector<RankState> ranks_;
  std::vector<std::vector<std::string>> actor_lines_;  // by process
  std::vector<Note> notes_of_message_;
  Bytes largest_message_ = 0;  // of those that need a unit
  ExportNotes notes_;
  OpWalk walk_;
};

}  // namespace

Result<std::unique_ptr<TiExport>> TiExport::make(Rank ranks, const std::string& path, double flops_per_second) {
  auto made = std::make_unique<TiWriter>(ranks, path, flops_per_second);
  if (Result<void> started = made->start(); !started) return started.error();
  return std::unique_ptr<TiExport>(std::move(made));
}

}  // namespace lbf::tools
