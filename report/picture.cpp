#include "report/picture.h"

#include <nlohmann/json.hpp>

#include "report/answer_json.h"

namespace lbf::report {
namespace {

using Json = nlohmann::json;

PictureMatrix read_matrix(const Json& json) {
  PictureMatrix out;
  json.at("first_rank").get_to(out.first_rank);
  json.at("node").get_to(out.node);
  json.at("bytes").get_to(out.bytes);
  json.at("bytes_inside_nodes").get_to(out.bytes_inside_nodes);
  json.at("bytes_between_nodes").get_to(out.bytes_between_nodes);
  return out;
}

bool is_whole(const PictureMatrix& matrix) {
  const std::size_t blocks = matrix.first_rank.size();
  if (matrix.node.size() != blocks || matrix.bytes.size() != blocks) return false;
  for (const auto& row : matrix.bytes) {
    if (row.size() != blocks) return false;
  }
  return true;
}

PictureTimeline read_timeline(const Json& json) {
  PictureTimeline out;
  json.at("columns").get_to(out.columns);
  json.at("computing").get_to(out.computing);
  json.at("mpi").get_to(out.mpi);
  json.at("blocked").get_to(out.blocked);
  return out;
}

bool is_whole(const PictureTimeline& timeline, std::size_t rows) {
  for (const auto* kind : {&timeline.computing, &timeline.mpi, &timeline.blocked}) {
    if (kind->size() != rows) return false;
    for (const auto& row : *kind) {
      if (row.size() != timeline.columns) return false;
    }
  }
  return true;
}

}  // namespace

Result<Picture> parse_picture(std::string_view text) {
  const auto wrong = [] { return invalid_input("lbfd answered something that is no picture of a run"); };
  try {
    const Json json = json_of_answer(text);
    Picture out;
    json.at("target").get_to(out.target);
    json.at("ranks").get_to(out.ranks);
    json.at("ranks_per_row").get_to(out.ranks_per_row);
    json.at("column_s").get_to(out.column_s);
    json.at("why_partial").get_to(out.why_partial);
    out.measured = read_timeline(json.at("measured"));
    out.predicted = read_timeline(json.at("predicted"));
    out.matrix_ran = read_matrix(json.at("matrix_ran"));
    out.matrix_target = read_matrix(json.at("matrix_target"));
    if (out.ranks == 0 || out.ranks_per_row == 0 || !(out.column_s > 0)) return wrong();
    const std::size_t rows = (std::size_t{out.ranks} + out.ranks_per_row - 1) / out.ranks_per_row;
    if (!is_whole(out.measured, rows) || !is_whole(out.predicted, rows) || !is_whole(out.matrix_ran) ||
        !is_whole(out.matrix_target)) {
      return wrong();
    }
    return out;
  } catch (const Json::exception&) {
    return wrong();
  }
}

}  // namespace lbf::report
