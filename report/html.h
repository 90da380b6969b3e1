// lbf-report --html: one page about one step, whole in itself: no script, no font, no picture comes from elsewhere.
//
// Light and dark follow the reader's system, 360 px and a desk are both served, every drawing has its numbers as
// text beside it. What is not known is said where it would stand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/picture.h"
#include "report/step.h"

namespace lbf::report {

// The target that the page compares with the run: the advised one, else the fastest that did not run, else the one
// that ran; its number among the predictions. Nothing: there is no prediction.
std::optional<std::size_t> chosen_target(const Step& step);

struct HtmlPage {
  const Step* step = nullptr;
  std::string_view step_json;      // the STEP that lbfd sent: the cost record is read from it
  std::optional<Picture> picture;  // of chosen_target()
  std::string why_no_picture;      // where there is none
  std::string version;
};

// REQUIRES: page.step is not nullptr.
std::string render_html(const HtmlPage& page);

}  // namespace lbf::report
