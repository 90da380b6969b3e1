#include "tools/whatif/sensitivity_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::tools {
namespace {

using engine::Term;
using testing::FieldsAre;

engine::PathPart part(Rank rank, Seconds work_s, Seconds not_captured_s) {
  engine::PathPart out;
  out.place.rank = rank;
  out.terms[static_cast<std::size_t>(Term::kWork)] = work_s;
  out.terms[static_cast<std::size_t>(Term::kNotCaptured)] = not_captured_s;
  return out;
}

// Rank 0 has the longest share only with what was not captured, rank 3 has nothing else.
TEST(PathRows, AreInTheOrderOfWhatIsShown) {
  engine::Prediction prediction;
  prediction.path.emplace().parts = {part(0, 1, 20), part(1, 2, 0), part(2, 4, 0), part(3, 0, 9)};
  const SensitivityAnswer answer;
  const engine::Target target;
  const std::vector<engine::SensitivityCurve> curves;
  const TargetSensitivity of{answer, target, prediction, curves};
  EXPECT_THAT(of.path_rows(engine::PathBy::kRank, 3),
              testing::ElementsAre(FieldsAre("2", testing::_, 4.0), FieldsAre("1", testing::_, 2.0),
                                   FieldsAre("0", testing::_, 1.0)));
  EXPECT_THAT(of.path_rows(engine::PathBy::kRank, 1),
              testing::ElementsAre(FieldsAre("2", testing::_, 4.0), FieldsAre("others", testing::_, 3.0)));
}

}  // namespace
}  // namespace lbf::tools
