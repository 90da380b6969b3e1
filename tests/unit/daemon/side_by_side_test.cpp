// Passes of one step side by side: the numbers are the same whatever the threads, and nothing is left under way.
#include "predictor/daemon/steps/side_by_side.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "predictor/daemon/http/step_json.h"
#include "predictor/daemon/steps/step_run.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "tests/unit/intake/batches.h"

namespace lbf::side_by_side_test {
namespace {

using daemon::SideBySide;

// Lends COUNT threads at a time. REQUIRES: one thread asks.
class Threads {
 public:
  explicit Threads(int count) : free_(count) {}
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }
  daemon::LendThread lend() {
    return [this](std::function<void()> job) {
      if (free_ == 0) return false;
      --free_;
      const auto has_begun = std::make_shared<std::atomic<bool>>(false);
      threads_.emplace_back([this, has_begun, job = std::move(job)] {
        *has_begun = true;
        job();
        ++free_;
      });
      while (!*has_begun) std::this_thread::yield();
      return true;
    };
  }
  std::size_t lent() const { return threads_.size(); }

 private:
  std::atomic<int> free_;
  std::vector<std::thread> threads_;
};

TEST(SideBySide, RunsOnTheThreadsThatAreFree) {
  Threads threads(2);
  std::atomic<int> runs{0};
  std::atomic<bool> may_end{false};
  SideBySide others(threads.lend(), 3, [&] {
    ++runs;
    while (!may_end) std::this_thread::yield();
  });
  EXPECT_EQ(threads.lent(), 2u);
  while (runs < 2) std::this_thread::yield();
  EXPECT_TRUE(others.is_under_way());
  may_end = true;
  others.join();
  EXPECT_FALSE(others.is_under_way());
  SideBySide none({}, 3, [&] { ++runs; });
  none.join();
  EXPECT_EQ(runs, 2);
}

// lbfd ends: what its pool had not begun never begins.
TEST(SideBySide, WhatHasNotBegunIsNotWaitedFor) {
  std::function<void()> late;
  bool ran = false;
  {
    SideBySide others([&](std::function<void()> job) { return (late = std::move(job)) != nullptr; }, 1,
                      [&] { ran = true; });
    others.join();
  }
  late();
  EXPECT_FALSE(ran);
}

TEST(SideBySide, WhatIsThrownComesToTheTurn) {
  Threads threads(1);
  std::atomic<bool> began{false};
  SideBySide others(threads.lend(), 1, [&] {
    began = true;
    throw std::runtime_error("no memory");
  });
  while (!began) std::this_thread::yield();
  EXPECT_THROW(others.join(), std::runtime_error);
}

class PassesSideBySide : public testing::Test {
 protected:
  PassesSideBySide() {
    std::ofstream(directory_.path() + "/default.toml")
        << "name = \"own\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 50.0], [1000, 90.0]]\n";
    std::ofstream(directory_.path() + "/shared.toml")
        << "name = \"shared\"\n[[path]]\nlocality = \"remote\"\ntable = [[0, 10.0]]\n[contention]\nmodel = \"nic\"\n"
           "bandwidth_MBps = 10.0\n";
    auto catalog = daemon::NetworkCatalog::load(directory_.path(), "");
    EXPECT_TRUE(catalog.ok());
    networks_ = std::make_unique<daemon::NetworkCatalog>(std::move(catalog).value());
    program_.ranks_of_node = {{0, 1, 2}, {3, 4, 5}};
    program_.rounds = 200;
    program_.batches = 6;
    program_.build_id = "b";
  }
  std::shared_ptr<daemon::StepTrace> make_trace(const std::string& name) const {
    const auto describe = [&](std::uint32_t node) {
      return protocol::decode_step_description(program_.description(node, 7).dump()).value();
    };
    auto trace =
        std::move(daemon::StepTrace::create({"c", 7, 0, 0}, directory_.path() + "/" + name, describe(0), 1)).value();
    for (std::uint32_t node = 0; node < 2; ++node) EXPECT_TRUE(trace->register_stream(describe(node)).ok());
    return trace;
  }
  void append(daemon::StepTrace& trace, int batch) const {
    for (std::uint32_t node = 0; node < 2; ++node) {
      const auto sequence = static_cast<std::uint64_t>(batch);
      const std::string bytes = program_.batches_of(node)[sequence - 1];
      EXPECT_TRUE(trace.append(node, sequence, test::bytes_of(bytes)).ok());
      if (batch < program_.batches) continue;
      EXPECT_TRUE(trace.end_stream(node, {sequence, 0, "step_end"}).ok());
    }
  }
  // Each step has an account, so the configuration that ran goes alone.
  daemon::StepRunOptions options(std::size_t threads, std::size_t targets_per_pass) const {
    daemon::StepRunOptions out;
    out.accounts = std::make_shared<daemon::MemoryAccounts>(out.bounds);
    out.threads = threads;
    out.targets_per_pass = targets_per_pass;
    return out;
  }
  static void drain(daemon::StepRun& run) {
    while (run.work() == daemon::StepRun::Progress::kMore) {
    }
  }
  static nlohmann::json said(daemon::StepRun& run) {
    nlohmann::json json = daemon::step_json(*run.view(), daemon::StepDetail::kFull);
    EXPECT_GE(json.at("lbfd_cpu_s"), 0);
    for (const char* const of_the_clock : {"lbfd_cpu_s", "start", "end"}) json.erase(of_the_clock);
    return json;
  }

  test::TemporaryDirectory directory_;
  test::RingProgram program_;
  std::unique_ptr<daemon::NetworkCatalog> networks_;
};

TEST_F(PassesSideBySide, GiveTheSameNumbersWhateverTheThreads) {
  const auto at_once = make_trace("at-once");
  for (int batch = 1; batch <= program_.batches; ++batch) append(*at_once, batch);
  // What the step says when its trace is there, and when its batches come one by one: sums over ranks follow the order
  // in which batches are read.
  const auto said_with = [&](const daemon::StepRunOptions& options, const std::string& name) {
    daemon::StepRun of_whole(at_once, *networks_, options);
    drain(of_whole);
    const auto growing = make_trace(name);
    daemon::StepRun as_it_comes(growing, *networks_, options);
    for (int batch = 1; batch <= program_.batches; ++batch) {
      append(*growing, batch);
      drain(as_it_comes);
    }
    return std::pair(said(of_whole), said(as_it_comes));
  };
  const auto expected = said_with(options(1, 8), "alone");
  EXPECT_EQ(expected.first.at("state"), "complete") << expected.first.at("why_partial");
  EXPECT_GT(expected.first.at("predictions").size(), 6u);
  EXPECT_TRUE(expected.first.at("path_work_s").is_number());
  for (const std::size_t lent : {1, 3}) {
    for (const std::size_t targets_per_pass : {2, 8}) {
      SCOPED_TRACE(fmt::format("{} threads, {} targets at a time", lent, targets_per_pass));
      Threads threads(static_cast<int>(lent));
      daemon::StepRunOptions with_threads = options(1 + lent, targets_per_pass);
      with_threads.lend_thread = threads.lend();
      EXPECT_EQ(said_with(with_threads, fmt::format("{}-{}", lent, targets_per_pass)), expected);
      EXPECT_GT(threads.lent(), 0u);
    }
  }
}

// What people ask meanwhile, in threads of their own.
TEST_F(PassesSideBySide, ViewsAreWholeMeanwhile) {
  auto trace = make_trace("asked");
  Threads threads(2);
  daemon::StepRunOptions with_threads = options(3, 8);
  with_threads.lend_thread = threads.lend();
  daemon::StepRun run(trace, *networks_, with_threads);
  std::atomic<bool> is_over{false};
  std::thread asks([&] {
    while (!is_over) EXPECT_GE(run.view()->generation, 1u);
  });
  for (int batch = 1; batch <= program_.batches; ++batch) {
    append(*trace, batch);
    drain(run);
  }
  is_over = true;
  asks.join();
  EXPECT_EQ(run.view()->record.state, db::StepState::kComplete);
}

TEST_F(PassesSideBySide, EndWithLbfdAndNothingIsSaidOfIt) {
  auto trace = make_trace("ends");
  for (int batch = 1; batch <= program_.batches; ++batch) append(*trace, batch);
  Threads threads(2);
  std::atomic<int> looks{0};
  daemon::StepRunOptions with_threads = options(3, 8);
  with_threads.lend_thread = threads.lend();
  with_threads.lbfd_ends = [&] { return ++looks > 12; };
  daemon::StepRun run(trace, *networks_, with_threads);
  drain(run);
  EXPECT_EQ(run.work(), daemon::StepRun::Progress::kIdle);
  EXPECT_EQ(run.view()->record.state, db::StepState::kRunning);
  EXPECT_EQ(run.view()->record.why_partial, "");
}

}  // namespace
}  // namespace lbf::side_by_side_test
