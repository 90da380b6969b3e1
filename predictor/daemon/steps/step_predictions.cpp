// StepPredictions, see step_predictions.h.
#include "predictor/daemon/steps/step_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "predictor/engine/replay/replay_groups.h"

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
  begun_targets_ = main_targets_;
  const auto last = targets_.begin() + static_cast<std::ptrdiff_t>(main_targets_);
  auto predictor = engine::Predictor::make(trace_->description().tasks, {targets_.begin(), last});
  memory_share_ = std::make_unique<ReplayMemoryShare>(options_.memory.get());
  if (!predictor) return remarks_.add_reason("no prediction: " + predictor.error().message);
  predictor_ = std::move(predictor).value();
  turn_.limit(*predictor_, options_.limits);
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

bool StepPredictions::feed_rounds(Rank rank, const Rounds& rounds) {
  if (!is_running() || options_.picture != nullptr) return false;
  const Result<bool> fed = predictor_->feed_rounds(rank, rounds);
  if (!fed) stop_at(fed.error());
  return !fed || *fed;
}

// Who stopped it says why (StepRun).
void StepPredictions::stop_at(const Result<void>& replayed) {
  if (replayed) return;
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
  for (const FurtherPass& pass : passes_) bytes += pass.replay->memory_bytes();
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

std::string StepPredictions::why_no_room(std::size_t count) const {
  const Bytes bytes = replay_bytes(trace_->description().tasks, count, 0);
  if (options_.memory && !options_.memory->has_room_for(bytes)) return "the replays of all steps fill replay_memory_mb";
  return options_.why_no_memory(bytes);
}

void StepPredictions::begin_passes() {
  const std::size_t first = begun_targets_;
  begun_targets_ = std::min(first + options_.targets_per_pass, targets_.size());
  const auto at = [this](std::size_t number) { return targets_.begin() + static_cast<std::ptrdiff_t>(number); };
  for (std::vector<std::size_t>& group : engine::replay_groups({at(first), at(begun_targets_)}, options_.threads)) {
    std::vector<engine::Target> targets;
    for (std::size_t& number : group) targets.push_back(targets_[number += first]);
    auto pass = TracePass::make(trace_, ran_->node_of_rank, std::move(targets), options_.memory.get(), options_.limits);
    if (pass) {
      passes_.push_back({std::move(group), std::move(pass).value()});
      continue;
    }
    remarks_.add_reason("no prediction: " + pass.error().message);
    std::erase_if(passes_, [first](const FurtherPass& of_group) { return of_group.targets.front() >= first; });
    begun_targets_ = first;
    targets_.resize(first);
    return;
  }
}

StepPredictions::Further StepPredictions::further(const std::vector<StreamState>& streams, bool trace_is_complete,
                                                  bool any_event, const CpuRoom& cpu) {
  Further out;
  for (const FurtherPass& pass : passes_) {
    if (pass.replay->has_work(streams, trace_is_complete)) out.passes.push_back(pass.replay.get());
  }
  const bool is_behind = !out.passes.empty();
  const bool all_begun = begun_targets_ == targets_.size();
  if (!is_behind && !all_begun && !any_event && !trace_is_complete) return {};  // nothing to replay yet
  std::string why = is_behind || !all_begun ? cpu.why_none : std::string();
  if (why.empty() && !is_behind && !all_begun)
    why = why_no_room(std::min(options_.targets_per_pass, targets_.size() - begun_targets_));
  set_why_deferred(why);
  if (!why.empty()) return {};
  if (!is_behind && !all_begun) {
    begin_passes();
    return {true, {}};
  }
  // Beside targets it takes only what they will hardly need.
  const bool may_compose = all_begun && trace_is_complete && any_event && options_.picture == nullptr &&
                           remarks_.reasons().empty() && cpu.why_none.empty() && (cpu.is_plentiful || !is_behind);
  if (!may_compose) return out;
  if (composed_ != nullptr) {
    out.passes.push_back(composed_.get());
  } else if (!is_composed_) {
    begin_composition();
    out.has_begun = composed_ != nullptr;
  }
  return out;
}

void StepPredictions::begin_composition() {
  constexpr engine::Clocks kClocks = engine::Clocks::kComposed;
  is_composed_ = true;
  if (!why_no_room(times_of(kClocks)).empty()) return;
  auto pass = TracePass::make(trace_, ran_->node_of_rank, {with_own_processors(*ran_)}, options_.memory.get(),
                              options_.limits, {}, kClocks);
  if (pass) composed_ = std::move(pass).value();
}

void StepPredictions::passes_worked() {
  for (const FurtherPass& pass : passes_) {
    if (!pass.replay->failure().empty() && !pass.replay->was_stopped())
      remarks_.add_note("targets beside the configuration that ran: " + pass.replay->failure());
  }
  remarks_.mark_changed();
  // Who stopped it gives it up.
  if (composed_ == nullptr || !composed_->is_done() || composed_->was_stopped()) return;
  const engine::Prediction prediction = std::move(composed_->predictions().front());
  if (composed_->failure().empty() && prediction.complete) composition_ = prediction.composition;
  composed_.reset();
}

void StepPredictions::give_up_further_targets() {
  targets_.resize(main_targets_);
  begun_targets_ = main_targets_;
  passes_.clear();
  (void)give_up_composition();
}

bool StepPredictions::give_up_composition() {
  is_composed_ = true;
  return std::exchange(composed_, nullptr) != nullptr;
}

bool StepPredictions::is_only_composition_stopped() const {
  return composed_ != nullptr && composed_->was_stopped() &&
         std::ranges::none_of(passes_, [](const FurtherPass& pass) { return pass.replay->was_stopped(); });
}

// --- what they say

void StepPredictions::set_capture_cost(const engine::CaptureCost& cost) {
  if (predictor_ != nullptr) predictor_->set_capture_cost(cost);
  for (const FurtherPass& pass : passes_) pass.replay->set_capture_cost(cost);
}

Result<void> StepPredictions::diagnosis() const {
  auto diagnosis = predictor_->diagnosis();
  for (const FurtherPass& pass : passes_) {
    if (!diagnosis && pass.replay->is_done() && pass.replay->failure().empty()) diagnosis = pass.replay->diagnosis();
  }
  return diagnosis;
}

// In the order of targets_.
std::vector<StepPredictions::Predicted> StepPredictions::predicted(bool run_is_finished) const {
  const std::vector<StreamState> states = trace_->streams();
  const std::string waits = why_deferred_.empty() ? "its turn has not come yet" : why_deferred_;
  Predicted none;
  const auto ranks = static_cast<std::size_t>(trace_->description().tasks);
  none.prediction.rank_finish_s.assign(ranks, 0);
  none.prediction.rank_measured_s.assign(ranks, 0);
  none.why_deferred = waits;
  std::vector<Predicted> all(targets_.size(), none);
  std::vector<engine::Prediction> main = predictor_ == nullptr ? kept_ : predictor_->predictions();
  for (std::size_t i = 0; i < std::min(main.size(), all.size()); ++i) all[i] = {std::move(main[i]), {}};
  for (const FurtherPass& pass : passes_) {
    // Behind: of a step that is over, whatever is not whole; of one under way, what rests.
    const bool behind = !pass.replay->is_done() &&
                        (run_is_finished || (!why_deferred_.empty() && pass.replay->has_work(states, false)));
    std::vector<engine::Prediction> predictions = pass.replay->predictions();
    for (std::size_t i = 0; i < predictions.size(); ++i)
      all[pass.targets[i]] = {std::move(predictions[i]), behind ? waits : std::string()};
  }
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
