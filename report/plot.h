// lbf-report --plot: predicted time over nodes, drawn with characters; one mark per network.
#pragma once

#include <cstddef>
#include <string>

#include "report/step.h"

namespace lbf::report {

struct PlotStyle {
  std::size_t width = 80;   // columns; below 40 it draws 40
  std::size_t height = 16;  // lines between the axes
  bool unicode = true;      // else ASCII only
  bool color = false;
};

// The title, the plot and its legend. Of several placements on a node count and network the fastest is drawn; its
// interval (low_s, high_s) where there is one. Without predictions: one line that says so.
std::string render_plot(const Step& step, const PlotStyle& style);

}  // namespace lbf::report
