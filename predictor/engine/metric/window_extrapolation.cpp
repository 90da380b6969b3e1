#include "predictor/engine/metric/window_extrapolation.h"

#include <algorithm>
#include <span>
#include <vector>

#include "predictor/engine/match/blocks.h"
#include "predictor/engine/metric/extrapolation.h"

namespace lbf::engine {
namespace {

// Of the time in windows the capture itself took this much at most, whatever it says.
constexpr double kMostCaptureShare = 0.9;

// What the capture took of the measured time in windows, as a share of it, and where it is taken off.
struct Without {
  double share = 0;
  bool of_predicted = false;  // too: the target's time has as much of it
};
SeenStretch without(Seconds measured_s, Seconds predicted_s, const Without& capture) {
  const Seconds capture_s = measured_s * capture.share;
  if (capture.of_predicted) predicted_s = std::max(predicted_s - capture_s, (1 - kMostCaptureShare) * predicted_s);
  return {measured_s - capture_s, predicted_s};
}
SeenStretch without(const WindowClocks::Times& times, const Without& capture) {
  return without(times.measured_s, times.predicted_s, capture);
}

// The blocks of window `w`. What of its time is in no event they share.
std::vector<SeenStretch> blocks_of(const WindowClocks& clocks, std::size_t w, std::size_t k, const Without& capture) {
  std::vector<SeenStretch> blocks;
  if (w >= blocks::kCutWindows || (w < clocks.windows() && clocks.has_unshared(w))) return blocks;
  const std::size_t begin = blocks::index_of(static_cast<std::uint32_t>(w), 0);
  const std::size_t end = std::min<std::size_t>(begin + blocks::kMostOfAWindow, clocks.blocks().size());
  Seconds in_events_s = 0;
  for (std::size_t b = begin; b < end; ++b) in_events_s += clocks.blocks()[b].measured_s;
  const Seconds measured_s = w < clocks.windows() ? clocks.seen(w, k).measured_s : 0;
  const double scale = measured_s > in_events_s && in_events_s > 0 ? measured_s / in_events_s : 1;
  for (std::size_t b = begin; b < end; ++b) {
    const WindowClocks::Times block = clocks.blocks()[b].times(k);
    blocks.push_back(without(block.measured_s * scale, block.predicted_s, capture));
  }
  return blocks::joined(std::span<const SeenStretch>(blocks));
}

// What is known of the ranks on one target.
struct RankTimes {
  Seconds measured_s = 0;
  Seconds finish_s = 0;
  Seconds away_s = 0;            // between windows
  WindowClocks::Times unshared;  // in windows that the others had closed
  bool in_first_window = false;  // with the others, and it never closed it
};
std::vector<RankTimes> rank_times(const PredictedWindows& of) {
  const WindowClocks& clocks = of.replay.window_clocks();
  const std::vector<WindowClocks::Times> unshared = clocks.unshared(of.k);
  std::vector<RankTimes> out(static_cast<std::size_t>(of.ranks));
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    RankTimes& times = out[rank];
    times.measured_s = of.replay.measured_s(static_cast<Rank>(rank));
    times.finish_s = of.replay.finish_s(of.k, static_cast<Rank>(rank));
    times.away_s = clocks.away_s(rank);
    if (rank < unshared.size()) times.unshared = unshared[rank];
    if (clocks.closed_once(rank)) continue;
    times.in_first_window = !clocks.is_unshared_start(times.measured_s);
    if (!times.in_first_window) times.unshared = {times.measured_s, times.finish_s};
  }
  return out;
}

// All ranks' times together. What is predicted of the seen part has the capture in it, as the part itself.
Extrapolated extrapolate_sums(const PredictedWindows& of, const std::vector<RankTimes>& ranks, Seconds run_s,
                              const Without& capture) {
  const std::size_t k = of.k;
  const WindowClocks& clocks = of.replay.window_clocks();
  SeenStretch start;
  bool begins_alike = true;
  for (const RankTimes& rank : ranks) {
    if (!rank.in_first_window) continue;
    const SeenStretch of_rank = without(rank.measured_s, rank.finish_s, capture);
    start.measured_s += of_rank.measured_s;
    start.predicted_s += of_rank.predicted_s;
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    begins_alike = begins_alike && (ranks[rank].in_first_window || clocks.closed_once(rank));
  // In the order of their numbers, which is that of time.
  const std::vector<std::uint64_t>& numbers = of.numbers;
  std::vector<std::size_t> order;
  for (std::size_t w = 1; w < clocks.windows(); ++w) {
    if (clocks.seen(w, k).measured_s > 0) order.push_back(w);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::vector<SeenStretch> windows;
  std::vector<SeenStretch> blocks;
  for (const std::size_t w : order) {
    windows.push_back(without(clocks.seen(w, k), capture));
    if (order.size() >= kEnoughWindows) continue;
    const std::vector<SeenStretch> more = blocks_of(clocks, w, k, capture);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }
  if (order.empty() && begins_alike) blocks = blocks_of(clocks, 0, k, capture);
  if (clocks.windows() > 0) {
    const SeenStretch first = without(clocks.seen(0, k), capture);
    start.measured_s += first.measured_s;
    start.predicted_s += first.predicted_s;
  }
  Extrapolated all = extrapolate(start, windows, run_s, blocks);
  if (capture.of_predicted) {
    Seconds taken_off_s = -start.predicted_s;
    for (const SeenStretch& window : windows) taken_off_s -= window.predicted_s;
    for (const RankTimes& rank : ranks) {
      if (rank.in_first_window) taken_off_s += rank.finish_s;
    }
    for (std::size_t w = 0; w < clocks.windows(); ++w) {
      const WindowClocks::Times window = clocks.seen(w, k);
      if (window.measured_s > 0) taken_off_s += window.predicted_s;
    }
    all.predicted_s += taken_off_s;
    if (all.low_s > 0) all.low_s += taken_off_s;
    all.high_s += taken_off_s;
  }
  return all;
}

}  // namespace

void extrapolate_windows(const PredictedWindows& of, const CaptureCost& cost, Prediction& prediction) {
  const std::vector<RankTimes> ranks = rank_times(of);
  Seconds run_s = 0;
  Seconds away_s = 0;
  Seconds unshared_s = 0;
  for (const RankTimes& rank : ranks) {
    run_s += rank.measured_s;
    away_s += rank.away_s;
    unshared_s += rank.unshared.measured_s;
  }
  const Seconds recorded_s = run_s - away_s;
  const Seconds seen_s = recorded_s - unshared_s;
  // What the capture took is no time of the program's: what was recorded ran slower by it than the rest did, on every
  // target. How much of it held up others, and so counts twice, or was spent while others were waited for, and so does
  // not count, nobody knows: the interval has both, and what the run would take if it were recorded to its end.
  const double share = recorded_s > 0 ? std::clamp(cost.recording_s / recorded_s, 0.0, kMostCaptureShare) : 0;
  const Seconds own_unseen_s = std::max(away_s - cost.counting_s, 0.0) + unshared_s;
  const auto with = [&](const Without& capture) {
    return extrapolate_sums(of, ranks, seen_s * (1 - capture.share) + own_unseen_s, capture);
  };
  Extrapolated all = with({share, true});
  for (const double other : {0.0, std::min(2 * share, kMostCaptureShare)}) {
    if (other == share) continue;
    const Extrapolated bound = with({other, false});
    all.low_s = std::min(all.low_s, bound.low_s);
    all.high_s = std::max(all.high_s, bound.high_s);
  }
  // Whatever a rank recorded alone says nothing of how much the others did.
  const Seconds compared_s = away_s > 0 ? run_s - unshared_s : run_s;
  prediction.seen_share = compared_s > 0 ? std::clamp(seen_s / compared_s, 0.0, 1.0) : 1;
  Seconds known_s = 0;  // all ranks
  prediction.lbf_s = 0;
  for (const RankTimes& rank : ranks) known_s += rank.finish_s - rank.away_s - rank.unshared.predicted_s;
  const Seconds unseen_s = away_s + unshared_s;
  const double ratio = unseen_s > 0 ? std::max(all.predicted_s - known_s, 0.0) / unseen_s : 1;
  Seconds longest_known_s = 0;
  for (const RankTimes& rank : ranks) {
    const Seconds unseen_of_rank_s = rank.away_s + rank.unshared.measured_s;
    const Seconds known_of_rank_s = rank.finish_s - rank.away_s - rank.unshared.predicted_s;
    longest_known_s = std::max(longest_known_s, known_of_rank_s);
    prediction.lbf_s = std::max(prediction.lbf_s, known_of_rank_s + ratio * unseen_of_rank_s);
  }
  prediction.low_s = prediction.high_s = prediction.lbf_s;
  if (unseen_s <= 0) return;
  const double scale = all.predicted_s > 0 ? prediction.lbf_s / all.predicted_s : 0;
  prediction.low_s = std::min(std::max(scale * all.low_s, all.low_s > 0 ? longest_known_s : 0), prediction.lbf_s);
  prediction.high_s = all.high_s == kNeverS ? kNeverS : std::max(scale * all.high_s, prediction.lbf_s);
}

}  // namespace lbf::engine
