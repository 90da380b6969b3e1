// SeededHash: for maps whose keys strangers choose. Nobody outside the process knows which keys share a bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace lbf {

struct SeededHash {
  std::size_t operator()(std::uint64_t key) const {
    static const std::uint64_t seed = std::uint64_t{std::random_device{}()} << 32 | std::random_device{}();
    std::uint64_t mixed = key + seed;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return static_cast<std::size_t>(mixed ^ mixed >> 31);
  }
};

}  // namespace lbf
