// lbf-watch: a running step in a few lines, and how it has changed since the last look.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "report/step.h"

namespace lbf::report {

// What grows while a step runs, and when it was seen.
struct WatchSample {
  std::chrono::steady_clock::time_point at{};
  std::uint64_t events = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes_stored = 0;
};
WatchSample sample_of(const Step& step, std::chrono::steady_clock::time_point at);

struct WatchStyle {
  std::size_t width = 80;
  std::size_t height = 24;  // lines; targets that do not fit are counted
  bool color = false;
};

// A screen: what runs, how far measured and replayed time are, rates since `before` (nullptr: none yet), how much of
// the MPI time is modelled, the targets so far, fastest first, and the closing note.
std::string render_watch(const Step& step, const WatchSample* before, const WatchSample& now, const WatchStyle& style);

// The same as one line without a line end, for logs and pipes.
std::string watch_line(const Step& step, const WatchSample* before, const WatchSample& now);

}  // namespace lbf::report
