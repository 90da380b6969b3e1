// StepRun: a step's batches -> its Predictor. What people see of it is in step_run_view.cpp. See step_run.h.
#include "predictor/daemon/steps/step_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/cpu_time.h"
#include "event/mpi_function_table.h"
#include "predictor/daemon/steps/step_run_state.h"
#include "predictor/daemon/steps/target_ranking.h"

namespace lbf::daemon {
namespace {

constexpr std::chrono::milliseconds kPublishInterval{1000};
constexpr std::size_t kMaxRemarks = 64;  // a hostile stream could give one per batch
constexpr std::size_t kMaxRemarkBytes = 500;

bool add_remark(std::vector<std::string>& remarks, std::string remark) {
  if (remark.size() > kMaxRemarkBytes) remark.resize(kMaxRemarkBytes);
  if (remarks.size() >= kMaxRemarks || std::find(remarks.begin(), remarks.end(), remark) != remarks.end()) {
    return false;
  }
  remarks.push_back(std::move(remark));
  return true;
}

StepRunOptions with_clock(StepRunOptions options) {
  if (!options.cpu_clock) options.cpu_clock = thread_cpu_s;
  options.targets_per_pass = std::max<std::size_t>(1, options.targets_per_pass);
  return options;
}

}  // namespace

std::string placement_name(const std::vector<std::uint32_t>& node_of_rank, std::uint32_t nodes) {
  const auto ranks = static_cast<Rank>(node_of_rank.size());
  std::vector<std::string> names = {"block", "cyclic"};
  // A plane of K puts ranks 0 .. K-1 on the first node: K can be read off.
  const auto plane = std::find_if(node_of_rank.begin(), node_of_rank.end(),
                                  [&](std::uint32_t node) { return node != node_of_rank.front(); }) -
                     node_of_rank.begin();
  if (plane > 1 && plane < ranks) names.push_back("plane=" + std::to_string(plane));
  for (const std::string& name : names) {
    const auto placed = engine::place_ranks(name, ranks, nodes);
    if (placed && *placed == node_of_rank) return name;
  }
  std::string map = "map=";
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    map += (rank == 0 ? "" : ",") + std::to_string(node_of_rank[rank]);
  }
  return map;
}

StepRun::StepRun(std::shared_ptr<StepTrace> trace, const NetworkCatalog& networks, StepRunOptions options)
    : trace_(std::move(trace)),
      networks_(networks),
      options_(with_clock(std::move(options))),
      ranks_(trace_->description().tasks),
      cpu_spent_s_(options_.cpu_spent_before_s) {
  const std::scoped_lock lock(mutex_);
  procedures_.expect(options_.procedure_history);
  for (const std::string& note : options_.notes) add_note(note);
  publish();
}

StepRun::~StepRun() = default;

void StepRun::add_reason(std::string reason) {
  changed_ |= add_remark(reasons_, std::move(reason));
}
void StepRun::add_note(std::string note) {
  changed_ |= add_remark(notes_, std::move(note));
}

bool StepRun::ready_to_build() const {
  return trace_->all_registered() || Clock::now() - created_ >= options_.stream_start_timeout;
}

// Task t = rank t runs where its node's relay says; nodes that have not said get the remaining tasks in
// blocks of tasks_per_node, Slurm's default distribution.
std::vector<std::uint32_t> StepRun::place_tasks(const std::map<std::uint32_t, protocol::StreamDescription>& streams) {
  const protocol::StepDescription& step = trace_->description();
  const auto nodes = static_cast<std::uint32_t>(step.nodes.size());
  std::vector<std::optional<std::uint32_t>> node_of_task(static_cast<std::size_t>(ranks_));
  std::vector<std::uint32_t> room = step.tasks_per_node;
  if (room.empty()) {
    room.assign(nodes, static_cast<std::uint32_t>(ranks_) / nodes);
    for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(ranks_) % nodes; ++node) ++room[node];
  }
  bool all_said = true;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const auto found = streams.find(node);
    if (found == streams.end() || found->second.task_ids.empty()) {
      all_said = false;
      continue;
    }
    room[node] = 0;
    for (const Rank task : found->second.task_ids) {
      auto& place = node_of_task[static_cast<std::size_t>(task)];
      if (place && *place != node)
        add_reason(fmt::format("nodes {} and {} both say that they run task {}", *place, node, task));
      place = node;
    }
  }
  std::uint32_t node = 0;
  std::vector<std::uint32_t> placed;
  for (const auto& place : node_of_task) {
    if (place) {
      placed.push_back(*place);
      continue;
    }
    while (node + 1 < nodes && room[node] == 0) ++node;
    if (room[node] > 0) --room[node];
    placed.push_back(node);
  }
  if (!all_said && nodes > 1 && (step.launcher.empty() || !trace_->all_registered()))
    add_note("not every node said which tasks it runs: the others are taken to be in blocks");
  return placed;
}

// mpirun need not use every node of the job: the run had those on which its ranks are.
void StepRun::leave_out_idle_nodes() {
  std::vector<std::uint32_t> used = ran_.node_of_rank;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (std::uint32_t& node : ran_.node_of_rank) {
    node = static_cast<std::uint32_t>(std::lower_bound(used.begin(), used.end(), node) - used.begin());
  }
  nodes_ = std::move(used);
}

// Where the topology does not have all of the step's nodes it is not used at all: distances on some targets
// only would make them differ by more than their placement.
void StepRun::find_topology_nodes() {
  if (options_.topology == nullptr) return;
  std::vector<std::uint32_t> nodes;
  std::vector<bool> taken(options_.topology->nodes(), false);
  for (const std::uint32_t number : nodes_) {
    const std::string& name = trace_->description().nodes[number];
    const std::optional<std::uint32_t> node = options_.topology->find(name);
    if (!node || taken[*node]) {
      add_note(fmt::format("node {} is {} {}: all nodes are taken to be equally far apart", name,
                           node ? "named twice, but once in" : "not in", options_.topology->file()));
      return;
    }
    taken[*node] = true;
    nodes.push_back(*node);
  }
  ran_.topology = options_.topology;
  ran_.topology_node_of_node = std::move(nodes);
}

std::vector<engine::Target> StepRun::make_targets() {
  if (!networks_.own_note().empty()) add_note(networks_.own_note());
  auto selection = networks_.select(trace_->description().networks);
  for (std::string& note : selection.notes) add_note(std::move(note));
  std::vector<engine::Target> targets = engine::default_targets(ran_, selection.networks);
  if ((targets.size() + 1) * static_cast<std::size_t>(ranks_) > engine::kMostDefaultPlaces)
    add_note("so many ranks have more node counts than are predicted by themselves: lbf-whatif predicts any");
  for (const engine::Target& target : targets) {
    if (target.network->nominal()) {
      add_note(fmt::format("network {} is from public figures, not measured here", target.network->name()));
    }
    if (ran_.topology != nullptr && target.topology == nullptr) {
      add_note(fmt::format("{} connects no {} nodes: on so many they are taken to be equally far apart",
                           ran_.topology->file(), target.nodes));
    }
  }
  return targets;
}

void StepRun::build() {
  rank_states_.resize(static_cast<std::size_t>(ranks_));  // not before: a step that is only registered costs little
  built_ = true;
  changed_ = true;
  const protocol::StepDescription& step = trace_->description();
  const auto streams = trace_->stream_descriptions();
  ran_.node_of_rank = place_tasks(streams);
  nodes_.resize(step.nodes.size());
  std::iota(nodes_.begin(), nodes_.end(), 0U);
  if (!step.launcher.empty()) leave_out_idle_nodes();
  ran_.nodes = static_cast<std::uint32_t>(nodes_.size());
  ran_.placement = placement_name(ran_.node_of_rank, ran_.nodes);
  ran_.network = networks_.own();
  std::uint32_t cores = 0;
  bool cores_differ = false;
  for (const auto& [number, description] : streams) {
    if (description.cpus_on_node == 0) continue;
    cores_differ |= cores != 0 && cores != description.cpus_on_node;
    cores = std::max(cores, description.cpus_on_node);
  }
  if (cores == 0) {
    std::vector<std::uint32_t> tasks(ran_.nodes, 0);
    for (const std::uint32_t node : ran_.node_of_rank) cores = std::max(cores, ++tasks[node]);
    add_note(fmt::format("the processors per node are not known: taken as {}, one for each task", cores));
  } else if (cores_differ) {
    add_note(fmt::format("the nodes have different numbers of processors: taken as {} everywhere", cores));
  }
  ran_.cores_per_node = cores;
  find_topology_nodes();

  targets_ = ranked_targets(make_targets(), step.networks);
  if (options_.picture != nullptr) {
    if (options_.picture->target() >= targets_.size()) {
      add_reason(fmt::format("lbfd makes {} targets of this step now; it has no number {}", targets_.size(),
                             options_.picture->target()));
      return;
    }
    targets_ = {targets_[options_.picture->target()]};
  }
  // With a limit the configuration that ran goes alone: whatever happens to the others, it is predicted.
  const bool limited = options_.budget.is_limited() || (options_.memory && options_.memory->is_limited());
  main_targets_ = limited ? 1 : targets_.size();
  const auto last = targets_.begin() + static_cast<std::ptrdiff_t>(main_targets_);
  auto predictor = engine::Predictor::make(ranks_, {targets_.begin(), last});
  memory_share_ = std::make_unique<ReplayMemoryShare>(options_.memory.get());
  if (predictor) {
    predictor_ = std::move(predictor).value();
    if (options_.picture != nullptr) {
      options_.picture->start(ran_, predictor_->targets().front());
      predictor_->observe_timeline(*options_.picture);
    }
  } else {
    add_reason("no prediction: " + predictor.error().message);
  }
}

// What the ranks' own times were so far: of those parts that were replayed, or as their capture counts it.
Seconds StepRun::rank_time_s() const {
  Seconds replayed_s = 0;
  for (const auto& [number, stream] : streams_) replayed_s += stream->replayed_s;
  Seconds counted_s = 0;
  for (const RankState& state : rank_states_) counted_s += state.elapsed_s;
  return std::max(replayed_s, counted_s);
}

void StepRun::begin_late_pass() {
  const std::size_t first = first_late_target(late_passes_.size());
  const std::size_t end = std::min(first + options_.targets_per_pass, targets_.size());
  auto pass = TracePass::make(trace_, ran_.node_of_rank,
                              {targets_.begin() + static_cast<std::ptrdiff_t>(first),
                               targets_.begin() + static_cast<std::ptrdiff_t>(end)},
                              options_.memory.get());
  if (pass) {
    late_passes_.push_back(std::move(pass).value());
    return;
  }
  add_reason("no prediction: " + pass.error().message);
  targets_.resize(first);
}

bool StepRun::work_late(const std::vector<StreamState>& states, bool complete) {
  if (predictor_ == nullptr || predictor_failed_) return false;
  if (work_procedures(states, complete)) return true;
  const auto set_why = [&](std::string why) {
    changed_ |= why != why_deferred_;
    why_deferred_ = std::move(why);
    return false;
  };
  TracePass* behind = nullptr;
  for (const auto& pass : late_passes_) {
    if (behind == nullptr && pass->has_work(states, complete)) behind = pass.get();
  }
  const std::size_t begun = first_late_target(late_passes_.size());
  if (behind == nullptr && begun >= targets_.size()) return set_why({});
  if (behind == nullptr && events_ == 0 && !complete) return false;  // nothing to replay yet
  if (!options_.budget.has_room(rank_time_s(), cpu_spent_s_)) {
    return set_why(fmt::format("the replays of this step took {:.3g} s of lbfd's processor time, more than "
                               "step_cpu_percent allows so far",
                               cpu_spent_s_));
  }
  if (behind == nullptr) {
    const std::size_t count = std::min(options_.targets_per_pass, targets_.size() - begun);
    if (options_.memory && !options_.memory->has_room_for(replay_bytes(ranks_, count, 0))) {
      return set_why("the replays of all steps fill replay_memory_mb");
    }
    begin_late_pass();
    return true;
  }
  set_why({});
  behind->work(states);
  changed_ = true;
  if (Clock::now() - last_publish_ >= kPublishInterval) publish();
  return true;
}

// The stream whose ranks are furthest behind, so that what the matcher has to keep stays small.
StepRun::Stream* StepRun::next_stream(const std::vector<StreamState>& states) {
  Stream* next = nullptr;
  bool all_ended = trace_->all_registered();
  std::optional<Seconds> least_waiting_s;  // of streams that have nothing here now, but will
  for (const StreamState& state : states) {
    auto& stream = streams_[state.stream];
    if (stream == nullptr) stream = std::make_unique<Stream>(state.stream, communicators_);
    all_ended &= state.end.has_value();
    const bool has_data = !stream->broken && stream->next_sequence < state.next_sequence;
    if (has_data) {
      if (next == nullptr || stream->mean_replayed_s() < next->mean_replayed_s()) next = stream.get();
    } else if (!state.end) {
      least_waiting_s = std::min(least_waiting_s.value_or(kNeverS), stream->mean_replayed_s());
    }
  }
  if (next == nullptr || all_ended || predictor_ == nullptr) return next;
  const bool ahead = least_waiting_s && next->mean_replayed_s() > *least_waiting_s;
  if (ahead && predictor_->stats().events_in_flight > options_.events_in_flight_limit) return nullptr;
  return next;
}

StepRun::Progress StepRun::work() {
  const std::scoped_lock lock(mutex_);
  if (finished_) return Progress::kFinished;
  const bool registered = trace_->all_registered();  // before the states are read: no stream is removed
  const std::vector<StreamState> states = trace_->streams();
  const bool complete = registered && std::ranges::all_of(states, [](const StreamState& state) { return state.end.has_value(); });
  if (!built_) {
    if (!complete && !ready_to_build()) return Progress::kIdle;
    build();
  }
  const Seconds cpu_before_s = options_.cpu_clock();
  const auto spend = [&](Progress progress) {
    cpu_spent_s_ += options_.cpu_clock() - cpu_before_s;
    return progress;
  };
  if (Stream* stream = next_stream(states); stream != nullptr) {
    try {
      apply_batch(*stream);
    } catch (const std::exception&
                 exception) {  // out of memory, a broken invariant: this step ends, lbfd does not
      predictor_failed_ = true;
      stream->broken = true;
      add_reason(fmt::format("the replay of stream {} stopped at batch {}: {}", stream->number,
                             stream->next_sequence, exception.what()));
    }
    changed_ = true;
    if (predictor_ != nullptr)
      memory_share_->set(replay_bytes(ranks_, main_targets_, predictor_->stats().events_in_flight));
    if (Clock::now() - last_publish_ >= kPublishInterval) publish();
    return spend(Progress::kMore);
  }
  try {
    if (work_late(states, complete)) return spend(Progress::kMore);
  } catch (const std::exception& exception) {
    targets_.resize(main_targets_);
    late_passes_.clear();
    procedure_pass_.reset();
    procedure_choice_is_final_ = true;
    add_reason(fmt::format("the replay of further targets stopped: {}", exception.what()));
  }
  if (complete) {
    spend(Progress::kFinished);
    finish(states);
    return Progress::kFinished;
  }
  search_procedures();
  return spend(Progress::kIdle);
}

void StepRun::apply_batch(Stream& stream) {
  const auto fail = [&](const std::string& message) {
    stream.broken = true;
    add_reason(fmt::format("stream {}, batch {}: {}", stream.number, stream.next_sequence, message));
  };
  if (auto read = trace_->read_batch(stream.number, stream.next_sequence, batch_); !read) {
    return fail(read.error().message);
  }
  BatchSink sink;
  sink.on_events = [&](Rank rank, std::span<const Event> events) {
    return take_events(stream, rank, events);
  };
  sink.on_control = [&](std::string_view text) {
    take_control(stream, text);
    return Result<void>{};
  };
  const auto decoded = stream.decoder.decode(std::as_bytes(std::span(batch_.data(), batch_.size())), sink);
  if (!decoded) return fail(decoded.error().message);
  ++stream.next_sequence;
}

Result<void> StepRun::take_events(Stream& stream, Rank rank, std::span<const Event> events) {
  events_ += events.size();
  if (rank < 0 || rank >= ranks_) {
    add_reason(fmt::format("events of rank {} came, but the step has {} tasks (MPI started inside a task?)",
                           rank, ranks_));
    return {};
  }
  RankState& state = rank_states_[static_cast<std::size_t>(rank)];
  if (!state.stream) {
    state.stream = stream.number;
    ++stream.ranks;
    any_rank_seen_ = true;
    // Where its relay is, there it runs.
    const std::uint32_t node = nodes_[ran_.node_of_rank[static_cast<std::size_t>(rank)]];
    if (node != stream.number) {
      add_reason(
          fmt::format("rank {} ran on node {}, not on node {} as task {}: the ranks are not numbered as "
                      "Slurm's tasks, predictions are for the latter",
                      rank, stream.number, node, rank));
    }
  } else if (*state.stream != stream.number) {
    add_reason(
        fmt::format("rank {} came from node {} and from node {}: several MPI programs in one step (srun "
                    "without --mpi=pmix?)",
                    rank, *state.stream, stream.number));
    return {};
  }
  profile_.take_events(events);
  procedures_.take_events(rank, events);
  for (const Event& event : events) {
    stream.replayed_s += event.process_s + event.call_s + event.off_s;
    if (event.kind == EventKind::kUnmodelled) {
      auto& [count, total_s] = unmodelled_events_[event.function];
      ++count;
      total_s += event.call_s;
      const MpiFunction* function = mpi_function(event.function);
      if (function != nullptr && function->role == MpiRole::kSpawn) spawned_processes_ += event.bytes;
    }
    if (event.kind == EventKind::kIo) {
      ++io_.calls;
      io_.total_s += event.call_s;
      if (io_direction(event) == IoDirection::kRead) io_.bytes_read += event.bytes;
      if (io_direction(event) == IoDirection::kWrite) io_.bytes_written += event.bytes;
    }
  }
  if (state.closed) {
    add_reason(fmt::format("events of rank {} came after its end", rank));
    return {};
  }
  if (predictor_ == nullptr || predictor_failed_) return {};
  if (options_.picture != nullptr) options_.picture->measured(rank, events);
  if (const auto fed = predictor_->feed(rank, events); !fed) {
    predictor_failed_ = true;
    add_reason("the prediction stopped: " + fed.error().message);
  }
  return {};  // what is only counted goes on
}

void StepRun::take(Stream& stream, Rank rank, const protocol::ProcessRecord& record) {
  RankState& state = rank_states_[static_cast<std::size_t>(rank)];
  any_rank_seen_ = true;
  if (state.process_seen && (state.pid != record.pid || (state.stream && *state.stream != stream.number))) {
    add_reason(
        fmt::format("two processes call themselves rank {}: several MPI programs in one step (srun without "
                    "--mpi=pmix?)",
                    rank));
  }
  state.process_seen = true;
  state.pid = record.pid;
  if (!record.library.empty()) take_library(record.library);
  profile_.take_process(rank, record);
  state.init_s = record.init_s;
  if (record.world_size.value_or(ranks_) != ranks_) {
    add_reason(fmt::format("MPI_COMM_WORLD has {} ranks, the step {} tasks", *record.world_size, ranks_));
  }
  if (record.thread_level >= 3) {
    add_note("MPI_THREAD_MULTIPLE: calls of a rank's threads are replayed as one sequence");
  }
}

// One program has one library: the first process to say so says it for all, before any event.
void StepRun::take_library(const std::string& version) {
  if (library_seen_ || events_ > 0) return;
  library_seen_ = true;
  const engine::MpiSetup setup = engine::mpi_setup(version, ran_.node_of_rank);
  if (predictor_ != nullptr) predictor_->set_mpi(setup);
  if (std::string note = engine::mpi_rules_note(setup.rules, version); !note.empty()) {
    add_note(std::move(note));
  } else if (setup.rules.library != engine::MpiRules{}.library) {
    add_note(fmt::format("collectives follow the rules of {}", engine::mpi_library_name(setup.rules.library)));
  }
}

void StepRun::take_control(Stream& stream, std::string_view text) {
  const auto record = protocol::decode_control(text);
  if (!record) return;  // StepTrace::append refused such ones
  const std::optional<std::int64_t> said = protocol::rank_of(*record);
  if (said && (*said < 0 || *said >= ranks_)) {
    add_reason(fmt::format("a record of rank {} came, but the step has {} tasks (MPI started inside a task?)", *said,
                           ranks_));
    return;
  }
  std::visit([&](const auto& one) { take(stream, static_cast<Rank>(said.value_or(kAnyRank)), one); }, *record);
}

void StepRun::take(Stream& stream, Rank, const protocol::RelayRecord& record) {
  stream.relay_cpu_s = record.cpu_s;
  stream.sent_bytes = record.bytes_sent;
  stream.relay_lost_batches = record.lost_batches;
  stream.processes_left_out = record.processes_left_out;
}

void StepRun::take(Stream& stream, Rank, const protocol::CostRecord& record) {
  stream.cost = stream_cost_of(record, stream.number, ranks_);
}

void StepRun::take(Stream& stream, Rank, const protocol::NoteRecord& record) {
  longest_stop_s_ = std::max(longest_stop_s_, record.stopped_s);
  if (!record.text.empty()) add_note(fmt::format("node {}: {}", stream.number, record.text));
}

void StepRun::take(Stream&, Rank rank, const protocol::StatsRecord& record) {
  RankState& state = rank_states_[static_cast<std::size_t>(rank)];
  state.elapsed_s = std::max(state.elapsed_s, record.elapsed_s);
  state.lost_records = record.lost_records;
  state.abandoned_calls = record.abandoned_calls;
  state.events_without_communicator = record.events_without_communicator;
  state.unread_gap_s = record.unread_gap_s;
  state.capture_s = record.capture_s;
  if (!record.calls) return;
  state.calls.assign(mpi_function_count() + 1, {0, 0});
  for (const protocol::CallTotal& call : *record.calls) {
    if (call.function < state.calls.size()) state.calls[call.function] = {call.count, call.total_s};
  }
}

void StepRun::take(Stream&, Rank rank, const protocol::ProcessEndRecord& record) {
  RankState& state = rank_states_[static_cast<std::size_t>(rank)];
  state.how = record.how;
  state.elapsed_s = std::max(state.elapsed_s, record.elapsed_s);
  close_rank(rank);
}

void StepRun::close_rank(Rank rank) {
  RankState& state = rank_states_[static_cast<std::size_t>(rank)];
  if (state.closed) return;
  state.closed = true;
  if (predictor_ != nullptr) predictor_->close(rank);
}

}  // namespace lbf::daemon
