// StepRun without a daemon: placements' names, and that the order of streams does not matter.
#include "predictor/serve/step_run.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/ingest/batches.h"
#include "tests/unit/ingest/temporary_directory.h"
#include "tests/unit/serve/daemon_fixture.h"

namespace lbf {
namespace {

TEST(PlacementName, FindsTheNameWhereThereIsOne) {
  EXPECT_EQ(placement_name({0, 0, 1, 1}, 2), "block");
  EXPECT_EQ(placement_name({0, 1, 0, 1}, 2), "cyclic");
  EXPECT_EQ(placement_name({0, 0, 1, 1, 0, 0, 1, 1}, 2), "plane=2");
  EXPECT_EQ(placement_name({0, 1, 1, 0}, 2), "map=0,1,1,0");
  EXPECT_EQ(placement_name({0, 0, 0}, 1), "block");
}

class StepRunTest : public testing::Test {
 protected:
  // Stores the program's batches in the order of `streams`, working in between, to the end.
  std::shared_ptr<const StepView> run(const test::RingProgram& program,
                                      const std::vector<std::uint32_t>& streams, const std::string& name,
                                      StepRunOptions options = {}) {
    const auto describe = [&](std::uint32_t node) {
      return StepDescription::parse(program.description(node, 7).dump()).value();
    };
    auto trace =
        std::move(StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/" + name, describe(0), 1)).value();
    for (std::uint32_t node = 0; node < program.ranks_of_node.size(); ++node) {
      EXPECT_TRUE(trace->register_stream(describe(node)).ok());
    }
    auto catalog = NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    StepRun step(trace, *catalog, options);
    std::vector<std::uint64_t> next(program.ranks_of_node.size(), 1);
    for (const std::uint32_t node : streams) {
      const auto batches = program.batches_of(node);
      EXPECT_TRUE(trace->append(node, next[node], test::bytes_of(batches[next[node] - 1])).ok());
      ++next[node];
      while (step.work() == StepRun::Progress::kMore) {
      }
    }
    for (std::uint32_t node = 0; node < next.size(); ++node) {
      StepRun::Progress progress = StepRun::Progress::kMore;
      while (progress == StepRun::Progress::kMore) progress = step.work();
      EXPECT_EQ(progress, StepRun::Progress::kIdle);
      EXPECT_TRUE(trace->end_stream(node, {next[node] - 1, 0, "step_end", 0}).ok());
    }
    StepRun::Progress progress = StepRun::Progress::kMore;
    while (progress == StepRun::Progress::kMore) progress = step.work();
    EXPECT_EQ(progress, StepRun::Progress::kFinished);
    return step.view();
  }

  test::TemporaryDirectory directory_;
};

TEST_F(StepRunTest, TheOrderOfStreamsDoesNotMatter) {
  const test::RingProgram program;
  const auto one = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "one");
  const auto two = run(program, {1, 1, 0, 1, 0, 0, 1, 0}, "two");
  EXPECT_EQ(one->record.state, db::StepState::kComplete) << one->record.why_partial;
  ASSERT_EQ(one->predictions.size(), two->predictions.size());
  ASSERT_FALSE(one->predictions.empty());
  for (std::size_t i = 0; i < one->predictions.size(); ++i) {
    EXPECT_EQ(one->predictions[i].rank_finish_s, two->predictions[i].rank_finish_s);
  }
}

// With a tiny limit a stream that is ahead waits on disk, and everything still comes out.
TEST_F(StepRunTest, AStreamThatIsAheadWaitsForTheOthers) {
  StepRunOptions options;
  options.events_in_flight_limit = 1;
  const test::RingProgram program;
  const auto limited = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "limited", options);
  const auto free = run(program, {0, 0, 0, 0, 1, 1, 1, 1}, "free");
  EXPECT_EQ(limited->record.state, db::StepState::kComplete) << limited->record.why_partial;
  EXPECT_EQ(limited->record.events, free->record.events);
  EXPECT_EQ(limited->predictions.at(0).predicted_s, free->predictions.at(0).predicted_s);
}

}  // namespace
}  // namespace lbf
