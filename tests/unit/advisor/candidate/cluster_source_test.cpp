// Slurm as a source, with a program in its inventory's place.
#include "advisor/candidate/cluster_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temporary_directory.h"

namespace lbf::advisor::cluster_source_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SlurmSource : public testing::Test {
 protected:
  void answer_with(const std::string& script) {
    std::ofstream(program_) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(program_.c_str(), 0755), 0);
  }
  Result<Cluster> read(Seconds cache_for_s) const { return slurm_cluster({program_, cache_, cache_for_s})->read(); }

  lbf::test::TemporaryDirectory directory_;
  const std::string program_ = directory_.path() + "/inventory";
  const std::string cache_ = directory_.path() + "/deep/cache.json";
  const std::string one_node_ = R"(echo '{"lbf_cluster":1,"node":[{"name":"a1"}]}')";
  const std::string two_nodes_ = R"(echo '{"lbf_cluster":1,"node":[{"name":"a[1-2]"}]}')";
};

TEST_F(SlurmSource, AsksOnceAndThenLooksIntoTheCache) {
  answer_with(one_node_);
  Result<Cluster> cluster = read(600);
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster->nodes.size(), 1U);
  EXPECT_EQ(cluster->source, "Slurm");
  answer_with(two_nodes_);
  cluster = read(600);
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster->nodes.size(), 1U) << "the cache is young";
  EXPECT_EQ(cluster->source, "Slurm (as it was less than a minute ago; --refresh asks now)");
  cluster = read(0);
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster->nodes.size(), 2U) << "no cache is young enough";
}

TEST_F(SlurmSource, ABrokenCacheIsNoWorseThanNone) {
  answer_with(one_node_);
  ASSERT_TRUE(read(600).ok());
  std::ofstream(cache_) << "{";
  const Result<Cluster> cluster = read(600);
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster->nodes.size(), 1U);
}

TEST_F(SlurmSource, WhatSlurmsLibrarySaysAtItsEndIsTheReason) {
  answer_with("echo warning >&2; echo 'fatal: no configuration source' >&2; exit 1");
  const Result<Cluster> cluster = read(600);
  ASSERT_FALSE(cluster.ok());
  EXPECT_EQ(cluster.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(cluster.error().message, AllOf(HasSubstr("fatal: no configuration source"), HasSubstr("--cluster FILE"),
                                             Not(HasSubstr("warning"))));
  answer_with("kill -ALRM $$");
  EXPECT_THAT(read(600).error().message, HasSubstr("did not answer in time"));
}

TEST_F(SlurmSource, NoInventoryProgram) {
  EXPECT_THAT(read(600).error().message, AllOf(HasSubstr("cannot run"), HasSubstr("--cluster FILE")));
}

}  // namespace
}  // namespace lbf::advisor::cluster_source_test