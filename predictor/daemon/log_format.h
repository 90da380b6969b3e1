// LogFormat: lines of lbfd's log. A message is one line, whatever names of nodes, users, jobs and files are in it.
#pragma once

#include <spdlog/formatter.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lbf::daemon {

inline constexpr std::size_t kMostLogBytes = 4096;  // of one message

// TEXT for one line of a log: control characters, those that turn the direction of writing, and bytes that are no UTF-8
// become \xNN; what is longer than kMostLogBytes ends in "...".
std::string log_text(std::string_view text);

// Time, level, log_text() of the message.
std::unique_ptr<spdlog::formatter> make_log_formatter();

}  // namespace lbf::daemon
