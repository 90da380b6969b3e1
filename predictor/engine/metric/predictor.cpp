// Predictor: matcher and replays put together (docs/engine.md).
//
// Place in the event's way: ingest hands it events; db and reports take its predictions.
#include "predictor/engine/metric/predictor.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "predictor/engine/match/blocks.h"
#include "predictor/engine/match/matcher.h"
#include "predictor/engine/match/op_store.h"
#include "predictor/engine/metric/extrapolation.h"
#include "predictor/engine/replay/dedicated_replay.h"
#include "predictor/engine/replay/localities.h"
#include "predictor/engine/replay/observer.h"
#include "predictor/engine/replay/shared_replay.h"
#include "predictor/engine/replay/timeline.h"

namespace lbf::engine {
namespace {

// Events between two rounds of replay: few enough that their ops are still in the cache, many enough that a
// round's own cost does not show.
constexpr std::uint32_t kEventsPerRound = 4096;
constexpr std::size_t kMaxChainInMessage = 8;
// Of the time in windows the capture itself took this much at most, whatever it says.
constexpr double kMostCaptureShare = 0.9;

Result<void> check_target(const Target& target, Rank ranks, const std::string& name) {
  if (target.network == nullptr) return invalid_input(name + " has no network");
  if (target.nodes == 0) return invalid_input(name + " has no node");
  const auto is_speed = [](double speed) { return std::isfinite(speed) && speed > 0; };
  for (const auto& [what, size] : {std::pair{"processor counts", target.cores_of_node.size()},
                                   std::pair{"speeds", target.speed_of_node.size()}}) {
    if (size != 0 && size != target.nodes) {
      return invalid_input(name + " has " + std::to_string(size) + " " + what + " for " +
                           std::to_string(target.nodes) + " nodes");
    }
  }
  for (std::uint32_t node = 0; node < target.nodes; ++node) {
    if (target.cores_of(node) == 0) return invalid_input(name + " has no processor per node");
    if (!is_speed(target.speed_of(node))) {
      return invalid_input(name +
                           ": the speed must be a number above 0 (1 = as fast as the processor that ran)");
    }
    if (target.cores_of_node.empty() && target.speed_of_node.empty()) break;
  }
  if (target.topology != nullptr) {
    if (target.topology_node_of_node.size() != target.nodes) {
      return invalid_input(name + " has " + std::to_string(target.topology_node_of_node.size()) +
                           " nodes of the topology for " + std::to_string(target.nodes) + " nodes");
    }
    std::vector<bool> taken(target.topology->nodes(), false);
    for (const std::uint32_t node : target.topology_node_of_node) {
      if (node >= taken.size() || taken[node]) {
        return invalid_input(name + ": node " + std::to_string(node) + " of the topology " +
                             (node < taken.size() ? "is named twice" : "does not exist"));
      }
      taken[node] = true;
    }
  }
  if (target.node_of_rank.size() != static_cast<std::size_t>(ranks)) {
    return invalid_input(name + ": places " + std::to_string(target.node_of_rank.size()) +
                         " ranks, the program has " + std::to_string(ranks));
  }
  for (std::size_t rank = 0; rank < target.node_of_rank.size(); ++rank) {
    if (target.node_of_rank[rank] >= target.nodes) {
      return invalid_input(name + ": rank " + std::to_string(rank) + " is on node " +
                           std::to_string(target.node_of_rank[rank]) + ", but there are " +
                           std::to_string(target.nodes) + " nodes (numbered from 0)");
    }
  }
  return {};
}

Result<void> check_plan(const ProcedurePlan& plan, Rank ranks) {
  for (std::size_t v = 0; v < plan.scenarios.size(); ++v) {
    const Scenario& scenario = plan.scenarios[v];
    const std::string name = "scenario " + std::to_string(v + 1);
    std::set<std::uint32_t> changed;
    for (const ProcedureChange& change : scenario.changes) {
      if (!(change.share >= 0 && change.share <= 1)) {
        return invalid_input(name + ": the share of a procedure is a number from 0 to 1");
      }
      if (!changed.insert(change.procedure).second) {
        return invalid_input(name + " changes one procedure twice");
      }
      if (change.to == MoveTo::kRank && (scenario.rank < 0 || scenario.rank >= ranks)) {
        return invalid_input(name + ": rank " + std::to_string(scenario.rank) + " does not exist: the program has " +
                             std::to_string(ranks) + " ranks");
      }
    }
  }
  return {};
}

// Messages up to this size are eager on every target.
Bytes eager_up_to(const std::vector<Target>& targets) {
  Bytes limit = ~Bytes{0};
  for (const Target& target : targets) {
    const Localities localities(target);
    for (std::size_t locality = 0; locality < localities.count(); ++locality) {
      limit = std::min(limit, localities.path(locality).eager_limit_bytes);
    }
  }
  return limit;
}

// Does some target need to know which messages are first ones?
bool any_first_message(const std::vector<Target>& targets) {
  return std::any_of(targets.begin(), targets.end(), [](const Target& target) {
    const Localities localities(target);
    bool any = false;
    for (std::size_t locality = 0; locality < localities.count(); ++locality) {
      any = any || localities.path(locality).first_message_s > 0;
    }
    return any;
  });
}

// Does some target know what copies and reductions cost?
bool any_local_cost(const std::vector<Target>& targets) {
  return std::any_of(targets.begin(), targets.end(),
                     [](const Target& target) { return target.network->local().known(); });
}

class PredictorOfTargets final : public Predictor {
 public:
  PredictorOfTargets(Rank ranks, std::vector<Target> targets, ProcedurePlan plan)
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
    matcher_.emplace(ranks, *store_, eager_up_to(targets_), any_first_message(targets_),
                     any_local_cost(targets_));
    if (!plan.empty()) {
      profiled_at_ = plan.scenarios.size();
      matcher_->shift_procedures(std::move(plan));
    }
    if (!dedicated.empty()) replays_.push_back(std::make_unique<DedicatedReplay>(dedicated, *store_));
    for (std::size_t t : shared) {
      replay_of_target_[t] = {replays_.size(), 0};
      replays_.push_back(std::make_unique<SharedReplay>(targets_[t], *store_));
    }
  }

  void set_mpi(const MpiSetup& setup) override { matcher_->set_mpi(setup); }
  void set_capture_cost(const CaptureCost& cost) override { capture_cost_ = cost; }

  using Predictor::feed;
  Result<void> feed(Rank rank, std::span<const Event> events) override {
    if (error_) return *error_;
    if (observed_ != nullptr) {
      for (const Event& event : events) {
        if (Result<void> fed = match(rank, {&event, 1}); !fed) return fed;
        observed_->observe_arrival(rank, matcher_->events_of(rank));
        advance();
      }
      return {};
    }
    // A round is never longer than it may be, however long the block is.
    while (!events.empty()) {
      const std::size_t part = std::min<std::size_t>(events.size(), kEventsPerRound - events_in_round_);
      if (Result<void> fed = match(rank, events.first(part)); !fed) return fed;
      events = events.subspan(part);
      events_in_round_ += static_cast<std::uint32_t>(part);
      if (events_in_round_ == kEventsPerRound) advance();
    }
    return {};
  }

  void close(Rank rank) override {
    if (rank < 0 || rank >= ranks_ || matcher_->closed(rank)) return;
    matcher_->close(rank);
    ++closed_;
    if (observed_ != nullptr || closed_ == ranks_) advance();
    if (closed_ == ranks_) part_stuck_targets();
  }

  void advance() override {
    events_in_round_ = 0;
    matcher_->settle();
    for (const std::unique_ptr<Replay>& replay : replays_) replay->advance();
    store_->clear_touched();
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
      for (Rank rank = 0; rank < ranks_; ++rank) {
        prediction.rank_finish_s.push_back(replay.finish_s(k, rank));
        prediction.rank_measured_s.push_back(replay.measured_s(rank));
        prediction.lbf_s = std::max(prediction.lbf_s, prediction.rank_finish_s.back());
        prediction.complete = prediction.complete && replay.exited(rank);
      }
      prediction.low_s = prediction.high_s = prediction.lbf_s;
      if (!matcher_->windows().empty()) extrapolate_windows(replay, k, prediction);
      if (closed_ == ranks_ && !prediction.complete) {
        if (!why_stuck[which]) {
          const std::optional<Error> error = stuck(replay);
          why_stuck[which] = error ? error->message : std::string();
        }
        prediction.why_stuck = *why_stuck[which];
      }
    }
    return predictions;
  }

  PredictorStats stats() const override {
    const MatchStats& matched = matcher_->stats();
    PredictorStats stats;
    stats.events = matched.events;
    stats.messages = matched.messages;
    stats.collectives = matched.collectives;
    stats.approximated_collectives = matched.approximated_collectives;
    stats.nonblocking_collectives = matched.nonblocking_collectives;
    stats.wildcard_receives = matched.wildcard_receives;
    stats.one_sided_operations = matched.one_sided_operations;
    stats.io_calls = matched.io_calls;
    stats.io_s = matched.io_s;
    stats.bytes_read = matched.bytes_read;
    stats.bytes_written = matched.bytes_written;
    stats.unmodelled_calls = matched.unmodelled_calls;
    stats.unmodelled_s = matched.unmodelled_s;
    stats.lost_events = matched.lost_events;
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
      std::optional<Error> error = stuck(*replay);
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
                             std::to_string(matcher_->events_of(rank)) +
                             " without reaching its end (MPI_Finalize)");
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
    Replay* replay = replays_.front().get();
    if (auto* dedicated = dynamic_cast<DedicatedReplay*>(replay)) dedicated->record(&*timeline_);
    if (auto* shared = dynamic_cast<SharedReplay*>(replay)) shared->record(&*timeline_);
  }

 private:
  // What the capture took of the measured time in windows, as a share of it, and where it is taken off.
  struct Without {
    double share = 0;
    bool of_predicted = false;  // too: the target's time has as much of it
  };
  static SeenStretch without(Seconds measured_s, Seconds predicted_s, const Without& capture) {
    const Seconds capture_s = measured_s * capture.share;
    if (capture.of_predicted) predicted_s = std::max(predicted_s - capture_s, (1 - kMostCaptureShare) * predicted_s);
    return {measured_s - capture_s, predicted_s};
  }
  static Seconds predicted_of(const WindowClocks::Window& window, std::size_t k) {
    return window.predicted_s.empty() ? 0 : window.predicted_s[k];
  }
  static SeenStretch stretch(const WindowClocks::Window& window, std::size_t k, const Without& capture) {
    return without(window.measured_s, predicted_of(window, k), capture);
  }

  // The blocks of window `w`. What of its time is in no event they share.
  static std::vector<SeenStretch> blocks_of(const WindowClocks& clocks, std::size_t w, std::size_t k, const Without& capture) {
    std::vector<SeenStretch> blocks;
    if (w >= blocks::kCutWindows) return blocks;
    const std::size_t begin = blocks::index_of(static_cast<std::uint32_t>(w), 0);
    const std::size_t end = std::min<std::size_t>(begin + blocks::kMostOfAWindow, clocks.blocks().size());
    Seconds in_events_s = 0;
    for (std::size_t b = begin; b < end; ++b) in_events_s += clocks.blocks()[b].measured_s;
    const bool closed = w < clocks.windows().size() && clocks.windows()[w].measured_s > in_events_s;
    const double scale = closed && in_events_s > 0 ? clocks.windows()[w].measured_s / in_events_s : 1;
    for (std::size_t b = begin; b < end; ++b) {
      const WindowClocks::Window& block = clocks.blocks()[b];
      blocks.push_back(without(block.measured_s * scale, predicted_of(block, k), capture));
    }
    return blocks::joined(std::span<const SeenStretch>(blocks));
  }

  // All ranks' times together. What is predicted of the seen part has the capture in it, as the part itself.
  Extrapolated extrapolate_sums(const Replay& replay, std::size_t k, Seconds run_s, const Without& capture) const {
    const WindowClocks& clocks = replay.window_clocks();
    SeenStretch start;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (clocks.closed_once(static_cast<std::size_t>(rank))) continue;
      const SeenStretch of_rank = without(replay.measured_s(rank), replay.finish_s(k, rank), capture);
      start.measured_s += of_rank.measured_s;
      start.predicted_s += of_rank.predicted_s;
    }
    // In the order of their numbers, which is that of time.
    const std::vector<std::uint64_t>& numbers = matcher_->windows();
    std::vector<std::size_t> order;
    for (std::size_t w = 1; w < clocks.windows().size(); ++w) {
      if (clocks.windows()[w].measured_s > 0) order.push_back(w);
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    std::vector<SeenStretch> windows;
    std::vector<SeenStretch> blocks;
    for (const std::size_t w : order) {
      windows.push_back(stretch(clocks.windows()[w], k, capture));
      if (order.size() >= kEnoughWindows) continue;
      const std::vector<SeenStretch> more = blocks_of(clocks, w, k, capture);
      blocks.insert(blocks.end(), more.begin(), more.end());
    }
    if (order.empty()) blocks = blocks_of(clocks, 0, k, capture);
    if (!clocks.windows().empty()) {
      const SeenStretch first = stretch(clocks.windows()[0], k, capture);
      start.measured_s += first.measured_s;
      start.predicted_s += first.predicted_s;
    }
    Extrapolated all = extrapolate(start, windows, run_s, blocks);
    if (capture.of_predicted) {
      Seconds taken_off_s = -start.predicted_s;
      for (const SeenStretch& window : windows) taken_off_s -= window.predicted_s;
      for (Rank rank = 0; rank < ranks_; ++rank) {
        if (!clocks.closed_once(static_cast<std::size_t>(rank))) taken_off_s += replay.finish_s(k, rank);
      }
      for (const WindowClocks::Window& window : clocks.windows()) {
        if (window.measured_s > 0) taken_off_s += predicted_of(window, k);
      }
      all.predicted_s += taken_off_s;
      if (all.low_s > 0) all.low_s += taken_off_s;
      all.high_s += taken_off_s;
    }
    return all;
  }

  // Each rank's time that nobody saw is taken to be as what was seen of all; the program takes as long as the rank
  // that takes longest.
  void extrapolate_windows(const Replay& replay, std::size_t k, Prediction& prediction) const {
    const WindowClocks& clocks = replay.window_clocks();
    Seconds run_s = 0;
    Seconds away_s = 0;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      run_s += replay.measured_s(rank);
      away_s += clocks.away_s(static_cast<std::size_t>(rank));
    }
    const Seconds seen_s = run_s - away_s;
    // What the capture took is no time of the program's: what was recorded ran slower by it than the rest did, on every
    // target. How much of it held up others, and so counts twice, or was spent while others were waited for, and so does
    // not count, nobody knows: the interval has both, and what the run would take if it were recorded to its end.
    const double share = seen_s > 0 ? std::clamp(capture_cost_.recording_s / seen_s, 0.0, kMostCaptureShare) : 0;
    const Seconds own_away_s = std::max(away_s - capture_cost_.counting_s, 0.0);
    const auto with = [&](const Without& capture) {
      return extrapolate_sums(replay, k, seen_s * (1 - capture.share) + own_away_s, capture);
    };
    Extrapolated all = with({share, true});
    for (const double other : {0.0, std::min(2 * share, kMostCaptureShare)}) {
      if (other == share) continue;
      const Extrapolated bound = with({other, false});
      all.low_s = std::min(all.low_s, bound.low_s);
      all.high_s = std::max(all.high_s, bound.high_s);
    }
    prediction.seen_share = run_s > 0 ? std::clamp(seen_s / run_s, 0.0, 1.0) : 1;
    Seconds known_s = 0;  // all ranks
    prediction.lbf_s = 0;
    for (Rank rank = 0; rank < ranks_; ++rank)
      known_s += replay.finish_s(k, rank) - clocks.away_s(static_cast<std::size_t>(rank));
    const double ratio = away_s > 0 ? std::max(all.predicted_s - known_s, 0.0) / away_s : 1;
    Seconds longest_known_s = 0;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const Seconds of_rank_s = clocks.away_s(static_cast<std::size_t>(rank));
      const Seconds known_of_rank_s = replay.finish_s(k, rank) - of_rank_s;
      longest_known_s = std::max(longest_known_s, known_of_rank_s);
      prediction.lbf_s = std::max(prediction.lbf_s, known_of_rank_s + ratio * of_rank_s);
    }
    prediction.low_s = prediction.high_s = prediction.lbf_s;
    if (away_s <= 0) return;
    const double scale = all.predicted_s > 0 ? prediction.lbf_s / all.predicted_s : 0;
    prediction.low_s = std::min(std::max(scale * all.low_s, all.low_s > 0 ? longest_known_s : 0), prediction.lbf_s);
    prediction.high_s = all.high_s == kNeverS ? kNeverS : std::max(scale * all.high_s, prediction.lbf_s);
  }

  Result<void> match(Rank rank, std::span<const Event> events) {
    Result<void> fed = matcher_->feed(rank, events);
    if (!fed) error_ = fed.error();
    return fed;
  }

  std::string place(const Replay& replay, ProcessIndex process) const {
    const std::string rank = "rank " + std::to_string(store_->rank_of(process));
    if (store_->is_actor(process)) return "a non-blocking collective of " + rank;
    return rank + " (event " + std::to_string(replay.status(process).events_done + 1) + ")";
  }

  static std::string awaited(const Message& message, Rank other) {
    const std::string comm = ", communicator " + std::to_string(message.comm);
    if (message.collective) {
      return "rank " + std::to_string(other) + ", collective " +
             std::to_string(static_cast<std::uint32_t>(message.tag) + 1) + comm;
    }
    return "rank " + std::to_string(other) + ", tag " + std::to_string(message.tag) + comm;
  }

  // Targets of one dedicated replay on which the program is stuck, and those on which it is not.
  void part_stuck_targets() {
    for (std::size_t r = 0; r < replays_.size(); ++r) {
      auto* replay = dynamic_cast<DedicatedReplay*>(replays_[r].get());
      std::vector<std::size_t> moved;
      while (replay != nullptr) {
        std::unique_ptr<DedicatedReplay> other = replay->split_stuck(moved);
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

  std::optional<Error> stuck(const Replay& replay) const {
    for (ProcessIndex process = 0; process < static_cast<ProcessIndex>(ranks_); ++process) {
      if (waits(replay.status(process))) return stuck(replay, process);
    }
    return std::nullopt;
  }

  static bool waits(const ProcessStatus& status) {
    return status.state == ProcessStatus::State::kWaiting ||
           status.state == ProcessStatus::State::kWaitingForReceive;
  }

  // What the process waits for: "for a message from rank 1, tag 5, communicator 0".
  std::string reason(const ProcessStatus& status) const {
    const Message& message = store_->message(status.message);
    if (status.state == ProcessStatus::State::kWaiting)
      return "for a message from " + awaited(message, message.src);
    return "until its message is received by " + awaited(message, message.dst);
  }

  // Follows who waits for whom from `start` to the cause.
  Error stuck(const Replay& replay, ProcessIndex start) const {
    std::vector<ProcessIndex> chain;
    std::unordered_map<ProcessIndex, std::size_t> place_in_chain;
    ProcessIndex process = start;
    bool relies_on_buffering = false;
    for (;;) {
      const auto [seen, is_new] = place_in_chain.try_emplace(process, chain.size());
      if (!is_new) {
        std::string text = "cyclic wait: ";
        std::size_t named = 0;
        for (auto it = chain.begin() + static_cast<std::ptrdiff_t>(seen->second); it != chain.end(); ++it) {
          if (++named > kMaxChainInMessage) {
            text += "... waits for ";
            break;
          }
          text += place(replay, *it) + " waits " + reason(replay.status(*it)) + "; ";
        }
        text += "back at " + place(replay, process);
        if (relies_on_buffering) {
          text += " (messages above the eager limit: the program relies on the library's buffers)";
        }
        return invalid_input(text);
      }
      chain.push_back(process);
      const ProcessStatus status = replay.status(process);
      const Message& message = store_->message(status.message);
      const bool for_receive = status.state == ProcessStatus::State::kWaitingForReceive;
      relies_on_buffering = relies_on_buffering || (for_receive && !message.sync);
      const ProcessIndex other = for_receive ? message.receiver : message.sender;
      if (for_receive ? other == kNobody : !message.sent) {
        const Rank rank = for_receive ? message.dst : message.src;
        std::string text = store_->is_actor(process)
                               ? place(replay, process) + " waits"
                               : "rank " + std::to_string(store_->rank_of(process)) + " waits at its event " +
                                     std::to_string(status.events_done + 1);
        text += " " + reason(status) + (for_receive ? ", which never does" : ", that was never sent");
        if (!matcher_->exited(rank)) {
          text += ": rank " + std::to_string(rank) + " stopped after its event " +
                  std::to_string(matcher_->events_of(rank));
        }
        if (!matcher_->why_partial().empty()) text += " (" + matcher_->why_partial() + ")";
        return invalid_input(text);
      }
      if (!waits(replay.status(other))) {
        // The other side is known and its process can go on: it only lacks a round of replay.
        return invalid_input(place(replay, process) + " waits " + reason(status) +
                             ", which is still to be replayed");
      }
      process = other;
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
  CaptureCost capture_cost_;
};

}  // namespace

Result<std::unique_ptr<Predictor>> Predictor::make(Rank ranks, std::vector<Target> targets,
                                                   ProcedurePlan plan) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return invalid_input("a program has 1 to " + std::to_string(kMaxRanks) + " ranks, not " +
                         std::to_string(ranks));
  }
  if (targets.empty()) return invalid_input("there is no target to predict");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const std::string name = "target " + std::to_string(t + 1);
    if (Result<void> ok = check_target(targets[t], ranks, name); !ok) return ok.error();
    if (targets[t].scenario > plan.scenarios.size()) {
      return invalid_input(name + " is of scenario " + std::to_string(targets[t].scenario) + ", but there are " +
                           std::to_string(plan.scenarios.size()));
    }
  }
  if (Result<void> ok = check_plan(plan, ranks); !ok) return ok.error();
  return std::unique_ptr<Predictor>(
      std::make_unique<PredictorOfTargets>(ranks, std::move(targets), std::move(plan)));
}

}  // namespace lbf::engine
