// Skeletons of random programs, compiled with all warnings as errors and run: they end by themselves.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "skeleton/c_program.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/skeleton/random_program.h"

namespace lbf::skeleton_test::mpi_test {
namespace {

test::Outcome run(const std::string& command) {
  return test::run_command(command + " 2>&1");
}

void compile_and_run(std::uint64_t first, std::uint64_t count) {
  const test::TemporaryDirectory directory;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgramOptions options;
    options.ranks = static_cast<Rank>(2 + seed % 4);
    const skeleton::Signature signature = signature_of(random_program(seed, options), {0, 0.05, 0.2});
    const std::uint64_t factor = 1 + seed % 5;
    const Result<std::string> text = c_program(signature, scale(signature, factor), "a random program");
    ASSERT_TRUE(text.ok()) << text.error().message;
    const std::string source = directory.path() + "/skeleton.c";
    const std::string program = directory.path() + "/skeleton";
    std::ofstream(source) << *text;
    const test::Outcome compiled = run("mpicc -std=c99 -Wall -Wextra -Werror " + source + " -o " + program);
    ASSERT_EQ(compiled.status, 0) << compiled.out;
    const test::Outcome ran =
        run("LBF_SKELETON_RATE=1e8 OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun --oversubscribe -n " +
            std::to_string(signature.ranks) + " " + program + " </dev/null");
    ASSERT_EQ(ran.status, 0) << ran.out;
    EXPECT_NE(ran.out.find("skeleton_s="), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("factor=" + std::to_string(factor) + " "), std::string::npos) << ran.out;
  }
}

#ifdef LBF_SKELETON_MANY
TEST(SkeletonRuns, OfManyRandomPrograms) {
  compile_and_run(2000, LBF_SKELETON_MANY);
}
#else
TEST(SkeletonRuns, OfSomeRandomPrograms) {
  compile_and_run(1000, 12);
}

TEST(SkeletonRuns, RefuseAnotherNumberOfRanks) {
  const test::TemporaryDirectory directory;
  EventProgram program(2);
  program.exit();
  const skeleton::Signature signature = signature_of(program);
  const Result<std::string> text = c_program(signature, scale(signature, 1), "nothing");
  ASSERT_TRUE(text.ok());
  std::ofstream(directory.path() + "/s.c") << *text;
  const std::string s = directory.path() + "/s";
  ASSERT_EQ(run("mpicc -Wall -Wextra -Werror " + s + ".c -o " + s).status, 0);
  const test::Outcome ran = run("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 1 " + s);
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.out.find("made for 2 ranks, started with 1"), std::string::npos) << ran.out;
}

#endif

}  // namespace
}  // namespace lbf::skeleton_test::mpi_test