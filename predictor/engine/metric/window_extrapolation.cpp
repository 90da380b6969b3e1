#include "predictor/engine/metric/window_extrapolation.h"

#include <algorithm>
#include <span>

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
Seconds predicted_of(const WindowClocks::Window& window, std::size_t k) {
  return window.predicted_s.empty() ? 0 : window.predicted_s[k];
}
SeenStretch stretch(const WindowClocks::Window& window, std::size_t k, const Without& capture) {
  return without(window.measured_s, predicted_of(window, k), capture);
}

// The blocks of window `w`. What of its time is in no event they share.
std::vector<SeenStretch> blocks_of(const WindowClocks& clocks, std::size_t w, std::size_t k, const Without& capture) {
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
Extrapolated extrapolate_sums(const PredictedWindows& of, Seconds run_s, const Without& capture) {
  const Replay& replay = of.replay;
  const std::size_t k = of.k;
  const WindowClocks& clocks = replay.window_clocks();
  SeenStretch start;
  for (Rank rank = 0; rank < of.ranks; ++rank) {
    if (clocks.closed_once(static_cast<std::size_t>(rank))) continue;
    const SeenStretch of_rank = without(replay.measured_s(rank), replay.finish_s(k, rank), capture);
    start.measured_s += of_rank.measured_s;
    start.predicted_s += of_rank.predicted_s;
  }
  // In the order of their numbers, which is that of time.
  const std::vector<std::uint64_t>& numbers = of.numbers;
  std::vector<std::size_t> order;
  for (std::size_t w = 1; w < clocks.windows().size(); ++w) {
    if (clocks.windows()[w].measured_s > 0) order.push_back(w);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
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
    for (Rank rank = 0; rank < of.ranks; ++rank) {
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

}  // namespace

void extrapolate_windows(const PredictedWindows& of, const CaptureCost& cost, Prediction& prediction) {
  const Replay& replay = of.replay;
  const std::size_t k = of.k;
  const WindowClocks& clocks = replay.window_clocks();
  Seconds run_s = 0;
  Seconds away_s = 0;
  for (Rank rank = 0; rank < of.ranks; ++rank) {
    run_s += replay.measured_s(rank);
    away_s += clocks.away_s(static_cast<std::size_t>(rank));
  }
  const Seconds seen_s = run_s - away_s;
  // What the capture took is no time of the program's: what was recorded ran slower by it than the rest did, on every
  // target. How much of it held up others, and so counts twice, or was spent while others were waited for, and so does
  // not count, nobody knows: the interval has both, and what the run would take if it were recorded to its end.
  const double share = seen_s > 0 ? std::clamp(cost.recording_s / seen_s, 0.0, kMostCaptureShare) : 0;
  const Seconds own_away_s = std::max(away_s - cost.counting_s, 0.0);
  const auto with = [&](const Without& capture) {
    return extrapolate_sums(of, seen_s * (1 - capture.share) + own_away_s, capture);
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
  for (Rank rank = 0; rank < of.ranks; ++rank)
    known_s += replay.finish_s(k, rank) - clocks.away_s(static_cast<std::size_t>(rank));
  const double ratio = away_s > 0 ? std::max(all.predicted_s - known_s, 0.0) / away_s : 1;
  Seconds longest_known_s = 0;
  for (Rank rank = 0; rank < of.ranks; ++rank) {
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

}  // namespace lbf::engine
