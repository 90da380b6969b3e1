// Groups of targets, see replay_groups.h.
#include "predictor/engine/replay/replay_groups.h"

#include <algorithm>
#include <utility>

#include "predictor/engine/replay/replay.h"

namespace lbf::engine {
namespace {

constexpr std::size_t kDedicatedTogether = 16;
// Each group holds the matcher's and the replays' memory of all ranks.
constexpr std::size_t kMostRanksOfAllGroups = 65'536;

}  // namespace

std::vector<std::vector<std::size_t>> replay_groups(const std::vector<Target>& targets, std::size_t threads) {
  std::vector<std::vector<std::size_t>> alone;
  std::vector<std::vector<std::size_t>> together;
  for (std::size_t number = 0; number < targets.size(); ++number) {
    if (!is_dedicated(targets[number])) {
      alone.push_back({number});
    } else {
      if (together.empty() || together.back().size() == kDedicatedTogether) together.emplace_back();
      together.back().push_back(number);
    }
  }
  const std::size_t parts = alone.size() + together.size();
  const std::size_t ranks = targets.empty() ? 1 : std::max<std::size_t>(targets.front().node_of_rank.size(), 1);
  const std::size_t most = std::max<std::size_t>(std::min(threads, kMostRanksOfAllGroups / ranks), 1);
  struct Group {
    std::vector<std::size_t> numbers;
    std::size_t work = 0;
  };
  std::vector<Group> groups(std::clamp<std::size_t>(parts, 1, most));
  const auto add = [&](const std::vector<std::size_t>& part, std::size_t work) {
    Group& least = *std::ranges::min_element(groups, {}, &Group::work);
    least.numbers.insert(least.numbers.end(), part.begin(), part.end());
    least.work += work;
  };
  for (const auto& part : alone) add(part, 2);
  for (const auto& part : together) add(part, 1);
  std::vector<std::vector<std::size_t>> out;
  for (Group& group : groups) {
    std::ranges::sort(group.numbers);
    out.push_back(std::move(group.numbers));
  }
  return out;
}

}  // namespace lbf::engine
