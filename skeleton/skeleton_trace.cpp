#include "skeleton/skeleton_trace.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace lbf::skeleton {
namespace {

constexpr std::size_t kTail = 3;  // two reductions and the end

bool is_collective(const Operation& operation, CollectiveOp op) {
  return operation.kind == OperationKind::kCollective && operation.op == op;
}

}  // namespace

Result<void> take_off_frame(ProgramTrace& trace) {
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    std::vector<Operation>& operations = trace.ranks[rank];
    const auto barrier = std::find_if_not(operations.begin(), operations.end(), [](const Operation& o) {
      return is_collective(o, CollectiveOp::kCommCreate);
    });
    const bool begins =
        barrier != operations.end() && is_collective(*barrier, CollectiveOp::kBarrier) && barrier->comm == 0;
    const bool ends = begins && operations.end() - barrier > static_cast<std::ptrdiff_t>(kTail) &&
                      operations.back().kind == OperationKind::kEnd &&
                      is_collective(operations[operations.size() - 2], CollectiveOp::kReduce) &&
                      is_collective(operations[operations.size() - 3], CollectiveOp::kReduce);
    if (!ends) {
      return invalid_input("rank " + std::to_string(rank) +
                           " does not begin and end as a skeleton: is it the trace of one?");
    }
    // The computation before the first reduction is the skeleton's own; the end carries it.
    const Operation first_reduction = operations[operations.size() - kTail];
    Operation end = operations.back();
    end.process_s = first_reduction.process_s;
    end.idle_s = first_reduction.idle_s;
    operations.resize(operations.size() - kTail);
    operations.push_back(end);
    operations.erase(operations.begin(), barrier + 1);
  }
  return {};
}

}  // namespace lbf::skeleton
