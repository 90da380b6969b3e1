// What a ring says of how its process was started.
#include "spank_plugin/capture/origin.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace lbf::capture::origin_test {
namespace {

TEST(Origin, HasTheLaunchersWordsOnly) {
  ::setenv("PMIX_NAMESPACE", "prterun-n1-12@1", 1);
  ::setenv("SLURM_STEP_ID", "3", 1);
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  ::unsetenv("MPI_LOCALNRANKS");
  Origin origin;
  read_origin(origin);
  const std::string expected("PMIX_NAMESPACE=prterun-n1-12@1\0SLURM_STEP_ID=3\0\0", 50);
  EXPECT_EQ(std::string(origin.launch, expected.size()), expected);
}

TEST(Origin, AWordThatDoesNotFitIsLeftOut) {
  ::setenv("PMIX_NAMESPACE", std::string(40, 'x').c_str(), 1);
  ::setenv("SLURM_STEP_ID", "3", 1);
  constexpr const char* kNames[] = {"PMIX_NAMESPACE", "SLURM_STEP_ID"};
  char words[20] = {};
  copy_variables(kNames, 2, words, sizeof(words));
  EXPECT_STREQ(words, "SLURM_STEP_ID=3");
}

TEST(Origin, RanksOfTheNodeAreTheLaunchersOrSlurms) {
  ::unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  ::unsetenv("MPI_LOCALNRANKS");
  ::unsetenv("LBF_CAPTURE_RANKS");
  EXPECT_GE(ranks_on_node(), 1U);
  ::setenv("LBF_CAPTURE_RANKS", "12", 1);
  EXPECT_EQ(ranks_on_node(), 12U);
  ::setenv("MPI_LOCALNRANKS", "4", 1);
  EXPECT_EQ(ranks_on_node(), 4U);
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "0", 1);
  EXPECT_EQ(ranks_on_node(), 4U);
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
  EXPECT_EQ(ranks_on_node(), 2U);
}

}  // namespace
}  // namespace lbf::capture::origin_test
