// Scalable skeletons compiled with all warnings as errors, and run with ranks that no run had; some captured
// themselves: what they did is what the application does there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "skeleton/operation_reader.h"
#include "skeleton/scalable_c_program.h"
#include "skeleton/scalable_fit.h"
#include "skeleton/skeleton_trace.h"
#include "tests/support/command.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/skeleton/scalable_programs.h"
#include "tests/unit/skeleton/signature_text.h"
#include "tools/whatif/whatif_trace.h"

namespace lbf::skeleton_test::scalable_mpi_test {
namespace {

namespace fs = std::filesystem;
using skeleton::ProgramTrace;
using skeleton::Signature;

constexpr Rank kMostRanks = 6;  // quick on two cores

const std::string kMpirun =
    "env LBF_SKELETON_RATE=1e8 OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 "
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 90 ";

class CompiledSkeletons : public testing::TestWithParam<ScalableApplication> {
 protected:
  // The program of `name`, made with `factor`.
  std::string compiled(std::uint64_t factor) {
    const ScalableApplication& application = GetParam();
    std::vector<ProgramTrace> traces;
    for (const Rank ranks : application.counts) {
      const EventProgram program = application.make(ranks);
      Result<ProgramTrace> trace = read(program);
      EXPECT_TRUE(trace.ok());
      if (!trace) return {};
      traces.push_back(std::move(*trace));
    }
    const Result<skeleton::ScalableProgram> program = fit_scalable(traces, {});
    EXPECT_TRUE(program.ok()) << (program ? "" : program.error().message);
    if (!program) return {};
    const std::string path = directory_.path() + "/skeleton";
    std::ofstream(path + ".c") << scalable_c_program(*program, factor, "a test");
    const test::Outcome made =
        test::run_command("mpicc -std=c99 -Wall -Wextra -Werror " + path + ".c -o " + path + " 2>&1");
    EXPECT_EQ(made.status, 0) << made.out;
    return made.status == 0 ? path : "";
  }
  test::Outcome run(const std::string& program, Rank ranks, const std::string& before = "") {
    return test::run_command(kMpirun + before + "mpirun --oversubscribe -n " + std::to_string(ranks) + " " +
                             program + " 2>&1 </dev/null");
  }
  test::TemporaryDirectory directory_;
};

TEST_P(CompiledSkeletons, RunWithOtherRankCounts) {
  const std::string program = compiled(7);
  ASSERT_NE(program, "");
  for (const Rank ranks : GetParam().others) {
    if (ranks > kMostRanks) continue;
    const test::Outcome ran = run(program, ranks);
    EXPECT_EQ(ran.status, 0) << ranks << " ranks: " << ran.out;
    EXPECT_NE(ran.out.find("skeleton_s="), std::string::npos) << ran.out;
  }
  const test::Outcome alone = run(program, 1);
  EXPECT_NE(alone.status, 0);
  EXPECT_NE(alone.out.find("started with 1 ranks: the formulas hold for at least 2 ranks"), std::string::npos)
      << alone.out;
}

INSTANTIATE_TEST_SUITE_P(Scalable, CompiledSkeletons, testing::ValuesIn(scalable_applications()),
                         [](const auto& param) { return param.param.name; });

ScalableApplication application_of(const std::string& name) {
  for (const ScalableApplication& each : scalable_applications()) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << name;
  return {};
}

class RefusedRankCounts : public CompiledSkeletons {};

TEST_P(RefusedRankCounts, AreSaid) {
  const std::string program = compiled(1);
  ASSERT_NE(program, "");
  const bool bits = GetParam().name == "doubling";
  const test::Outcome ran = run(program, bits ? 6 : 7);
  EXPECT_NE(ran.status, 0);
  EXPECT_NE(ran.out.find(bits ? "a power of two, as those of the recorded runs" : "each at least 2 long"),
            std::string::npos)
      << ran.out;
}

INSTANTIATE_TEST_SUITE_P(Scalable, RefusedRankCounts,
                         testing::Values(application_of("doubling"), application_of("stencil_2d")),
                         [](const auto& param) { return param.param.name; });

#ifdef LBF_RUN

class CapturedSkeletons : public CompiledSkeletons {
 protected:
  // What the skeleton itself did with so many ranks, without the frame around it. Without ranks where the
  // test failed.
  ProgramTrace captured(const std::string& program, Rank ranks) {
    const std::string folder = directory_.path() + "/captured";
    const test::Outcome ran = run(program, ranks, LBF_RUN " --dir " + folder + " --quiet --overhead 100 -- ");
    EXPECT_EQ(ran.status, 0) << ran.out;
    std::string stored;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".lbfw") stored = entry.path().parent_path().string();
    }
    EXPECT_NE(stored, "") << ran.out;
    if (stored.empty()) return {};
    Result<std::unique_ptr<tools::WhatIfTrace>> opened = tools::open_trace(stored, "");
    EXPECT_TRUE(opened.ok()) << (opened ? "" : opened.error().message);
    if (!opened) return {};
    skeleton::OperationReader reader((*opened)->ranks());
    const auto add = [&](Rank rank, const Event& event) { return reader.add(rank, event); };
    const Result<void> done = (*opened)->read(one_by_one(add), [](double) {});
    EXPECT_TRUE(done.ok()) << (done ? "" : done.error().message);
    Result<ProgramTrace> trace = reader.finish();
    EXPECT_TRUE(trace.ok()) << (trace ? "" : trace.error().message);
    if (!trace) return {};
    const Result<void> bare = take_off_frame(*trace);
    EXPECT_TRUE(bare.ok()) << (bare ? "" : bare.error().message);
    return std::move(*trace);
  }
};

TEST_P(CapturedSkeletons, DoWhatTheApplicationDoesThere) {
  const std::string program = compiled(1);
  ASSERT_NE(program, "");
  const Rank ranks = GetParam().others.front() < 3 ? GetParam().others[1] : GetParam().others.front();
  ProgramTrace trace = captured(program, ranks);
  ASSERT_FALSE(HasFailure());
  const Result<Signature> got = make_signature(std::move(trace), {0, 0, 0});
  ASSERT_TRUE(got.ok()) << got.error().message;
  const Signature wanted = signature_of(GetParam().make(ranks), {0, 0, 0});
  EXPECT_EQ(difference(exchanges_of(*got, Seen::kCaptured), exchanges_of(wanted, Seen::kCaptured)), "");
}

INSTANTIATE_TEST_SUITE_P(Scalable, CapturedSkeletons,
                         testing::Values(application_of("ring"), application_of("chain"),
                                         application_of("stencil_2d_around"), application_of("tree"),
                                         application_of("collectives"), application_of("matrix"),
                                         application_of("master"), application_of("doubling"),
                                         application_of("nested"), application_of("overlapped")),
                         [](const auto& param) { return param.param.name; });

class DividedSkeletons : public CapturedSkeletons {};

// 10 outer iterations by K = 7: one whole, of 10 inner ones, and one divided by 7/3; of its 10 inner ones
// 30/7 are left: 4 whole, and one divided by 7/2.
TEST_P(DividedSkeletons, HaveOneIterationForTheRestOfEachLoop) {
  const std::string program = compiled(7);
  ASSERT_NE(program, "");
  const ProgramTrace trace = captured(program, 3);
  ASSERT_FALSE(HasFailure());
  ASSERT_EQ(trace.ranks.size(), 3u);
  for (const std::vector<skeleton::Operation>& operations : trace.ranks) {
    std::vector<Bytes> sent;
    int allreduces = 0;
    for (const skeleton::Operation& each : operations) {
      if (each.kind == skeleton::OperationKind::kSend) sent.push_back(each.bytes);
      allreduces += each.kind == skeleton::OperationKind::kCollective && each.op == CollectiveOp::kAllreduce;
    }
    std::vector<Bytes> wanted(14, 8192);
    wanted.push_back(2340);  // 8192 * 2 / 7
    EXPECT_EQ(sent, wanted);
    EXPECT_EQ(allreduces, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Scalable, DividedSkeletons, testing::Values(application_of("nested")),
                         [](const auto& param) { return param.param.name; });

#endif

}  // namespace
}  // namespace lbf::skeleton_test::scalable_mpi_test