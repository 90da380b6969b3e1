// The parts of the page that html.cpp puts together; for html*.cpp, and for lbf-whatif's page
// (tools/whatif/whatif_html.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/curves.h"
#include "report/picture.h"
#include "report/step.h"

namespace lbf::report::html {

// The style sheet.
std::string_view style();

// Text for an element or an attribute: printable(), and no character that HTML reads as its own.
std::string escaped(std::string_view text);

// "1.5 MiB"
std::string bytes_text(double bytes);

// A whole page: TITLE of its window, BODY of its <main>, PROGRAM ("lbf-report 1.0") and what it says at its end.
std::string page(std::string_view title, std::string_view body, std::string_view program, std::string_view closing);

// Figures, each with a caption. That of a chart is not closed: what belongs to it follows.
std::string chart_figure(const TimeChart& chart, std::string_view caption, std::string_view label);
std::string curves_figure(const Step& step);
std::string pareto_figure(const Step& step, const TargetPrediction* chosen);
std::string matrix_figures(const Picture& picture, const TargetPrediction& chosen);
std::string timeline_figures(const Picture& picture, const Step& step, const TargetPrediction& chosen);

// Of a step with procedures.
std::string procedures_body(const Step& step);

}  // namespace lbf::report::html
