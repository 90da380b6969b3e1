// What lbf-report says of itself.
#pragma once

#include <string>

#include "tools/support/message.h"

namespace lbf::tools {

inline constexpr Messages kReportMessages{"lbf-report"};
inline int write_report(const std::string& text) {
  return kReportMessages.write(text, "report");
}

}  // namespace lbf::tools
