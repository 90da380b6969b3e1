// RefusalLog: what lbfd refuses of relays is in its log, and one user's relays do not fill it.
#include "predictor/daemon/http/refusal_log.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/captured_log.h"

namespace lbf::refusal_log_test {
namespace {

using namespace std::chrono_literals;

class RefusalLogTest : public testing::Test {
 protected:
  std::string said() { return captured_.said(); }

  test::CapturedLog captured_;
  daemon::RefusalLog log_;
  const daemon::RefusalLog::Clock::time_point start_{1000s};
};

TEST_F(RefusalLogTest, SaysWhoWhatAndWhy) {
  log_.add("PUT", "/v1/steps/c/7/0/0/streams/0", "uid 7", 403, R"({"error":"step c/7/0/0 belongs to eve"})", start_);
  EXPECT_EQ(said(), "warning refused uid 7: PUT /v1/steps/c/7/0/0/streams/0: step c/7/0/0 belongs to eve\n");
  log_.add("GET", "/v1/steps", "127.0.0.1", 401, R"({"error":"bad\ncredential"})", start_);
  EXPECT_EQ(said(), "warning refused 127.0.0.1: GET /v1/steps: bad?credential\n");
}

TEST_F(RefusalLogTest, SaysNothingOfWhatIsNoRefusalOfARelay) {
  log_.add("PUT", "/v1/x", "uid 7", 200, "{}", start_);
  log_.add("POST", "/v1/x", "uid 7", 409, "{}", start_);
  log_.add("GET", "/v1/x", "uid 7", 404, "{}", start_);
  EXPECT_EQ(said(), "");
}

TEST_F(RefusalLogTest, SaysItOnceAMinute) {
  for (int i = 0; i < 60; ++i) log_.add("POST", "/v1/x", "uid 7", 507, R"({"error":"full"})", start_ + i * 1s);
  EXPECT_EQ(said(), "warning refused uid 7: POST /v1/x: full\n");
  log_.add("POST", "/v1/x", "uid 7", 507, R"({"error":"full"})", start_ + 60s);
  EXPECT_EQ(said(), "warning refused uid 7: POST /v1/x: full (59 more like it since the last line)\n");
}

TEST_F(RefusalLogTest, ManyPeersHaveABoundedNumberOfLines) {
  for (int i = 0; i < 10000; ++i) log_.add("GET", "/v1/x", std::to_string(i), 401, "no JSON", start_);
  const std::string lines = said();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 256);
  log_.add("GET", "/v1/x", "again", 401, "", start_ + 60s);
  EXPECT_EQ(said(), "warning refused again: GET /v1/x: \n");
}

}  // namespace
}  // namespace lbf::refusal_log_test
