// Pictures of steps: a plot in the terminal, a page in a file.
#pragma once

#include <string>
#include <vector>

#include "base/http_client.h"
#include "report/plot.h"
#include "report/step.h"
#include "tools/report/report_options.h"

namespace lbf::tools {

// Whether `when` (auto, always, never) means colors here.
bool use_color(const std::string& when);

// Columns of the terminal, else COLUMNS, else 80.
std::size_t terminal_width();
// Unless --ascii, where the locale is UTF-8.
bool use_unicode(const ReportOptions& options);

// Of the terminal, as the options say.
report::PlotStyle plot_style(const ReportOptions& options);
std::string plots(const std::vector<report::Step>& steps, const ReportOptions& options);

// PAGE into the file of --html; `-` is standard output. An exit status.
int write_page(const std::string& page, const std::string& path);

// The page of one of `steps` into the file of --html; `joined` is lbfd's answer that has them. lbfd is asked
// for the step's picture; where there is none the page says why. An exit status.
int write_html(HttpClient& client, const std::vector<report::Step>& steps, const std::string& joined,
               const ReportOptions& options);

}  // namespace lbf::tools
