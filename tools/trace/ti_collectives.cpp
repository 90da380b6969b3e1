// See ti_collectives.h.
#include "tools/trace/ti_collectives.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "base/quoted.h"

namespace lbf::tools::ti {
namespace {

constexpr const char* kGathervForm = "gatherv COUNT COUNT... [ROOT [DATATYPE DATATYPE]]";

Result<void> set_bcast(const TiWords& words, TiParameters& p, TiCollective& made) {
  if (Result<void> ok = check(words, 1, "bcast COUNT [ROOT [DATATYPE]]"); !ok) return ok;
  set_op(made.event, CollectiveOp::kBcast);
  made.event.bytes = p.bytes(p.count(2), p.datatype(4));
  made.event.root = p.root(3);
  return {};
}

Result<void> set_reduce(const TiWords& words, TiParameters& p, TiCollective& made) {
  if (Result<void> ok = check(words, 2, "reduce COUNT FLOPS [ROOT [DATATYPE]]"); !ok) return ok;
  set_op(made.event, CollectiveOp::kReduce);
  made.event.bytes = p.bytes(p.count(2), p.datatype(5));
  made.flops = p.flops(3);
  made.event.root = p.root(4);
  return {};
}

Result<void> set_allreduce(CollectiveOp op, const TiWords& words, TiParameters& p, TiCollective& made) {
  if (Result<void> ok = check(words, 2, "allreduce COUNT FLOPS [DATATYPE]"); !ok) return ok;
  set_op(made.event, op);
  made.event.bytes = p.bytes(p.count(2), p.datatype(4));
  made.flops = p.flops(3);
  return {};
}

Result<void> set_alltoall(CollectiveOp op, const TiWords& words, TiParameters& p, TiCollective& made) {
  if (Result<void> ok = check(words, 2, "alltoall COUNT COUNT [DATATYPE DATATYPE]"); !ok) return ok;
  set_op(made.event, op);
  made.event.bytes = p.bytes(p.count(2), p.datatype(4));
  return {};
}

Result<void> set_gather(CollectiveOp op, const TiWords& words, TiParameters& p, TiCollective& made) {
  if (Result<void> ok = check(words, 2, "gather COUNT COUNT [ROOT [DATATYPE DATATYPE]]"); !ok) return ok;
  set_op(made.event, op);
  made.event.root = p.root(4);
  made.event.bytes = p.bytes(p.count(2), p.datatype(5));
  return {};
}

}  // namespace

Result<TiCollective> TiCollectives::read(Rank rank, const TiWords& words, TiParameters& p) {
  TiCollective made;
  made.event.kind = EventKind::kCollective;
  values_.clear();
  if (Result<void> done = set(rank, words, p, made); !done) return done.error();
  made.event.values = values_;
  return made;
}

Result<void> TiCollectives::set(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made) {
  const std::string_view action = words[1];
  if (action == "barrier") {
    set_op(made.event, CollectiveOp::kBarrier);
    return {};
  }
  if (action == "bcast") return set_bcast(words, p, made);
  if (action == "reduce") return set_reduce(words, p, made);
  if (action == "allreduce") return set_allreduce(CollectiveOp::kAllreduce, words, p, made);
  if (action == "scan") return set_allreduce(CollectiveOp::kScan, words, p, made);
  if (action == "exscan") return set_allreduce(CollectiveOp::kExscan, words, p, made);
  if (action == "alltoall") return set_alltoall(CollectiveOp::kAlltoall, words, p, made);
  if (action == "allgather") return set_alltoall(CollectiveOp::kAllgather, words, p, made);
  if (action == "gather") return set_gather(CollectiveOp::kGather, words, p, made);
  if (action == "scatter") return set_gather(CollectiveOp::kScatter, words, p, made);
  if (action == "gatherv") return set_gatherv(rank, words, p, made);
  if (action == "allgatherv") return set_allgatherv(words, p, made);
  if (action == "scatterv") return set_scatterv(rank, words, p, made);
  if (action == "reducescatter") return set_reduce_scatter(words, p, made);
  if (action == "alltoallv") return set_alltoallv(words, p, made);
  const bool nonblocking = action.size() > 1 && action.front() == 'i';
  return invalid_input(quoted(action) + " is no action of SimGrid's replay" +
                       (nonblocking ? " (it has no non-blocking collectives)" : ""));
}

void TiCollectives::add_counts(TiParameters& p, std::size_t first, double datatype) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(ranks_); ++i)
    values_.push_back(p.bytes(p.count(first + i), datatype));
}

Bytes TiCollectives::sum_of(std::size_t first) const {
  Bytes sum = 0;
  for (std::size_t i = first; i < values_.size(); ++i)
    sum += std::min(values_[i], std::numeric_limits<Bytes>::max() - sum);
  return sum;
}

Result<void> TiCollectives::set_gatherv(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made) {
  const auto size = static_cast<std::size_t>(ranks_);
  if (Result<void> ok = check(words, size + 1, kGathervForm); !ok) return ok;
  set_op(made.event, CollectiveOp::kGatherv);
  made.event.root = p.root(3 + size);
  made.event.bytes = p.bytes(p.count(2), p.datatype(4 + size));
  if (made.event.root == rank) add_counts(p, 3, p.datatype(5 + size));
  return {};
}

Result<void> TiCollectives::set_allgatherv(const TiWords& words, TiParameters& p, TiCollective& made) {
  const auto size = static_cast<std::size_t>(ranks_);
  if (Result<void> ok = check(words, size + 1, kGathervForm); !ok) return ok;
  set_op(made.event, CollectiveOp::kAllgatherv);
  const bool has_displacements = words.size() > 5 + size && words.size() <= 3 + 2 * size;  // and no datatypes
  const std::size_t types = has_displacements ? words.size() : 3 + size;
  made.event.bytes = p.bytes(p.count(2), p.datatype(types));
  add_counts(p, 3, p.datatype(types + 1));
  return {};
}

Result<void> TiCollectives::set_scatterv(Rank rank, const TiWords& words, TiParameters& p, TiCollective& made) {
  const auto size = static_cast<std::size_t>(ranks_);
  constexpr const char* kForm = "scatterv COUNT... COUNT [ROOT [DATATYPE DATATYPE]]";
  if (Result<void> ok = check(words, size + 1, kForm); !ok) return ok;
  set_op(made.event, CollectiveOp::kScatterv);
  made.event.root = p.root(3 + size);
  made.event.bytes = p.bytes(p.count(2 + size), p.datatype(5 + size));
  if (made.event.root == rank) add_counts(p, 2, p.datatype(4 + size));
  return {};
}

Result<void> TiCollectives::set_reduce_scatter(const TiWords& words, TiParameters& p, TiCollective& made) {
  const auto size = static_cast<std::size_t>(ranks_);
  if (Result<void> ok = check(words, size + 1, "reducescatter COUNT... FLOPS [DATATYPE]"); !ok) return ok;
  add_counts(p, 2, p.datatype(3 + size));
  made.flops = p.flops(2 + size);
  const bool alike = std::adjacent_find(values_.begin(), values_.end(), std::not_equal_to<>()) == values_.end();
  set_op(made.event, alike ? CollectiveOp::kReduceScatterBlock : CollectiveOp::kReduceScatter);
  made.event.bytes = alike ? values_.front() : sum_of(0);
  if (alike) values_.clear();
  return {};
}

Result<void> TiCollectives::set_alltoallv(const TiWords& words, TiParameters& p, TiCollective& made) {
  const auto size = static_cast<std::size_t>(ranks_);
  constexpr const char* kForm = "alltoallv SIZE COUNT... SIZE COUNT... [DATATYPE DATATYPE]";
  if (Result<void> ok = check(words, 2 * size + 2, kForm); !ok) return ok;
  set_op(made.event, CollectiveOp::kAlltoallv);
  add_counts(p, 3, p.datatype(4 + 2 * size));
  made.event.bytes = sum_of(0);
  add_counts(p, 4 + size, p.datatype(5 + 2 * size));
  return {};
}

}  // namespace lbf::tools::ti
