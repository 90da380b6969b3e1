// A few hundred random programs: what their skeletons execute gives the signature that they were made from,
// scaled. tests/unit/skeleton/mpi_test.cpp compiles and runs some of them.
#include "tests/unit/skeleton/random_program.h"

#include <gtest/gtest.h>

#include <map>

#include "skeleton/loop_folder.h"
#include "tests/unit/skeleton/signature_text.h"

namespace lbf::skeleton_test::random_program_test {
namespace {

using skeleton::ScaledSignature;
using skeleton::Signature;

class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, ExecuteTheirScaledSignature) {
  constexpr int kEach = 40;
  for (int i = 0; i < kEach; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam() * kEach + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const EventProgram program = random_program(seed);
    const Signature signature = signature_of(program, {0, 0, 0});
    // The signature stands for every operation of the trace.
    std::map<std::uint32_t, std::uint64_t> counts;
    count_symbols(signature.bodies, signature.elements, 1, counts);
    std::uint64_t operations = 0;
    for (const auto& [symbol, times] : counts) {
      EXPECT_EQ(times, signature.exchanges[symbol].occurrences);
      operations += times * signature.exchanges[symbol].operations.size();
    }
    EXPECT_EQ(operations, signature.trace_length);
    for (const std::uint64_t factor : {1u, 3u, 7u, 1000u}) {
      SCOPED_TRACE("K = " + std::to_string(factor));
      const ScaledSignature scaled = scale(signature, factor);
      const Signature again = signature_of(executed(signature, scaled), {0, 0, 0});
      EXPECT_EQ(difference(exchanges_of(again), exchanges_of(signature, scaled)), "");
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, 8));

}  // namespace
}  // namespace lbf::skeleton_test::random_program_test