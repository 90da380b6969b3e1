// Who gets the next worker: users take turns, and nobody has all of them.
#include "predictor/daemon/http/request_queue.h"

#include <gmock/gmock.h>

#include <boost/asio/executor_work_guard.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lbf::daemon::request_queue_test {
namespace {

namespace asio = boost::asio;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class RequestQueueTest : public testing::Test {
 protected:
  ~RequestQueueTest() override {
    for (const std::string& name : began()) open(name);
    queue_.clear();
    workers_.join();
  }

  // A request that works until open(NAME).
  RequestQueue::Job job(const std::string& name) {
    return {[this, name] {
              std::unique_lock lock(mutex_);
              began_.push_back(name);
              changed_.notify_all();
              changed_.wait(lock, [&] { return open_.count(name) > 0; });
            },
            [this, name] { ended_.push_back(name); }};
  }
  void submit(RequestKind kind, const std::string& user, const std::string& name) {
    queue_.submit(kind, user, job(name));
  }
  void open(const std::string& name) {
    const std::lock_guard lock(mutex_);
    open_.insert(name);
    changed_.notify_all();
  }
  std::vector<std::string> began() {
    const std::lock_guard lock(mutex_);
    return began_;
  }
  void wait_until_begun(std::size_t jobs) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return began_.size() >= jobs; });
  }
  void finish(const std::string& name) {
    const std::size_t before = ended_.size();
    open(name);
    while (ended_.size() == before) {
      io_.run_one();
      io_.restart();
    }
  }

  static constexpr RequestQueueLimits kLimits{.threads = 2, .threads_per_user = 1, .answers_per_user = 1};
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
  asio::thread_pool workers_{kLimits.all_threads()};
  RequestQueue queue_{io_, workers_, kLimits};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> began_;
  std::set<std::string> open_;
  std::vector<std::string> ended_;  // of the io thread
};

TEST_F(RequestQueueTest, ASlowUserLeavesWorkersToTheOthers) {
  submit(RequestKind::kWithBody, "a", "a1");
  submit(RequestKind::kWithBody, "a", "a2");
  submit(RequestKind::kWithBody, "a", "a3");
  submit(RequestKind::kWithBody, "b", "b1");
  wait_until_begun(2);
  EXPECT_THAT(began(), UnorderedElementsAre("a1", "b1"));
}

TEST_F(RequestQueueTest, UsersTakeTurns) {
  submit(RequestKind::kWithBody, "x", "x1");
  submit(RequestKind::kWithBody, "a", "a1");
  for (const char* name : {"a2", "a3"}) submit(RequestKind::kWithBody, "a", name);
  for (const char* name : {"b1", "b2"}) submit(RequestKind::kWithBody, "b", name);
  wait_until_begun(2);
  std::size_t begun = 2;
  for (const char* name : {"a1", "a2", "b1", "a3"}) {
    finish(name);
    wait_until_begun(++begun);
  }
  const auto order = began();
  EXPECT_THAT(std::vector(order.begin() + 2, order.end()), ElementsAre("a2", "b1", "a3", "b2"));
}

TEST_F(RequestQueueTest, RequestsWithoutABodyDoNotWaitForThoseWithOne) {
  for (const char* user : {"a", "b", "c"}) submit(RequestKind::kWithBody, user, user);
  submit(RequestKind::kWithoutBody, "a", "get a");
  submit(RequestKind::kOpen, "a", "health");
  wait_until_begun(4);
  EXPECT_THAT(began(), UnorderedElementsAre("a", "b", "get a", "health"));
}

// Else a user who reads no answers would fill lbfd's memory with them.
TEST_F(RequestQueueTest, WhoTakesNoAnswersGetsNoFurtherOnes) {
  std::optional<RequestQueue::HeldAnswer> held(queue_.hold_answer("a"));
  submit(RequestKind::kWithoutBody, "a", "next");
  submit(RequestKind::kWithoutBody, "b", "b");
  wait_until_begun(1);
  EXPECT_THAT(began(), ElementsAre("b"));
  queue_.submit_next_piece("a", job("piece"));  // or it would never be taken
  wait_until_begun(2);
  EXPECT_THAT(began(), ElementsAre("b", "piece"));
  finish("piece");
  finish("b");
  EXPECT_EQ(began().size(), 2U);
  held.reset();
  wait_until_begun(3);
}

}  // namespace
}  // namespace lbf::daemon::request_queue_test
