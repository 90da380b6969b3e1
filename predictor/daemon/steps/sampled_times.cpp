#include "predictor/daemon/steps/sampled_times.h"

#include <algorithm>
#include <utility>

namespace lbf::daemon {

SampledTimes::SampledTimes(std::map<Rank, std::vector<SampledShare>> shares) {
  for (auto& [rank, of_rank] : shares) ranks_[rank].shares = std::move(of_rank);
}

std::span<const Event> SampledTimes::put_into(Rank rank, std::span<const Event> events) {
  const auto found = ranks_.find(rank);
  if (found == ranks_.end()) return events;
  Of& sampled = found->second;
  out_.clear();
  numbers_.clear();
  numbers_.reserve(events.size() * (sampled.shares.size() + 1));  // spans point into it
  const auto is_sampled = [&](const Event& event) {
    return std::any_of(sampled.shares.begin(), sampled.shares.end(),
                       [&](const SampledShare& share) { return share.procedure == event.values[0]; });
  };
  for (const Event& event : events) {
    if (event.kind == EventKind::kProcedure && event.values.size() >= kProcedureValues) {
      sampled.gap_s += event.process_s;
      if (is_sampled(event)) {
        Event time = event;  // the process time stays; whose it is the samples say
        auto& values = numbers_.emplace_back();
        values = {event.values[0], 0, 0, event.values[3]};
        time.values = values;
        out_.push_back(time);
        continue;
      }
      sampled.measured_s += static_cast<Seconds>(event.values[2]) * 1e-9;
      out_.push_back(event);
      continue;
    }
    const Seconds gap_s = sampled.gap_s + event.process_s;
    Seconds room_s = std::max(gap_s - sampled.measured_s, 0.0);
    for (const SampledShare& share : sampled.shares) {
      if (!(gap_s > 0)) break;
      const Seconds inclusive_s = share.inclusive * gap_s;
      const Seconds exclusive_s = std::min({share.exclusive * gap_s, room_s, inclusive_s});
      room_s -= exclusive_s;
      auto& values = numbers_.emplace_back();
      values = {share.procedure, static_cast<std::uint64_t>(inclusive_s * 1e9),
                static_cast<std::uint64_t>(exclusive_s * 1e9), 0};
      Event time;
      time.kind = EventKind::kProcedure;
      time.values = values;
      out_.push_back(time);
    }
    sampled.gap_s = 0;
    sampled.measured_s = 0;
    out_.push_back(event);
  }
  return out_;
}

}  // namespace lbf::daemon
