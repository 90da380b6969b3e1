// StreamRun, see stream_run.h.
#include "spank_plugin/relay/stream_run.h"

#include <sys/resource.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace lbf::relay {
namespace {

Seconds own_cpu_s(std::uint64_t* max_rss_bytes) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  if (max_rss_bytes != nullptr) *max_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

StreamRun::StreamRun(const RelayOptions& options, const StepIdentity& identity, std::string description,
                     Collector collector, const RequestFunction& request)
    : identity_(identity),
      collector_(std::move(collector)),
      sender_({{identity.key, identity.stream, options.server, std::move(description)},
               options.spool_dir,
               options.spool_limit_bytes},
              request),
      builder_([this](std::unique_ptr<BatchEncoder> batch) { sender_.submit(std::move(batch)); }),
      // The step's own stream has the relay's start in it, too.
      cpu_before_s_(identity.step_number < kFirstRunNumber ? 0 : own_cpu_s(nullptr)) {}

bool StreamRun::pass(ClockReading now, const TickRate& rate) {
  if (sender_.overloaded()) return false;
  if (sender_.lost()) builder_.discard_events();
  return collector_.pass(now, rate, builder_).a_ring_was_full;
}

void StreamRun::drain_rest(ClockReading now, const TickRate& rate) {
  collector_.finish(now, rate, builder_);
  const DeliveryTotals totals = sender_.totals();
  std::uint64_t max_rss_bytes = 0;
  const Seconds cpu_s = own_cpu_s(&max_rss_bytes) - cpu_before_s_;
  builder_.add_control(nlohmann::json{{"type", "relay"},
                                      {"node_index", identity_.stream},
                                      {"cpu_s", cpu_s},
                                      {"max_rss_bytes", max_rss_bytes},
                                      {"bytes_sent", totals.bytes_sent},
                                      {"batches", totals.batches},
                                      {"spooled_batches", totals.spooled_batches},
                                      {"lost_batches", totals.lost_batches},
                                      {"discarded_events", builder_.discarded_events()},
                                      {"processes", collector_.processes_taken()},
                                      {"processes_left_out", collector_.processes_left_out()}}
                           .dump(),
                       monotonic_ns());
  builder_.flush();
}

RelayResult StreamRun::finish(const std::string& reason, std::uint64_t deadline_ns) {
  RelayResult result;
  result.outcome = sender_.finish(reason, deadline_ns);
  result.trouble = sender_.trouble();
  return result;
}

}  // namespace lbf::relay
