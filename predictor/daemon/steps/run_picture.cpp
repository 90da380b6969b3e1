// RunPicture, see run_picture.h.
#include "predictor/daemon/steps/run_picture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "event/unseen_time.h"

namespace lbf::daemon {
namespace {

using nlohmann::json;

enum : std::size_t { kRan, kTarget };
enum : std::size_t { kMeasured, kPredicted };

}  // namespace

BinnedTimeline::BinnedTimeline(std::uint32_t rows, std::uint32_t columns)
    : rows_(rows), columns_(columns), seconds_(std::size_t{rows} * columns * kKinds, 0) {}

void BinnedTimeline::join_columns() {
  for (std::size_t line = 0; line < std::size_t{rows_} * kKinds; ++line) {
    Seconds* const at = &seconds_[line * columns_];
    for (std::uint32_t i = 0; i < columns_ / 2; ++i) at[i] = at[2 * i] + at[2 * i + 1];
    std::fill(at + columns_ / 2, at + columns_, 0);
  }
  column_s_ *= 2;
}

void BinnedTimeline::widen_to(Seconds column_s) {
  while (column_s_ < column_s) join_columns();
}

std::uint32_t BinnedTimeline::columns_used() const {
  return std::min(columns_, static_cast<std::uint32_t>(std::ceil(end_s_ / column_s_)));
}

void BinnedTimeline::add(std::uint32_t row, Kind kind, Seconds begin_s, Seconds end_s) {
  if (!(end_s > begin_s) || end_s >= kNeverS) return;
  while (end_s > column_s_ * columns_) join_columns();
  end_s_ = std::max(end_s_, end_s);
  Seconds* const at = &seconds_[(static_cast<std::size_t>(row) * kKinds + kind) * columns_];
  auto column = static_cast<std::uint32_t>(begin_s / column_s_);
  for (; column < columns_ && begin_s < end_s; ++column) {
    const Seconds here_s = std::min(end_s, (column + 1) * column_s_);
    if (here_s > begin_s) at[column] += here_s - begin_s;
    begin_s = std::max(begin_s, here_s);
  }
}

RunPicture::Matrix RunPicture::make_matrix(const std::vector<std::uint32_t>& node_of_rank) const {
  Matrix matrix;
  matrix.node_of_rank = node_of_rank;
  std::vector<Rank> order(ranks_);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Rank a, Rank b) {
    return node_of_rank[static_cast<std::size_t>(a)] < node_of_rank[static_cast<std::size_t>(b)];
  });
  const std::uint32_t blocks = std::min(size_.blocks, ranks_);
  matrix.block_of_rank.resize(ranks_);
  for (std::uint64_t at = 0; at < order.size(); ++at) {
    const auto block = static_cast<std::uint32_t>(at * blocks / ranks_);
    const auto rank = static_cast<std::size_t>(order[at]);
    matrix.block_of_rank[rank] = block;
    if (block == matrix.first_rank.size()) {
      matrix.first_rank.push_back(order[at]);
      matrix.first_node.push_back(node_of_rank[rank]);
    }
  }
  matrix.bytes.assign(std::size_t{blocks} * blocks, 0);
  return matrix;
}

void RunPicture::start(const engine::Target& ran, const engine::Target& target) {
  ranks_ = static_cast<std::uint32_t>(target.node_of_rank.size());
  ranks_per_row_ = (ranks_ + size_.rows - 1) / size_.rows;
  const std::uint32_t rows = (ranks_ + ranks_per_row_ - 1) / ranks_per_row_;
  matrices_ = {make_matrix(ran.node_of_rank), make_matrix(target.node_of_rank)};
  timelines_.assign(2, BinnedTimeline(rows, size_.columns));
  measured_s_.assign(ranks_, 0);
  outside_.assign(ranks_, false);
}

void RunPicture::measured(Rank of_rank, std::span<const Event> events) {
  const auto rank = static_cast<std::size_t>(of_rank);
  BinnedTimeline& timeline = timelines_[kMeasured];
  Seconds& now_s = measured_s_[rank];
  const auto pass = [&](BinnedTimeline::Kind kind, Seconds length_s) {
    timeline.add(row_of(of_rank), kind, now_s, now_s + length_s);
    now_s += length_s;
  };
  for (const Event& event : events) {
    pass(event.kind == EventKind::kDevice ? BinnedTimeline::kBlocked : BinnedTimeline::kComputing, event.process_s);
    pass(BinnedTimeline::kBlocked, event.off_s);
    if (event.kind == EventKind::kPhase) outside_[rank] = is_outside_after(event, outside_[rank]);
    if (call_time_is_unseen(event)) {
      const bool is_outside = event.kind == EventKind::kWindowOpen && outside_[rank];
      now_s += is_outside ? 0 : Seconds(event.call_s);
    } else {
      pass(event.kind == EventKind::kIo ? BinnedTimeline::kBlocked : BinnedTimeline::kMpi, event.call_s);
    }
  }
}

void RunPicture::add_message(Matrix& matrix, Rank from, Rank to, Bytes bytes) {
  const auto source = static_cast<std::size_t>(from);
  const auto destination = static_cast<std::size_t>(to);
  matrix.bytes[matrix.block_of_rank[source] * matrix.first_rank.size() + matrix.block_of_rank[destination]] += bytes;
  const bool inside = matrix.node_of_rank[source] == matrix.node_of_rank[destination];
  (inside ? matrix.inside_bytes : matrix.between_bytes) += bytes;
}

void RunPicture::on_op(const engine::TimelineOp& op) {
  const bool is_message = op.kind == engine::OpKind::kSend && op.message_id != 0 && !op.message.internal &&
                          !op.message.is_run && op.message.src >= 0 && op.message.dst >= 0;
  if (is_message) {
    ++messages_;
    for (Matrix& matrix : matrices_) add_message(matrix, op.message.src, op.message.dst, op.message.bytes);
  }
  if (op.actor) return;  // beside its rank, which has a line of its own
  BinnedTimeline& timeline = timelines_[kPredicted];
  const std::uint32_t row = row_of(op.rank);
  timeline.add(row, BinnedTimeline::kComputing, op.begin_s, op.acted_s);
  const bool is_off = engine::passes_measured_time(op.kind);
  timeline.add(row, is_off ? BinnedTimeline::kBlocked : BinnedTimeline::kMpi, op.acted_s, op.waited_s);
  timeline.add(row, BinnedTimeline::kMpi, op.waited_s, op.end_s);
}

json RunPicture::matrix_json(const Matrix& matrix) const {
  const std::size_t blocks = matrix.first_rank.size();
  json rows = json::array();
  for (std::size_t from = 0; from < blocks; ++from) {
    rows.push_back(std::vector<Bytes>(matrix.bytes.begin() + static_cast<std::ptrdiff_t>(from * blocks),
                                      matrix.bytes.begin() + static_cast<std::ptrdiff_t>((from + 1) * blocks)));
  }
  return {{"first_rank", matrix.first_rank},
          {"node", matrix.first_node},
          {"bytes", std::move(rows)},
          {"bytes_inside_nodes", matrix.inside_bytes},
          {"bytes_between_nodes", matrix.between_bytes}};
}

json RunPicture::timeline_json(const BinnedTimeline& timeline) const {
  const std::uint32_t rows = (ranks_ + ranks_per_row_ - 1) / ranks_per_row_;
  const std::uint32_t columns = timeline.columns_used();
  const auto of_kind = [&](BinnedTimeline::Kind kind) {
    json lines = json::array();
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t ranks = std::min(ranks_per_row_, ranks_ - row * ranks_per_row_);
      std::vector<int> line(columns);
      for (std::uint32_t i = 0; i < columns; ++i) {
        const double share = timeline.seconds(row, kind, i) / (timeline.column_s() * ranks);
        line[i] = static_cast<int>(std::lround(100 * std::min(1.0, share)));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  };
  return {{"columns", columns},
          {"computing", of_kind(BinnedTimeline::kComputing)},
          {"mpi", of_kind(BinnedTimeline::kMpi)},
          {"blocked", of_kind(BinnedTimeline::kBlocked)}};
}

json RunPicture::to_json() const {
  std::vector<BinnedTimeline> timelines = timelines_;
  const Seconds column_s = std::max(timelines[kMeasured].column_s(), timelines[kPredicted].column_s());
  for (BinnedTimeline& timeline : timelines) timeline.widen_to(column_s);
  return {{"target", target_},
          {"ranks", ranks_},
          {"messages", messages_},
          {"ranks_per_row", ranks_per_row_},
          {"column_s", column_s},
          {"measured", timeline_json(timelines[kMeasured])},
          {"predicted", timeline_json(timelines[kPredicted])},
          {"matrix_ran", matrix_json(matrices_[kRan])},
          {"matrix_target", matrix_json(matrices_[kTarget])}};
}

}  // namespace lbf::daemon
