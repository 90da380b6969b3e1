// Long lists of steps as bodies that are made while they are sent: the predictions of a few steps are read, written as
// text, and sent while those of the next are read. A list takes as much memory as its steps without their predictions,
// the database is free between the pieces, and who asked has work while lbfd has.
//
// Each step begins on a line of its own, and so does the end of the list (docs/formats/http-v1.md, "Lines").
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "predictor/daemon/http/api.h"
#include "predictor/daemon/http/step_rows.h"

namespace lbf::daemon {

class ListPieces : public BodySource {
 public:
  std::optional<std::uint64_t> size_bytes() const override { return std::nullopt; }
  // Errors: as Database.
  Result<std::string> next() override;
  // Nothing comes after the pieces so far.
  bool ended() const { return ended_; }

 protected:
  explicit ListPieces(std::size_t steps) : steps_(steps) {}

 private:
  virtual void append_head(std::string& out) const = 0;
  // Steps `first` up to before `last` are wanted next.
  virtual Result<void> read(std::size_t first, std::size_t last) = 0;
  // Writes a step that was read, and forgets it.
  virtual void append_step(std::size_t step, std::string& out) = 0;

  std::size_t steps_;
  std::size_t at_ = 0;
  std::size_t steps_per_piece_ = 0;
  bool ended_ = false;
};

// REQUIRES of both: `steps` outlives the object.
// {"keys":[...],"prediction_keys":[...],"rows":[...]}
std::unique_ptr<ListPieces> row_pieces(const Steps& steps, std::vector<db::ListedStep> listed, RowColumns columns,
                                       db::ListValues values);
// {"steps":[STEP,...]}
std::unique_ptr<ListPieces> step_pieces(const Steps& steps, std::vector<FoundStep> found, StepDetail detail);

}  // namespace lbf::daemon
