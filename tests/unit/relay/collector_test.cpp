// Collector: which processes are taken, what it says about them, and how they end.
#include "spank_plugin/relay/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/unit/relay/fake_lbfd.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay {
namespace {

// A process to whom a ring can belong. kill() ends it, and it is reaped.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Sleeper() { kill(); }
  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

class CollectorTest : public testing::Test {
 protected:
  CollectorTest()
      : builder_([this](std::unique_ptr<BatchEncoder> encoder) {
          lbfd_.batches["s"].push_back(encoder->finish(0, lbfd_.batches["s"].size() + 1));
        }),
        rate_({0, 0}) {
    rate_.observe({3'000'000'000, 3'000'000'000});
    auto collector = Collector::make({dir_.path(), 2, 0});
    EXPECT_TRUE(collector.ok());
    collector_ = std::make_unique<Collector>(std::move(*collector));
  }
  void pass(std::uint64_t milliseconds = 150) {
    now_ns_ += milliseconds * 1'000'000;
    collector_->pass({now_ns_, now_ns_}, rate_, builder_);
  }
  FakeLbfd::Decoded finish() {
    now_ns_ += 1'000'000;
    collector_->finish({now_ns_, now_ns_}, rate_, builder_);
    return lbfd_.decode("s");
  }
  static std::vector<nlohmann::json> of_type(const FakeLbfd::Decoded& decoded, const std::string& type) {
    std::vector<nlohmann::json> out;
    for (const auto& json : decoded.controls) {
      if (json["type"] == type) out.push_back(json);
    }
    return out;
  }

  TempDir dir_;
  FakeLbfd lbfd_;
  BatchBuilder builder_;
  TickRate rate_;
  std::unique_ptr<Collector> collector_;
  std::uint64_t now_ns_ = 10'000'000'000;
};

TEST_F(CollectorTest, AProcessThatFinalizesIsReportedFromBeginToEnd) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.put(offsetof(ring::Header, calls) + 16 * 3, std::uint64_t{2});
  file.put(offsetof(ring::Header, calls) + 16 * 3 + 8, std::uint64_t{500'000'000});
  file.append(RingFile::record(EventKind::kSend, 1'000'001'000, 1'000'002'000));
  pass();
  EXPECT_EQ(collector_->processes_taken(), 1U);
  file.append(RingFile::record(EventKind::kExit, 2'000'002'000, 2'000'002'000));
  file.put(offsetof(ring::Header, finalize_enter_ticks), std::uint64_t{2'000'002'000});
  file.set_state(ring::ProcessState::kFinalized);
  pass();
  EXPECT_FALSE(std::filesystem::exists(file.path));  // its memory is given back at once
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 2U);
  EXPECT_NEAR(decoded.events[0].second.process_s, 1.0, 1e-9);
  EXPECT_NEAR(decoded.events[1].second.process_s, 1.0, 1e-9);
  ASSERT_GE(decoded.controls.size(), 3U);
  EXPECT_EQ(decoded.controls.front()["type"], "process");
  EXPECT_EQ(decoded.controls.front()["world_size"], 2);
  EXPECT_EQ(decoded.controls.front()["pid"], process.pid());
  const auto stats = of_type(decoded, "stats");
  ASSERT_EQ(stats.size(), 1U);
  EXPECT_EQ(stats[0]["calls"], nlohmann::json::parse("[[3,2,0.5]]"));
  EXPECT_NEAR(stats[0]["elapsed_s"].get<double>(), 2.000001, 1e-9);
  const auto ends = of_type(decoded, "process_end");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0]["how"], "finalized");
}

TEST_F(CollectorTest, AKilledProcessLeavesAllItWrote) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  pass();
  for (std::uint64_t i = 0; i < 20; ++i) file.append(RingFile::record(EventKind::kSend, 2000 + i, 2000 + i));
  process.kill();
  pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 21U);
  EXPECT_EQ(decoded.events.back().second.kind, EventKind::kExit);
  EXPECT_EQ(of_type(decoded, "process_end").at(0)["how"], "killed");
  EXPECT_FALSE(std::filesystem::exists(file.path));
}

TEST_F(CollectorTest, AnAbortedProcessIsCalledSo) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  pass();
  file.set_state(ring::ProcessState::kAborted);
  process.kill();
  pass();
  EXPECT_EQ(of_type(finish(), "process_end").at(0)["how"], "aborted");
}

TEST_F(CollectorTest, OnlyTheStepsOwnWorldIsTaken) {
  Sleeper good;
  Sleeper singleton;
  Sleeper twin;
  RingFile taken(dir_.path(), good.pid(), good.pid());
  pass();
  RingFile alone(dir_.path(), singleton.pid(), singleton.pid());
  alone.put(offsetof(ring::Header, world_size), std::int32_t{1});
  RingFile same_rank(dir_.path(), twin.pid(), twin.pid());
  alone.append(RingFile::record(EventKind::kSend, 1, 2));
  same_rank.append(RingFile::record(EventKind::kSend, 1, 2));
  taken.append(RingFile::record(EventKind::kSend, 3000, 3000));
  pass();
  EXPECT_EQ(collector_->processes_taken(), 1U);
  EXPECT_EQ(collector_->processes_left_out(), 2U);
  const auto decoded = finish();
  EXPECT_EQ(of_type(decoded, "process").size(), 1U);
  EXPECT_EQ(of_type(decoded, "note").size(), 2U);  // the first by name, the number at the end
  EXPECT_EQ(decoded.events.size(), 2U);            // and the exit
}

TEST_F(CollectorTest, AProcessInMpiInitIsWaitedFor) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.set_state(ring::ProcessState::kStarting);
  pass();
  EXPECT_EQ(collector_->processes_taken() + collector_->processes_left_out(), 0U);
  file.set_state(ring::ProcessState::kRunning);
  pass();
  EXPECT_EQ(collector_->processes_taken(), 1U);
  (void)finish();
}

TEST_F(CollectorTest, ThreadsOfAProcessAreMergedByEnter) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, std::uint64_t at) {
    ring::Record r = RingFile::record(EventKind::kSend, at, at + 10);
    r.bytes = at;
    file.append(r);
  };
  put(main_thread, 2000);
  put(main_thread, 4000);
  put(other, 1500);
  other.append_adjust(100, 0, 0);
  put(other, 3000);
  pass();
  const auto decoded = finish();
  std::vector<std::uint64_t> order;
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kSend) order.push_back(event.bytes);
  }
  EXPECT_THAT(order, testing::ElementsAre(1500, 2000, 3000, 4000));
  EXPECT_NEAR(decoded.events[2].second.process_s, (3000 - 2010 - 100) * 1e-9, 1e-12);
}

TEST_F(CollectorTest, AHostileRingBecomesAGapAndANoteAndHarmsNobodyElse) {
  Sleeper bad;
  Sleeper good;
  RingFile bad_file(dir_.path(), bad.pid(), bad.pid());
  RingFile good_file(dir_.path(), good.pid(), good.pid());
  good_file.put(offsetof(ring::Header, rank), std::int32_t{1});
  bad_file.append(RingFile::record(EventKind::kSend, 2000, 2000));
  pass();
  bad_file.append(RingFile::record(EventKind::kSend, 3000, 3000));
  bad_file.put(sizeof(ring::Header) + 48, std::uint32_t{0xffffff});
  good_file.append(RingFile::record(EventKind::kSend, 3000, 3000));
  pass();
  pass();
  const auto decoded = finish();
  EXPECT_EQ(of_type(decoded, "note").size(), 1U);
  int gaps = 0;
  int sends_of_good = 0;
  for (const auto& [rank, event] : decoded.events) {
    gaps += event.kind == EventKind::kGap && rank == 0 ? 1 : 0;
    sends_of_good += event.kind == EventKind::kSend && rank == 1 ? 1 : 0;
  }
  EXPECT_EQ(gaps, 1);
  EXPECT_EQ(sends_of_good, 1);
}

TEST_F(CollectorTest, OtherFilesInTheDirectoryAreIgnored) {
  for (const char* name :
       {"step.json", "x.ring", "1.ring", "-5.6.ring", "12.ring.ring", "99999999999.1.ring"}) {
    std::ofstream(dir_.path() + "/" + name) << "x";
  }
  pass();
  EXPECT_EQ(finish().controls.size(), 0U);
}

// A rank that computes without an MPI call: its processor time so far is told, and taken from the gap that
// follows. While it is inside a call nothing is told: MPI libraries spin while they wait.
TEST_F(CollectorTest, KeepAlivesTellProcessorTimeOnlyOutsideOfCalls) {
  const pid_t busy = ::fork();
  if (busy == 0) {
    volatile std::uint64_t work = 0;
    for (;;) work = work + 1;
  }
  RingFile file(dir_.path(), busy, busy);
  file.put(offsetof(ring::Header, in_call), std::uint32_t{1});
  pass(300);
  ::usleep(30000);
  pass(1100);
  file.put(offsetof(ring::Header, in_call), std::uint32_t{2});
  ::usleep(30000);
  pass(1100);
  pass(1100);
  file.append(RingFile::record(EventKind::kSend, 5'000'001'000, 5'000'001'000));
  pass();
  ::kill(busy, SIGKILL);
  ::waitpid(busy, nullptr, 0);
  const auto decoded = finish();
  std::vector<Seconds> keep_alives;
  Seconds sum = 0;
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kKeepAlive) keep_alives.push_back(event.process_s);
    sum += event.process_s;
  }
  ASSERT_EQ(keep_alives.size(), 1U);
  EXPECT_GT(keep_alives[0], 0.0005);
  EXPECT_NEAR(sum, 5.0, 1e-8);
}

}  // namespace
}  // namespace lbf::relay
