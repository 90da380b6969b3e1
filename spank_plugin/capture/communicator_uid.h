// The number of a communicator that all its members compute alike without talking to each other
// (event/event.h, kCommCreate): from the parent's number, how many communicators were made from that parent
// before, and who leads the new one. Calls that are collective over a group only (MPI_Comm_create_group,
// MPI_Intercomm_create) hash the members, the tag, and how often this combination occurred. docs/capture.md,
// "Communicators".
#pragma once

#include <cstdint>

namespace lbf::capture {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  std::uint64_t x = hash ^ (value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mix_ranks(std::uint64_t hash, const std::int32_t* ranks, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) hash = mix(hash, static_cast<std::uint64_t>(ranks[i]));
  return mix(hash, count);
}

// 0 and 1 (MPI_COMM_WORLD) are taken.
constexpr std::uint64_t as_uid(std::uint64_t hash) noexcept {
  return hash > 1 ? hash : hash + 2;
}

// What the number is made of before the leader is known.
constexpr std::uint64_t child_seed(std::uint64_t parent_uid, std::uint32_t nth) noexcept {
  return mix(mix(0x6c62662d636f6d6d, parent_uid), nth);
}

constexpr std::uint64_t child_uid(std::uint64_t seed, std::int32_t leader) noexcept {
  return as_uid(mix(seed, static_cast<std::uint64_t>(leader)));
}

constexpr std::uint64_t child_uid(std::uint64_t parent_uid, std::uint32_t nth, std::int32_t leader) noexcept {
  return child_uid(child_seed(parent_uid, nth), leader);
}

}  // namespace lbf::capture
