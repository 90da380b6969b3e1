// Picture: what lbfd's GET /v1/steps/KEY/picture answers (docs/formats/http-v1.md, PICTURE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::report {

struct PictureMatrix {
  std::vector<std::uint32_t> first_rank;          // of each block
  std::vector<std::uint32_t> node;                // of each block's first rank
  std::vector<std::vector<std::uint64_t>> bytes;  // [from block][to block]
  std::uint64_t bytes_inside_nodes = 0;
  std::uint64_t bytes_between_nodes = 0;
};

struct PictureTimeline {
  std::size_t columns = 0;
  // [row][column], percent of the row's time.
  std::vector<std::vector<int>> computing;
  std::vector<std::vector<int>> mpi;
  std::vector<std::vector<int>> blocked;
};

struct Picture {
  std::size_t target = 0;  // number of the prediction
  std::uint32_t ranks = 0;
  std::uint32_t ranks_per_row = 1;
  Seconds column_s = 0;
  PictureTimeline measured;
  PictureTimeline predicted;
  PictureMatrix matrix_ran;
  PictureMatrix matrix_target;
  std::string why_partial;
};

// Errors (kInvalidInput): not a picture, or lists in it whose lengths do not fit together.
Result<Picture> parse_picture(std::string_view json);

}  // namespace lbf::report
