// What measuring procedures may cost: a share of the overhead limit.
//
// Place in the cost system: overhead limit -> plugin, lbf-run -> LBF_CAPTURE_PROCEDURES_LIMIT -> the measuring in the
// program, which keeps it by itself (docs/procedures.md, "What is recorded, and what it costs"). What it costs is
// spent from the same budget as recording calls: so half of the limit is left for those.
#pragma once

namespace lbf::cost {

inline constexpr double kProcedureShareOfLimit = 0.5;

// `limit`: of the program's processor time, 0.02 is 2 %. As a share of a thread's time.
constexpr double procedure_limit(double limit) {
  return limit * kProcedureShareOfLimit;
}

}  // namespace lbf::cost
