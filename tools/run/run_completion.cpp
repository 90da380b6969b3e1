// See run_completion.h.
#include "tools/run/run_completion.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/http_client.h"
#include "tools/support/progress.h"

namespace lbf::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirstPause{5};
constexpr std::chrono::milliseconds kLongestPause{200};
// An lbfd that has used less processor time than this in so long, and did not stand back for others for the half of it,
// waits for something that does not come.
constexpr std::chrono::seconds kIdleAfter{5};
constexpr Seconds kIdleCpuS = 0.05;
constexpr Seconds kIdleDelayedS = 2.5;

// Steps that lbfd still works at, or waits for; 0 also where it does not answer: there is nothing to wait for
// then.
std::size_t steps_under_way(HttpClient& client) {
  const auto answer = client.request("GET", "/v1/health", {}, "", HttpAuth::kNone);
  if (!answer || answer->status != 200) return 0;
  const auto health = nlohmann::json::parse(answer->body, nullptr, false);
  return health.is_object() ? health.value("steps_running", std::size_t{0}) : 0;
}

}  // namespace

Completion wait_for_predictions(const PrivateDaemon& daemon, const volatile sig_atomic_t& stop) {
  auto client = HttpClient::make(daemon.server());
  if (!client) return Completion::kComplete;
  tools::Progress progress("lbf-run",
                           "so far to complete the predictions (Ctrl-C: leave the rest to the next lbf-run)");
  auto busy_until = Clock::now() + kIdleAfter;
  PrivateDaemon::ProcessorUse last = daemon.processor_use();
  for (auto pause = kFirstPause; steps_under_way(*client) > 0; pause = std::min(2 * pause, kLongestPause)) {
    if (stop != 0) return Completion::kInterrupted;
    const PrivateDaemon::ProcessorUse now = daemon.processor_use();
    if (now.cpu_s - last.cpu_s > kIdleCpuS || now.delayed_s - last.delayed_s > kIdleDelayedS) {
      last = now;
      busy_until = Clock::now() + kIdleAfter;
    } else if (Clock::now() > busy_until) {
      return Completion::kIdle;
    }
    progress.show_elapsed();
    std::this_thread::sleep_for(pause);
  }
  return Completion::kComplete;
}

}  // namespace lbf::tools
