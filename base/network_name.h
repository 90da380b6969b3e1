// What a network's name says of where its times come from (docs/formats/network-v1.md).
#pragma once

#include <cstdint>
#include <string_view>

namespace lbf {

// Messages take no time: it stands for a network that nobody described.
inline constexpr std::string_view kNoNetwork = "zero";

// Names of networks that nobody measured here begin so: public figures.
inline constexpr std::string_view kNominalPrefix = "nominal-";

constexpr bool is_nominal(std::string_view network) {
  return network.starts_with(kNominalPrefix);
}

// A time on so many nodes of this network is a bound, no prediction.
constexpr bool is_bound(std::string_view network, std::uint32_t nodes) {
  return network == kNoNetwork && nodes > 1;
}

// What a time on so many nodes of this network rests on was measured.
constexpr bool is_measured(std::string_view network, std::uint32_t nodes) {
  return nodes <= 1 || (network != kNoNetwork && !is_nominal(network));
}

}  // namespace lbf
