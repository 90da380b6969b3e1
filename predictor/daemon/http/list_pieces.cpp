// See list_pieces.h.
#include "predictor/daemon/http/list_pieces.h"

#include <algorithm>
#include <span>
#include <utility>

#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/http/step_text.h"

namespace lbf::daemon {
namespace {

constexpr std::size_t kFirstSteps = 8;
// Large enough that sending it costs little, small enough that the reader begins soon.
constexpr std::size_t kPieceBytes = 128 << 10;
constexpr std::size_t kMostSteps = 1024;

class RowPieces : public ListPieces {
 public:
  RowPieces(const Steps& steps, std::vector<db::ListedStep> listed, RowColumns columns, db::ListValues values)
      : ListPieces(listed.size()),
        steps_(steps),
        listed_(std::move(listed)),
        columns_(std::move(columns)),
        values_(std::move(values)) {}

 private:
  void append_head(std::string& out) const override { append_rows_head(columns_, out); }
  Result<void> read(std::size_t first, std::size_t last) override {
    return steps_.read_predictions(std::span(listed_).subspan(first, last - first), values_);
  }
  void append_step(std::size_t step, std::string& out) override {
    append_row(listed_[step], columns_, out);
    listed_[step] = {};
  }

  const Steps& steps_;
  std::vector<db::ListedStep> listed_;
  RowColumns columns_;
  db::ListValues values_;
};

class StepPieces : public ListPieces {
 public:
  StepPieces(const Steps& steps, std::vector<FoundStep> found, StepDetail detail)
      : ListPieces(found.size()), steps_(steps), found_(std::move(found)), detail_(detail) {}

 private:
  void append_head(std::string& out) const override { out += "{\"steps\":["; }
  Result<void> read(std::size_t first, std::size_t last) override {
    return steps_.read_predictions(std::span(found_).subspan(first, last - first), detail_);
  }
  void append_step(std::size_t step, std::string& out) override {
    if (detail_ == StepDetail::kFull) {
      out += json_text(step_json(found_[step].view, detail_));
    } else {
      append_step_text(found_[step].view, detail_, out);
    }
    found_[step] = {};
  }

  const Steps& steps_;
  std::vector<FoundStep> found_;
  StepDetail detail_;
};

}  // namespace

Result<std::string> ListPieces::next() {
  std::string piece;
  if (ended_) return piece;
  if (at_ == 0) {
    append_head(piece);
    steps_per_piece_ = kFirstSteps;
  }
  const std::size_t first = at_;
  const std::size_t last = std::min(steps_, first + steps_per_piece_);
  if (auto done = read(first, last); !done) return done.error();
  for (; at_ < last; ++at_) {
    piece += at_ == 0 ? "\n" : ",\n";
    append_step(at_, piece);
  }
  if (at_ == steps_) {
    piece += "\n]}";
    ended_ = true;
  } else {
    const std::size_t step_bytes = std::max<std::size_t>(1, piece.size() / (last - first));
    steps_per_piece_ = std::clamp<std::size_t>(kPieceBytes / step_bytes, 1, kMostSteps);
  }
  return piece;
}

std::unique_ptr<ListPieces> row_pieces(const Steps& steps, std::vector<db::ListedStep> listed, RowColumns columns,
                                       db::ListValues values) {
  return std::make_unique<RowPieces>(steps, std::move(listed), std::move(columns), std::move(values));
}

std::unique_ptr<ListPieces> step_pieces(const Steps& steps, std::vector<FoundStep> found, StepDetail detail) {
  return std::make_unique<StepPieces>(steps, std::move(found), detail);
}

}  // namespace lbf::daemon
