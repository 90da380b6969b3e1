#include "pattern/work_law.h"

namespace lbf::pattern {

WorkLaw WorkLaw::fit(const std::map<Rank, double>& amounts, double exponent) {
  WorkLaw law;
  PowerLawFit power;
  // Least squares of relative errors: of stays / amount + shrinks / (ranks amount) to 1.
  double u = 0;
  double v = 0;
  double uu = 0;
  double uv = 0;
  double vv = 0;
  for (const auto& [ranks, amount] : amounts) {
    power.add(ranks, amount);
    const double of_stays = 1 / amount;
    const double of_shrinks = 1 / (ranks * amount);
    u += of_stays;
    v += of_shrinks;
    uu += of_stays * of_stays;
    uv += of_stays * of_shrinks;
    vv += of_shrinks * of_shrinks;
  }
  law.power_ = power.law({exponent, -1, 0});
  const double determinant = uu * vv - uv * uv;
  constexpr double kSingular = 1e-9;
  law.has_amdahl_ = determinant > kSingular * uu * vv;
  if (!law.has_amdahl_) return law;
  law.stays_ = (vv * u - uv * v) / determinant;
  law.shrinks_ = (uu * v - uv * u) / determinant;
  if (law.stays_ < 0) {
    law.stays_ = 0;
    law.shrinks_ = v / vv;
  } else if (law.shrinks_ < 0) {
    law.stays_ = u / uu;
    law.shrinks_ = 0;
  }
  return law;
}

}  // namespace lbf::pattern
