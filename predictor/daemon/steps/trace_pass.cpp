// TracePass, see trace_pass.h.
#include "predictor/daemon/steps/trace_pass.h"

#include <algorithm>
#include <utility>

namespace lbf::daemon {
namespace {

constexpr std::uint64_t kMostEventsInFlight = 20'000'000;

}  // namespace

TracePass::TracePass(std::shared_ptr<const StepTrace> trace, std::vector<std::uint32_t> node_of_rank,
                     std::unique_ptr<engine::Predictor> predictor, std::size_t targets, ReplayMemory* memory,
                     ReplayLimits limits, const std::vector<std::string>& procedures,
                     std::map<Rank, std::vector<SampledShare>> sampled)
    : reader_(std::move(trace), static_cast<Rank>(node_of_rank.size())),
      node_of_rank_(std::move(node_of_rank)),
      ranks_(static_cast<Rank>(node_of_rank_.size())),
      targets_(targets),
      predictor_(std::move(predictor)),
      closed_(node_of_rank_.size(), false),
      planned_procedures_(procedures.size()),
      sampled_(std::move(sampled)),
      memory_(memory) {
  for (const std::string& name : procedures) procedures_.number_of(name);
  memory_.set(replay_bytes(ranks_, targets_, 0));
  turn_.limit(*predictor_, std::move(limits));
  turn_.count(predictor_->memory_bytes());
}

TracePass::~TracePass() = default;

Result<std::unique_ptr<TracePass>> TracePass::make(std::shared_ptr<const StepTrace> trace,
                                                   const std::vector<std::uint32_t>& node_of_rank,
                                                   std::vector<engine::Target> targets, ReplayMemory* memory,
                                                   ReplayLimits limits, TraceProcedures procedures,
                                                   engine::Clocks clocks) {
  const std::size_t count = targets.size() * times_of(clocks);
  auto predictor = engine::Predictor::make(static_cast<Rank>(node_of_rank.size()), std::move(targets),
                                           std::move(procedures.plan), clocks);
  if (!predictor) return predictor.error();
  if (procedures.observer != nullptr) (*predictor)->observe_timeline(*procedures.observer);
  return std::unique_ptr<TracePass>(new TracePass(std::move(trace), node_of_rank, std::move(predictor).value(), count,
                                                  memory, std::move(limits), procedures.names,
                                                  std::move(procedures.sampled)));
}

bool TracePass::has_work(const std::vector<StreamState>& streams, bool trace_is_complete) const {
  if (done_) return false;
  if (trace_is_complete) return true;
  // As the configuration that ran: streams that are ahead of one that will go on wait for it on disk.
  const StoredTraceReader::Next next = reader_.next(streams);
  return next.stream && !(next.is_ahead && predictor_->stats().events_in_flight > kMostEventsInFlight);
}

void TracePass::work(const std::vector<StreamState>& streams) {
  turn_.begin();
  read_next(streams);
  turn_.count(predictor_->memory_bytes());
}

void TracePass::read_next(const std::vector<StreamState>& streams) {
  const StoredTraceReader::Next next = reader_.next(streams);
  if (!next.stream) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (!closed_[static_cast<std::size_t>(rank)]) predictor_->close(rank);
    }
    fail(predictor_->advance());
    done_ = true;
    return;
  }
  // What is wrong with a stream is among the step's reasons: the replay of the configuration that ran met it, too.
  (void)reader_.read(
      *next.stream, {[this](std::uint32_t, Rank rank, std::span<const Event> events, StoredTraceReader::Origin origin) {
                       take_events(rank, events, origin);
                     },
                     [this](std::uint32_t, const protocol::ControlRecord& record) { take_control(record); },
                     [this](Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin) {
                       return take_rounds(rank, rounds, origin);
                     }});
  memory_.set(replay_bytes(ranks_, targets_, predictor_->stats().events_in_flight));
}

// What is left of the trace would be read for nothing.
void TracePass::fail(const Result<void>& replayed) {
  if (replayed || !failure_.empty()) return;
  failure_ = replayed.error().message;
  was_stopped_ = replayed.error().code == ErrorCode::kUnavailable;
  done_ = true;
}

std::vector<engine::Prediction> TracePass::predictions() {
  turn_.begin();
  fail(predictor_->advance());
  turn_.count(predictor_->memory_bytes());
  return predictor_->predictions();
}

// As StepRun does for the configuration that ran: who is no rank of the step, or comes twice, is left out.
void TracePass::take_events(Rank rank, std::span<const Event> events, StoredTraceReader::Origin origin) {
  any_event_ = true;
  if (origin == StoredTraceReader::Origin::kNoRankOfStep || origin == StoredTraceReader::Origin::kOtherStream) return;
  if (closed_[static_cast<std::size_t>(rank)] || !failure_.empty()) return;
  // Procedures that were named since the pass began are not in its plan.
  if (planned_procedures_ > 0)
    events = sampled_.put_into(rank, translation_.translate(procedures_, planned_procedures_, rank, events));
  fail(predictor_->feed(rank, events));
}

Result<bool> TracePass::take_rounds(Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin) {
  const bool is_of_step = origin == StoredTraceReader::Origin::kFirst || origin == StoredTraceReader::Origin::kAsBefore;
  if (planned_procedures_ > 0 || !is_of_step || closed_[static_cast<std::size_t>(rank)] || !failure_.empty())
    return false;
  const Result<bool> fed = predictor_->feed_rounds(rank, rounds);
  if (fed) return fed;
  fail(fed.error());
  return true;
}

void TracePass::take_control(const protocol::ControlRecord& record) {
  const std::int64_t said = protocol::rank_of(record).value_or(protocol::kNoRank);
  if (said < 0 || said >= ranks_) return;
  const auto rank = static_cast<Rank>(said);
  if (const auto* process = std::get_if<protocol::ProcessRecord>(&record)) {
    if (library_seen_ || any_event_ || process->library.empty()) return;
    library_seen_ = true;
    predictor_->set_mpi(engine::mpi_setup(process->library, node_of_rank_, process->mpi_settings));
  } else if (const auto* procedure = std::get_if<protocol::ProcedureRecord>(&record)) {
    // What is wrong with it the step says (StepProcedures).
    if (planned_procedures_ > 0 && procedure->id && procedures_.find(procedure->name))
      (void)procedures_.define(rank, *procedure->id, procedure->name);
  } else if (std::holds_alternative<protocol::ProcessEndRecord>(record) && !closed_[static_cast<std::size_t>(rank)]) {
    closed_[static_cast<std::size_t>(rank)] = true;
    predictor_->close(rank);
  }
}

}  // namespace lbf::daemon
