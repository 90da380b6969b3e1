// Answers of lbfd as files in data/.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "report/step.h"

namespace lbf::report {

inline std::string fixture_text(const std::string& name) {
  std::ifstream in(std::string(LBF_FIXTURES) + "/" + name);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<Step> fixture(const std::string& name) {
  auto steps = parse_steps(fixture_text(name));
  EXPECT_TRUE(steps.ok()) << (steps.ok() ? "" : steps.error().message);
  return steps.ok() ? std::move(*steps) : std::vector<Step>{};
}

}  // namespace lbf::report
