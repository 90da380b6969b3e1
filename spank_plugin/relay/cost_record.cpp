// See cost_record.h.
#include "spank_plugin/relay/cost_record.h"

#include <utility>
#include <vector>

#include "event/wire.h"
#include "protocol/control_records.h"

namespace lbf::relay {
namespace {

constexpr std::size_t kBytesOfRank = 120;  // at most, in the list

}  // namespace

std::string cost_record(const CostFacts& facts, const std::map<Rank, RankCost>& ranks) {
  RankCost all;
  Seconds program_cpu_s = 0;
  std::vector<protocol::RankCost> list;
  const bool listed = ranks.size() * kBytesOfRank < kMaxControlBytes / 2;
  for (const auto& [rank, cost] : ranks) {
    all.observed.direct_s += cost.observed.direct_s;
    all.observed.ideal_s += cost.observed.ideal_s;
    all.recording_s += cost.recording_s;
    all.recorded_calls += cost.recorded_calls;
    all.counted_calls += cost.counted_calls;
    all.disbelieved += cost.disbelieved;
    all.procedure_calls += cost.procedure_calls;
    all.procedures_s += cost.procedures_s;
    all.once_s += cost.once_s;
    all.watched_s += cost.watched_s;
    program_cpu_s += cost.program_cpu_s();
    if (!listed) continue;
    list.push_back({static_cast<std::uint64_t>(rank), cost.observed.direct_s, cost.observed.ideal_s,
                    cost.recorded_calls, cost.counted_calls, cost.program_cpu_s()});
  }
  protocol::CostRecord record;
  record.node_index = facts.node_index;
  record.program_cpu_s = program_cpu_s;
  record.direct_s = all.observed.direct_s;
  record.ideal_s = all.observed.ideal_s;
  record.recording_s = all.recording_s;
  record.relay_cpu_s = facts.relay_cpu_s;
  record.held_up_s = facts.held_up_s;
  record.once_capture_s = all.once_s;
  record.once_relay_s = facts.once_relay_s;
  record.watched_s = all.watched_s;
  record.recorded_calls = all.recorded_calls;
  record.counted_calls = all.counted_calls;
  record.disbelieved = all.disbelieved;
  record.pressed_s = facts.pressed_s;
  const PrimitiveCosts& primitives = facts.primitives;
  record.primitives_ns = protocol::PrimitiveTimes{primitives.recorded_s * 1e9, primitives.counted_s * 1e9,
                                                  primitives.relayed_s * 1e9, primitives.looked_s * 1e9};
  if (all.procedure_calls > 0 || all.procedures_s > 0) {
    record.procedure_calls = all.procedure_calls;
    record.procedures_s = all.procedures_s;
  }
  if (facts.control != nullptr) {
    const CostControl& control = *facts.control;
    record.limit_percent = 100 * control.limit();
    record.predicted_percent = 100 * control.predicted_share();
    record.corrected_percent = 100 * control.corrected_share();
    record.state = cost::name_of(control.state());
    record.windows = control.windows();
    record.open_s = control.open_s();
    record.regulated_s = control.regulated_s();
    record.grants_used_up = control.grants_used_up();
  }
  if (listed) record.ranks = std::move(list);
  return protocol::encode(record);
}

}  // namespace lbf::relay
