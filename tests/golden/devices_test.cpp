// Waits for a device: times that can be worked out on paper. A message takes 1 s.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/golden/predict.h"

namespace lbf::devices_test {
namespace {

using golden::make_target;
using testing::ElementsAre;

const char* const kNetwork = "name = \"one\"\n[[path]]\nlocality = \"self-node\"\ntable = [[0, 1e6]]\n";

std::vector<Seconds> finish(const std::string& trace, Rank ranks, std::uint32_t cores, double speed) {
  engine::Target target = make_target(ranks, "block", 1, cores, golden::network(kNetwork));
  target.speed = speed;
  return golden::predict_all(trace, ranks, {target}).front().rank_finish_s;
}

// 2 s of work, 3 s for the device, 1 s of work, then the message: at 6 s. Twice as fast a processor: 1 + 3 + 0.5.
TEST(Devices, TakeAsLongOnAFasterProcessor) {
  const char* const trace =
      "0 compute 2\n0 device 3 calls=10 busy=3\n0 send 1 to=1 tag=0 bytes=1\n0 exit 0\n"
      "1 startRecv 0 from=0 tag=0\n1 endRecv 0 from=0 tag=0 bytes=1\n1 exit 0\n";
  EXPECT_THAT(finish(trace, 2, 2, 1), ElementsAre(6, 7));
  EXPECT_THAT(finish(trace, 2, 2, 2), ElementsAre(4.5, 5.5));
}

// Beside a rank that works for 3 s on the same processor. Spinning, the wait takes half of it: after 2 s of the wait
// the other one has 1 s done, and the remaining 2 s alone: 4 s.
TEST(Devices, HoldAProcessorWhileTheySpin) {
  const char* const trace = "0 device 2 calls=1 busy=2\n0 exit 0\n1 compute 3\n1 exit 0\n";
  EXPECT_THAT(finish(trace, 2, 1, 1), ElementsAre(2, 4));
}

// Asleep it takes nothing: the other one has the processor all the time.
TEST(Devices, LeaveTheProcessorWhileTheySleep) {
  const char* const trace = "0 device 2 calls=1 busy=0\n0 exit 0\n1 compute 3\n1 exit 0\n";
  EXPECT_THAT(finish(trace, 2, 1, 1), ElementsAre(2, 3));
}

// The device does not wait for the processor: two ranks that spin for 2 s on one processor are done at 2 s.
TEST(Devices, EndAtTheirTimeWhoeverHasTheProcessor) {
  const char* const trace = "0 device 2 calls=1\n0 exit 0\n1 device 2 calls=1\n1 exit 1\n";
  EXPECT_THAT(finish(trace, 2, 1, 1), ElementsAre(2, 3));
}

TEST(Devices, MeasuredTimeIsAsItRan) {
  const char* const trace = "0 device 2 calls=1 busy=0.5\n0 exit 1\n";
  const engine::Target target = make_target(1, "block", 1, 1, golden::network(kNetwork));
  EXPECT_THAT(golden::predict_all(trace, 1, {target}).front().rank_measured_s, ElementsAre(3));
}

}  // namespace
}  // namespace lbf::devices_test
