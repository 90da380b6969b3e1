#include "tools/skeleton/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::record_test {
namespace {

using testing::HasSubstr;

class Record : public testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/skel.runs.json";
};

TEST_F(Record, IsBesideTheSkeleton) {
  EXPECT_EQ(tools::record_path("dir/skel.c"), "dir/skel.runs.json");
  EXPECT_EQ(tools::record_path("dir/skel"), "dir/skel.runs.json");
}

TEST_F(Record, ComesBackAsItWasWritten) {
  tools::SkeletonRecord record{
      "0a1b2c3d", tools::SkeletonTimes{"2026-11-22T00:00:00Z", "node[1-4]", "srun", {2, 8}, 1e8}, 40, {}};
  record.runs.push_back({"2026-11-22T01:00:00Z", "node5", "srun", {3}, 1e8});
  ASSERT_TRUE(tools::write_record(path_, record).ok());
  const Result<tools::SkeletonRecord> read = tools::read_record(path_, "0a1b2c3d");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read->reference.has_value());
  EXPECT_EQ(read->reference->nodes, "node[1-4]");
  EXPECT_EQ(read->reference->times_s, (std::vector<Seconds>{2, 8}));
  EXPECT_NEAR(read->ratio(), 10, 1e-12);  // 40 / sqrt(2 * 8)
  ASSERT_EQ(read->runs.size(), 1u);
  EXPECT_EQ(read->runs[0].nodes, "node5");
}

TEST_F(Record, OfAnotherSkeletonIsNotThisOnes) {
  const tools::SkeletonRecord record{"0a1b2c3d", tools::SkeletonTimes{"", "n", "srun", {2}, 1}, 40, {}};
  ASSERT_TRUE(tools::write_record(path_, record).ok());
  const Result<tools::SkeletonRecord> other = tools::read_record(path_, "ffffffff");
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->reference.has_value());
  EXPECT_FALSE(tools::read_record(directory_.path() + "/none.json", "x")->reference.has_value());
}

TEST_F(Record, KeepsTheLatestRuns) {
  tools::SkeletonRecord record{"0a1b2c3d", {}, 0, {}};
  for (int i = 0; i < 300; ++i) record.runs.push_back({"", std::to_string(i), "srun", {1}, 1});
  ASSERT_TRUE(tools::write_record(path_, record).ok());
  const Result<tools::SkeletonRecord> read = tools::read_record(path_, "0a1b2c3d");
  ASSERT_EQ(read->runs.size(), 200u);
  EXPECT_EQ(read->runs.front().nodes, "100");
}

TEST_F(Record, RefusesDamage) {
  for (
      const char* const text :
      {"", "{", "[]", R"({"lbf_skeleton_runs":1})", R"({"lbf_skeleton_runs":2,"id":"a","application_s":1,"runs":[]})",
       R"({"lbf_skeleton_runs":1,"id":"a","application_s":1,"runs":[{"when":"","nodes":"","launcher":"","times_s":[0],"rate":1}]})",
       R"({"lbf_skeleton_runs":1,"id":"a","application_s":0,"runs":[],"reference":{"when":"","nodes":"","launcher":"","times_s":[1],"rate":1}})"}) {
    std::ofstream(path_) << text;
    const Result<tools::SkeletonRecord> read = tools::read_record(path_, "a");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_THAT(read.error().message, HasSubstr("remove it")) << text;
  }
}

}  // namespace
}  // namespace lbf::record_test