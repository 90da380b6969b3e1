// RunPicture: what one replay of a stored step shows, small enough for a page whatever the run's length and size:
// who sent how much to whom under the mapping that ran and under a target's, and what the ranks did when, as
// measured and as predicted on that target.
//
// Place in the event's way: trace store -> StepRun (one target, observed) -> *RunPicture* -> GET .../picture
// (docs/formats/http-v1.md). Memory is O(blocks^2 + rows x columns), never O(events).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "event/event.h"
#include "predictor/engine/replay/target.h"
#include "predictor/engine/replay/timeline.h"

namespace lbf::daemon {

struct PictureSize {
  std::uint32_t blocks = 64;    // of ranks, along each side of a matrix, at most
  std::uint32_t rows = 64;      // of a timeline, at most; neighbouring ranks share one
  std::uint32_t columns = 240;  // of a timeline, at most; even
};

// Seconds of computing, of MPI and off the processor per row and column. Starts with narrow columns; when time goes
// beyond the last one, neighbours are joined and columns are twice as wide: a run of unknown length needs no second
// pass, and its end is in the right half.
class BinnedTimeline {
 public:
  enum Kind : std::uint8_t { kComputing, kMpi, kBlocked };
  static constexpr std::size_t kKinds = 3;

  // REQUIRES: rows > 0, columns even and > 0.
  BinnedTimeline(std::uint32_t rows, std::uint32_t columns);
  // REQUIRES: 0 <= begin_s.
  void add(std::uint32_t row, Kind kind, Seconds begin_s, Seconds end_s);
  // Joins columns until they are at least so wide.
  void widen_to(Seconds column_s);

  Seconds column_s() const { return column_s_; }
  std::uint32_t columns_used() const;
  Seconds seconds(std::uint32_t row, Kind kind, std::uint32_t column) const {
    return seconds_[(static_cast<std::size_t>(row) * kKinds + kind) * columns_ + column];
  }

 private:
  void join_columns();
  std::uint32_t rows_;
  std::uint32_t columns_;
  Seconds column_s_ = 1e-6;
  Seconds end_s_ = 0;  // of what was added
  std::vector<Seconds> seconds_;
};

class RunPicture : public engine::TimelineObserver {
 public:
  // `target`: the number of the step's prediction.
  RunPicture(std::size_t target, PictureSize size) : target_(target), size_(size) {}

  std::size_t target() const { return target_; }
  bool started() const { return !timelines_.empty(); }
  // Before the first event. `ran`: the configuration that ran.
  void start(const engine::Target& ran, const engine::Target& target);
  // REQUIRES: started; 0 <= rank < ranks of the target.
  void measured(Rank of_rank, std::span<const Event> events);
  void on_op(const engine::TimelineOp& op) override;

  // docs/formats/http-v1.md, PICTURE, without "why_partial". REQUIRES: started.
  nlohmann::json to_json() const;

 private:
  struct Matrix {
    std::vector<std::uint32_t> node_of_rank;
    std::vector<std::uint32_t> block_of_rank;
    std::vector<Rank> first_rank;           // of each block
    std::vector<std::uint32_t> first_node;  // of each block's first rank
    std::vector<Bytes> bytes;               // [from block][to block]
    Bytes inside_bytes = 0;                 // of messages inside a node
    Bytes between_bytes = 0;
  };
  Matrix make_matrix(const std::vector<std::uint32_t>& node_of_rank) const;
  static void add_message(Matrix& matrix, Rank from, Rank to, Bytes bytes);
  nlohmann::json matrix_json(const Matrix& matrix) const;
  nlohmann::json timeline_json(const BinnedTimeline& timeline) const;
  std::uint32_t row_of(Rank rank) const { return static_cast<std::uint32_t>(rank) / ranks_per_row_; }

  const std::size_t target_;
  const PictureSize size_;
  std::uint32_t ranks_ = 0;
  std::uint32_t ranks_per_row_ = 1;
  std::vector<Matrix> matrices_;           // ran, target
  std::vector<BinnedTimeline> timelines_;  // measured, predicted
  std::vector<Seconds> measured_s_;        // by rank: how far it is
  std::vector<bool> outside_;              // by rank: of the program's scope (MPI_Pcontrol)
  std::uint64_t messages_ = 0;
};

}  // namespace lbf::daemon
