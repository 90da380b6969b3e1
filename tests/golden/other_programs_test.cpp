// Other programs on the processors: times that can be worked out on paper. A message takes 1 s.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::other_programs_test {
namespace {

using golden::make_target;
using testing::ElementsAre;

const char* const kNetwork = "name = \"one\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 1e6]]\n";

// The finish times beside the other programs, then without them, in one pass.
std::vector<engine::Prediction> predict_both(const std::string& trace, Rank ranks, std::uint32_t cores) {
  std::vector<engine::Target> targets(2, make_target(ranks, "block", 1, cores, golden::network(kNetwork)));
  targets.front().other_programs = engine::OtherPrograms::kAsTheyRan;
  return golden::predict_all(trace, ranks, targets);
}

// Rank 0 works for 2 s, others have its processor for 3 s, it works for 1 s and sends: at 6, and without them at 3.
TEST(OtherPrograms, HoldUpWhatRanBesideThemAndNoOtherTarget) {
  const auto both = predict_both(
      "0 preempted 2 off=3\n0 send 1 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n",
      2, 2);
  EXPECT_THAT(both[0].rank_finish_s, ElementsAre(6, 7));
  EXPECT_THAT(both[1].rank_finish_s, ElementsAre(3, 4));
  EXPECT_THAT(both[1].rank_measured_s, ElementsAre(6, 0));
}

// What they take while the receiver waits costs nothing: both wait for the later of the two.
TEST(OtherPrograms, CostNothingWhileTheMessageIsUnderWay) {
  const auto both = predict_both(
      "0 send 4 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 preempted 1 off=3\n1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n",
      2, 2);
  EXPECT_THAT(both[0].rank_finish_s, ElementsAre(4, 5));
  EXPECT_THAT(both[1].rank_finish_s, ElementsAre(4, 5));
}

// The receiver waits from 1 on for a message that comes at 5, and had no processor for 1 s of the call: it ends with
// the message. For 3 s of it: the sender may have lost as much, and it ends at 7. The measured time of the call holds
// what was lost.
TEST(OtherPrograms, HoldUpACallForTwiceWhatTheyTookOfIt) {
  const auto both = [](const std::string& lost_s) {
    return predict_both(
        "0 send 4 to=1 tag=0 bytes=1\n0 exit 0\n"
        "1 startRecv 1 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 preempted 2 off=1 delay=" +
            lost_s + "\n1 exit 0\n",
        2, 2);
  };
  EXPECT_THAT(both("1")[0].rank_finish_s, ElementsAre(4, 8));
  EXPECT_THAT(both("3")[0].rank_finish_s, ElementsAre(4, 10));
  EXPECT_THAT(both("3")[1].rank_finish_s, ElementsAre(4, 7));
  EXPECT_THAT(both("3")[0].rank_measured_s, ElementsAre(4, 4));
}

// Both messages come at 5 in one call that began at 1, and lost 3 s.
TEST(OtherPrograms, HoldUpACallForSeveralMessagesOnce) {
  const auto both = predict_both(
      "0 send 4 to=1 tag=0 bytes=1\n0 send 0 to=1 tag=1 bytes=1\n0 exit 0\n"
      "1 startRecv 0.5 from=0 tag=0 req=1\n1 startRecv 0.25 from=0 tag=1 req=2\n"
      "1 endRecv 0.25 from=0 tag=0 bytes=1 req=1\n1 endRecv 0 from=0 tag=1 bytes=1 req=2\n"
      "1 preempted 0 off=0 delay=3\n1 exit 0\n",
      2, 2);
  EXPECT_THAT(both[0].rank_finish_s, ElementsAre(4, 7));
  EXPECT_THAT(both[1].rank_finish_s, ElementsAre(4, 5));
}

// Four ranks of 2 s on two processors take 4 s. Beside others that work for 1 s in each rank's stead they take
// 4 x (2 + 1) / 2: the processors are as busy as that, whoever waits.
TEST(OtherPrograms, ShareProcessorsWithRanksThatShareThem) {
  std::string trace;
  for (const char* rank : {"0", "1", "2", "3"})
    trace += std::string(rank) + " preempted 2 off=1\n" + rank + " exit 0\n";
  const auto both = predict_both(trace, 4, 2);
  EXPECT_THAT(both[0].rank_finish_s, ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(both[1].rank_finish_s, ElementsAre(4, 4, 4, 4));
}

}  // namespace
}  // namespace lbf::other_programs_test
