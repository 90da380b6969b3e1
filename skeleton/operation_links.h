// Which operations of different ranks can only happen together: a send and the operation that completes its
// receive, a collective on all its members, the ends of all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

// Operations of all ranks in one numbering: those of rank 0 in their order, then those of rank 1, ...
using OperationId = std::uint32_t;

struct OperationLinks {
  std::vector<OperationId> first_of_rank;  // ranks + 1
  std::vector<std::uint32_t> begin;        // by operation: its part of `other`; operations + 1
  std::vector<OperationId> other;          // both directions; a collective is a star around its first member

  std::span<const OperationId> of(OperationId id) const {
    return std::span(other).subspan(begin[id], begin[id + 1] - begin[id]);
  }
};

// Messages match as MPI matches them: the k-th send of a channel (source, destination, communicator, tag) and
// its k-th receive in the order of posting. Time and memory are linear in the operations. Errors: a message
// that is never received or never sent, collectives that differ between the members of a communicator (with
// the rank), more than 2^32 - 2 operations.
Result<OperationLinks> link_operations(const ProgramTrace& trace);

}  // namespace lbf::skeleton
