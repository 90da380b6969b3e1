// RefusalLog: what lbfd refuses of relays, and credentials that it does not take, in its log: one line a minute for
// each user and status, however often he tries.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lbf::daemon {

class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;

  // USER: as far as it is known who asks, else the connection's other end. ANSWER: the error as lbfd sends it, JSON.
  void add(std::string_view method, std::string_view target, const std::string& user, int status,
           std::string_view answer, Clock::time_point now = Clock::now());

 private:
  struct Said {
    Clock::time_point at;
    std::uint64_t left_out = 0;  // since then
  };
  std::map<std::pair<std::string, int>, Said> said_;
};

}  // namespace lbf::daemon
