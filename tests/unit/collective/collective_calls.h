// Calls of collectives on every rank, and what they are called where a test fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predictor/engine/match/collective.h"
#include "tests/unit/collective/executor.h"

namespace lbf {

inline constexpr Rank kMpiRoot = -4;
inline constexpr Rank kMpiProcNull = -2;

inline CollectiveCall call_of(CollectiveOp op, std::uint32_t size, Bytes bytes, Rank root = 0, bool nonblocking = false,
                       MpiLibrary library = MpiLibrary::kOpenMpi4) {
  CollectiveCall call;
  call.library = library;
  call.op = op;
  call.size = size;
  call.bytes = bytes;
  call.root = root;
  call.nonblocking = nonblocking;
  return call;
}

// The same call on every rank.
inline Outcome run_alike(CollectiveCall call) {
  std::vector<CollectiveCall> calls(call.size, call);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) calls[rank].rank = rank;
  return run(calls, call.size);
}

inline std::string describe(const CollectiveCall& call) {
  return std::string(mpi_library_name(call.library)) + " op " + std::to_string(static_cast<int>(call.op)) +
         " size " + std::to_string(call.size) + " bytes " + std::to_string(call.bytes) + " root " +
         std::to_string(call.root) + (call.nonblocking ? " nonblocking " : " blocking ") +
         collective_algorithm_name(call);
}

}  // namespace lbf
