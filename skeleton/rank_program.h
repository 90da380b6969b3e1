// RankProgram: the operations of one rank, folded into loops by themselves; and the form in which the
// programs of different ranks and rank counts are compared.
#pragma once

#include <cstdint>
#include <vector>

#include "skeleton/loop_folder.h"
#include "skeleton/operation.h"
#include "skeleton/time_distribution.h"

namespace lbf::skeleton {

// Operations of the rank that are alike: everything but sizes and times is equal, and sizes are similar.
struct RankItem {
  Operation operation;               // the first one
  std::vector<std::uint32_t> slots;  // kWait
  std::vector<std::uint64_t> sizes;  // v-collectives: for each peer
  std::uint64_t occurrences = 0;
  double bytes_sum = 0;
  double idle_sum_s = 0;
  TimeDistribution computation;
  double bytes() const { return bytes_sum / static_cast<double>(occurrences); }
  double idle_s() const { return idle_sum_s / static_cast<double>(occurrences); }
};

// A stretch of operations, or a loop.
struct RankPart {
  bool is_loop = false;
  std::vector<std::uint32_t> run;  // indices of RankProgram::items
  std::uint64_t count = 0;
  std::vector<RankPart> body;
};

struct RankProgram {
  std::vector<RankItem> items;
  LoopBodies bodies;
  Elements elements;  // symbols are indices of items
};

// Sizes are similar that differ by at most this share (0: equal ones).
RankProgram fold_rank(const ProgramTrace& trace, Rank rank, double threshold);

// Stretches and loops in turn, a stretch first and last; some are empty. Loops of fewer iterations than
// `least_count` are written out. Empty: that would be more than `most` operations.
std::vector<RankPart> parts_of(const RankProgram& program, std::uint64_t least_count, std::size_t most);

}  // namespace lbf::skeleton
