// Scalable skeletons: recorded at two rank counts, they do at others what the application does there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skeleton/rank_formula.h"
#include "skeleton/rank_law.h"
#include "skeleton/scalable_fit.h"
#include "tests/unit/skeleton/scalable_programs.h"
#include "tests/unit/skeleton/signature_text.h"

namespace lbf::skeleton_test::scalable_test {
namespace {

using skeleton::Geometry;
using skeleton::LawSample;
using skeleton::RankLaw;
using skeleton::ScalableProgram;
using skeleton::Signature;
using testing::HasSubstr;

Result<ScalableProgram> fit(const std::vector<EventProgram>& programs, double time_tolerance = 0.05) {
  std::vector<skeleton::ProgramTrace> traces;
  for (const EventProgram& program : programs) {
    Result<skeleton::ProgramTrace> trace = read(program);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  skeleton::ScalableOptions options;
  options.time_tolerance = time_tolerance;
  return fit_scalable(traces, options);
}

// The program's signature at so many ranks, by its formulas.
Result<Signature> signature_at(const ScalableProgram& program, Rank ranks) {
  Result<skeleton::ProgramTrace> trace = expand(program, ranks);
  if (!trace) return trace.error();
  return make_signature(std::move(*trace), {0, 0, 0});
}

void expect_same(const ScalableApplication& application, const ScalableProgram& program, Rank ranks) {
  SCOPED_TRACE(application.name + " with " + std::to_string(ranks));
  const Result<Signature> got = signature_at(program, ranks);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const Signature wanted = signature_of(application.make(ranks), {0, 0, 0});
  EXPECT_EQ(difference(exchanges_of(*got, Seen::kCaptured), exchanges_of(wanted, Seen::kCaptured)), "");
}

std::vector<EventProgram> recorded_runs(const ScalableApplication& application) {
  std::vector<EventProgram> recorded;
  recorded.reserve(application.counts.size());  // their events point into them
  for (const Rank ranks : application.counts) recorded.push_back(application.make(ranks));
  return recorded;
}

class Applications : public testing::TestWithParam<ScalableApplication> {};

TEST_P(Applications, AreFollowedToOtherRankCounts) {
  const ScalableApplication& application = GetParam();
  const std::vector<EventProgram> recorded = recorded_runs(application);
  const Result<ScalableProgram> program = fit(recorded);
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(program->counts, application.counts);
  for (const Rank ranks : application.counts) expect_same(application, *program, ranks);
  for (const Rank ranks : application.others) expect_same(application, *program, ranks);
}

INSTANTIATE_TEST_SUITE_P(Scalable, Applications, testing::ValuesIn(scalable_applications()),
                         [](const auto& param) { return param.param.name; });

// --- refusals

std::string refusal(const std::vector<EventProgram>& programs) {
  const Result<ScalableProgram> program = fit(programs);
  return program ? "" : program.error().message;
}

TEST(ScalableRefuses, OneRankCount) {
  EXPECT_THAT(refusal({ring(4)}), HasSubstr("needs runs at two or more rank counts"));
  EXPECT_THAT(refusal({ring(4), ring(4)}), HasSubstr("two of the runs had 4 ranks"));
}

TEST(ScalableRefuses, PeersWithoutAFormula) {
  const auto make = [](const std::vector<Rank>& to) {
    EventProgram program(static_cast<Rank>(to.size()));
    for (int i = 0; i < 20; ++i) {
      for (Rank r = 0; r < program.ranks(); ++r) {
        program.isend(r, to[static_cast<std::size_t>(r)], 8, 1);
        program.irecv(r, kAnyRank, 2);
      }
      for (Rank r = 0; r < program.ranks(); ++r) {
        const auto from = std::find(to.begin(), to.end(), r) - to.begin();
        program.end_recv(r, static_cast<Rank>(from), 8, 2);
        program.wait(r, 1, false);
      }
    }
    program.exit();
    return program;
  };
  EXPECT_THAT(refusal({make({2, 3, 1, 0}), make({3, 0, 4, 1, 2})}),
              HasSubstr("no formula of rank and rank count"));
}

TEST(ScalableRefuses, SizesWithoutALaw) {
  EXPECT_THAT(refusal({ring_of(3, 1000, 20, 0), ring_of(5, 1234, 20, 0)}),
              testing::AllOf(HasSubstr("sizes follow no law"), HasSubstr("1000 with 3, 1234 with 5")));
}

TEST(ScalableRefuses, SizesThatDifferBetweenRanks) {
  const auto make = [](Rank p) {
    EventProgram program(p);
    for (int i = 0; i < 20; ++i) {
      for (Rank r = 0; r < p; ++r) program.isend(r, (r + 1) % p, r == 0 ? 100 : 900, 1);
      for (Rank r = 0; r < p; ++r) program.recv(r, (r + p - 1) % p, r == 1 ? 100 : 900), program.wait(r, 1);
    }
    program.exit();
    return program;
  };
  EXPECT_THAT(refusal({make(3), make(4)}), HasSubstr("its sizes differ between ranks"));
}

TEST(ScalableRefuses, LoopsWithoutALaw) {
  EXPECT_THAT(
      refusal({ring_of(3, 8, 70, 0), ring_of(5, 8, 83, 0)}),
      testing::AllOf(HasSubstr("iterations of a loop follow no law"), HasSubstr("70 with 3, 83 with 5")));
}

TEST(ScalableRefuses, ComputationWithoutALaw) {
  EXPECT_THAT(refusal({ring_of(4, 8, 20, 1e-3), ring_of(8, 8, 20, 1.2e-3)}),
              testing::AllOf(HasSubstr("computation before MPI_"), HasSubstr("follows no law")));
  // More is allowed where it is asked for.
  EXPECT_TRUE(fit({ring_of(4, 8, 20, 1e-3), ring_of(8, 8, 20, 1.2e-3)}, 0.2).ok());
}

TEST(ScalableRefuses, RequestsUnderWay) {
  const auto make = [](Rank p) {
    EventProgram program(p);
    for (Rank r = 0; r < p; ++r) {
      program.irecv(r, (r + 1) % p, 10);
      for (std::uint32_t i = 0; i < 400; ++i) {
        if (i < 399) program.irecv(r, (r + 1) % p, 11 + i);
        program.send(r, (r + p - 1) % p, 8);
        program.end_recv(r, (r + 1) % p, 8, 10 + i);
      }
    }
    program.exit();
    return program;
  };
  EXPECT_THAT(refusal({make(3), make(5)}), HasSubstr("under way"));
}

TEST(ScalableRefuses, RankCountsForWhichItsFormulasDoNotHold) {
  const auto& all = scalable_applications();
  const auto program_of = [&](const std::string& name) {
    const auto app = std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name == name; });
    return fit(recorded_runs(*app));
  };
  const Result<ScalableProgram> doubling = program_of("doubling");
  ASSERT_TRUE(doubling.ok());
  const Result<void> six = check_ranks(*doubling, 6);
  ASSERT_FALSE(six.ok());
  EXPECT_THAT(six.error().message, HasSubstr("6 ranks: no power of two"));
  const Result<ScalableProgram> grid = program_of("stencil_2d");
  ASSERT_TRUE(grid.ok());
  const Result<void> seven = check_ranks(*grid, 7);
  ASSERT_FALSE(seven.ok());
  EXPECT_THAT(seven.error().message, HasSubstr("each at least 2 long"));
}

TEST(Scalable, SaysWhatTwoRankCountsDoNotTell) {
  // 2 x 2 and 4 x 2: two columns, or the most alike factors?
  const auto& all = scalable_applications();
  const auto app = std::find_if(all.begin(), all.end(), [](const auto& a) { return a.name == "stencil_2d"; });
  const Result<ScalableProgram> program = fit({app->make(4), app->make(8)});
  ASSERT_TRUE(program.ok()) << program.error().message;
  ASSERT_FALSE(program->warnings.empty());
  EXPECT_THAT(program->warnings[0], HasSubstr("a run at another rank count would tell"));
  // A third run tells.
  const Result<ScalableProgram> three = fit({app->make(4), app->make(8), app->make(9)});
  ASSERT_TRUE(three.ok()) << three.error().message;
  EXPECT_TRUE(three->warnings.empty()) << three->warnings[0];
}

TEST(Scalable, SaysWhichLawsTwoRankCountsDoNotTell) {
  // 3 x 2 and 3 x 3: 1 / p, or 1 / columns?
  const auto& all = scalable_applications();
  const auto app = std::find_if(all.begin(), all.end(), [](const auto& a) { return a.name == "stencil_2d"; });
  const Result<ScalableProgram> program = fit({app->make(6), app->make(9)});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_THAT(program->warnings,
              testing::Contains(HasSubstr("the sizes of MPI_Isend fit 17280 / ranks (taken) and also")));
}

TEST(Scalable, ComputationIsALawOfTheRankCount) {
  // A chain's ends have no neighbour on one side; their computation lies before the other's message.
  const auto& all = scalable_applications();
  const auto app = std::find_if(all.begin(), all.end(), [](const auto& a) { return a.name == "chain"; });
  const Result<ScalableProgram> program = fit({app->make(3), app->make(4)});
  ASSERT_TRUE(program.ok()) << program.error().message;
  const skeleton::ScalablePart* loop = nullptr;
  for (const auto& part : program->parts) loop = part.is_loop ? &part : loop;
  ASSERT_NE(loop, nullptr);
  double at_ten_s = 0;
  for (const auto& block : loop->body[0].phase.blocks) {
    for (const auto& term : block.terms) at_ten_s += evaluate(term.computation_s, {0, 10, {1, 1, 1}, 0});
  }
  EXPECT_NEAR(at_ten_s, 8e-3 / 10, 8e-6);
}

// --- laws

RankLaw law_of(const std::vector<std::pair<Rank, double>>& values, bool& found) {
  std::vector<LawSample> samples;
  for (const auto& [ranks, value] : values) samples.push_back({{0, ranks, {1, 1, 1}, 0}, value});
  const std::optional<RankLaw> law = fit_law(samples, Geometry{}, {8, 0});
  found = law.has_value();
  return law.value_or(RankLaw{});
}

TEST(RankLaws, AreTheSimplestThatHold) {
  bool found = false;
  EXPECT_EQ(law_of({{4, 100}, {8, 100}}, found).basis, RankLaw::Basis::kOne);
  EXPECT_EQ(law_of({{4, 100}, {8, 50}}, found).basis, RankLaw::Basis::kInverse);
  EXPECT_EQ(law_of({{4, 100}, {8, 200}}, found).basis, RankLaw::Basis::kLinear);
  EXPECT_EQ(law_of({{4, 100}, {8, 150}}, found).basis, RankLaw::Basis::kLog2);
  EXPECT_EQ(law_of({{4, 100}, {16, 50}}, found).basis, RankLaw::Basis::kInverseRoot);
  law_of({{4, 100}, {8, 117}}, found);
  EXPECT_FALSE(found);
  // A share of 1,000 elements of 8 bytes is rounded up.
  EXPECT_EQ(law_of({{3, 2672}, {7, 1144}}, found).basis, RankLaw::Basis::kInverse);
  // From three rank counts on with an offset.
  const RankLaw law = law_of({{2, 70}, {4, 120}, {8, 220}}, found);
  ASSERT_TRUE(found);
  EXPECT_NEAR(law.offset, 20, 1e-6);
  EXPECT_NEAR(law.factor, 25, 1e-6);
}

TEST(RankFormulas, BalancedGridsAreThoseOfMpiDimsCreate) {
  const auto shape = [](Rank ranks, int dims) {
    return skeleton::shape_of({Geometry::Kind::kBalanced, dims, 0}, ranks);
  };
  EXPECT_EQ(shape(12, 2), (skeleton::Shape{4, 3, 1}));
  EXPECT_EQ(shape(24, 3), (skeleton::Shape{4, 3, 2}));
  EXPECT_EQ(shape(64, 3), (skeleton::Shape{4, 4, 4}));
  EXPECT_FALSE(shape(7, 2).has_value());
  EXPECT_FALSE(shape(14, 3).has_value());
}

}  // namespace
}  // namespace lbf::skeleton_test::scalable_test