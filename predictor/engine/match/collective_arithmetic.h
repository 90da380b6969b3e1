// Small arithmetic on ranks and blocks that the collective algorithms share.
//
// Place in the event's way: match (inside collective_algorithms*.cpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "base/units.h"

namespace lbf::engine::collective {

inline constexpr std::uint32_t kMaxLog2Ranks = 32;
inline constexpr Bytes kIntBytes = 4;                     // a C int: a count, a communicator's number
inline constexpr Bytes kSignalBytes = 1;                  // what MPICH's barriers broadcast
inline constexpr std::uint32_t kMpichBcastManyRanks = 8;  // MPIR_CVAR_BCAST_MIN_PROCS

inline Bytes sum(std::span<const std::uint64_t> values) {
  Bytes total = 0;
  for (const std::uint64_t value : values) total += value;
  return total;
}

inline std::uint32_t round_down(std::uint32_t value, std::uint32_t multiple) {
  return value - value % multiple;
}

// The lowest `bits` bits of `value`, mirrored.
inline std::uint32_t mirror(std::uint32_t value, std::uint32_t bits) {
  std::uint32_t mirrored = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) mirrored |= ((value >> bit) & 1U) << (bits - 1 - bit);
  return mirrored;
}

// How long the pieces are that a vector of `bytes` is cut into: `piece_bytes`, longer where there would be more than a
// million.
inline Bytes length_of_pieces(Bytes bytes, Bytes piece_bytes) {
  constexpr int kLog2Pieces = 20;
  return std::max(piece_bytes, bytes >> kLog2Pieces);
}

// `elements` in `parts` parts, the first ones one element longer where it does not divide: bytes of one part.
inline Bytes part_bytes(Bytes elements, std::uint32_t parts, std::uint32_t part, Bytes element_bytes) {
  return (elements / parts + (part < elements % parts ? 1 : 0)) * element_bytes;
}

// The ranks that are left when a group is cut to a power of two: of the first 2*extra ranks one of each pair
// takes part for both. `odd_stays`: which one.
struct PowerOfTwo {
  PowerOfTwo(std::uint32_t size, bool odd_takes_part)
      : power(std::bit_floor(size)), extra(size - power), odd_stays(odd_takes_part) {}
  std::uint32_t power;
  std::uint32_t extra;
  bool odd_stays;
  bool paired(std::uint32_t rank) const { return rank < 2 * extra; }
  bool excluded(std::uint32_t rank) const { return paired(rank) && ((rank % 2 == 1) != odd_stays); }
  std::uint32_t inside(std::uint32_t rank) const { return paired(rank) ? rank / 2 : rank - extra; }
  std::uint32_t real(std::uint32_t inner) const {
    return inner < extra ? 2 * inner + (odd_stays ? 1 : 0) : inner + extra;
  }
  // First real rank that the inner rank stands for.
  std::uint32_t first_real(std::uint32_t inner) const { return inner < extra ? 2 * inner : inner + extra; }
};

// libnbc's trees are built for root 0; another root changes places with rank 0 (the mapping is its own
// inverse).
inline std::uint32_t swap_with_zero(std::uint32_t rank, std::uint32_t root) {
  if (rank == 0) return root;
  return rank == root ? 0 : rank;
}

}  // namespace lbf::engine::collective
