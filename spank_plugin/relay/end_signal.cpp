// EndSignal, see end_signal.h.
#include "spank_plugin/relay/end_signal.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

namespace lbf::relay {

bool EndSignal::wait(int watch_fd, std::uint64_t timeout_ns) {
  pollfd wait[2] = {{fd_, POLLIN, 0}, {watch_fd, POLLIN, 0}};  // poll() leaves out what is negative
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  if (::ppoll(wait, 2, &timeout, nullptr) <= 0 || wait[0].revents == 0) return false;
  std::array<char, 4096> bytes;
  const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
  if (got <= 0) return got == 0 || (errno != EINTR && errno != EAGAIN);
  return take({bytes.data(), static_cast<std::size_t>(got)});
}

// Lines; whatever begins like none of them ends the step.
bool EndSignal::take(std::string_view bytes) {
  constexpr std::size_t kLongestLine = 256;
  begun_ += bytes;
  for (;;) {
    if (begun_.empty()) return false;
    if (begun_.front() != 't' && begun_.front() != 'k') return true;
    const std::size_t newline = begun_.find('\n');
    if (newline == std::string::npos) return begun_.size() > kLongestLine;
    protocol::take_line(std::string_view(begun_).substr(0, newline), ends_);
    begun_.erase(0, newline + 1);
  }
}

}  // namespace lbf::relay
