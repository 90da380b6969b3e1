// Progress: one line on a terminal, once a command takes long enough for somebody to wonder.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace lbf::tools {

class Progress {
 public:
  // As in "lbf-trace: 42 % read".
  Progress(std::string command, std::string done) : command_(std::move(command)), done_(std::move(done)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (width_ > 0) std::fprintf(stderr, "\r%*s\r", width_, "");
  }
  // `share`: 0 to 1.
  void show(double share) {
    if (const auto now = std::chrono::steady_clock::now(); is_due(now)) write(100.0 * share, "%");
  }
  // Where nobody knows how much there is, as in "lbf-run: 12 s waited".
  void show_elapsed() {
    const auto now = std::chrono::steady_clock::now();
    if (is_due(now)) write(std::chrono::duration<double>(now - start_).count(), "s");
  }

 private:
  bool is_due(std::chrono::steady_clock::time_point now) {
    if (!terminal_ || now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(250))
      return false;
    last_ = now;
    return true;
  }
  void write(double amount, const char* unit) {
    const int written = std::fprintf(stderr, "\r%s: %3.0f %s %s", command_.c_str(), amount, unit, done_.c_str());
    width_ = std::max(width_, written - 1);
    std::fflush(stderr);
  }

  std::string command_;
  std::string done_;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  int width_ = 0;  // of what stands there
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

}  // namespace lbf::tools
