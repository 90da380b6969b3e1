// TracePass, see trace_pass.h.
#include "predictor/daemon/steps/trace_pass.h"

#include <algorithm>
#include <utility>

#include "protocol/control_records.h"

namespace lbf::daemon {
namespace {

constexpr std::uint64_t kMostEventsInFlight = 20'000'000;

}  // namespace

struct TracePass::Stream {
  Stream(std::uint32_t stream_number, CommunicatorTable& communicators)
      : number(stream_number), decoder(communicators, kMaxTraceRanks) {}
  std::uint32_t number;
  BatchDecoder decoder;
  std::uint64_t next_sequence = 1;
  bool broken = false;
  Seconds replayed_s = 0;
  std::uint32_t ranks = 0;

  Seconds mean_replayed_s() const { return ranks == 0 ? 0 : replayed_s / ranks; }
};

TracePass::TracePass(std::shared_ptr<const StepTrace> trace, std::vector<std::uint32_t> node_of_rank,
                     std::unique_ptr<engine::Predictor> predictor, std::size_t targets, ReplayMemory* memory,
                     const std::vector<std::string>& procedures, std::map<Rank, std::vector<SampledShare>> sampled)
    : trace_(std::move(trace)),
      node_of_rank_(std::move(node_of_rank)),
      ranks_(static_cast<Rank>(node_of_rank_.size())),
      targets_(targets),
      predictor_(std::move(predictor)),
      stream_of_rank_(node_of_rank_.size(), -1),
      closed_(node_of_rank_.size(), false),
      planned_procedures_(procedures.size()),
      sampled_(std::move(sampled)),
      memory_(memory) {
  for (const std::string& name : procedures) procedures_.number_of(name);
  memory_.set(replay_bytes(ranks_, targets_, 0));
}

TracePass::~TracePass() = default;

Result<std::unique_ptr<TracePass>> TracePass::make(std::shared_ptr<const StepTrace> trace,
                                                   const std::vector<std::uint32_t>& node_of_rank,
                                                   std::vector<engine::Target> targets, ReplayMemory* memory,
                                                   TraceProcedures procedures) {
  const std::size_t count = targets.size();
  auto predictor =
      engine::Predictor::make(static_cast<Rank>(node_of_rank.size()), std::move(targets), std::move(procedures.plan));
  if (!predictor) return predictor.error();
  if (procedures.observer != nullptr) (*predictor)->observe_timeline(*procedures.observer);
  return std::unique_ptr<TracePass>(
      new TracePass(std::move(trace), node_of_rank, std::move(predictor).value(), count, memory, procedures.names,
                    std::move(procedures.sampled)));
}

bool TracePass::has_work(const std::vector<StreamState>& streams, bool trace_is_complete) const {
  if (done_) return false;
  if (trace_is_complete) return true;
  // As the configuration that ran: streams that are ahead of one that will go on wait for it on disk.
  Seconds next_s = kNeverS;
  Seconds least_waiting_s = kNeverS;
  for (const StreamState& state : streams) {
    const auto found = streams_.find(state.stream);
    const bool begun = found != streams_.end();
    const bool broken = begun && found->second->broken;
    const std::uint64_t next = begun ? found->second->next_sequence : 1;
    const Seconds at_s = begun ? found->second->mean_replayed_s() : 0;
    if (!broken && next < state.next_sequence) {
      next_s = std::min(next_s, at_s);
    } else if (!state.end) {
      least_waiting_s = std::min(least_waiting_s, at_s);
    }
  }
  const bool ahead = next_s > least_waiting_s;
  return next_s < kNeverS && !(ahead && predictor_->stats().events_in_flight > kMostEventsInFlight);
}

TracePass::Stream* TracePass::next(const std::vector<StreamState>& streams) {
  Stream* next = nullptr;
  for (const StreamState& state : streams) {
    auto& stream = streams_[state.stream];
    if (stream == nullptr) stream = std::make_unique<Stream>(state.stream, communicators_);
    if (stream->broken || stream->next_sequence >= state.next_sequence) continue;
    if (next == nullptr || stream->mean_replayed_s() < next->mean_replayed_s()) next = stream.get();
  }
  return next;
}

void TracePass::work(const std::vector<StreamState>& streams) {
  Stream* const stream = next(streams);
  if (stream == nullptr) {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (!closed_[static_cast<std::size_t>(rank)]) predictor_->close(rank);
    }
    predictor_->advance();
    done_ = true;
    return;
  }
  BatchSink sink;
  sink.on_events = [&](Rank rank, std::span<const Event> events) { return take_events(*stream, rank, events); };
  sink.on_control = [&](std::string_view text) {
    take_control(text);
    return Result<void>{};
  };
  const auto read = trace_->read_batch(stream->number, stream->next_sequence, batch_);
  const bool decoded =
      read.ok() && stream->decoder.decode(std::as_bytes(std::span(batch_.data(), batch_.size())), sink).ok();
  // Why is among the step's reasons: the replay of the configuration that ran met it, too.
  if (!decoded) stream->broken = true;
  ++stream->next_sequence;
  memory_.set(replay_bytes(ranks_, targets_, predictor_->stats().events_in_flight));
}

std::vector<engine::Prediction> TracePass::predictions() {
  predictor_->advance();
  return predictor_->predictions();
}

// As StepRun does for the configuration that ran: who is no rank of the step, or comes twice, is left out.
Result<void> TracePass::take_events(Stream& stream, Rank rank, std::span<const Event> events) {
  any_event_ = true;
  if (rank < 0 || rank >= ranks_) return {};
  const auto index = static_cast<std::size_t>(rank);
  if (stream_of_rank_[index] < 0) {
    stream_of_rank_[index] = stream.number;
    ++stream.ranks;
  } else if (stream_of_rank_[index] != stream.number) {
    return {};
  }
  for (const Event& event : events) stream.replayed_s += event.process_s + event.call_s + event.off_s;
  if (closed_[index] || !failure_.empty()) return {};
  if (planned_procedures_ > 0) events = sampled_.put_into(rank, translated(rank, events));
  if (const auto fed = predictor_->feed(rank, events); !fed) failure_ = fed.error().message;
  return {};
}

std::span<const Event> TracePass::translated(Rank rank, std::span<const Event> events) {
  const auto says = [](const Event& event) { return is_procedure_event(event.kind) && !event.values.empty(); };
  const auto count = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), says));
  if (count == 0) return events;
  translated_.assign(events.begin(), events.end());
  numbers_.clear();
  numbers_.reserve(count);
  for (Event& event : translated_) {
    if (!says(event)) continue;
    const std::optional<std::uint32_t> number = procedures_.translate(rank, event.values[0]);
    // Named since the pass began: not in its plan.
    if (!number || *number >= planned_procedures_) {
      event.kind = EventKind::kCompute;
      event.values = {};
      continue;
    }
    auto& values = numbers_.emplace_back();
    const std::size_t used = std::min(values.size(), event.values.size());
    std::copy_n(event.values.begin(), used, values.begin());
    values[0] = *number;
    event.values = std::span(values).first(used);
  }
  return translated_;
}

void TracePass::take_control(std::string_view text) {
  const auto record = protocol::decode_control(text);
  if (!record) return;
  const std::int64_t said = protocol::rank_of(*record).value_or(protocol::kNoRank);
  if (said < 0 || said >= ranks_) return;
  const auto rank = static_cast<Rank>(said);
  if (const auto* process = std::get_if<protocol::ProcessRecord>(&*record)) {
    if (library_seen_ || any_event_ || process->library.empty()) return;
    library_seen_ = true;
    predictor_->set_mpi(engine::mpi_setup(process->library, node_of_rank_));
  } else if (const auto* procedure = std::get_if<protocol::ProcedureRecord>(&*record)) {
    // What is wrong with it the step says (StepProcedures).
    if (planned_procedures_ > 0 && procedure->id) (void)procedures_.define(rank, *procedure->id, procedure->name);
  } else if (std::holds_alternative<protocol::ProcessEndRecord>(*record) && !closed_[static_cast<std::size_t>(rank)]) {
    closed_[static_cast<std::size_t>(rank)] = true;
    predictor_->close(rank);
  }
}

}  // namespace lbf::daemon
