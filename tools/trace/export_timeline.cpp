#include "tools/trace/export_timeline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "predictor/engine/replay/timeline.h"
#include "tools/trace/event_text.h"

namespace lbf::tools {
namespace {

class TimelineWriter final : public TimelineExport, private engine::TimelineObserver {
 public:
  TimelineWriter(std::unique_ptr<engine::Predictor> predictor, Rank ranks, TraceOutput& output)
      : predictor_(std::move(predictor)),
        output_(output),
        target_(predictor_->targets().front()),
        ranks_(static_cast<std::size_t>(ranks)) {
    predictor_->observe_timeline(*this);
  }

  Result<void> start() {
    text_ = R"({"displayTimeUnit":"ns","traceEvents":[)";
    for (std::uint32_t node = 0; node < target_.nodes; ++node) {
      metadata("process_name", node, 0, R"("name":"node )" + std::to_string(node) + '"');
      metadata("process_sort_index", node, 0, R"("sort_index":)" + std::to_string(node));
    }
    for (engine::ProcessIndex rank = 0; rank < static_cast<engine::ProcessIndex>(ranks_.size()); ++rank) {
      metadata("thread_name", node_of(static_cast<Rank>(rank)), rank, R"("name":"rank )" + std::to_string(rank) + '"');
    }
    return flush(0);
  }

  void set_mpi(const engine::MpiSetup& setup) override { predictor_->set_mpi(setup); }
  Result<void> feed(Rank rank, const Event& event) override {
    if (rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size() && event.kind != EventKind::kKeepAlive) {
      ranks_[static_cast<std::size_t>(rank)].names.push_back(call_name(event));
    }
    if (Result<void> fed = predictor_->feed(rank, event); !fed) return fed;
    return flush(kFlushBytes);
  }

  Result<TimelineResult> finish() override {
    for (Rank rank = 0; rank < static_cast<Rank>(ranks_.size()); ++rank) {
      predictor_->close(rank);
      if (Result<void> done = flush(kFlushBytes); !done) return done.error();
    }
    (void)predictor_->advance();
    TimelineResult result;
    result.lbf_s = predictor_->predictions().front().lbf_s;
    if (const Result<void> whole = predictor_->diagnosis(); !whole) result.why_partial = whole.error().message;
    text_ += "\n]}\n";
    if (Result<void> done = flush(0); !done) return done.error();
    return result;
  }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 20;
  struct RankState {
    std::deque<std::string_view> names;  // of the events that are fed and not over
    std::uint64_t first_event = 1;       // number of names.front()
  };

  std::uint32_t node_of(Rank rank) const { return target_.node_of_rank[static_cast<std::size_t>(rank)]; }

  Result<void> flush(std::size_t limit) {
    if (text_.size() <= limit) return {};
    Result<void> done = output_.write(text_);
    text_.clear();
    return done;
  }

  void begin_entry() {
    text_ += first_ ? "\n{" : ",\n{";
    first_ = false;
  }
  void metadata(const char* name, std::uint32_t node, engine::ProcessIndex row, const std::string& arguments) {
    begin_entry();
    text_ += R"("ph":"M","name":")" + std::string(name) + R"(","pid":)" + std::to_string(node) + R"(,"tid":)" +
             std::to_string(row) + R"(,"args":{)" + arguments + "}}";
  }
  // Whole nanoseconds: the end of a slice is the begin of the next one, also where both are rounded.
  static std::int64_t nanoseconds(Seconds time_s) {
    constexpr double kMost = 9e18;
    return std::llround(std::clamp(time_s * 1e9, -kMost, kMost));
  }
  // In microseconds, the format's unit.
  void append_us(std::int64_t time_ns) {
    const std::string digits = std::to_string(std::abs(time_ns % 1000));
    if (time_ns < 0 && time_ns > -1000) text_ += '-';
    text_ += std::to_string(time_ns / 1000) + '.' + std::string(3 - digits.size(), '0') + digits;
  }
  void place(const engine::TimelineOp& op, Seconds time_s) {
    text_ += R"(,"pid":)" + std::to_string(node_of(op.rank)) + R"(,"tid":)" + std::to_string(op.process) + R"(,"ts":)";
    append_us(nanoseconds(time_s));
  }

  void slice(const engine::TimelineOp& op, const std::string& name, const char* category, Seconds begin_s,
             Seconds end_s, bool also_empty = false) {
    if (end_s <= begin_s && !also_empty) return;
    begin_entry();
    text_ += R"("ph":"X","name":")" + name + R"(","cat":")" + category + '"';
    place(op, begin_s);
    text_ += R"(,"dur":)";
    append_us(nanoseconds(end_s) - nanoseconds(begin_s));
    if (op.message_id != 0 && !op.message.internal && begin_s >= op.acted_s) {
      text_ += R"(,"args":{"from":)" + std::to_string(op.message.src) + R"(,"to":)" + std::to_string(op.message.dst) +
               R"(,"bytes":)" + std::to_string(op.message.bytes) + R"(,"comm":)" + std::to_string(op.message.comm) +
               (op.message.collective ? R"(,"engine::collective":)" : R"(,"tag":)") + std::to_string(op.message.tag) +
               '}';
    }
    text_ += '}';
  }

  // An arrow's end lies in the slice that is there at its time.
  void arrow(const engine::TimelineOp& op, char phase, Seconds time_s) {
    begin_entry();
    text_ += std::string(R"("ph":")") + phase + R"(","name":"message","cat":"message","id":")" +
             std::to_string(op.message_id) + (phase == 'f' ? R"(","bp":"e")" : "\"");
    place(op, time_s);
    text_ += '}';
  }

  std::string name_of(const engine::TimelineOp& op) {
    if (op.actor) return "collective";
    RankState& state = ranks_[static_cast<std::size_t>(op.rank)];
    while (state.first_event < op.event && !state.names.empty()) {
      state.names.pop_front();
      ++state.first_event;
    }
    return state.names.empty() || state.first_event != op.event ? std::string("call")
                                                                : std::string(state.names.front());
  }

  void on_op(const engine::TimelineOp& op) override {
    if (op.actor && rows_.size() <= op.process) rows_.resize(op.process + std::size_t{1});
    if (op.actor && !rows_[op.process]) {
      rows_[op.process] = true;
      metadata("thread_name", node_of(op.rank), op.process,
               R"("name":"rank )" + std::to_string(op.rank) + R"(, collectives under way")");
    }
    const std::string name = name_of(op);
    const bool internal = (op.flags & engine::kOpInternal) != 0;
    slice(op, "process", "process", op.begin_s, op.acted_s);
    // A send that waits for nothing takes no time: its arrow needs a slice all the same.
    const bool has_arrow =
        !internal && op.message_id != 0 && (op.kind == engine::OpKind::kSend || op.kind == engine::OpKind::kRecv);
    if (!(op.actor && internal)) {
      const char* const what = op.kind == engine::OpKind::kBlocked  ? "blocked"
                               : op.kind == engine::OpKind::kDevice ? "device"
                                                                    : "waiting";
      slice(op, name, what, op.acted_s, op.waited_s, has_arrow);
    }
    slice(op, name, "protocol", op.waited_s, op.end_s);
    if (!has_arrow) return;
    if (op.kind == engine::OpKind::kSend) arrow(op, 's', op.acted_s);
    if (op.kind == engine::OpKind::kRecv) arrow(op, 'f', op.waited_s);
  }

  std::unique_ptr<engine::Predictor> predictor_;
  TraceOutput& output_;
  const engine::Target& target_;
  std::vector<RankState> ranks_;
  std::vector<bool> rows_;  // by process: an actor's row has its name
  std::string text_;
  bool first_ = true;
};

}  // namespace

Result<std::unique_ptr<TimelineExport>> TimelineExport::make(Rank ranks, const engine::Target& target,
                                                             TraceOutput& output) {
  Result<std::unique_ptr<engine::Predictor>> predictor = engine::Predictor::make(ranks, {target});
  if (!predictor) return predictor.error();
  auto made = std::make_unique<TimelineWriter>(std::move(*predictor), ranks, output);
  if (Result<void> started = made->start(); !started) return started.error();
  return std::unique_ptr<TimelineExport>(std::move(made));
}

}  // namespace lbf::tools
