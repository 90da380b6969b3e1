// StepRun: its end, and what people see of it: records of the step and of its predictions. See step_run.h.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "event/mpi_function_table.h"
#include "predictor/daemon/steps/step_run.h"
#include "predictor/daemon/steps/step_run_state.h"
#include "predictor/daemon/users.h"

namespace lbf::daemon {
namespace {

// "3", "3, 5", "3, 5, 6 and 12 more"
std::string listed(const std::vector<Rank>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, ranks.size()); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string command_line(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
  return line;
}

db::TopologyRecord topology_of(const engine::Target& target) {
  db::TopologyRecord out;
  if (target.topology == nullptr) return out;
  out.file = target.topology->file();
  for (const std::uint32_t node : target.topology_node_of_node)
    out.nodes.push_back(target.topology->node_name(node));
  return out;
}

ProgramProfile::Watched watched_of(const std::vector<StreamCost>& costs) {
  ProgramProfile::Watched out;
  bool all_said = !costs.empty();
  for (const StreamCost& cost : costs) {
    out.recorded_calls += cost.recorded_calls;
    out.counted_calls += cost.counted_calls;
    out.recording_s += cost.recording_s;
    out.capture_s += cost.node.direct_s;
    out.watched_s += cost.watched_s.value_or(0);
    out.program_cpu_s += cost.node.program_cpu_s;
    all_said = all_said && cost.watched_s;
  }
  if (!all_said) out.watched_s = 0;
  return out;
}

const char* contention_name(engine::Contention contention) {
  switch (contention) {
    case engine::Contention::kNone:
      return "none";
    case engine::Contention::kBus:
      return "bus";
    case engine::Contention::kNic:
      return "nic";
  }
  return "none";
}

}  // namespace

void StepRun::finish(const std::vector<StreamState>& states) {
  std::vector<Rank> killed;
  std::vector<Rank> aborted;
  std::vector<Rank> unfinished;
  std::vector<Rank> never_seen;
  std::uint64_t lost_records = 0;
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const RankState& state = rank_states_[static_cast<std::size_t>(rank)];
    if (state.how == "killed") killed.push_back(rank);
    if (state.how == "aborted") aborted.push_back(rank);
    if (!state.process_seen && !state.stream) {
      never_seen.push_back(rank);
    } else if (state.how.empty()) {
      unfinished.push_back(rank);
    }
    lost_records += state.lost_records;
    close_rank(rank);
  }
  if (any_rank_seen_) {
    if (!killed.empty()) add_reason("killed before MPI_Finalize: rank " + listed(killed));
    if (!aborted.empty()) add_reason("called MPI_Abort: rank " + listed(aborted));
    if (!never_seen.empty()) add_reason("never seen: rank " + listed(never_seen));
    if (!unfinished.empty()) add_reason("the end was not seen of rank " + listed(unfinished));
    if (lost_records > 0)
      add_reason(fmt::format("{} events were lost where the program ran (ring full)", lost_records));
  } else if (std::none_of(streams_.begin(), streams_.end(),
                          [](const auto& stream) { return stream.second->processes_left_out > 0; }) &&
             std::none_of(states.begin(), states.end(), [](const StreamState& state) { return state.end->lost_batches > 0; })) {
    add_note("no process of the step called MPI_Init");
  }
  for (const StreamState& state : states) {
    const std::string& node = trace_->description().nodes[state.stream];
    if (!state.damage.empty()) add_reason(state.damage);
    const Stream& stream = *streams_[state.stream];
    const std::uint64_t lost = std::max(state.end->lost_batches, stream.relay_lost_batches);
    if (state.end->reason == kReasonTraceLimit) {
      add_reason(fmt::format("the step's traces reached step_trace_limit_mb: later events of node {} were not kept", node));
    } else if (lost > 0) add_reason(fmt::format("node {} lost {} batches (its spool was full)", node, lost));
    if (stream.processes_left_out > 0) {
      add_reason(fmt::format("{} {} of node {} left out (a note says why)", stream.processes_left_out,
                             stream.processes_left_out == 1 ? "process" : "processes", node));
    }
    if (state.end->last_sequence >= state.next_sequence && state.end->lost_batches == 0) {
      add_reason(fmt::format("node {} ended before all of its batches were here", node));
    }
    if (state.end->reason == kReasonStreamTimeout) {
      add_reason(state.durable_bytes == 0 ? fmt::format("node {} never sent anything", node)
                                          : fmt::format("node {} fell silent before the step's end", node));
    }
  }
  if (predictor_ != nullptr) {
    predictor_->advance();
    if (any_rank_seen_ && !predictor_failed_) {
      if (const auto diagnosis = diagnose(); !diagnosis) add_reason(diagnosis.error().message);
    }
    const std::uint64_t lost_events = predictor_->stats().lost_events;
    if (lost_events > 0 && lost_records == 0) add_reason(fmt::format("{} events were lost", lost_events));
  }
  finished_ = true;
  publish();
}

// What holds the program up on one target only is the target's: the program ended.
Result<void> StepRun::diagnose() const {
  auto diagnosis = predictor_->diagnosis();
  for (const auto& pass : late_passes_) {
    if (!diagnosis && pass->is_done() && pass->failure().empty()) diagnosis = pass->diagnosis();
  }
  return diagnosis;
}

std::vector<StreamCost> StepRun::stream_costs() const {
  std::vector<StreamCost> costs;
  for (const auto& [number, stream] : streams_) {
    if (stream->cost) costs.push_back(*stream->cost);
  }
  return costs;
}

// Extrapolation leaves out what the capture itself took.
void StepRun::tell_capture_cost() {
  const engine::CaptureCost cost = capture_cost_of(stream_costs());
  predictor_->set_capture_cost(cost);
  for (const auto& pass : late_passes_) pass->set_capture_cost(cost);
  if (procedure_pass_ != nullptr) procedure_pass_->set_capture_cost(cost);
}

// In the order of targets_.
std::vector<StepRun::Predicted> StepRun::predicted() const {
  std::vector<Predicted> all;
  for (engine::Prediction& prediction : predictor_->predictions()) all.push_back({std::move(prediction), {}});
  const std::vector<StreamState> states = trace_->streams();
  const std::string waits = why_deferred_.empty() ? "its turn has not come yet" : why_deferred_;
  for (const auto& pass : late_passes_) {
    // Behind: of a step that is over, whatever is not whole; of one under way, what rests.
    const bool behind = !pass->is_done() && (finished_ || (!why_deferred_.empty() && pass->has_work(states, false)));
    for (engine::Prediction& prediction : pass->predictions())
      all.push_back({std::move(prediction), behind ? waits : std::string()});
  }
  while (all.size() < targets_.size()) {
    Predicted none;
    none.prediction.rank_finish_s.assign(static_cast<std::size_t>(ranks_), 0);
    none.prediction.rank_measured_s.assign(static_cast<std::size_t>(ranks_), 0);
    none.why_deferred = waits;
    all.push_back(std::move(none));
  }
  all.resize(targets_.size());
  return all;
}

void StepRun::describe_calls(db::StepRecord& record, std::vector<std::string>& notes) const {
  struct Total {
    std::uint64_t calls = 0;
    Seconds total_s = 0;
  };
  std::vector<Total> totals(mpi_function_count() + 1);
  Seconds init_s = 0;
  Seconds unread_gap_s = 0;
  std::uint64_t abandoned_calls = 0;
  std::uint64_t events_without_communicator = 0;
  for (const RankState& state : rank_states_) {
    abandoned_calls += state.abandoned_calls;
    events_without_communicator += state.events_without_communicator;
    for (std::size_t function = 0; function < state.calls.size(); ++function) {
      totals[function].calls += state.calls[function].first;
      totals[function].total_s += state.calls[function].second;
    }
    init_s = std::max(init_s, state.init_s);
    unread_gap_s += state.unread_gap_s;
    record.capture_s += state.capture_s;
  }
  for (std::size_t id = 1; id < totals.size(); ++id) {
    const MpiFunction* function = mpi_function(static_cast<std::uint16_t>(id));
    if (function == nullptr) continue;
    const bool start_or_end = function->role == MpiRole::kInit || function->role == MpiRole::kInitThread ||
                              function->role == MpiRole::kFinalize || function->role == MpiRole::kSessionInit ||
                              function->role == MpiRole::kSessionFinalize;
    Total total = totals[id];
    if (total.calls > 0) {
      record.calls.push_back({std::string(function->name), total.calls, total.total_s});
      if (!start_or_end) record.mpi_s += total.total_s;
    }
    // A function of another role can still leave single calls unmodelled; those came as events.
    const bool is_unmodelled =
        function->role == MpiRole::kUnmodelled || function->role == MpiRole::kSpawn;
    if (!is_unmodelled || total.calls == 0) {
      const auto found = unmodelled_events_.find(static_cast<std::uint16_t>(id));
      total = found == unmodelled_events_.end() ? Total{} : Total{found->second.first, found->second.second};
    }
    if (total.calls > 0) {
      record.unmodelled_calls.push_back({std::string(function->name), total.calls, total.total_s});
      record.unmodelled_s += total.total_s;
    }
  }
  const auto by_time = [](const db::CallRecord& a, const db::CallRecord& b) { return a.total_s > b.total_s; };
  std::stable_sort(record.calls.begin(), record.calls.end(), by_time);
  std::stable_sort(record.unmodelled_calls.begin(), record.unmodelled_calls.end(), by_time);

  if (init_s > 0)
    notes.push_back(
        fmt::format("MPI_Init took {:.3g} s; measured and predicted times begin after it", init_s));
  if (record.unmodelled_s > 0) {
    notes.push_back(record.mpi_s > 0 ? fmt::format("{:.1f} % of MPI time unmodelled",
                                                   100 * record.unmodelled_s / record.mpi_s)
                                     : fmt::format("{:.3g} s of MPI time unmodelled", record.unmodelled_s));
  }
  if (io_.calls > 0) {
    const double all_s = record.measured_s.value_or(0) * static_cast<double>(ranks_);
    const std::string share =
        all_s > 0 ? fmt::format(" ({:.1f} % of the ranks' time)", 100 * io_.total_s / all_s) : std::string();
    notes.push_back(fmt::format("MPI-IO took {:.3g} s{}, kept on every target: {}, {} bytes read, {} written",
                                io_.total_s, share, counted(io_.calls, "call", "calls"), io_.bytes_read,
                                io_.bytes_written));
  }
  if (spawned_processes_ > 0) {
    notes.push_back(fmt::format("{} spawned: not in the picture, and neither are the calls to them",
                                counted(spawned_processes_, "process was", "processes were")));
  }
  if (abandoned_calls > 0) {
    notes.push_back(fmt::format("{} left by longjmp or by an exception: kept as unmodelled time",
                                counted(abandoned_calls, "MPI call was", "MPI calls were")));
  }
  if (events_without_communicator > 0) {
    notes.push_back(fmt::format("{} on a communicator whose definition was lost: not replayed, kept as lost",
                                counted(events_without_communicator, "event was", "events were")));
  }
  if (unread_gap_s > 0 && record.measured_s.value_or(0) > 0) {
    const double percent = 100 * unread_gap_s / (*record.measured_s * static_cast<double>(ranks_));
    if (percent >= 1) {
      notes.push_back(fmt::format(
          "{:.1f} % of the time is wall time of gaps too short for the processor clock", percent));
    }
  }
}

std::vector<db::PredictionRecord> StepRun::describe_predictions(const db::StepRecord& record) const {
  std::vector<db::PredictionRecord> records;
  if (predictor_ == nullptr || !any_rank_seen_ || options_.picture != nullptr) return records;
  const auto& targets = targets_;
  const auto predictions = predicted();
  const auto largest = [](const std::vector<Seconds>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  };
  // What a prediction is compared with: the measured run where both are whole, else the measured time of the
  // same events; without the time that a suspended job stood still. A run that was ended by force may have no message under
  // way: then only the step's reasons tell.
  const auto measured_for = [&](const engine::Prediction& prediction) {
    const bool whole =
        finished_ && reasons_.empty() && prediction.complete && record.measured_s.value_or(0) > 0;
    const Seconds measured_s = whole ? *record.measured_s : largest(prediction.rank_measured_s);
    return std::max(0.0, measured_s - longest_stop_s_);
  };
  std::optional<double> self_error_percent;
  for (std::size_t i = 0; i < targets.size() && i < predictions.size(); ++i) {
    const engine::Target& target = targets[i];
    const engine::Prediction& prediction = predictions[i].prediction;
    const std::string& why_deferred = predictions[i].why_deferred;
    const Seconds measured_s = measured_for(prediction);
    // The step is whole, so it ends on some target: what holds it up on this one is the target.
    const bool stuck = finished_ && reasons_.empty() && !prediction.why_stuck.empty();
    if (i == 0 && measured_s > 0 && !stuck)
      self_error_percent = 100 * (prediction.lbf_s - measured_s) / measured_s;

    db::PredictionRecord out;
    out.nodes = target.nodes;
    out.cores_per_node = target.cores_per_node;
    out.placement = target.placement;
    const std::string shown = target.placement.starts_with("map=") ? "map" : target.placement;
    out.target = fmt::format("{} {}, {}", target.nodes, target.nodes == 1 ? "node" : "nodes", shown);
    out.network = target.network->name();
    out.contention = contention_name(target.network->contention());
    out.speed = target.speed;
    out.topology = topology_of(target);
    const bool same_network = target.network == ran_.network;
    const bool same_place = target.nodes == ran_.nodes && target.cores_per_node == ran_.cores_per_node &&
                            target.node_of_rank == ran_.node_of_rank && target.speed == ran_.speed;
    out.kind = i == 0 ? "self" : same_network ? "LBF" : same_place ? "NF" : "LBF+NF";
    out.predicted_s = prediction.lbf_s;
    if (stuck) out.why_stuck = prediction.why_stuck;
    out.why_deferred = why_deferred;
    out.taken_up = why_deferred.empty() && options_.deferred_before.contains(out.name());
    if (prediction.lbf_s > 0 && measured_s > 0 && !stuck && why_deferred.empty()) out.speedup = measured_s / prediction.lbf_s;
    out.self_error_percent = self_error_percent;
    out.partial = !prediction.complete || !reasons_.empty();
    out.progress_s = largest(prediction.rank_finish_s);
    out.measured_at_progress_s = largest(prediction.rank_measured_s);
    out.rank_finish_s = prediction.rank_finish_s;
    out.seen_share = prediction.seen_share;
    if (prediction.seen_share < 1 && !stuck && prediction.high_s != kNeverS) {
      out.low_s = prediction.low_s;
      out.high_s = prediction.high_s;
    }
    records.push_back(std::move(out));
  }
  return records;
}

void StepRun::publish() {
  const protocol::StepDescription& step = trace_->description();
  auto view = std::make_shared<StepView>();
  db::StepRecord& record = view->record;
  record.cluster = trace_->key().cluster;
  record.job = trace_->key().job;
  record.step = trace_->key().step;
  record.restart = trace_->key().restart;
  record.uid = trace_->owner();
  record.user_name = user_name_of(trace_->owner(), step.user);
  record.account = step.account;
  record.partition = step.partition;
  record.job_name = step.job_name;
  record.array_job = step.array_job;
  record.array_task = step.array_task;
  record.het_job = step.het_job;
  record.het_offset = step.het_offset;
  record.command = command_line(step.command);
  record.command_words = step.command;
  record.command_cut = step.command_cut;
  for (const std::uint32_t node : nodes_) record.nodes.push_back(step.nodes[node]);
  if (nodes_.empty()) record.nodes = step.nodes;  // not known yet
  record.ranks = ranks_;
  record.node_of_rank = ran_.node_of_rank;
  record.network = networks_.own()->name();
  record.start_s =
      seconds_from_ns(step.start_realtime_ns > 0 ? step.start_realtime_ns : trace_->created_realtime_ns());
  record.state = !finished_         ? db::StepState::kRunning
                 : reasons_.empty() ? db::StepState::kComplete
                                    : db::StepState::kPartial;
  for (const std::string& reason : reasons_)
    record.why_partial += (record.why_partial.empty() ? "" : "; ") + reason;
  record.events = events_;

  Seconds measured_s = 0;
  for (const RankState& state : rank_states_) measured_s = std::max(measured_s, state.elapsed_s);
  if (measured_s > 0) record.measured_s = measured_s;
  record.longest_stop_s = longest_stop_s_;
  Nanoseconds end_ns = 0;
  for (const StreamState& state : trace_->streams()) {
    record.stored_bytes += state.durable_bytes;
    const auto stream = streams_.find(state.stream);
    const Bytes sent_bytes = stream == streams_.end() ? 0 : stream->second->sent_bytes;
    record.wire_bytes += std::max<Bytes>(sent_bytes, state.durable_bytes);
    if (state.end) end_ns = std::max(end_ns, state.end->realtime_ns);
  }
  if (finished_ && end_ns > 0) record.end_s = seconds_from_ns(end_ns);
  for (const auto& [number, stream] : streams_) record.relay_cpu_s += stream->relay_cpu_s;

  std::vector<std::string> notes = notes_;
  describe_calls(record, notes);
  if (predictor_ != nullptr) {
    predictor_->advance();
    tell_capture_cost();
    const engine::PredictorStats stats = predictor_->stats();
    record.messages = stats.messages;
    record.collectives = stats.collectives;
    record.wildcard_receives = stats.wildcard_receives;
    record.lost_events = stats.lost_events;
    if (stats.approximated_collectives > 0) {
      notes.push_back(
          fmt::format("{} of {} collective calls are replayed with the closest algorithm, not the real one",
                      stats.approximated_collectives, stats.collectives));
    }
    if (stats.wildcard_receives > 0) {
      notes.push_back(
          fmt::format("{} receives had a wildcard (MPI_ANY_SOURCE, MPI_ANY_TAG): the match that happened "
                      "is the match that is replayed",
                      stats.wildcard_receives));
    }
    view->predictions = describe_predictions(record);
    record.lbfd_cpu_s = cpu_spent_s_;
    const auto& all = view->predictions;
    const auto is_stuck = [](const db::PredictionRecord& prediction) {
      return !prediction.why_stuck.empty();
    };
    const auto is_deferred = [](const db::PredictionRecord& prediction) {
      return !prediction.why_deferred.empty();
    };
    if (finished_ && reasons_.empty() && !all.empty() && all.front().seen_share < 1 && all.front().why_stuck.empty() &&
        !all.front().high_s) {
      notes.push_back(
          "the predictions have no interval: what was captured is too short, or too few calls, to tell how much the rest of the "
          "run may differ from it");
    }
    if (const auto first = std::find_if(all.begin(), all.end(), is_deferred); finished_ && first != all.end()) {
      notes.push_back(fmt::format("{} of {} targets are deferred: {}", std::count_if(all.begin(), all.end(), is_deferred),
                                  all.size(), first->why_deferred));
    }
    describe_procedures(record, notes);
    if (const auto first = std::find_if(all.begin(), all.end(), is_stuck); first != all.end()) {
      notes.push_back(fmt::format("on {} of {} targets the program would not end: {}",
                                  std::count_if(all.begin(), all.end(), is_stuck), all.size(),
                                  first->why_stuck));
    }
  }
  const std::vector<StreamCost> costs = stream_costs();
  if (finished_ && reasons_.empty()) {
    std::vector<const std::vector<std::pair<std::uint64_t, Seconds>>*> calls;
    Seconds rank_s = 0;
    for (const RankState& state : rank_states_) {
      calls.push_back(&state.calls);
      rank_s += state.elapsed_s;
    }
    record.program = profile_.run(calls, rank_s, watched_of(costs));
  }
  if (!costs.empty()) {
    record.cost = cost_of_step(costs, view->predictions.empty() ? 1 : view->predictions.front().seen_share, finished_);
    for (std::string& note : cost_notes(*record.cost, record.measured_s.value_or(0))) notes.push_back(std::move(note));
  }
  record.notes = std::move(notes);
  view->generation = ++generation_;
  changed_ = false;
  last_publish_ = Clock::now();
  const std::scoped_lock lock(view_mutex_);
  view_ = std::move(view);
}

std::shared_ptr<const StepView> StepRun::view() {
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && changed_) publish();
  }
  const std::scoped_lock lock(view_mutex_);
  return view_;
}

}  // namespace lbf::daemon
