// Predictor: matcher and replays put together (docs/engine.md).
//
// Place in the event's way: ingest hands it events; db and reports take its predictions.
#include "predictor/engine/metric/predictor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "predictor/engine/match/matcher.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/metric/stuck.h"
#include "predictor/engine/metric/target_checks.h"
#include "predictor/engine/metric/window_extrapolation.h"
#include "predictor/engine/replay/dedicated_replay.h"
#include "predictor/engine/replay/observer.h"
#include "predictor/engine/replay/shared_replay.h"
#include "predictor/engine/replay/timeline.h"

namespace lbf::engine {
namespace {

// Events between two rounds of replay: few enough that their ops are still in the cache, many enough that a
// round's own cost does not show.
constexpr std::uint32_t kEventsPerRound = 4096;

class PredictorOfTargets final : public Predictor {
 public:
  PredictorOfTargets(Rank ranks, std::vector<Target> targets, ProcedurePlan plan, Clocks clocks)
      : ranks_(ranks), targets_(std::move(targets)), replay_of_target_(targets_.size()) {
    std::vector<const Target*> dedicated;
    std::vector<std::size_t> shared;
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      if (is_dedicated(targets_[t])) {
        replay_of_target_[t] = {0, dedicated.size()};
        dedicated.push_back(&targets_[t]);
      } else {
        shared.push_back(t);
      }
    }
    const std::size_t readers = shared.size() + (dedicated.empty() ? 0 : 1);
    store_.emplace(ranks, static_cast<std::uint32_t>(readers));
    matcher_.emplace(ranks, *store_,
                     MatchOptions{eager_up_to(targets_), any_first_message(targets_), any_local_cost(targets_),
                                  clocks == Clocks::kFollowed});
    const std::size_t profiled = plan.profiled.size();
    if (!plan.empty()) {
      profiled_at_ = plan.scenarios.size();
      matcher_->shift_procedures(std::move(plan));
    }
    if (!dedicated.empty()) replays_.push_back(dedicated_replay(dedicated, clocks, profiled));
    for (std::size_t t : shared) {
      replay_of_target_[t] = {replays_.size(), 0};
      replays_.push_back(std::make_unique<SharedReplay>(targets_[t], *store_));
    }
  }

  void set_mpi(const MpiSetup& setup) override { matcher_->set_mpi(setup); }
  void set_capture_cost(const CaptureCost& cost) override { capture_cost_ = cost; }

  void set_limits(EngineLimits limits) override {
    limits_ = std::move(limits);
    matcher_->bound_memory(limits_.memory_bytes);
    store_->budget().set_look([this] { return why_give_up(); });
  }

  Bytes memory_bytes() const override {
    Bytes bytes = store_->memory_bytes() + matcher_->memory_bytes();
    for (const std::unique_ptr<Replay>& replay : replays_) bytes += replay->memory_bytes();
    for (const Target& target : targets_) bytes += target.node_of_rank.size() * sizeof(target.node_of_rank[0]);
    return bytes;
  }

  using Predictor::feed;
  Result<void> feed(Rank rank, std::span<const Event> events) override {
    if (error_) return *error_;
    if (observed_ != nullptr) {
      for (const Event& event : events) {
        if (Result<void> fed = match(rank, {&event, 1}); !fed) return fed;
        observed_->observe_arrival(rank, matcher_->events_of(rank));
        if (Result<void> done = advance(); !done) return done;
      }
      return {};
    }
    // A round is never longer than it may be, however long the block is.
    while (!events.empty()) {
      const std::size_t part = std::min<std::size_t>(events.size(), kEventsPerRound - events_in_round_);
      if (Result<void> fed = match(rank, events.first(part)); !fed) return fed;
      events = events.subspan(part);
      events_in_round_ += static_cast<std::uint32_t>(part);
      if (events_in_round_ < kEventsPerRound) continue;
      if (Result<void> done = advance(); !done) return done;
    }
    return {};
  }

  Result<bool> feed_rounds(Rank rank, const Rounds& rounds) override {
    if (error_) return *error_;
    if (observed_ != nullptr) return false;
    const Result<bool> fed = matcher_->feed_rounds(rank, rounds);
    if (!fed) error_ = fed.error();
    if (!fed || !*fed) return fed;
    events_in_round_ += static_cast<std::uint32_t>(rounds.times.size());
    if (events_in_round_ < kEventsPerRound) return true;
    if (Result<void> done = advance(); !done) return done.error();
    return true;
  }

  void close(Rank rank) override {
    const bool is_over = store_->budget().is_over();  // in the middle of an event, or of a replay
    if (rank < 0 || rank >= ranks_ || matcher_->closed(rank) || is_over) return;
    matcher_->close(rank);
    ++closed_;
    if (observed_ == nullptr && closed_ < ranks_) return;
    if (advance().ok() && closed_ == ranks_) part_stuck_targets();
  }

  Result<void> advance() override {
    events_in_round_ = 0;
    if (!store_->budget().is_over()) matcher_->settle();
    for (const std::unique_ptr<Replay>& replay : replays_) {
      if (!store_->budget().is_over()) replay->advance();
    }
    store_->clear_touched();
    if (store_->budget().look_now()) return {};
    if (!error_) error_ = store_->budget().status().error();
    return store_->budget().status();
  }

  const std::vector<Target>& targets() const override { return targets_; }

  std::vector<Prediction> predictions() const override {
    std::vector<Prediction> predictions(targets_.size());
    // Targets of one replay are stuck at the same place: one diagnosis is enough for them.
    std::vector<std::optional<std::string>> why_stuck(replays_.size());
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      const auto [which, k] = replay_of_target_[t];
      const Replay& replay = *replays_[which];
      Prediction& prediction = predictions[t];
      prediction.complete = true;
      bool any_outside = false;
      Rank last = 0;
      Seconds worked_s = 0;
      for (Rank rank = 0; rank < ranks_; ++rank) {
        prediction.rank_finish_s.push_back(replay.finish_s(k, rank));
        prediction.rank_measured_s.push_back(replay.measured_s(rank));
        worked_s += replay.worked_s(k, rank);
        const Composed* const composition = replay.composition(k, rank);
        if (composition != nullptr && (rank == 0 || prediction.rank_finish_s.back() > prediction.lbf_s)) {
          prediction.composition = *composition;
          last = rank;
        }
        prediction.lbf_s = std::max(prediction.lbf_s, prediction.rank_finish_s.back());
        prediction.complete = prediction.complete && replay.exited(rank);
        any_outside = any_outside || matcher_->outside_s(rank) > 0;
        prediction.whole_run_s =
            std::max(prediction.whole_run_s, prediction.rank_measured_s.back() + matcher_->outside_s(rank));
      }
      if (!any_outside) prediction.whole_run_s = 0;
      if (std::vector<PathPart> parts = replay.path_parts(k, last); !parts.empty())
        prediction.path = PathComposition{*prediction.composition, std::move(parts), worked_s / ranks_};
      prediction.low_s = prediction.high_s = prediction.lbf_s;
      if (!matcher_->windows().empty())
        extrapolate_windows({replay, k, ranks_, matcher_->windows()}, capture_cost_, prediction);
      // Of what was seen: what was not is extrapolated from that.
      const Seconds seen_s = prediction.lbf_s * prediction.seen_share;
      if (seen_s > 0) prediction.exchange_percent = 100 * replay.exchange_s() / seen_s;
      if (closed_ == ranks_ && !prediction.complete && !store_->budget().is_over()) {
        if (!why_stuck[which]) {
          const std::optional<Error> error = what_holds_up(replay, *store_, *matcher_);
          why_stuck[which] = error ? error->message : std::string();
        }
        prediction.why_stuck = *why_stuck[which];
      }
    }
    return predictions;
  }

  PredictorStats stats() const override {
    PredictorStats stats{matcher_->stats(), 0, 0, {}};
    stats.windows = matcher_->windows().size();
    stats.events_in_flight = store_->ops_in_flight();
    stats.why_partial = matcher_->why_partial();
    return stats;
  }

  std::vector<ScenarioStats> scenario_stats() const override {
    const ProcedureShift* const procedures = matcher_->procedures();
    return procedures != nullptr ? procedures->scenario_stats() : std::vector<ScenarioStats>{};
  }
  std::vector<ProcedureStats> procedure_stats() const override {
    const ProcedureShift* const procedures = matcher_->procedures();
    return procedures != nullptr ? procedures->profiled_stats() : std::vector<ProcedureStats>{};
  }

  Result<void> diagnosis() const override {
    if (error_) return *error_;
    std::optional<Error> first;
    for (const std::unique_ptr<Replay>& replay : replays_) {
      std::optional<Error> error = what_holds_up(*replay, *store_, *matcher_);
      if (!error) {
        first.reset();
        break;
      }
      if (!first) first = std::move(error);
    }
    if (first) return *first;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (!matcher_->exited(rank)) {
        return invalid_input("rank " + std::to_string(rank) + " stopped after its event " +
                             std::to_string(matcher_->events_of(rank)) + " without reaching its end (MPI_Finalize)");
      }
    }
    if (!matcher_->why_partial().empty()) return invalid_input(matcher_->why_partial());
    return {};
  }

  bool observe(ReplayObserver* observer) override {
    if (is_dedicated(targets_.front())) return false;
    observed_ = dynamic_cast<SharedReplay*>(replays_[replay_of_target_.front().first].get());
    observed_->observe(observer);
    return true;
  }

  void observe_timeline(TimelineObserver& observer) override {
    timeline_.emplace(*store_, observer, profiled_at_);
    replays_.front()->record(&*timeline_);
  }

 private:
  std::unique_ptr<Replay> dedicated_replay(const std::vector<const Target*>& targets, Clocks clocks,
                                           std::size_t profiled) {
    if (clocks == Clocks::kPlain) return std::make_unique<DedicatedReplay>(targets, *store_);
    auto replay = std::make_unique<DedicatedReplayOf<Composed>>(targets, *store_);
    if (clocks == Clocks::kFollowed) replay->follow_paths(profiled_at_, profiled);
    return replay;
  }
  std::optional<Error> why_give_up() const {
    if (limits_.stop && limits_.stop()) return Error{ErrorCode::kUnavailable, "stopped"};
    if (limits_.memory_bytes == 0 || memory_bytes() <= limits_.memory_bytes) return std::nullopt;
    const auto actors = static_cast<std::int64_t>(store_->processes()) - ranks_;
    return Error{ErrorCode::kLimit, "the replay needs more than " + std::to_string(limits_.memory_bytes >> 20) +
                                        " MiB: " + std::to_string(ranks_) + " ranks on " +
                                        std::to_string(targets_.size()) + " targets have " +
                                        std::to_string(store_->ops_in_flight()) + " operations, " +
                                        std::to_string(store_->message_slots()) + " messages and " +
                                        std::to_string(actors) + " background operations under way"};
  }

  Result<void> match(Rank rank, std::span<const Event> events) {
    Result<void> fed = matcher_->feed(rank, events);
    if (!fed) error_ = fed.error();
    return fed;
  }

  // Targets of one dedicated replay on which the program is stuck, and those on which it is not.
  void part_stuck_targets() {
    for (std::size_t r = 0; r < replays_.size(); ++r) {
      std::vector<std::size_t> moved;
      while (!store_->budget().is_over()) {
        std::unique_ptr<Replay> other = replays_[r]->split_stuck(moved);
        if (other == nullptr) break;
        for (auto& [which, k] : replay_of_target_) {
          if (which != r) continue;
          const auto at = std::lower_bound(moved.begin(), moved.end(), k);
          const auto before = static_cast<std::size_t>(at - moved.begin());
          if (at != moved.end() && *at == k) {
            which = replays_.size();
            k = before;
          } else {
            k -= before;
          }
        }
        replays_.push_back(std::move(other));
      }
    }
  }

  Rank ranks_;
  std::vector<Target> targets_;
  std::vector<std::pair<std::size_t, std::size_t>> replay_of_target_;  // replay, target within it
  std::optional<OpStore> store_;
  std::optional<Matcher> matcher_;
  std::vector<std::unique_ptr<Replay>> replays_;
  SharedReplay* observed_ = nullptr;
  std::optional<TimelineRecorder> timeline_;
  std::size_t profiled_at_ = 0;  // where in a row the profiled procedures begin
  Rank closed_ = 0;
  std::uint32_t events_in_round_ = 0;
  std::optional<Error> error_;
  EngineLimits limits_;
  CaptureCost capture_cost_;
};

}  // namespace

Result<std::unique_ptr<Predictor>> Predictor::make(Rank ranks, std::vector<Target> targets, ProcedurePlan plan,
                                                   Clocks clocks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return invalid_input("a program has 1 to " + std::to_string(kMaxRanks) + " ranks, not " + std::to_string(ranks));
  }
  if (targets.empty()) return invalid_input("there is no target to predict");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::string name = "target " + std::to_string(t + 1);
    if (Result<void> ok = check_target(targets[t], ranks, name); !ok) return ok.error();
    if (targets[t].scenario > plan.scenarios.size()) {
      return invalid_input(name + " is of scenario " + std::to_string(targets[t].scenario) + ", but there are " +
                           std::to_string(plan.scenarios.size()));
    }
    if (clocks != Clocks::kPlain && !is_dedicated(targets[t])) {
      return invalid_input(name +
                           ": ranks share processors, links or memory, and what a time is made of is known only "
                           "where they do not: give each thread a processor, and leave contention and memory out");
    }
  }
  if (clocks == Clocks::kFollowed && !plan.scenarios.empty())
    return invalid_input("paths are followed as the program ran, not in scenarios: ask for one at a time");
  if (Result<void> ok = check_plan(plan, ranks); !ok) return ok.error();
  return std::unique_ptr<Predictor>(
      std::make_unique<PredictorOfTargets>(ranks, std::move(targets), std::move(plan), clocks));
}

}  // namespace lbf::engine
