#include "tools/advise/advise_trace.h"

#include <utility>

#include "predictor/engine/replay/region_time.h"
#include "tools/trace/op_walk.h"

namespace lbf::tools {
namespace {

class GraphVisitor final : public OpWalk::Visitor {
 public:
  explicit GraphVisitor(Rank ranks) : ranks_(static_cast<engine::ProcessIndex>(ranks)), builder_(ranks) {}
  // Of the ops that will be visited.
  void set_store(const engine::OpStore& store) { store_ = &store; }

  Result<void> visit(engine::ProcessIndex process, const engine::Op& op, const engine::Message* message,
                     bool /*sent*/) override {
    // Actors (non-blocking collectives) use no processor.
    if (process < ranks_) {
      builder_.add_process_time(static_cast<Rank>(process), op.work_s);
      if ((op.flags & engine::kOpRegions) != 0) add_regions(static_cast<Rank>(process), op);
      if (op.kind == engine::OpKind::kBlocked || op.kind == engine::OpKind::kDevice)
        builder_.add_blocked_time(static_cast<Rank>(process), op.call_s);
    }
    if (op.kind == engine::OpKind::kSend && message != nullptr && !message->internal)
      builder_.add_message(message->src, message->dst, message->bytes);
    return {};
  }
  advisor::CommGraph finish() const { return builder_.finish(); }

 private:
  void add_regions(Rank rank, const engine::Op& op) {
    const engine::RegionWork& ran = store_->regions().at(op.region());
    const Seconds alone_s = engine::undivided_s(ran);
    builder_.add_regions(rank, {op.work_s, alone_s, ran.work_s - alone_s, ran.threads});
  }

  engine::ProcessIndex ranks_;
  const engine::OpStore* store_ = nullptr;
  advisor::CommGraphBuilder builder_;
};

}  // namespace

AdviseTrace::AdviseTrace(std::unique_ptr<WhatIfTrace> trace, const std::string& mpi_library,
                         std::uint32_t replay_threads, std::function<void(double)> progress)
    : trace_(std::move(trace)),
      mpi_(engine::mpi_setup(trace_->library(), trace_->node_of_rank(), trace_->mpi_settings())),
      replay_threads_(replay_threads),
      progress_(std::move(progress)) {
  if (const auto asked = engine::mpi_library_named(mpi_library)) engine::replace_library(mpi_, *asked);
  mpi_note_ = engine::mpi_note(mpi_, trace_->library());
}

Result<advisor::CommGraph> AdviseTrace::graph() {
  GraphVisitor visitor(ranks());
  OpWalk walk(ranks(), ~Bytes{0}, visitor, OpWalk::Windows::kTaken);
  visitor.set_store(walk.store());
  walk.set_mpi(mpi_);
  const auto sink = one_by_one([&](Rank rank, const Event& event) {
    call_s_ += event.call_s;
    return walk.feed(rank, event);
  });
  if (const Result<void> read = trace_->read(sink, progress_); !read) return read.error();
  if (const Result<void> done = walk.finish(); !done) return done.error();
  others_s_ = walk.matcher().stats().other_programs_s;
  return visitor.finish();
}

Result<ReplayedTrace> AdviseTrace::replay(const std::vector<engine::Target>& targets) {
  return replay_targets(*trace_, targets, mpi_, replay_threads_, progress_);
}

}  // namespace lbf::tools
