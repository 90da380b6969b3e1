// Progress: one line on a terminal, once a command takes long enough for somebody to wonder.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

namespace lbf {

class Progress {
 public:
  // As in "lbf-trace: 42 % read".
  Progress(std::string command, std::string done) : command_(std::move(command)), done_(std::move(done)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r%*s\r", static_cast<int>(command_.size() + done_.size() + 10), "");
  }
  // `share`: 0 to 1.
  void show(double share) {
    if (!terminal_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(250)) return;
    last_ = now;
    shown_ = true;
    std::fprintf(stderr, "\r%s: %3.0f %% %s", command_.c_str(), 100.0 * share, done_.c_str());
    std::fflush(stderr);
  }

 private:
  std::string command_;
  std::string done_;
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

}  // namespace lbf
