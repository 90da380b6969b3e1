// lbf-report --savings.
#pragma once

#include "base/http_client.h"
#include "report/selection.h"
#include "tools/report/report_options.h"

namespace lbf::tools {

// Asks for the steps of SELECTION and prints what they would have saved. An exit status.
int print_savings(HttpClient& client, report::Selection& selection, const ReportOptions& options);

}  // namespace lbf::tools
