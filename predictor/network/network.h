// Network: what a message costs between two places (TSE Sec. 2.2, Fig. 6). Read from a network file,
// version 1 (docs/formats/network-v1.md).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf {

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
};

enum class Contention { kNone, kBus, kNic };

class Network {
 public:
  static Result<Network> parse(std::string_view toml, std::string_view file_name);
  static Result<Network> load(const std::string& path);
  static Network zero();  // "zero": every message takes no time

  // Messages between ranks of one node (self-node) or of different ones (remote). A file with one locality
  // only uses it for both; hop:N paths are kept for later and remote falls back to the largest hop.
  const PathCost& path(bool same_node) const { return same_node ? self_node_ : remote_; }
  const std::string& name() const { return name_; }
  const std::string& description() const { return description_; }
  Contention contention() const { return contention_; }
  // Bandwidth of each shared link; 0: the file has none (contention `none` only).
  double contention_bytes_per_s() const { return contention_bytes_per_s_; }
  // Another model than the file's, for what-if questions. Where the file names no bandwidth the slope of its
  // remote table beyond the last points is taken (infinite where that is flat).
  void set_contention(Contention model);

 private:
  std::string name_;
  std::string description_;
  PathCost self_node_;
  PathCost remote_;
  Contention contention_ = Contention::kNone;
  double contention_bytes_per_s_ = 0;
};

}  // namespace lbf
