// ProcedureList: LIST of an answer of lbfd's.
#include "protocol/procedure_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lbf::procedure_list_test {
namespace {

using namespace protocol;
using nlohmann::json;

// As lbfd's answer has it: numbers without a sign.
std::optional<ProcedureList> from(const json& list) {
  return procedure_list_of(json::parse(list.dump()));
}

TEST(ProcedureList, ComesBackFromAnAnswer) {
  const ProcedureList list{3, {"solve", "pack(int, long)"}, "why"};
  EXPECT_EQ(protocol::json_of(list).dump(), R"j({"generation":3,"names":["solve","pack(int, long)"],"text":"why"})j");
  const auto back = from(protocol::json_of(list));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->generation, 3u);
  EXPECT_THAT(back->names, testing::ElementsAre("solve", "pack(int, long)"));
  EXPECT_EQ(back->text, "why");
  EXPECT_EQ(lines_of(*back), "solve\npack(int, long)\n");
}

TEST(ProcedureList, NothingThatARingCouldNotHold) {
  EXPECT_TRUE(from({{"generation", 1}, {"names", json::array()}})) << "text may be missing, names may be none";
  EXPECT_FALSE(from(nullptr));
  EXPECT_FALSE(from({{"names", {"a"}}}));
  EXPECT_FALSE(from({{"generation", 0}, {"names", {"a"}}}));
  EXPECT_FALSE(from({{"generation", -1}, {"names", {"a"}}}));
  EXPECT_FALSE(from({{"generation", 1}}));
  EXPECT_FALSE(from({{"generation", 1}, {"names", {"a", 2}}}));
  EXPECT_FALSE(from({{"generation", 1}, {"names", {""}}}));
  EXPECT_FALSE(from({{"generation", 1}, {"names", {"a\nb"}}}));
  EXPECT_TRUE(from({{"generation", 1}, {"names", {std::string(kMaxProcedureListBytes - 1, 'x')}}}));
  EXPECT_FALSE(from({{"generation", 1}, {"names", {std::string(kMaxProcedureListBytes, 'x')}}}));
}

}  // namespace
}  // namespace lbf::procedure_list_test
