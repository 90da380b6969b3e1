#include "base/student.h"

#include <boost/math/distributions/students_t.hpp>

namespace lbf {

double student_quantile(double degrees, double outside) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(degrees), outside / 2));
}

}  // namespace lbf
