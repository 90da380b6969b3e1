// Skeletons of random programs, compiled, run and captured themselves (lbf-run): they give the signature that
// they were made from, scaled.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "skeleton/c_program.h"
#include "skeleton/operation_reader.h"
#include "skeleton/skeleton_trace.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/skeleton/random_program.h"
#include "tests/unit/skeleton/signature_text.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::skeleton_test::capture_test {
namespace {

namespace fs = std::filesystem;
using skeleton::ProgramTrace;
using skeleton::Signature;

test::Outcome run(const std::string& command) {
  return test::run_command(command + " 2>&1");
}

std::string stored_trace_below(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".lbfw") return entry.path().parent_path().string();
  }
  return {};
}

Result<ProgramTrace> read_trace(const std::string& path) {
  Result<std::unique_ptr<tools::WhatIfTrace>> trace = tools::open_trace(path, "");
  if (!trace) return trace.error();
  skeleton::OperationReader reader((*trace)->ranks());
  const auto add = [&](Rank rank, const Event& event) { return reader.add(rank, event); };
  if (Result<void> read = (*trace)->read(one_by_one(add), [](double) {}); !read) return read.error();
  return reader.finish();
}

void capture_and_compare(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::TemporaryDirectory directory;
    RandomProgramOptions options;
    options.ranks = static_cast<Rank>(2 + seed % 4);
    const Signature signature = signature_of(random_program(seed, options), {0, 0, 0});
    const std::uint64_t factor = 1 + seed % 5;
    const skeleton::ScaledSignature scaled = scale(signature, factor);
    const Result<std::string> text = c_program(signature, scaled, "a random program");
    ASSERT_TRUE(text.ok()) << text.error().message;
    const std::string program = directory.path() + "/skeleton";
    std::ofstream(program + ".c") << *text;
    const test::Outcome compiled = run("mpicc -std=c99 -Wall -Wextra -Werror " + program + ".c -o " + program);
    ASSERT_EQ(compiled.status, 0) << compiled.out;
    const test::Outcome ran =
        run("env LBF_SKELETON_RATE=1e8 OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 90 " LBF_RUN " --dir " +
            directory.path() + "/captured --quiet --overhead 100 -- mpirun --oversubscribe -n " +
            std::to_string(signature.ranks) + " " + program);
    ASSERT_EQ(ran.status, 0) << ran.out;
    const std::string stored = stored_trace_below(directory.path() + "/captured");
    ASSERT_NE(stored, "") << ran.out;
    Result<ProgramTrace> trace = read_trace(stored);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    const Result<void> bare = take_off_frame(*trace);
    ASSERT_TRUE(bare.ok()) << bare.error().message;
    const Result<Signature> again = make_signature(std::move(*trace), {0, 0, 0});
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(difference(exchanges_of(*again, Seen::kCaptured), exchanges_of(signature, scaled, Seen::kCaptured)), "");
  }
}

#ifdef LBF_SKELETON_MANY
TEST(CapturedSkeletons, GiveTheSignatureOfManyRandomPrograms) {
  capture_and_compare(2000, LBF_SKELETON_MANY);
}
#else
TEST(CapturedSkeletons, GiveTheSignatureTheyWereMadeFrom) {
  capture_and_compare(1000, 6);
}
TEST(CapturedSkeletons, GiveTheSignatureTheyWereMadeFromOnceMore) {
  capture_and_compare(1006, 6);
}
#endif

}  // namespace
}  // namespace lbf::skeleton_test::capture_test