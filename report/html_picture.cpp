// Who sent how much to whom, and what the ranks did when: under the mapping that ran and on the chosen target.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/times.h"
#include "report/advice.h"
#include "report/html_parts.h"

namespace lbf::report::html {
namespace {

constexpr int kLevels = 8;

std::string ranks_text(std::uint32_t first, std::uint32_t last) {
  return first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, last);
}

// 1 .. kLevels by the logarithm: messages of a byte and of a gigabyte are in one picture.
int level_of(std::uint64_t bytes, double least, double most) {
  if (!(most > least)) return kLevels;
  const double share = (std::log(static_cast<double>(bytes)) - std::log(least)) / (std::log(most) - std::log(least));
  return 1 + std::clamp(static_cast<int>(share * kLevels), 0, kLevels - 1);
}

std::string matrix(const PictureMatrix& matrix, double least, double most, const std::string& heading,
                   std::string_view id) {
  constexpr double kSide = 320;
  const std::size_t blocks = matrix.first_rank.size();
  const double cell = kSide / static_cast<double>(blocks);
  std::array<std::string, kLevels + 1> paths;
  std::string titles;
  const bool single = blocks > 0 && std::is_sorted(matrix.first_rank.begin(), matrix.first_rank.end());
  const auto block_text = [&](std::size_t block) {
    // Where the mapping is not in the order of the ranks a block has no range of them.
    return fmt::format("{}rank {} (node {})", single || blocks == 0 ? "" : "block of ", matrix.first_rank[block],
                       matrix.node[block]);
  };
  for (std::size_t from = 0; from < blocks; ++from) {
    for (std::size_t to = 0; to < blocks; ++to) {
      const std::uint64_t bytes = matrix.bytes[from][to];
      if (bytes == 0) continue;
      const double x = static_cast<double>(to) * cell;
      const double y = static_cast<double>(from) * cell;
      paths[static_cast<std::size_t>(level_of(bytes, least, most))] +=
          fmt::format("M{:.4g} {:.4g}h{:.4g}v{:.4g}h-{:.4g}z", x, y, cell, cell, cell);
      titles += fmt::format(
          "<rect class=\"hit\" x=\"{:.4g}\" y=\"{:.4g}\" width=\"{:.4g}\" height=\"{:.4g}\"><title>{} to {}: "
          "{}</title></rect>",
          x, y, cell, cell, block_text(from), block_text(to), bytes_text(static_cast<double>(bytes)));
    }
  }
  std::string body;
  for (int level = 1; level <= kLevels; ++level) {
    const std::string& path = paths[static_cast<std::size_t>(level)];
    if (!path.empty()) body += fmt::format("<path fill=\"var(--m{})\" d=\"{}\"/>", level, path);
  }
  for (std::size_t block = 1; block < blocks; ++block) {
    if (matrix.node[block] == matrix.node[block - 1]) continue;
    const double at = static_cast<double>(block) * cell;
    body += fmt::format("<path class=\"nodeline\" d=\"M{0:.4g} 0V{1}M0 {0:.4g}H{1}\"/>", at, kSide);
  }
  const double all = static_cast<double>(matrix.bytes_inside_nodes) + static_cast<double>(matrix.bytes_between_nodes);
  const std::string share =
      all > 0 ? fmt::format("{:.0f} % of the bytes cross between nodes ({} of {}).",
                            100 * static_cast<double>(matrix.bytes_between_nodes) / all,
                            bytes_text(static_cast<double>(matrix.bytes_between_nodes)), bytes_text(all))
              : std::string("No message had a byte.");
  return fmt::format(
      "<div><h3 id=\"{0}\">{1}</h3><p>{2}</p><svg viewBox=\"-1 -1 {3} {3}\" role=\"img\" aria-labelledby=\"{0}\" "
      "aria-describedby=\"{0}-text\"><desc id=\"{0}-text\">{2}</desc>{4}<rect class=\"frame\" width=\"{5}\" "
      "height=\"{5}\"/>{6}</svg></div>",
      id, heading, share, kSide + 2, body, kSide, titles);
}

std::string scale(double least, double most) {
  std::string out =
      "<div class=\"scale\"><span>" + bytes_text(least) + "</span><svg viewBox=\"0 0 160 12\" aria-hidden=\"true\">";
  for (int level = 1; level <= kLevels; ++level) {
    out += fmt::format("<rect x=\"{}\" width=\"20\" height=\"12\" fill=\"var(--m{})\"/>", 20 * (level - 1), level);
  }
  return out + "</svg><span>" + bytes_text(most) + " between two blocks; lines part the nodes</span></div>";
}

// A step line through the tops of a row's bars, from `base` on: neighbours of the same height are one piece.
std::string area(const std::vector<int>& shares, const std::vector<int>* below, std::size_t columns, double top,
                 double height) {
  const auto y_of = [&](int percent) { return top + height * (1 - std::min(percent, 100) / 100.0); };
  const auto base_of = [&](std::size_t i) { return below != nullptr && i < below->size() ? (*below)[i] : 0; };
  std::string path;
  for (std::size_t i = 0; i < columns && i < shares.size();) {
    std::size_t end = i + 1;
    while (end < shares.size() && shares[end] == shares[i] && base_of(end) == base_of(i)) ++end;
    if (shares[i] > 0) {
      path += fmt::format("M{} {:.4g}H{}V{:.4g}H{}z", i, y_of(base_of(i)), end, y_of(base_of(i) + shares[i]), i);
    }
    i = end;
  }
  return path;
}

std::string timeline(const Picture& picture, const PictureTimeline& timeline, std::size_t columns,
                     const std::string& heading, std::string_view id) {
  const std::size_t rows = timeline.computing.size();
  constexpr double kRow = 10;
  const double row_height = rows <= 8 ? 3 * kRow : rows <= 24 ? 1.6 * kRow : kRow;
  double computing = 0;
  double blocked = 0;
  std::string computing_path;
  std::string mpi_path;
  std::string blocked_path;
  std::string titles;
  double last_column = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double top = static_cast<double>(row) * row_height + 0.5;
    const double height = row_height - 1;
    computing_path += area(timeline.computing[row], nullptr, columns, top, height);
    blocked_path += area(timeline.blocked[row], &timeline.computing[row], columns, top, height);
    std::vector<int> both(timeline.columns);
    double row_computing = 0;
    double row_mpi = 0;
    double row_blocked = 0;
    for (std::size_t i = 0; i < timeline.columns; ++i) {
      both[i] = timeline.computing[row][i] + timeline.blocked[row][i];
      row_computing += timeline.computing[row][i];
      row_mpi += timeline.mpi[row][i];
      row_blocked += timeline.blocked[row][i];
    }
    mpi_path += area(timeline.mpi[row], &both, columns, top, height);
    const double all = row_computing + row_mpi + row_blocked;
    computing += row_computing;
    blocked += row_blocked;
    last_column += all;
    const auto first = static_cast<std::uint32_t>(row) * picture.ranks_per_row;
    const std::uint32_t last = std::min(picture.ranks, first + picture.ranks_per_row) - 1;
    titles += fmt::format(
        "<rect class=\"hit\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}: {:.0f} % computing, {:.0f} % in MPI, "
        "{:.0f} % off the processor</title></rect>",
        static_cast<double>(row) * row_height, columns, row_height, ranks_text(first, last),
        all > 0 ? 100 * row_computing / all : 0, all > 0 ? 100 * row_mpi / all : 0,
        all > 0 ? 100 * row_blocked / all : 0);
  }
  const std::string summary =
      last_column > 0
          ? fmt::format("{:.0f} % computing, {:.0f} % in MPI, {:.0f} % off the processor.",
                        100 * computing / last_column, 100 * (last_column - computing - blocked) / last_column,
                        100 * blocked / last_column)
          : std::string("Nothing was recorded.");
  const double height = static_cast<double>(rows) * row_height;
  return fmt::format(
      "<h3 id=\"{0}\">{1}</h3><p>{2}</p><div class=\"rows\"><div class=\"ends\"><span>rank 0</span><span>{3}</span>"
      "</div><svg viewBox=\"0 0 {4} {5}\" preserveAspectRatio=\"none\" style=\"height:{6}px\" role=\"img\" "
      "aria-labelledby=\"{0}\"><desc>{2}</desc><path fill=\"var(--mpi)\" d=\"{7}\"/><path fill=\"var(--computing)\" "
      "d=\"{8}\"/><path fill=\"var(--blocked)\" d=\"{9}\"/>{10}</svg><div class=\"time\"><span>0</span><span>{11}"
      "</span><span>{12}</span></div></div>",
      id, heading, summary, picture.ranks - 1, columns, height, height, mpi_path, computing_path, blocked_path, titles,
      format_duration(picture.column_s * static_cast<double>(columns) / 2, 3),
      format_duration(picture.column_s * static_cast<double>(columns), 3));
}

std::string swatch(std::string_view color, std::string_view text) {
  return fmt::format(
      "<li><svg viewBox=\"0 0 16 16\" aria-hidden=\"true\"><rect width=\"16\" height=\"16\" rx=\"3\" "
      "fill=\"var(--{})\"/></svg>{}</li>",
      color, text);
}

std::string partial_note(const Picture& picture) {
  if (picture.why_partial.empty()) return {};
  return "<p class=\"missing\">Not the whole run: " + escaped(picture.why_partial) + "</p>";
}

// Below this share of the measured time the events leave out something that a reader would look for.
constexpr double kAllOfIt = 0.95;

// The events have no time in which a rank was ready and another one had its processor.
std::string missing_time(const Picture& picture, const Step& step) {
  const Seconds drawn_s = picture.column_s * static_cast<double>(picture.measured.columns);
  if (!step.measured_s || !picture.why_partial.empty() || drawn_s >= kAllOfIt * *step.measured_s) return {};
  return fmt::format(
      "<p>What was recorded ends at {} of the {} that were measured: time in which a rank was ready and others had its "
      "processor is not in the events.</p>",
      format_duration(drawn_s, 3), format_duration(*step.measured_s, 3));
}

}  // namespace

std::string matrix_figures(const Picture& picture, const TargetPrediction& chosen) {
  double least = 1e300;
  double most = 0;
  for (const PictureMatrix* one : {&picture.matrix_ran, &picture.matrix_target}) {
    for (const auto& row : one->bytes) {
      for (const std::uint64_t bytes : row) {
        if (bytes == 0) continue;
        least = std::min(least, static_cast<double>(bytes));
        most = std::max(most, static_cast<double>(bytes));
      }
    }
  }
  if (most == 0) return "<p class=\"missing\">The ranks sent each other nothing.</p>" + partial_note(picture);
  const std::size_t blocks = picture.matrix_ran.first_rank.size();
  const std::string each =
      blocks < picture.ranks ? fmt::format(" {} ranks are drawn as {} blocks.", picture.ranks, blocks) : std::string();
  return fmt::format(
             "<figure><figcaption>From the rank at the left to the rank at the top, collectives as the messages that "
             "they are made of; ranks in the order of their nodes, so that what stays inside a node lies in a square "
             "on the diagonal.{}</figcaption><div class=\"pair\">",
             each) +
         matrix(picture.matrix_ran, least, most, "As it ran", "matrix-ran") +
         matrix(picture.matrix_target, least, most, escaped("On " + describe(chosen, true)), "matrix-target") +
         "</div>" + scale(least, most) + partial_note(picture) + "</figure>";
}

std::string timeline_figures(const Picture& picture, const Step& step, const TargetPrediction& chosen) {
  const std::size_t columns = std::max(picture.measured.columns, picture.predicted.columns);
  if (columns == 0) return "<p class=\"missing\">Nothing was recorded of what the ranks did when.</p>";
  const std::string each = picture.ranks_per_row > 1
                               ? fmt::format(" A line stands for {} ranks.", picture.ranks_per_row)
                               : std::string(" A line stands for one rank.");
  return "<figure><figcaption>Both on the same scale of time; the height of a color is its share." + each +
         "</figcaption><ul class=\"legend\">" + swatch("computing", "computing") + swatch("mpi", "in MPI") +
         swatch("blocked", "off the processor (I/O, sleep)") + "</ul>" +
         timeline(picture, picture.measured, columns, "Measured", "time-measured") + missing_time(picture, step) +
         timeline(picture, picture.predicted, columns, "Predicted on " + escaped(describe(chosen, true)),
                  "time-predicted") +
         partial_note(picture) + "</figure>";
}

}  // namespace lbf::report::html
