// Lines of lbfd's log, for people or for programs. A message is one line, whatever names of nodes, users, jobs and
// files are in it.
#pragma once

#include <spdlog/formatter.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "predictor/daemon/config.h"

namespace lbf::daemon {

inline constexpr std::size_t kMostLogBytes = 4096;  // of one message

// TEXT for one line of a log: control characters, those that turn the direction of writing, and bytes that are no UTF-8
// become \xNN; what is longer than kMostLogBytes ends in "...".
std::string log_text(std::string_view text);

// Time, level, log_text() of the message. As logfmt and JSON: keys `time` (UTC), `level`, `step` and `stream` where the
// message is about one, `msg`.
std::unique_ptr<spdlog::formatter> make_log_formatter(LogFormat format);

}  // namespace lbf::daemon
