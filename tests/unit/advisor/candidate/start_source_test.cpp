// What srun --test-only says, and a program in srun's place.
#include "advisor/candidate/start_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <ctime>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_directory.h"

namespace lbf::advisor::start_source_test {
namespace {

using testing::HasSubstr;

TEST(ParseStart, TheWordsOfEachRelease) {
  // 22.05 and 24.11, 26.05, a federation.
  EXPECT_EQ(parse_start("srun: Job 7 to start at 1795320000 using 4 processors on nodes n[1-2] in partition p\n").at_s,
            1795320000.0);
  EXPECT_EQ(parse_start("srun: Job 7 to start at 1795320001 a using 1 processors on nodes n1 in partition p\n").at_s,
            1795320001.0);
  EXPECT_EQ(parse_start("srun: Job 7 to start at 1795320002 on cluster c using 1 processors on nodes n1 in partition "
                        "p\nsrun:   Preempts: 3\n")
                .at_s,
            1795320002.0);
}

TEST(ParseStart, SlurmsStandardTimeIsLocal) {
  const auto answer = parse_start("srun: Job 7 to start at 2026-11-22T04:05:06 using 4 processors on nodes n1\n");
  ASSERT_TRUE(answer.at_s.has_value());
  const auto at = static_cast<std::time_t>(*answer.at_s);
  std::array<char, 40> text{};
  std::tm local{};
  std::strftime(text.data(), text.size(), "%FT%T", ::localtime_r(&at, &local));
  EXPECT_STREQ(text.data(), "2026-11-22T04:05:06");
}

TEST(ParseStart, RefusalsAreSlurmsWords) {
  EXPECT_EQ(parse_start("srun: error: Unable to allocate resources: Invalid partition name specified\n").why_not,
            "Invalid partition name specified");
  EXPECT_EQ(parse_start("srun: a word of the site\nallocation failure: User's group not permitted to use this "
                        "partition\n")
                .why_not,
            "User's group not permitted to use this partition");
  EXPECT_EQ(parse_start("").why_not, "srun --test-only said nothing");
  EXPECT_EQ(parse_start("srun: Job 7 to start at Unknown using 1 processors\n").why_not,
            "Job 7 to start at Unknown using 1 processors");
  EXPECT_FALSE(parse_start("srun: Job 7 to start at ").at_s.has_value());
}

TEST(StartEnvironment, WithoutTheSurroundingJob) {
  const auto made = start_environment({"PATH=/bin", "SLURM_CONF=/c", "SLURM_JOB_ID=7", "SLURM_NNODES=3",
                                       "SLURM_ACCOUNT=a", "SLURM_TIME_FORMAT=relative", "LBF_SERVER=s"});
  EXPECT_THAT(made, testing::UnorderedElementsAre("PATH=/bin", "SLURM_CONF=/c", "SLURM_ACCOUNT=a", "LBF_SERVER=s",
                                                  "SLURM_TIME_FORMAT=%s"));
}

class SrunSource : public testing::Test {
 protected:
  void answer_with(const std::string& script) {
    std::ofstream(program_) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(program_.c_str(), 0755), 0);
  }
  Result<StartAnswer> ask(Seconds patience_s = 20) const {
    return srun_start_source(program_, patience_s)->ask({"-N2", "-n4", "--time=3"});
  }

  lbf::test::TemporaryDirectory directory_;
  const std::string program_ = directory_.path() + "/srun";
};

TEST_F(SrunSource, ItIsAskedWithTheFlags) {
  answer_with("echo \"$@ $SLURM_TIME_FORMAT\" > " + directory_.path() +
              "/asked; echo 'srun: Job 7 to start at 99 using 4 processors on nodes n1 in partition p' >&2");
  const auto answer = ask();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->at_s, 99.0);
  std::ostringstream asked;
  asked << std::ifstream(directory_.path() + "/asked").rdbuf();
  EXPECT_EQ(asked.str(), "-N2 -n4 --time=3 --test-only true %s\n");
}

TEST_F(SrunSource, ARefusalIsAnAnswer) {
  answer_with("echo 'srun: error: Requested node configuration is not available' >&2; exit 1");
  const auto answer = ask();
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->at_s.has_value());
  EXPECT_EQ(answer->why_not, "Requested node configuration is not available");
}

TEST_F(SrunSource, NoSlurmIsAnError) {
  EXPECT_THAT(ask().error().message, HasSubstr("cannot run " + program_));
  answer_with(
      "echo 'srun: error: Unable to allocate resources: Unable to contact slurm controller (connect "
      "failure)' >&2");
  EXPECT_THAT(ask().error().message, HasSubstr("Unable to contact slurm controller"));
  answer_with("echo 'srun: fatal: Could not establish a configuration source' >&2; exit 1");
  EXPECT_THAT(ask().error().message, HasSubstr("Could not establish a configuration source"));
  answer_with("exec sleep 30");
  EXPECT_THAT(ask(0.2).error().message, HasSubstr("is slurmctld up?"));
}

}  // namespace
}  // namespace lbf::advisor::start_source_test