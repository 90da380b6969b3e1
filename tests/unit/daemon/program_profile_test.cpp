// Which programs a step has, as its processes say.
#include "predictor/daemon/steps/program_profile.h"

#include <gtest/gtest.h>

namespace lbf::program_profile_test {
namespace {

protocol::ProcessRecord process(const std::string& executable, const std::string& script = "") {
  protocol::ProcessRecord record;
  record.executable = executable;
  record.script = script;
  record.build_id = "gnu:" + executable;
  return record;
}

std::string name_of(const daemon::ProgramProfile& profile) {
  const auto run = profile.run({}, 4, 1.0, {});
  return run ? run->name : "";
}

// mpirun -n 2 ./solver : -n 1 ./analysis : -n 1 python3 viewer.py; processes come in any order.
TEST(ProgramProfile, AllProgramsAreNamedInTheOrderOfTheirRanks) {
  daemon::ProgramProfile profile;
  profile.take_process(3, process("/usr/bin/python3", "viewer.py:12-aa"));
  profile.take_process(1, process("/home/me/solver"));
  profile.take_process(2, process("/home/me/analysis"));
  profile.take_process(0, process("/home/me/solver"));
  EXPECT_EQ(profile.several(), "solver (rank 0), analysis (rank 2), viewer.py (rank 3)");
  EXPECT_EQ(name_of(profile), "solver+analysis+viewer.py");
}

TEST(ProgramProfile, OneProgramIsNoNote) {
  daemon::ProgramProfile profile;
  for (const Rank rank : {2, 0, 1}) profile.take_process(rank, process("/x/solver"));
  EXPECT_EQ(profile.several(), "");
  EXPECT_EQ(name_of(profile), "solver");
}

TEST(ProgramProfile, ManyProgramsAreCut) {
  daemon::ProgramProfile profile;
  for (Rank rank = 0; rank < 100; ++rank) profile.take_process(rank, process("/x/p" + std::to_string(rank)));
  EXPECT_EQ(name_of(profile), "p0+p1+p2+p3+p4+p5+p6+p7");
}

// 1 s, 3 s outside of MPI_Pcontrol's scope, 2 s in which the capture was closed, 5 s outside to the end.
TEST(ProgramProfile, TimeOutsideOfTheScopeIsKnownByRank) {
  daemon::ProgramProfile profile;
  daemon::ProgramScope scope;
  Event work = event_of_kind(EventKind::kCompute);
  work.process_s = 1;
  const Event close = event_of_kind(EventKind::kWindowClose);
  const auto open_after = [](Seconds away_s) {
    Event open = window_open_event(1);
    open.call_s = away_s;
    return open;
  };
  profile.take_events(std::vector<Event>{work, phase_event(2), phase_event(kScopeEnds), close}, scope);
  EXPECT_TRUE(scope.outside);
  profile.take_events(std::vector<Event>{open_after(3), phase_event(kScopeBegins), close, open_after(2),
                                         phase_event(kScopeEnds), close, open_after(5)},
                      scope);
  EXPECT_DOUBLE_EQ(scope.outside_s, 8);
  EXPECT_DOUBLE_EQ(profile.recorded_s(), 1);
}

}  // namespace
}  // namespace lbf::program_profile_test
