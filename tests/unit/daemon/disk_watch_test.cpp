// DiskWatch: a full disk is one line in the log, not one per batch, and its end is another.
#include "predictor/daemon/disk_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/captured_log.h"

namespace lbf::disk_watch_test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class DiskWatchTest : public testing::Test {
 protected:
  std::string said() { return captured_.said(); }

  test::CapturedLog captured_;
  daemon::DiskWatch watch_{"traces", "it is tried again"};
  const daemon::DiskWatch::Clock::time_point start_{1000s};
  const Error full_{ErrorCode::kLimit, "cannot write /x: No space left on device"};
};

TEST_F(DiskWatchTest, SaysItOnceAndThenEveryMinute) {
  watch_.failed("step c/7/0/0", full_, start_);
  EXPECT_TRUE(watch_.is_full());
  const std::string first = said();
  EXPECT_EQ(first,
            "error no room for traces: step c/7/0/0: cannot write /x: No space left on device; it is tried again "
            "(writes refused: 1, in 0 s)\n");
  for (int i = 1; i < 60; ++i) watch_.failed("step c/8/0/0", full_, start_ + i * 1s);
  EXPECT_EQ(said(), "");
  watch_.failed("step c/8/0/0", full_, start_ + 60s);
  EXPECT_THAT(said(), HasSubstr("(writes refused: 61, in 60 s)"));
}

TEST_F(DiskWatchTest, IsOverOnceWritesSucceedAndNoneFailForAWhile) {
  watch_.failed("s", full_, start_);
  (void)said();
  watch_.tick(start_ + 30s);
  EXPECT_TRUE(watch_.is_full()) << "nothing was written since";
  watch_.succeeded();
  watch_.failed("s", full_, start_ + 31s);  // a short one had found room, a long one did not
  watch_.tick(start_ + 40s);
  EXPECT_TRUE(watch_.is_full());
  watch_.succeeded();
  watch_.tick(start_ + 32s);
  EXPECT_TRUE(watch_.is_full()) << "too early to say";
  EXPECT_EQ(said(), "");
  watch_.tick(start_ + 35s);
  EXPECT_FALSE(watch_.is_full());
  EXPECT_EQ(said(), "info there is room for traces again (writes refused: 2, in 31 s)\n");
  watch_.failed("s", full_, start_ + 36s);
  EXPECT_THAT(said(), HasSubstr("(writes refused: 1, in 0 s)")) << "a new time without room is a new line";
}

TEST_F(DiskWatchTest, OtherFaultsAreSaidAsTheyCome) {
  const Error broken{ErrorCode::kIo, "cannot write /x: Input/output error"};
  watch_.failed("s", broken, start_);
  watch_.failed("s", broken, start_);
  EXPECT_EQ(said(), "error s: cannot write /x: Input/output error\nerror s: cannot write /x: Input/output error\n");
  EXPECT_FALSE(watch_.is_full());
}

}  // namespace
}  // namespace lbf::disk_watch_test