// Network: what a message costs between two places (TSE Sec. 2.2, Fig. 6). Read from a network file,
// version 1 (docs/formats/network-v1.md).
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/network_name.h"
#include "base/result.h"
#include "base/units.h"
#include "predictor/engine/network/count_curve.h"

namespace lbf::engine {

// Bytes -> seconds: linear interpolation between the two nearest measured sizes (TSE Sec. 2.2); beyond the
// largest a least-squares line through the last measured points ("extrapolated via curve fitting"), never
// below the last value; below the smallest the smallest's value.
class CostCurve {
 public:
  CostCurve() = default;  // always 0
  // Points (bytes, seconds). Errors: not strictly ascending in bytes, negative or not finite times, no point.
  static Result<CostCurve> make(std::vector<std::pair<Bytes, Seconds>> points);
  Seconds at(Bytes bytes) const;
  const std::vector<std::pair<Bytes, Seconds>>& points() const { return points_; }
  // Of the fitted line beyond the last point; 0 = flat.
  Seconds tail_slope_s_per_byte() const { return tail_slope_s_per_byte_; }
  // What 0 bytes take times `empty`, and what more bytes take beyond that times `more`. REQUIRES: finite, 0 or more.
  CostCurve scaled(double empty, double more) const;

 private:
  std::vector<std::pair<Bytes, Seconds>> points_;
  Seconds tail_intercept_s_ = 0;
  Seconds tail_slope_s_per_byte_ = 0;
};

// Costs of one locality. All three add up: the sender's processor works send_cpu, the message flies, the
// receiver's processor works recv_cpu. A network file without send_cpu/recv_cpu is the papers' model.
struct PathCost {
  CostCurve flight;
  CostCurve send_cpu;
  CostCurve recv_cpu;
  Bytes eager_limit_bytes = ~Bytes{0};
  // Connections are made when they are first used (docs/engine.md, "First contact").
  Seconds first_message_s = 0;  // a rank's first message to a peer leaves so much later
  Seconds first_peer_s = 0;     // a rank's first receive of all takes so much longer
  Seconds turn_s = 0;           // processor work of a rank that polls in vain and yields (Waiting::kYield)
  Seconds switch_s = 0;         // processor work until a rank that yielded has the processor back for a message
};

// What a rank does by itself between the messages of a collective, by bytes: processor work at speed 1. No
// points: not known, it takes no time.
struct LocalCost {
  CostCurve copy;    // in its memory
  CostCurve reduce;  // of two operands of so many bytes each (MPI_SUM of doubles)
  bool known() const { return !copy.points().empty() || !reduce.points().empty(); }
};

// The memory domains (NUMA nodes) of a node (docs/adr/0014-memory.md).
struct MemoryDomains {
  std::uint32_t per_node = 1;
  CountCurve bytes_per_s;  // what so many processors of one domain get together
  bool known() const { return bytes_per_s.known(); }
};

// No topology says how far apart two nodes are, or they are not connected there.
inline constexpr std::uint32_t kUnknownHops = ~std::uint32_t{0};

enum class Contention { kNone, kBus, kNic };
const char* contention_name(Contention contention);  // as in network files: "none", "bus", "nic"

// A variant of a network, for questions of sensitivity: factors of what it costs, finite, 0 or more.
struct NetworkFactors {
  double latency = 1;   // flight of an empty message
  double gap = 1;       // what bytes add to it; shared links
  double overhead = 1;  // send_cpu and recv_cpu
};

class Network {
 public:
  static Result<Network> parse(std::string_view toml, std::string_view file_name);
  static Result<Network> load(const std::string& path);
  static Network zero();  // kNoNetwork: every message takes no time

  // Messages between two nodes that are `hops` levels of switches apart (Topology::hops): 0 is the same node
  // (self-node), 1 the same leaf switch, kUnknownHops nobody knows. From 1 on it is the file's hop:N with the
  // smallest N >= hops, else remote, else the largest hop:N. A file that has no path for one node, or none
  // between nodes, uses the one that it has. The reference is the same for hops that share a path.
  const PathCost& path(std::uint32_t hops) const {
    if (hops == 0) return self_node_;
    for (const HopPath& path : hop_paths_) {
      if (hops <= path.hops) return path.cost;
    }
    return remote_;
  }
  const PathCost& path(std::same_as<bool> auto same_node) const = delete;  // hops, not a question
  const LocalCost& local() const { return local_; }
  const MemoryDomains& memory() const { return memory_; }
  // Seconds of a fork and join of so many threads (docs/adr/0012-threads.md).
  const CountCurve& fork_join_s() const { return fork_join_s_; }
  const std::string& name() const { return name_; }
  // From public figures, not measured here: the name says so.
  bool nominal() const { return is_nominal(name_); }
  const std::string& description() const { return description_; }
  Contention contention() const { return contention_; }
  // Bandwidth of each shared link; 0: the file has none (contention `none` only).
  double contention_bytes_per_s() const { return contention_bytes_per_s_; }
  // Another model than the file's, for what-if questions. Where the file names no bandwidth the slope of its
  // remote table beyond the last points is taken (infinite where that is flat).
  void set_contention(Contention model);
  // All else stays, the name as well.
  Network scaled(const NetworkFactors& factors) const;

 private:
  class FileReader;
  std::string name_;
  std::string description_;
  struct HopPath {
    std::uint32_t hops;
    PathCost cost;
  };
  PathCost self_node_;
  PathCost remote_;
  std::vector<HopPath> hop_paths_;  // by hops, ascending; without the farthest where it serves as remote_
  LocalCost local_;
  MemoryDomains memory_;
  CountCurve fork_join_s_;
  Contention contention_ = Contention::kNone;
  double contention_bytes_per_s_ = 0;
};

}  // namespace lbf::engine
