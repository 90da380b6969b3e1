// Budget: what the capture may cost on one node, as a bucket that the program's own processor time fills.
//
// Place in the cost system: observed cost -> *budget* -> regulator. The overhead limit is a share of the
// program's processor time (Hollingsworth & Miller, Sec. 5: "the programmer sets the tolerable
// instrumentation overhead"). The bucket is bounded, so the limit holds not only for the whole run: in any
// stretch of the program with c seconds of processor time the cost is at most limit * (c + depth_s), and in
// the first c seconds at most limit * max(c, depth_s), plus what was spent beyond the budget before anybody
// knew.
#pragma once

#include <algorithm>

#include "base/units.h"

namespace lbf::cost {

class Budget {
 public:
  // `limit`: share of the program's processor time, 0.02 is 2 %. `depth_s`: the processor time of the program
  // whose allowance may be spent at once. It is there from the start, in advance: the first depth_s of the
  // program earn nothing more. REQUIRES: both >= 0.
  Budget(double limit, Seconds depth_s)
      : limit_(limit), depth_s_(depth_s), advanced_s_(depth_s), left_s_(limit * depth_s) {}

  void earn(Seconds program_cpu_s) {
    const Seconds repaid_s = std::clamp(program_cpu_s, 0.0, advanced_s_);
    advanced_s_ -= repaid_s;
    left_s_ = std::min(left_s_ + limit_ * std::max(program_cpu_s - repaid_s, 0.0), full_s());
  }
  void spend(Seconds cost_s) { left_s_ -= std::max(cost_s, 0.0); }

  // Below zero: more was spent than was allowed; it is earned back before anything else.
  Seconds left_s() const { return left_s_; }
  Seconds full_s() const { return limit_ * depth_s_; }
  // The processor time of the program whose allowance is already in left_s().
  Seconds advanced_s() const { return advanced_s_; }
  double limit() const { return limit_; }

 private:
  double limit_;
  Seconds depth_s_;
  Seconds advanced_s_;
  Seconds left_s_;
};

}  // namespace lbf::cost
