// Student's t distribution, for intervals of a mean from few values.
#pragma once

namespace lbf {

// The t beyond which a share `outside` of the distribution lies, on both sides together: 2.776 for 4 degrees
// of freedom and 0.05. REQUIRES: degrees > 0 (need not be whole); 0 < outside < 1.
double student_quantile(double degrees, double outside);

// Of 95 % intervals.
inline constexpr double kOutside95 = 0.05;

}  // namespace lbf
