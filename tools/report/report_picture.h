// Pictures of steps: a plot in the terminal, a page in a file.
#pragma once

#include <string>
#include <vector>

#include "base/http_client.h"
#include "report/step.h"
#include "tools/report/report_options.h"

namespace lbf::tools {

// Whether `when` (auto, always, never) means colors here.
bool use_color(const std::string& when);

std::string plots(const std::vector<report::Step>& steps, const ReportOptions& options);

// The page of one of `steps` into the file of --html; `joined` is lbfd's answer that has them. lbfd is asked
// for the step's picture; where there is none the page says why. An exit status.
int write_html(HttpClient& client, const std::vector<report::Step>& steps, const std::string& joined,
               const ReportOptions& options);

}  // namespace lbf::tools
