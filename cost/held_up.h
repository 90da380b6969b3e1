// Held up: time for which ranks of a node stand still because lbf has a processor that one of them wants.
//
// Place in the cost system: processor times -> *held up* -> regulator. The limit is a share of processor time, in which
// a second of the relay is one second. Where every processor is a rank's and ranks wait for each other, it is a second
// of each of them: the one whose processor was taken, and those that poll until it comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace lbf::cost {

class HeldUp {
 public:
  // PROCESSORS: on which the ranks of the node and the relay may run.
  explicit HeldUp(std::uint32_t processors) : processors_(processors) {}

  // So far: the relay's processor time, and for how long ranks were ready to run without a processor (all RANKS
  // together). What the relay took while nobody waited it took from nobody.
  void see(Seconds relay_cpu_s, Seconds delayed_s, std::size_t ranks) {
    const Seconds taken_s = std::min(relay_cpu_s - relay_cpu_s_, delayed_s - delayed_s_);
    relay_cpu_s_ = relay_cpu_s;
    delayed_s_ = delayed_s;
    const auto others = static_cast<double>(std::max<std::size_t>(std::min<std::size_t>(ranks, processors_), 1) - 1);
    total_s_ += others * std::max(taken_s, 0.0);
  }

  // At most, of all ranks together: less where they do not wait for each other.
  Seconds total_s() const { return total_s_; }

 private:
  std::uint32_t processors_;
  Seconds relay_cpu_s_ = 0;
  Seconds delayed_s_ = 0;
  Seconds total_s_ = 0;
};

}  // namespace lbf::cost
