// What a skeleton says of itself, shares of time, and the frame that is taken off a skeleton's trace.
#include "skeleton/activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skeleton/about.h"
#include "skeleton/c_program.h"
#include "skeleton/skeleton_trace.h"
#include "tests/unit/skeleton/event_program.h"

namespace lbf::skeleton_test::activity_test {
namespace {

using skeleton::About;
using skeleton::Activities;
using skeleton::ActivityRow;
using skeleton::ProgramTrace;
using testing::HasSubstr;

ProgramTrace trace_of(const EventProgram& program) {
  Result<ProgramTrace> trace = read(program);
  EXPECT_TRUE(trace.ok()) << trace.error().message;
  return std::move(*trace);
}

TEST(About, IsInTheSourceAndFoundAgain) {
  EventProgram program(3);
  program.all(CollectiveOp::kBarrier, 0, 0, 0.5);
  program.exit();
  const skeleton::Signature signature = signature_of(program);
  const Result<std::string> text = c_program(signature, scale(signature, 7), "nothing");
  ASSERT_TRUE(text.ok());
  const Result<About> about = skeleton::find_about(*text);
  ASSERT_TRUE(about.ok()) << about.error().message;
  EXPECT_EQ(about->ranks, 3);
  EXPECT_EQ(about->factor, 7u);
  EXPECT_DOUBLE_EQ(about->application_s, 0.5);
  // Another program has another id.
  const Result<std::string> other = c_program(signature, scale(signature, 8), "nothing");
  EXPECT_NE(skeleton::find_about(*other)->id, about->id);
}

TEST(About, RefusesWhatIsNoSkeleton) {
  EXPECT_FALSE(skeleton::find_about("int main(void) { return 0; }").ok());
  const std::string text = skeleton::about_text({4, 10, 12.5, "0a1b2c3d"});
  EXPECT_TRUE(skeleton::find_about("x" + text + "y").ok());
  for (const char* const damaged :
       {"ranks=-1 factor=1 application_s=1 id=00000000", "ranks=4 factor=0 application_s=1 id=00000000",
        "ranks=4 factor=", "ranks=4 factor=1 application_s=-1 id=00000000"}) {
    EXPECT_FALSE(skeleton::find_about(std::string("@(#)lbf-skeleton 1 ") + damaged).ok()) << damaged;
  }
  EXPECT_EQ(skeleton::read_about("/nonexistent/skel.c").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(skeleton::read_about("/").error().message, HasSubstr("a folder"));
}

// Two ranks: 3 s of computation in all, a send of 0.25 s, a receive of 0.75 s, a barrier of 1 s on each rank.
EventProgram exchange() {
  EventProgram program(2);
  program.send(0, 1, 8, 0, 1.0);
  program.recv(1, 0, 8, 0, 2.0);
  program.all(CollectiveOp::kBarrier, 0);
  program.exit();
  program.events[0][0].call_s = 0.25;
  program.events[1][0].call_s = 0.75;
  program.events[0][1].call_s = program.events[1][1].call_s = 1.0;
  return program;
}

TEST(Activity, SumsOverAllRanks) {
  const Activities all = activities_of(trace_of(exchange()));
  EXPECT_NEAR(all.computation_s, 3, 1e-6);
  EXPECT_NEAR(all.calls.at("MPI_Send").seconds, 0.25, 1e-6);
  EXPECT_NEAR(all.calls.at("MPI_Recv").seconds, 0.75, 1e-6);
  EXPECT_NEAR(all.calls.at("MPI_Barrier").seconds, 2, 1e-6);
  EXPECT_EQ(all.calls.at("MPI_Barrier").count, 2u);
  EXPECT_NEAR(all.total_s(), 6, 1e-6);
}

TEST(Activity, ComparedAsSharesWithSmallCallsInOneRow) {
  Activities application;
  application.computation_s = 60;
  application.calls = {{"MPI_Send", {30, 1}}, {"MPI_Recv", {9.5, 1}}, {"MPI_Bcast", {0.5, 1}}};
  Activities skeleton;
  skeleton.computation_s = 5;
  skeleton.calls = {{"MPI_Send", {2, 1}}, {"MPI_Recv", {3, 1}}};
  const std::vector<ActivityRow> rows = skeleton::compare_activities({application, skeleton}, 1);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].name, "computation");
  EXPECT_THAT(rows[0].percent, testing::ElementsAre(60, 50));
  EXPECT_EQ(rows[1].name, "MPI_Send");
  EXPECT_EQ(rows[2].name, "MPI_Recv");
  EXPECT_THAT(rows[2].percent, testing::ElementsAre(9.5, 30));
  EXPECT_EQ(rows[3].name, "other calls");
  EXPECT_THAT(rows[3].percent, testing::ElementsAre(0.5, 0));
  Activities idle = application;
  idle.idle_s = 100;
  EXPECT_EQ(skeleton::compare_activities({application, idle}, 1)[1].name, "idle");
}

TEST(SkeletonTrace, LosesWhatMainDoesAroundIt) {
  EventProgram program(2);
  program.all(CollectiveOp::kCommCreate, 8, 0, 1.0);
  program.all(CollectiveOp::kBarrier, 0, 0, 3.0);  // behind the calibration
  program.all(CollectiveOp::kAllreduce, 16, 0, 0.5);
  program.all(CollectiveOp::kReduce, 8, 0, 0.25);
  program.all(CollectiveOp::kReduce, 8);
  program.exit(0.125);
  ProgramTrace trace = trace_of(program);
  const Result<void> taken = skeleton::take_off_frame(trace);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  ASSERT_EQ(trace.ranks[1].size(), 2u);
  EXPECT_EQ(trace.ranks[1][0].op, CollectiveOp::kAllreduce);
  EXPECT_EQ(trace.ranks[1][1].kind, skeleton::OperationKind::kEnd);
  EXPECT_NEAR(activities_of(trace).computation_s, 2 * 0.75, 1e-6);
}

TEST(SkeletonTrace, RefusesOtherPrograms) {
  ProgramTrace trace = trace_of(exchange());
  EXPECT_THAT(skeleton::take_off_frame(trace).error().message,
              HasSubstr("rank 0 does not begin and end as a skeleton"));
  EventProgram bare(1);
  bare.all(CollectiveOp::kBarrier, 0);
  bare.exit();
  ProgramTrace no_end = trace_of(bare);
  EXPECT_FALSE(skeleton::take_off_frame(no_end).ok());
}

TEST(Operations, RefuseTracesWithLostWindows) {
  for (const EventKind kind : {EventKind::kWindowClose, EventKind::kSkipped}) {
    EventProgram program(1);
    Event event;
    event.kind = kind;
    program.event(0, event);
    program.exit();
    const Result<ProgramTrace> trace = read(program);
    ASSERT_FALSE(trace.ok());
    EXPECT_THAT(trace.error().message, HasSubstr("lost windows"));
    EXPECT_THAT(trace.error().message, HasSubstr("--lbf-overhead"));
  }
}

TEST(Operations, InputAndOutputAreIdleTime) {
  EventProgram program(1);
  Event event;
  event.kind = EventKind::kIo;
  event.call_s = 0.5;
  program.event(0, event);
  event.kind = EventKind::kOneSided;
  event.peer = 0;
  program.event(0, event);
  program.exit();
  const ProgramTrace trace = trace_of(program);
  EXPECT_NEAR(trace.unmodelled_s, 1, 1e-9);
  EXPECT_NEAR(trace.ranks[0].back().idle_s, 1, 1e-6);
}

}  // namespace
}  // namespace lbf::skeleton_test::activity_test