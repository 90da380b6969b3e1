// lbf-report --scaling.
#pragma once

#include "base/http_client.h"
#include "report/selection.h"
#include "tools/report/report_options.h"

namespace lbf::tools {

// Asks for the steps of SELECTION and prints their run times over rank counts. An exit status.
int print_scaling(HttpClient& client, report::Selection& selection, const ReportOptions& options);

}  // namespace lbf::tools
