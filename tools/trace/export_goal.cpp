#include "tools/trace/export_goal.h"

#include <cmath>
#include <utility>
#include <vector>

#include "tools/trace/op_walk.h"
#include "tools/trace/rank_spool.h"

namespace lbf::tools {
namespace {

// A later line of the rank waits for the end (requires) or only for the start (irequires) of line `label`.
struct Dependency {
  std::uint64_t label = 0;
  bool start_only = false;
  bool operator==(const Dependency&) const = default;
};

class GoalWriter final : public GoalExport, private OpWalk::Visitor {
 public:
  GoalWriter(Rank ranks, TraceOutput& output, RankSpool spool)
      : ranks_(ranks),
        output_(output),
        spool_(std::move(spool)),
        labels_(static_cast<std::size_t>(ranks)),
        walk_(ranks, 0, *this) {}

  void set_mpi(const engine::MpiSetup& setup) override { walk_.set_mpi(setup); }
  Result<void> feed(Rank rank, const Event& event) override {
    if (event.kind == EventKind::kProbe) ++notes_.left_out_probes;
    if ((event.flags & kFlagSync) != 0) ++notes_.synchronous_sends;
    return walk_.feed(rank, event);
  }

  Result<ExportNotes> finish() override {
    if (Result<void> done = walk_.finish(); !done) return done.error();
    if (Result<void> done = output_.write("num_ranks " + std::to_string(ranks_) + "\n"); !done) return done.error();
    for (Rank rank = 0; rank < ranks_; ++rank) {
      Result<void> done = output_.write("\nrank " + std::to_string(rank) + " {\n");
      if (done) done = spool_.read(rank, [this](std::string_view text) { return output_.write(text); });
      if (done) done = output_.write("}\n");
      if (!done) return done.error();
    }
    walk_.add_to(notes_);
    return notes_;
  }

 private:
  struct Process {
    std::vector<Dependency> tail;  // what the next line waits for
    Seconds rounded_s = 0;         // processor time that was not written yet: parts of a nanosecond
  };
  // What is known of a message; of another one that had its slot before if the generation differs.
  struct Note {
    std::uint32_t generation = ~std::uint32_t{0};
    bool posted = false;           // its receive, at `tail`
    std::uint64_t label = 0;       // of its send
    std::vector<Dependency> tail;  // internal messages: where the fork or the join was
  };

  Note& note(const engine::Op& op, const engine::Message& message) {
    if (notes_of_message_.size() <= op.message()) notes_of_message_.resize(walk_.store().message_slots());
    return engine::current(notes_of_message_[op.message()], message);
  }

  Result<void> visit(engine::ProcessIndex index, const engine::Op& op, const engine::Message* message,
                     bool sent) override {
    if (processes_.size() <= index) processes_.resize(walk_.store().processes());
    Process& process = processes_[index];
    lines_.clear();
    visit_time(process, walk_.store().rank_of(index), op);
    if (message != nullptr) visit_message(process, walk_.store().rank_of(index), op, *message, sent);
    return lines_.empty() ? Result<void>() : spool_.add(walk_.store().rank_of(index), lines_);
  }

  void visit_time(Process& process, Rank rank, const engine::Op& op) {
    const bool is_off = op.kind == engine::OpKind::kBlocked || op.kind == engine::OpKind::kDevice;
    process.rounded_s += op.work_s + (is_off ? op.call_s : 0);
    const double nanoseconds = std::floor(process.rounded_s * 1e9 + 0.5);
    if (nanoseconds < 1) return;
    process.rounded_s -= nanoseconds * 1e-9;
    const std::uint64_t label =
        add_line(rank, "calc " + std::to_string(static_cast<std::uint64_t>(nanoseconds)), process.tail);
    process.tail.assign(1, {label, false});
  }

  void visit_message(Process& process, Rank rank, const engine::Op& op, const engine::Message& message, bool sent) {
    const bool internal = (op.flags & engine::kOpInternal) != 0;
    const auto message_line = [&](const char* action, Rank peer) {
      return action + std::to_string(message.bytes) + (op.kind == engine::OpKind::kSend ? "b to " : "b from ") +
             std::to_string(peer) + " tag " + std::to_string(flat_tag(message));
    };
    switch (op.kind) {
      case engine::OpKind::kSend: {
        if (internal) {
          note(op, message).tail = process.tail;
          break;
        }
        const std::uint64_t label = add_line(rank, message_line("send ", message.dst), process.tail);
        note(op, message).label = label;
        process.tail.assign(1, {label, (op.flags & engine::kOpNonblocking) != 0});
        break;
      }
      case engine::OpKind::kWaitSend:
        process.tail.push_back({note(op, message).label, false});
        break;
      case engine::OpKind::kPost:
        note(op, message).posted = true;
        note(op, message).tail = process.tail;
        break;
      case engine::OpKind::kRecv: {
        if (!sent) break;
        Note& known = note(op, message);
        if (internal) {
          process.tail.insert(process.tail.end(), known.tail.begin(), known.tail.end());
          break;
        }
        const std::uint64_t label =
            add_line(rank, message_line("recv ", message.src), known.posted ? known.tail : process.tail);
        // What the receive waits for need not be said again by what follows it.
        if (!known.posted || known.tail == process.tail) process.tail.clear();
        process.tail.push_back({label, false});
        break;
      }
      default:
        break;
    }
  }

  std::uint64_t add_line(Rank rank, const std::string& action, const std::vector<Dependency>& tail) {
    const std::uint64_t label = ++labels_[static_cast<std::size_t>(rank)];
    const std::string name = 'l' + std::to_string(label);
    lines_ += name + ": " + action + '\n';
    for (const Dependency& before : tail) {
      lines_ += name + (before.start_only ? " irequires l" : " requires l") + std::to_string(before.label) + '\n';
    }
    return label;
  }

  Rank ranks_;
  TraceOutput& output_;
  RankSpool spool_;
  std::vector<std::uint64_t> labels_;  // the last one of each rank
  std::vector<Process> processes_;
  std::vector<Note> notes_of_message_;
  std::string lines_;
  ExportNotes notes_;
  OpWalk walk_;
};

}  // namespace

Result<std::unique_ptr<GoalExport>> GoalExport::make(Rank ranks, TraceOutput& output, const std::string& spool_folder) {
  Result<RankSpool> spool = RankSpool::make(ranks, spool_folder);
  if (!spool) return spool.error();
  return std::unique_ptr<GoalExport>(std::make_unique<GoalWriter>(ranks, output, std::move(*spool)));
}

}  // namespace lbf::tools
