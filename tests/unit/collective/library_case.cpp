// See library_case.h.
#include "library_case.h"

#include <gtest/gtest.h>

namespace lbf {
namespace {

using Op = CollectiveOp;
constexpr Rank kMpiRoot = -4;
constexpr Rank kMpiProcNull = -2;

// Neighbours in a periodic grid of two rows: below and above in each dimension.
std::vector<std::uint64_t> grid_values(const LibraryCase& c, std::uint32_t rank, std::uint32_t ranks) {
  const std::uint32_t columns = ranks / 2;
  const std::uint32_t row = rank / columns;
  const std::uint32_t column = rank % columns;
  const std::uint64_t other = (1 - row) * columns + column;
  const std::uint64_t left = row * columns + (column + columns - 1) % columns;
  const std::uint64_t right = row * columns + (column + 1) % columns;
  const bool each_its_own = c.op == Op::kNeighborAlltoallv;
  std::vector<std::uint64_t> values;
  for (const bool sends : {true, false}) {
    values.insert(values.end(), {4, other, other, left, right});
    for (std::uint64_t d = 0; d < 4; ++d)
      values.push_back(each_its_own ? ((sends ? d : d ^ 1) + 1) * c.bytes : c.bytes);
  }
  return values;
}

}  // namespace

std::vector<SentMessage> expected_messages(const LibraryCase& c, std::uint32_t world, std::uint32_t ranks,
                                           engine::MpiLibrary library, const engine::NodeLayout* layout) {
  const bool inter = (c.flags & kInter) != 0;
  engine::CollectiveCall call;
  call.op = c.op;
  call.library = library;
  if (!inter) call.layout = layout;
  call.nonblocking = (c.flags & kNonblocking) != 0;
  call.commutative = (c.flags & kNotCommutative) == 0;
  call.in_place = (c.flags & kInPlace) != 0;
  call.bytes = c.bytes;
  call.root = static_cast<Rank>(c.root);
  const bool even = world % 2 == 0;
  const std::uint32_t evens = (ranks + 1) / 2;
  call.rank = inter ? world / 2 : world;
  call.size = !inter ? ranks : even ? evens : ranks - evens;
  call.remote_size = !inter ? 0 : even ? ranks - evens : evens;
  call.low_group = even;
  if (inter && even) call.root = call.rank == c.root ? kMpiRoot : kMpiProcNull;
  const std::uint32_t peers = inter ? call.remote_size : call.size;
  // The same counts as in collective_monitor.c.
  const auto uneven = [&c](std::uint32_t rank, Bytes bytes) -> std::uint64_t {
    if ((c.flags & kAlike) != 0) return bytes;
    return rank % 4 == 2 ? 0 : (rank % 3 + 1) * bytes;
  };
  std::vector<std::uint64_t> values;
  switch (c.op) {
    case Op::kGatherv:
    case Op::kScatterv:
      call.bytes = uneven(call.rank, c.bytes);
      [[fallthrough]];
    case Op::kAllgatherv:
      if (c.op == Op::kAllgatherv) call.bytes = uneven(call.rank, c.bytes);
      for (std::uint32_t peer = 0; peer < peers; ++peer) values.push_back(uneven(peer, c.bytes));
      break;
    case Op::kReduceScatter:
      for (std::uint32_t peer = 0; peer < call.size; ++peer) values.push_back(uneven(peer, c.bytes));
      break;
    case Op::kAlltoallv:
    case Op::kAlltoallw:
      values.assign(peers, uneven(call.rank, c.bytes));
      for (std::uint32_t peer = 0; peer < peers; ++peer) values.push_back(uneven(peer, c.bytes));
      break;
    case Op::kNeighborAlltoall:
    case Op::kNeighborAlltoallv:
      values = grid_values(c, world, ranks);
      break;
    case Op::kCommCreate:
      call.creation = static_cast<CommCreation>(c.root);
      call.root = 0;
      break;
    default:
      break;
  }
  call.values = values;
  std::vector<engine::CollectiveStep> steps;
  const auto expanded = engine::expand_collective(call, steps);
  EXPECT_TRUE(expanded.ok()) << expanded.error().message;
  std::vector<SentMessage> messages;
  for (const engine::CollectiveStep& step : steps) {
    if (step.kind != engine::CollectiveStep::Kind::kSend) continue;
    std::uint32_t peer = step.peer;
    if (inter) peer = 2 * peer + (even == step.local_group ? 0 : 1);
    messages.push_back({peer, step.bytes});
  }
  return messages;
}

std::string argument_of(const LibraryCase& c) {
  return std::to_string(static_cast<int>(c.op)) + ":" + std::to_string(c.bytes) + ":" + std::to_string(c.root) + ":" +
         std::to_string(c.flags);
}

}  // namespace lbf
