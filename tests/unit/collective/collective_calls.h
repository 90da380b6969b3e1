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

inline engine::CollectiveCall call_of(CollectiveOp op, std::uint32_t size, Bytes bytes, Rank root = 0,
                                      bool nonblocking = false,
                                      engine::MpiLibrary library = engine::MpiLibrary::kOpenMpi4) {
  engine::CollectiveCall call;
  call.library = library;
  call.op = op;
  call.size = size;
  call.bytes = bytes;
  call.root = root;
  call.nonblocking = nonblocking;
  return call;
}

// The same call on every rank.
inline Outcome run_alike(engine::CollectiveCall call) {
  std::vector<engine::CollectiveCall> calls(call.size, call);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) calls[rank].rank = rank;
  return run(calls, call.size);
}

inline std::string describe(const engine::CollectiveCall& call) {
  return std::string(engine::mpi_library_name(call.library)) + " op " + std::to_string(static_cast<int>(call.op)) +
         " size " + std::to_string(call.size) + " bytes " + std::to_string(call.bytes) + " root " +
         std::to_string(call.root) + (call.nonblocking ? " nonblocking " : " blocking ") +
         engine::collective_algorithm_name(call);
}

}  // namespace lbf
