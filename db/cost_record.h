// CostRecord: what the capture of a step cost, and what was decided about it (docs/cost-system.md, "The record").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "protocol/cost_fields.h"

namespace lbf::db {

// The capture of one rank; times are processor time.
struct RankCostRecord {
  Rank rank = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  std::uint64_t recorded_calls = 0;
  std::uint64_t counted_calls = 0;
  Seconds program_cpu_s = 0;
};

// What one node's relay said last.
struct NodeCostRecord {
  std::uint32_t node = 0;  // in the step's description
  std::string state;
  Seconds program_cpu_s = 0;
  Seconds direct_s = 0;
  Seconds ideal_s = 0;
  Seconds relay_cpu_s = 0;
  Seconds open_s = 0;       // for how long it was ordered to record
  Seconds regulated_s = 0;  // of how long
  Seconds pressed_s = 0;    // closed because too much waited to be sent
  std::uint64_t windows = 0;
  std::optional<Seconds> once_capture_s{};  // as in CostRecord
  std::optional<Seconds> once_relay_s{};
  Seconds held_up_s = 0;  // as in CostRecord
};

inline constexpr const auto& kCostFields = protocol::kCostTable<protocol::Side::kLbfd>;

struct CostRecord : protocol::CostFields<protocol::Side::kLbfd> {
  std::vector<NodeCostRecord> nodes;
  std::vector<RankCostRecord> ranks;
};

}  // namespace lbf::db
