// What lbf-report says of itself.
#pragma once

#include "base/result.h"
#include "tools/support/message.h"

namespace lbf::tools {

inline constexpr Messages kReportMessages{"lbf-report"};

inline int report_fail(const Error& error, int status = kExitFailure) {
  return kReportMessages.fail(status, error.message);
}
inline int write_report(const std::string& text) { return kReportMessages.write(text, "report"); }

}  // namespace lbf::tools
