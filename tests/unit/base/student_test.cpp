#include "base/student.h"

#include <gtest/gtest.h>

namespace lbf::student_test {
namespace {

TEST(Student, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(1, kOutside95), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(4, kOutside95), 2.7764, 1e-4);
  EXPECT_NEAR(student_quantile(30, 0.01), 2.7500, 1e-4);
  EXPECT_NEAR(student_quantile(1e6, kOutside95), 1.9600, 1e-4);  // the normal distribution's
  // Welch's degrees are no whole number.
  EXPECT_GT(student_quantile(2.5, kOutside95), student_quantile(3, kOutside95));
}

}  // namespace
}  // namespace lbf::student_test