// Exchanges that belong together since requests are under way from one to another, or at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "skeleton/signature.h"

namespace lbf::skeleton {

// A union of nodes: places of a program at which exchanges are executed.
class Ties {
 public:
  Ties(std::size_t nodes, Rank ranks);

  // Of a node; in the order of the program. Ties it to every node whose requests are under way where it
  // starts or ends one. Of the iterations of a loop one says enough.
  void execute(std::uint32_t node, const Exchange& exchange);

  // The same for tied nodes.
  std::uint32_t group_of(std::uint32_t node);

 private:
  struct UnderWay {
    std::vector<bool> slots;
    std::uint32_t count = 0;
    std::uint32_t node = 0;  // one that started some of them; all of those are tied
  };
  void tie(std::uint32_t a, std::uint32_t b);

  std::vector<std::uint32_t> parent_;  // by node
  std::vector<UnderWay> under_way_;    // by rank
};

}  // namespace lbf::skeleton
