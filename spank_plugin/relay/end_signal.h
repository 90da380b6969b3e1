// EndSignal: the descriptor on which the relay is told that its step has ended, and how (protocol/task_ends.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/task_ends.h"

namespace lbf::relay {

class EndSignal {
 public:
  // FD: -1: nobody tells. Not owned.
  explicit EndSignal(int fd) : fd_(fd) {}

  // Sleeps until TIMEOUT_NS have passed, the step ends, or WATCH_FD (-1: none) is readable. True: it has ended.
  bool wait(int watch_fd, std::uint64_t timeout_ns);
  const protocol::TaskEnds& task_ends() const { return ends_; }

 private:
  bool take(std::string_view bytes);

  int fd_;
  std::string begun_;  // of a line
  protocol::TaskEnds ends_;
};

}  // namespace lbf::relay
