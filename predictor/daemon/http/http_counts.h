// HttpCounts: answers and connections of the HTTP server, for lbfd's metrics (metrics.h).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lbf::daemon {

// Thread-safe.
class HttpCounts {
 public:
  // Every status of docs/formats/http-v1.md.
  static constexpr std::array kStatuses = {200, 400, 401, 403, 404, 409, 411, 413, 431, 500, 503, 507};

  void answered(int status) {
    const auto found = std::find(kStatuses.begin(), kStatuses.end(), status);
    if (found != kStatuses.end()) ++answers_[static_cast<std::size_t>(found - kStatuses.begin())];
  }
  std::uint64_t answers(std::size_t number) const { return answers_[number]; }  // with kStatuses[number]

  std::atomic<std::uint64_t> connections{0};  // at the moment
  std::atomic<std::uint64_t> connection_limit{0};

 private:
  std::array<std::atomic<std::uint64_t>, kStatuses.size()> answers_{};
};

}  // namespace lbf::daemon
