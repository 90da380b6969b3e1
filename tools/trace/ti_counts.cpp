// See ti_counts.h.
#include "tools/trace/ti_counts.h"

#include <span>

#include "event/collective_op.h"

namespace lbf::tools::ti {
namespace {

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}
// Of `bytes` from one rank to another.
std::uint64_t part(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  return mixed(mixed(mixed(from) + to) + bytes);
}

// What the root says of each other rank, and each of them of itself.
std::uint64_t rooted_difference(std::uint64_t rank, const Event& event) {
  if (rank != static_cast<std::uint64_t>(event.root)) return 0 - part(rank, 0, event.bytes);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < event.values.size(); ++i) {
    if (i != rank) sum += part(i, 0, event.values[i]);
  }
  return sum;
}

std::uint64_t exchange_difference(std::uint64_t rank, std::span<const std::uint64_t> values) {
  const std::size_t ranks = values.size() / 2;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < ranks; ++i) sum += part(rank, i, values[i]) - part(i, rank, values[ranks + i]);
  return sum;
}

std::uint64_t of_all(std::span<const std::uint64_t> values) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += part(i, 0, values[i]);
  return sum;
}

// What each rank says alike. Gather and scatter: some ranks' own count means nothing.
std::uint64_t said_by_all(const Event& event) {
  switch (collective_op(event)) {
    case CollectiveOp::kBcast:
    case CollectiveOp::kReduce:
    case CollectiveOp::kAllreduce:
    case CollectiveOp::kScan:
    case CollectiveOp::kExscan:
    case CollectiveOp::kAllgather:
    case CollectiveOp::kAlltoall:
    case CollectiveOp::kReduceScatterBlock:
      return event.bytes;
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
      return of_all(event.values);
    default:
      return 0;
  }
}

}  // namespace

Result<void> TiCounts::add(Rank rank, const Event& event) {
  std::uint64_t& number = calls_[static_cast<std::size_t>(rank)];
  const auto index = static_cast<std::size_t>(number++ - finished_);
  if (index >= open_.size()) open_.resize(index + 1);
  if (Result<void> compared = compare(rank, event, open_[index]); !compared) return compared;
  while (!open_.empty() && open_.front().ranks == static_cast<Rank>(calls_.size())) {
    finish(open_.front());
    open_.pop_front();
    ++finished_;
  }
  return {};
}

Result<void> TiCounts::compare(Rank rank, const Event& event, Call& call) {
  const CollectiveOp op = collective_op(event);
  if (call.ranks++ == 0) {
    call.op = op;
    call.alike = said_by_all(event);
    call.first = rank;
    call.root = event.root;
  }
  if (op == call.op && is_rooted(op) && event.root != call.root) {
    return invalid_input(std::string(name_of(op)) + ": root " + std::to_string(event.root) + ", but rank " +
                         std::to_string(call.first) + " names root " + std::to_string(call.root) +
                         " in the same collective: it is on a part of MPI_COMM_WORLD, which TI does not name");
  }
  if (op != call.op || said_by_all(event) != call.alike) call.fits = false;
  const auto number = static_cast<std::uint64_t>(rank);
  if (op == CollectiveOp::kGatherv || op == CollectiveOp::kScatterv)
    call.difference += rooted_difference(number, event);
  if (op == CollectiveOp::kAlltoallv) call.difference += exchange_difference(number, event.values);
  return {};
}

void TiCounts::finish(const Call& call) {
  if (call.fits && call.difference == 0) return;
  if (misfits_++ == 0) {
    first_misfit_ = std::string(name_of(call.op)) + ", number " + std::to_string(finished_ + 1) + " of each rank";
  }
}

}  // namespace lbf::tools::ti
