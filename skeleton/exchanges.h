// Exchanges: the smallest groups of operations, over all ranks, that a skeleton can keep or leave out without
// leaving a rank to wait for a message that nobody sends.
//
// A deviation from Sodhi, Subhlok & Xu, who compress each process by itself and repair mismatches (Sec. 6,
// "Coordinated skeletons"): see docs/skeletons.md, "Coordination".
//
// An exchange is a strongly connected component of the graph in which an operation needs its predecessor on
// its rank, a message needs both its ends, and a collective all its members. On each rank it is an unbroken
// stretch of operations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skeleton/operation.h"
#include "skeleton/operation_links.h"

namespace lbf::skeleton {

// All exchanges in an order in which a single rank at a time could execute them (a linear extension of the
// program's order).
struct Exchanges {
  std::vector<std::uint32_t> begin;     // exchanges + 1: their parts of `operations`
  std::vector<OperationId> operations;  // of one exchange: rising, so by rank and then in the rank's order

  std::size_t size() const { return begin.size() - 1; }
  std::span<const OperationId> of(std::size_t exchange) const {
    return std::span(operations).subspan(begin[exchange], begin[exchange + 1] - begin[exchange]);
  }
};

// Tarjan's algorithm, without recursion: time and memory are linear in operations and links, but for sorting
// the operations within each exchange.
Exchanges find_exchanges(const ProgramTrace& trace, const OperationLinks& links);

}  // namespace lbf::skeleton
