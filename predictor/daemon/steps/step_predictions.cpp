// StepPredictions, see step_predictions.h.
#include "predictor/daemon/steps/step_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace lbf::daemon {
namespace {

db::TopologyRecord topology_of(const engine::Target& target) {
  db::TopologyRecord out;
  if (target.topology == nullptr) return out;
  out.file = target.topology->file();
  for (const std::uint32_t node : target.topology_node_of_node) out.nodes.push_back(target.topology->node_name(node));
  return out;
}

Seconds largest(const std::vector<Seconds>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// What a prediction is compared with: the measured run where both are whole, without the time that a suspended job
// stood still, else the measured time of the same events, which do not have it; and, where the target has no other
// programs, without theirs. A run that was ended by force may have no message under way: then only the step's reasons
// tell.
Seconds measured_for(const engine::Prediction& prediction, const engine::Target& target, const MeasuredRun& run) {
  const bool whole = run.is_whole() && prediction.complete && run.measured_s > 0;
  const Seconds ran_s = whole ? run.measured_s - run.longest_stop_s : largest(prediction.rank_measured_s);
  return std::max(0.0, ran_s - (target.other_programs == engine::OtherPrograms::kLeftOut ? run.lost_s : 0));
}

// The step is whole, so it ends on some target: what holds it up on this one is the target.
bool is_stuck(const engine::Prediction& prediction, const MeasuredRun& run) {
  return run.is_whole() && !prediction.why_stuck.empty();
}

// RAN where each rank and thread has a processor, links and memory are not shared, and no others were there: what the
// program does, whatever the machine had room for.
engine::Target with_own_processors(const engine::Target& ran) {
  engine::Target out = ran;
  out.cores_of_node.clear();
  out.cores_per_node = std::numeric_limits<std::uint32_t>::max();
  out.memory = {};
  out.other_programs = engine::OtherPrograms::kLeftOut;
  if (ran.network->contention() != engine::Contention::kNone) {
    engine::Network network = *ran.network;
    network.set_contention(engine::Contention::kNone);
    out.network = std::make_shared<const engine::Network>(std::move(network));
  }
  return out;
}

}  // namespace

StepPredictions::StepPredictions(std::shared_ptr<const StepTrace> trace, const StepRunOptions& options,
                                 StepRemarks& remarks)
    : trace_(std::move(trace)), options_(options), remarks_(remarks) {}

void StepPredictions::begin(StepConfiguration& configuration) {
  ran_ = &configuration.ran;
  targets_ = std::move(configuration.targets);
  if (options_.picture != nullptr) {
    if (options_.picture->target() >= targets_.size()) {
      remarks_.add_reason(fmt::format("lbfd makes {} targets of this step now; it has no number {}", targets_.size(),
                                      options_.picture->target()));
      return;
    }
    targets_ = {targets_[options_.picture->target()]};
  }
  demand_ = configuration.demand;
  // With a limit the configuration that ran goes alone: whatever happens to the others, it is predicted.
  const bool limited = options_.budget.is_limited() || (options_.memory && options_.memory->is_limited()) ||
                       (options_.accounts != nullptr && options_.picture == nullptr);
  main_targets_ = limited ? 1 : targets_.size();
  const auto last = targets_.begin() + static_cast<std::ptrdiff_t>(main_targets_);
  auto predictor = engine::Predictor::make(trace_->description().tasks, {targets_.begin(), last});
  memory_share_ = std::make_unique<ReplayMemoryShare>(options_.memory.get());
  if (!predictor) return remarks_.add_reason("no prediction: " + predictor.error().message);
  predictor_ = std::move(predictor).value();
  predictor_->set_limits(options_.limits);
  has_begun_ = true;
  if (options_.picture == nullptr) return;
  options_.picture->start(*ran_, predictor_->targets().front());
  predictor_->observe_timeline(*options_.picture);
}

void StepPredictions::set_mpi(const engine::MpiSetup& setup) {
  if (predictor_ != nullptr) predictor_->set_mpi(setup);
}

void StepPredictions::feed(Rank rank, std::span<const Event> events) {
  if (!is_running()) return;
  if (options_.picture != nullptr) options_.picture->measured(rank, events);
  stop_at(predictor_->feed(rank, events));
}

// Who stopped it says why (StepRun).
void StepPredictions::stop_at(const Result<void>& replayed) {
  if (replayed) return;
bool StepPredictions::feed_rounds(Rank rank, const Rounds& rounds) {
  if (!is_running() || options_.picture != nullptr) return false;
  const Result<bool> fed = predictor_->feed_rounds(rank, rounds);
  if (!fed) stop_at(fed.error());
  return !fed || *fed;
}

  const ErrorCode code = replayed.error().code;
  ran_out_ |= code == ErrorCode::kUnavailable || code == ErrorCode::kLimit;
  if (!failed_ && code != ErrorCode::kUnavailable)
    remarks_.add_reason("the prediction stopped: " + replayed.error().message);
  failed_ = true;
}

void StepPredictions::advance() {
  if (predictor_ != nullptr) stop_at(predictor_->advance());
}

Bytes StepPredictions::memory_bytes() const {
  Bytes bytes = predictor_ == nullptr ? 0 : predictor_->memory_bytes();
  for (const auto& pass : passes_) bytes += pass->memory_bytes();
  if (composed_ != nullptr) bytes += composed_->memory_bytes();
  for (const engine::Target& target : targets_) bytes += target.node_of_rank.capacity() * sizeof(std::uint32_t);
  for (const engine::Prediction& one : kept_)
    bytes += (one.rank_finish_s.capacity() + one.rank_measured_s.capacity()) * sizeof(Seconds);
  return bytes;
}

void StepPredictions::release() {
  ran_out_ = false;
  give_up_further_targets();
  if (predictor_ == nullptr) return;
  kept_ = predictor_->predictions();
  kept_stats_ = predictor_->stats();
  predictor_.reset();
  memory_share_->set(0);
}

void StepPredictions::close(Rank rank) {
  if (predictor_ != nullptr) predictor_->close(rank);
}

std::uint64_t StepPredictions::events_in_flight() const {
  return predictor_ == nullptr ? 0 : predictor_->stats().events_in_flight;
}

void StepPredictions::count_memory() {
  if (predictor_ != nullptr)
    memory_share_->set(replay_bytes(trace_->description().tasks, main_targets_, events_in_flight()));
}

// --- further targets

void StepPredictions::set_why_deferred(std::string why) {
  if (why != why_deferred_) remarks_.mark_changed();
  why_deferred_ = std::move(why);
}

TracePass* StepPredictions::pass_with_work(const std::vector<StreamState>& streams, bool trace_is_complete) const {
  for (const auto& pass : passes_) {
    if (pass->has_work(streams, trace_is_complete)) return pass.get();
  }
  return nullptr;
}

void StepPredictions::begin_pass() {
  const std::size_t first = first_target_of_pass(passes_.size());
  const std::size_t end = std::min(first + options_.targets_per_pass, targets_.size());
  auto pass = TracePass::make(
      trace_, ran_->node_of_rank,
      {targets_.begin() + static_cast<std::ptrdiff_t>(first), targets_.begin() + static_cast<std::ptrdiff_t>(end)},
      options_.memory.get(), options_.limits);
  if (pass) {
    passes_.push_back(std::move(pass).value());
    return;
  }
  remarks_.add_reason("no prediction: " + pass.error().message);
  targets_.resize(first);
}

StepPredictions::Worked StepPredictions::work(const std::vector<StreamState>& streams, bool trace_is_complete,
                                              bool any_event, const std::string& why_no_cpu) {
  TracePass* const behind = pass_with_work(streams, trace_is_complete);
  const std::size_t begun = first_target_of_pass(passes_.size());
  if (behind == nullptr && begun >= targets_.size()) {
    set_why_deferred({});
    const bool may_compose = trace_is_complete && any_event && why_no_cpu.empty() && options_.picture == nullptr &&
                             remarks_.reasons().empty();
    return may_compose && compose(streams) ? Worked::kBatch : Worked::kNothing;
  }
  if (behind == nullptr && !any_event && !trace_is_complete) return Worked::kNothing;  // nothing to replay yet
  if (!why_no_cpu.empty()) {
    set_why_deferred(why_no_cpu);
    return Worked::kNothing;
  }
  if (behind == nullptr) {
    const std::size_t count = std::min(options_.targets_per_pass, targets_.size() - begun);
    if (options_.memory && !options_.memory->has_room_for(replay_bytes(trace_->description().tasks, count, 0))) {
      set_why_deferred("the replays of all steps fill replay_memory_mb");
      return Worked::kNothing;
    }
    if (std::string why = options_.why_no_memory(replay_bytes(trace_->description().tasks, count, 0)); !why.empty()) {
      set_why_deferred(std::move(why));
      return Worked::kNothing;
    }
    begin_pass();
    return Worked::kPassBegun;
  }
  set_why_deferred({});
  behind->work(streams);
  if (!behind->failure().empty() && !behind->was_stopped())
    remarks_.add_note("targets beside the configuration that ran: " + behind->failure());
  remarks_.mark_changed();
  return Worked::kBatch;
}

bool StepPredictions::compose(const std::vector<StreamState>& streams) {
  if (is_composed_) return false;
  if (composed_ == nullptr) {
    constexpr engine::Clocks kClocks = engine::Clocks::kComposed;
    const Bytes bytes = replay_bytes(trace_->description().tasks, times_of(kClocks), 0);
    const bool has_room = !options_.memory || options_.memory->has_room_for(bytes);
    auto pass = has_room && options_.why_no_memory(bytes).empty()
                    ? TracePass::make(trace_, ran_->node_of_rank, {with_own_processors(*ran_)}, options_.memory.get(),
                                      options_.limits, {}, kClocks)
                    : Result<std::unique_ptr<TracePass>>(Error{ErrorCode::kLimit, "there is no room"});
    is_composed_ = !pass;
    if (!pass) return false;
    composed_ = std::move(pass).value();
  }
  composed_->work(streams);
  if (!composed_->is_done() || composed_->was_stopped()) return true;  // who stopped it gives it up
  const engine::Prediction prediction = std::move(composed_->predictions().front());
  if (composed_->failure().empty() && prediction.complete) composition_ = prediction.composition;
  composed_.reset();
  is_composed_ = true;
  remarks_.mark_changed();
  return true;
}

void StepPredictions::give_up_further_targets() {
  targets_.resize(main_targets_);
  passes_.clear();
  (void)give_up_composition();
}

bool StepPredictions::give_up_composition() {
  is_composed_ = true;
  return std::exchange(composed_, nullptr) != nullptr;
}

// --- what they say

void StepPredictions::set_capture_cost(const engine::CaptureCost& cost) {
  if (predictor_ != nullptr) predictor_->set_capture_cost(cost);
  for (const auto& pass : passes_) pass->set_capture_cost(cost);
}

Result<void> StepPredictions::diagnosis() const {
  auto diagnosis = predictor_->diagnosis();
  for (const auto& pass : passes_) {
    if (!diagnosis && pass->is_done() && pass->failure().empty()) diagnosis = pass->diagnosis();
  }
  return diagnosis;
}

// In the order of targets_.
std::vector<StepPredictions::Predicted> StepPredictions::predicted(bool run_is_finished) const {
  std::vector<Predicted> all;
  for (engine::Prediction& prediction : predictor_ == nullptr ? std::vector(kept_) : predictor_->predictions())
    all.push_back({std::move(prediction), {}});
  const std::vector<StreamState> states = trace_->streams();
  const std::string waits = why_deferred_.empty() ? "its turn has not come yet" : why_deferred_;
  for (const auto& pass : passes_) {
    // Behind: of a step that is over, whatever is not whole; of one under way, what rests.
    const bool behind =
        !pass->is_done() && (run_is_finished || (!why_deferred_.empty() && pass->has_work(states, false)));
    for (engine::Prediction& prediction : pass->predictions())
      all.push_back({std::move(prediction), behind ? waits : std::string()});
  }
  while (all.size() < targets_.size()) {
    Predicted none;
    const auto ranks = static_cast<std::size_t>(trace_->description().tasks);
    none.prediction.rank_finish_s.assign(ranks, 0);
    none.prediction.rank_measured_s.assign(ranks, 0);
    none.why_deferred = waits;
    all.push_back(std::move(none));
  }
  all.resize(targets_.size());
  return all;
}

bool StepPredictions::is_place_that_ran(const engine::Target& target) const {
  return target.nodes == ran_->nodes && target.cores_per_node == ran_->cores_per_node &&
         target.node_of_rank == ran_->node_of_rank && target.speed == ran_->speed;
}

db::PredictionRecord StepPredictions::record_of(std::size_t index, const Predicted& predicted,
                                                const MeasuredRun& run) const {
  const engine::Target& target = targets_[index];
  const engine::Prediction& prediction = predicted.prediction;
  const Seconds measured_s = measured_for(prediction, target, run);
  const bool stuck = is_stuck(prediction, run);
  db::PredictionRecord out;
  out.nodes = target.nodes;
  out.cores_per_node = target.cores_per_node;
  out.placement = target.placement;
  const std::string shown = target.placement.starts_with("map=") ? "map" : target.placement;
  out.target = fmt::format("{} {}, {}", target.nodes, target.nodes == 1 ? "node" : "nodes", shown);
  if (run.threads > 0) {
    out.threads = target.threads != 0 ? target.threads : run.threads;
    out.target += fmt::format(", {} {}", out.threads, out.threads == 1 ? "thread" : "threads");
  }
  out.network = target.network->name();
  out.contention = contention_name(target.network->contention());
  out.speed = target.speed;
  if (ran_->network->memory().known()) {
    const engine::RanDensity ran = engine::ran_density(*ran_, static_cast<std::uint32_t>(run.threads));
    out.memory_percent = engine::unknown_demand_percent(ran, target, demand_);
  }
  out.exchange_percent = prediction.exchange_percent;
  out.topology = topology_of(target);
  const bool same_network = target.network == ran_->network;
  const bool same_place = is_place_that_ran(target) && (run.threads == 0 || out.threads == run.threads);
  out.kind = index == 0 ? "self" : same_network ? "LBF" : same_place ? "NF" : "LBF+NF";
  out.predicted_s = prediction.lbf_s;
  if (stuck) out.why_stuck = prediction.why_stuck;
  out.why_deferred = predicted.why_deferred;
  out.taken_up = out.why_deferred.empty() && options_.deferred_before.contains(out.name());
  if (prediction.lbf_s > 0 && measured_s > 0 && !stuck && out.why_deferred.empty())
    out.speedup = measured_s / prediction.lbf_s;
  out.partial = !prediction.complete || run.is_partial;
  out.progress_s = largest(prediction.rank_finish_s);
  out.measured_at_progress_s = largest(prediction.rank_measured_s);
  out.rank_finish_s = prediction.rank_finish_s;
  out.seen_share = prediction.seen_share;
  if (prediction.seen_share < 1 && !stuck && prediction.high_s != kNeverS) {
    out.low_s = prediction.low_s;
    out.high_s = prediction.high_s;
  }
  return out;
}

std::vector<db::PredictionRecord> StepPredictions::records(const MeasuredRun& run) const {
  std::vector<db::PredictionRecord> records;
  const std::vector<Predicted> all = predicted(run.is_finished);
  std::optional<double> self_error_percent;
  if (!all.empty()) {
    const engine::Prediction& self = all.front().prediction;
    const Seconds measured_s = measured_for(self, targets_.front(), run);
    if (measured_s > 0 && !is_stuck(self, run)) self_error_percent = 100 * (self.lbf_s - measured_s) / measured_s;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    // The last target, if any: of a run without parallel regions it is the first one again.
    if (run.threads == 0 && i > 0 && is_place_that_ran(targets_[i]) && targets_[i].network == ran_->network) continue;
    records.push_back(record_of(i, all[i], run));
    records.back().self_error_percent = self_error_percent;
  }
  return records;
}

}  // namespace lbf::daemon
