// Where srun's distributions put ranks on nodes that may differ in processors.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace lbf::advisor {

// "block", "cyclic" and "plane=K" as srun's -m on nodes with `cores` processors, in their order: block and
// cyclic give each node as many ranks as dealing them round robin among nodes with a free processor does,
// then round robin among all (_task_layout_block, _task_layout_cyclic of Slurm 22.05); planes are dealt
// whatever the nodes have. On nodes that are alike it is place_ranks(). Errors (kInvalidInput): another word,
// no node, more nodes than ranks.
Result<std::vector<std::uint32_t>> lay_out(std::string_view placement, Rank ranks,
                                           std::span<const std::uint32_t> cores);

// The most ranks of one node that go beyond its processors; 0: all ranks have one of their own.
std::uint32_t most_beyond(std::span<const std::uint32_t> node_of_rank, std::span<const std::uint32_t> cores);

}  // namespace lbf::advisor
