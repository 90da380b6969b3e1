// StepRun: a step's batches -> its parts. What people see of it is in step_run_view.cpp. See step_run.h.
#include "predictor/daemon/steps/step_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/cpu_time.h"
#include "base/quoted.h"

namespace lbf::daemon {
namespace {

// Passes that have a turn, each in the thread that comes for it. Thread-safe.
class PassTurns {
 public:
  // REQUIRES: both outlive the object.
  PassTurns(const std::vector<TracePass*>& passes, const std::vector<StreamState>& streams)
      : passes_(passes), streams_(streams) {}
  // False: none was left.
  bool work_on_next() {
    const std::size_t at = next_++;
    if (at < passes_.size()) passes_[at]->work(streams_);
    return at < passes_.size();
  }
  // All that are left; the thread's processor time.
  Seconds work(const StepRunOptions& options) {
    const Seconds cpu_before_s = options.cpu_clock();
    while (work_on_next()) {
    }
    return options.cpu_clock() - cpu_before_s;
  }

 private:
  const std::vector<TracePass*>& passes_;
  const std::vector<StreamState>& streams_;
  std::atomic<std::size_t> next_{0};
};

StepRunOptions with_clock(StepRunOptions options) {
  if (!options.cpu_clock) options.cpu_clock = thread_cpu_s;
  options.targets_per_pass = std::max<std::size_t>(1, options.targets_per_pass);
  return options;
}

}  // namespace

StepRun::StepRun(std::shared_ptr<StepTrace> trace, const NetworkCatalog& networks, StepRunOptions options)
    : trace_(std::move(trace)),
      networks_(networks),
      options_(with_limits(with_clock(std::move(options)))),
      ranks_(trace_->description().tasks),
      account_(options_.accounts ? std::make_unique<MemoryAccounts::Account>(options_.accounts, trace_->owner())
                                 : nullptr),
      totals_(ranks_, remarks_),
      predictions_(trace_, options_, remarks_),
      procedures_(trace_, options_, remarks_),
      cpu_spent_s_(options_.cpu_spent_before_s) {
  const MutexLock lock(mutex_);
  for (const std::string& note : options_.notes) remarks_.add_note(note);
  publish();
  count_held();
}

StepRun::~StepRun() = default;

bool StepRun::ready_to_begin() const {
  return trace_->all_registered() || Clock::now() - created_ >= options_.stream_start_timeout;
}

void StepRun::begin() {
  // Before anything is made that grows with the ranks that a description announces.
  if (const std::string why = why_no_memory(held_bytes() + replay_bytes(ranks_, 1, 0)); !why.empty()) {
    remarks_.add_reason(fmt::format("nothing is predicted of {} ranks: {}", ranks_, why));
    return release();
  }
  reader_.emplace(trace_, ranks_);
  totals_.begin();
  remarks_.mark_changed();
  configuration_ = configuration_of(*trace_, networks_, options_, remarks_);
  predictions_.begin(configuration_);
}

StepPredictions::CpuRoom StepRun::cpu_room() const {
  // What the ranks' own times were so far: of those parts that were replayed, or as their capture counts it.
  const Seconds rank_time_s = std::max(reader_->replayed_s(), totals_.counted_s());
  if (options_.budget.has_room(rank_time_s, cpu_spent_s_))
    return {{}, options_.budget.has_room(rank_time_s, 2 * cpu_spent_s_)};
  return {fmt::format("the replays of this step took {:.3g} s of lbfd's processor time, more than "
                      "step_cpu_percent allows so far",
                      cpu_spent_s_),
          false};
}

// Procedures before further targets: the user named them.
bool StepRun::work_further(const std::vector<StreamState>& states, bool complete) {
  if (!predictions_.is_running()) return false;
  const StepPredictions::CpuRoom cpu = cpu_room();
  if (procedures_.work(configuration_.ran, states, complete, totals_.all_processes_seen(), cpu.why_none)) return true;
  const auto further = predictions_.further(states, complete, totals_.events() > 0, cpu);
  if (further.passes.empty()) return further.has_begun;
  PassTurns turns(further.passes, states);
  SideBySide others(options_.lend_thread, further.passes.size() - 1, [&] { lent_cpu_s_ += turns.work(options_); });
  while (turns.work_on_next() && others.is_under_way()) {
  }
  others.join();
  predictions_.passes_worked();
  publish_if_due();
  return true;
}

void StepRun::read_batches(std::uint32_t stream, const std::vector<StreamState>& states, bool complete,
                           ReplayMarks::Mark* mark) {
  std::vector<TracePass*> passes;
  if (options_.lend_thread && predictions_.is_running() &&
      !procedures_.has_work(states, complete, totals_.all_processes_seen()))
    passes = predictions_.further(states, complete, totals_.events() > 0, cpu_room()).passes;
  PassTurns turns(passes, states);
  SideBySide others(options_.lend_thread, passes.size(), [&] { lent_cpu_s_ += turns.work(options_); });
  std::optional<std::uint32_t> next = stream;
  do {
    if (mark != nullptr) mark->set_at_hand(fmt::format("{}.{}", *next, reader_->next_sequence(*next)));
    read_batch(*next);
    next = next_stream(states);
  } while (next && others.is_under_way() && asked_stop() == Stop::kNo);
  while (others.is_under_way() && turns.work_on_next()) {
  }
  others.join();
  if (!passes.empty()) predictions_.passes_worked();
}

void StepRun::give_up_further(const std::exception& exception) {
  predictions_.give_up_further_targets();
  procedures_.give_up();
  remarks_.add_reason(fmt::format("the replay of further targets stopped: {}", exception.what()));
}

std::optional<std::uint32_t> StepRun::next_stream(const std::vector<StreamState>& states) const {
  const StoredTraceReader::Next next = reader_->next(states);
  if (next.is_ahead && predictions_.events_in_flight() > options_.events_in_flight_limit) return std::nullopt;
  return next.stream;
}

StepRun::Progress StepRun::work(ReplayMarks::Mark* mark) {
  const MutexLock lock(mutex_);
  if (finished_) return Progress::kFinished;
  if (interrupted_) return Progress::kIdle;
  const bool registered = trace_->all_registered();  // before the states are read: no stream is removed
  const std::vector<StreamState> states = trace_->streams();
  const bool complete =
      registered && std::ranges::all_of(states, [](const StreamState& state) { return state.end.has_value(); });
  const Seconds cpu_before_s = options_.cpu_clock();
  predictions_.begin_turn();
  if (!reader_ && !released_) {
    const auto has_batch = [](const StreamState& state) { return state.next_sequence > 1; };
    if (!complete && (!ready_to_begin() || std::ranges::none_of(states, has_batch))) return Progress::kIdle;
    begin();
  }
  const Progress progress =
      released_ ? (complete ? Progress::kFinished : Progress::kIdle) : work_on(states, complete, mark);
  const Seconds cpu_s = options_.cpu_clock() - cpu_before_s + lent_cpu_s_.exchange(0);
  cpu_spent_s_ += cpu_s;
  if (options_.counts) options_.counts->replay_cpu_s += cpu_s;
  settle();
  if (progress == Progress::kFinished && !interrupted_) finish(states);
  count_held();
  return interrupted_ ? Progress::kIdle : progress;
}

StepRun::Progress StepRun::work_on(const std::vector<StreamState>& states, bool complete, ReplayMarks::Mark* mark) {
  const auto stream = next_stream(states);
  try {
    if (stream) {
      read_batches(*stream, states, complete, mark);
    } else {
      if (mark != nullptr) mark->set_at_hand("further-targets");
      if (work_further(states, complete)) return Progress::kMore;
    }
  } catch (const std::exception& exception) {
    give_up_further(exception);
  }
  if (stream) {
    remarks_.mark_changed();
    predictions_.count_memory();
    if (asked_stop() == Stop::kNo) publish_if_due();
    return Progress::kMore;
  }
  if (complete) return Progress::kFinished;
  if (auto list = procedures_.search()) {
    const MutexLock view_lock(view_mutex_);
    procedure_list_ = std::move(list);
  }
  return Progress::kIdle;
}

// --- one batch

void StepRun::read_batch(std::uint32_t stream) {
  predictions_.begin_turn();
  const std::uint64_t events_before = totals_.events();
  const StoredTraceReader::Sink sink{
      [this](std::uint32_t from, Rank rank, std::span<const Event> events, StoredTraceReader::Origin origin)
          REQUIRES(mutex_) { take_events(from, rank, events, origin); },
      [this](std::uint32_t from, const protocol::ControlRecord& record)
          REQUIRES(mutex_) { take_control(from, record); },
      [this, stream](Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin)
          REQUIRES(mutex_) { return take_rounds(stream, rank, rounds, origin); }};
  try {
    if (const auto read = reader_->read(stream, sink); !read) remarks_.add_reason(read.error().message);
  } catch (const std::exception& exception) {  // out of memory, a broken invariant: this step ends, lbfd does not
    predictions_.stop_feeding();
    remarks_.add_reason(reader_->give_up(stream, exception.what()));
    if (options_.counts) ++options_.counts->replay_errors;
  }
  replayed_bytes_ = reader_->read_bytes();
  if (options_.counts) options_.counts->replayed_events += totals_.events() - events_before;
}

void StepRun::check_origin(std::uint32_t stream, Rank rank, StoredTraceReader::Origin origin) {
  switch (origin) {
    case StoredTraceReader::Origin::kAsBefore:
      return;
    case StoredTraceReader::Origin::kNoRankOfStep:
      return remarks_.add_reason(
          fmt::format("events of rank {} came, but the step has {} tasks (MPI started inside a task?)", rank, ranks_));
    case StoredTraceReader::Origin::kOtherStream:
      return remarks_.add_reason(
          fmt::format("rank {} came from node {} and from node {}: several MPI programs in one step (srun "
                      "without --mpi=pmix?)",
                      rank, *reader_->stream_of(rank), stream));
    case StoredTraceReader::Origin::kFirst:
      break;
  }
  // Where its relay is, there it runs.
  const std::uint32_t node = configuration_.nodes[configuration_.ran.node_of_rank[static_cast<std::size_t>(rank)]];
  if (node == stream) return;
  remarks_.add_reason(
      fmt::format("rank {} ran on node {}, not on node {} as task {}: the ranks are not numbered as "
                  "Slurm's tasks, predictions are for the latter",
                  rank, stream, node, rank));
}

void StepRun::take_events(std::uint32_t stream, Rank rank, std::span<const Event> events,
                          StoredTraceReader::Origin origin) {
  totals_.count_events(events.size());
  check_origin(stream, rank, origin);
  if (origin == StoredTraceReader::Origin::kNoRankOfStep || origin == StoredTraceReader::Origin::kOtherStream) return;
  procedures_.take_events(rank, events);
  // What is only counted goes on where the prediction does not.
  if (totals_.take_events(stream, rank, events)) predictions_.feed(rank, events);
}

bool StepRun::take_rounds(std::uint32_t stream, Rank rank, const Rounds& rounds, StoredTraceReader::Origin origin) {
  check_origin(stream, rank, origin);
  const bool is_of_step = origin == StoredTraceReader::Origin::kFirst || origin == StoredTraceReader::Origin::kAsBefore;
  if (!is_of_step || !totals_.is_plain(rank, rounds) || !predictions_.feed_rounds(rank, rounds)) return false;
  totals_.count_events(rounds.times.size());
  procedures_.take_rounds(rank, rounds);
  totals_.take_rounds(stream, rank, rounds);
  return true;
}

// Each part takes the records that are its own.
void StepRun::take_control(std::uint32_t stream, const protocol::ControlRecord& record) {
  const std::optional<std::int64_t> said = protocol::rank_of(record);
  if (said && (*said < 0 || *said >= ranks_)) {
    remarks_.add_reason(
        fmt::format("a record of rank {} came, but the step has {} tasks (MPI started inside a task?)", *said, ranks_));
    return;
  }
  if (const auto* relay = std::get_if<protocol::RelayRecord>(&record)) count_relay(*relay);
  const auto rank = static_cast<Rank>(said.value_or(kAnyRank));
  if (const auto* process = std::get_if<protocol::ProcessRecord>(&record)) take_library(*process);
  std::visit(
      [&](const auto& one) REQUIRES(mutex_) {
        if constexpr (requires { totals_.take(stream, rank, one); }) totals_.take(stream, rank, one);
        if constexpr (requires { procedures_.take(stream, rank, one); }) procedures_.take(stream, rank, one);
      },
      record);
  if (std::holds_alternative<protocol::ProcessEndRecord>(record)) close_rank(rank);
}

// Once: not where the step is replayed again for targets that were deferred.
void StepRun::count_relay(const protocol::RelayRecord& record) {
  if (options_.counts == nullptr || !options_.deferred_before.empty()) return;
  options_.counts->spooled_batches += record.spooled_batches;
  options_.counts->lost_batches += record.lost_batches;
}

// One program has one library: the first process to say so says it for all, before any event.
void StepRun::take_library(const protocol::ProcessRecord& process) {
  const std::string& version = process.library;
  if (version.empty() || !library_.empty() || totals_.events() > 0) return;
  library_ = as_ascii(version);
  const engine::MpiSetup setup = engine::mpi_setup(version, configuration_.ran.node_of_rank, process.mpi_settings);
  predictions_.set_mpi(setup);
  if (std::string note = engine::mpi_rules_note(setup.rules, version); !note.empty()) {
    remarks_.add_note(std::move(note));
  } else if (setup.rules.library != engine::MpiRules{}.library) {
    remarks_.add_note(fmt::format("collectives follow the rules of {}", engine::mpi_library_name(setup.rules.library)));
  }
  if (std::string note = engine::mpi_settings_note(setup.settings); !note.empty()) remarks_.add_note(std::move(note));
}

void StepRun::close_rank(Rank rank) {
  if (totals_.close(rank)) predictions_.close(rank);
}

void StepRun::finish(const std::vector<StreamState>& states) {
  if (!released_) {
    for (Rank rank = 0; rank < ranks_; ++rank) close_rank(rank);
    totals_.report_end(*trace_, states);
    if (predictions_.has_begun()) {
      predictions_.advance();
      settle();
    }
  }
  if (interrupted_) return;
  if (!released_ && predictions_.has_begun()) {
    if (totals_.any_rank_seen() && predictions_.is_running()) {
      // What holds the program up on one target only is the target's: the program ended.
      if (const auto diagnosis = predictions_.diagnosis(); !diagnosis) remarks_.add_reason(diagnosis.error().message);
    }
    const std::uint64_t lost_events = predictions_.stats().lost_events;
    if (lost_events > 0 && totals_.lost_records() == 0)
      remarks_.add_reason(fmt::format("{} events were lost", lost_events));
  }
  finished_ = true;
  release();
}

}  // namespace lbf::daemon
