// Collector: which processes are taken, what it says about them, and how they end.
#include "spank_plugin/relay/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "event/mpi_function_table.h"
#include "spank_plugin/relay/launch.h"
#include "spank_plugin/relay/process_probe.h"
#include "tests/support/temporary_directory.h"
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
  std::size_t events_so_far() {
    builder_.flush();
    return lbfd_.decode("s").events.size();
  }
  static std::vector<nlohmann::json> of_type(const FakeLbfd::Decoded& decoded, const std::string& type) {
    std::vector<nlohmann::json> out;
    for (const auto& json : decoded.controls) {
      if (json["type"] == type) out.push_back(json);
    }
    return out;
  }

  test::TemporaryDirectory dir_;
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

// Its main() ended with pthread_exit; the thread that calls MPI goes on.
TEST_F(CollectorTest, AProcessWhoseFirstThreadEndedLives) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    pthread_t thread;
    const auto wait = [](void*) -> void* {
      for (;;) ::pause();
    };
    if (::pthread_create(&thread, nullptr, wait, nullptr) == 0) ::syscall(SYS_exit, 0);  // of this thread alone
    ::_exit(1);
  }
  const auto state = [pid] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, letter;
    file >> number >> name >> letter;
    return letter;
  };
  for (int i = 0; i < 5000 && state() != "Z"; ++i) ::usleep(1000);
  ASSERT_EQ(state(), "Z");
  EXPECT_TRUE(read_process_stat(pid).alive);
  EXPECT_FALSE(command_line_of_process(pid).words.empty());
  EXPECT_EQ(command_line_of_process(pid).words, command_line_of_process(::getpid()).words);
  RingFile file(dir_.path(), pid, pid + 1);
  pass();
  file.append(RingFile::record(EventKind::kSend, 2000, 2001));
  pass(1000);
  EXPECT_EQ(events_so_far(), 1U);
  EXPECT_TRUE(std::filesystem::exists(file.path));
  ::kill(pid, SIGKILL);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(read_process_stat(pid).alive);  // a zombie, not yet waited for
  pass(1000);
  EXPECT_FALSE(std::filesystem::exists(file.path));
  ::waitpid(pid, nullptr, 0);
  const auto decoded = finish();
  EXPECT_EQ(of_type(decoded, "process_end").at(0)["how"], "killed");
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

TEST_F(CollectorTest, ARingWhoseThreadHasEndedIsGivenBackWhenItIsEmpty) {
  Sleeper process;
  RingFile main(dir_.path(), process.pid(), process.pid());
  const auto add_call = [](RingFile& file, std::uint64_t count) {
    file.put(offsetof(ring::Header, calls) + 16 * 3, count);
  };
  add_call(main, 1);
  pass();
  RingFile thread(dir_.path(), process.pid(), process.pid() + 1);
  add_call(thread, 2);
  thread.put(offsetof(ring::Header, failed_polls), std::uint64_t{5});
  thread.put(offsetof(ring::Header, once_cpu_ns), std::uint64_t{7'000'000});
  thread.append(RingFile::record(EventKind::kSend, 2000, 2100));
  pass();
  EXPECT_TRUE(std::filesystem::exists(thread.path));
  // What it writes last may come between two looks at it.
  thread.append(RingFile::record(EventKind::kSend, 3000, 3100));
  thread.put(offsetof(ring::Header, ended), std::uint32_t{1});
  pass();
  pass();
  EXPECT_FALSE(std::filesystem::exists(thread.path));
  EXPECT_TRUE(std::filesystem::exists(main.path));
  EXPECT_EQ(collector_->ring_uses().size(), 1U);
  // Another thread gets its number, and, before anybody looks, a third one.
  RingFile second(dir_.path(), process.pid(), process.pid() + 1);
  add_call(second, 4);
  second.append(RingFile::record(EventKind::kSend, 4000, 4100));
  pass();
  second.put(offsetof(ring::Header, ended), std::uint32_t{1});
  std::filesystem::remove(second.path);
  RingFile third(dir_.path(), process.pid(), process.pid() + 1);
  add_call(third, 8);
  third.append(RingFile::record(EventKind::kSend, 5000, 5100));
  pass();
  pass();
  EXPECT_TRUE(std::filesystem::exists(third.path));
  EXPECT_EQ(collector_->ring_uses().size(), 2U);
  EXPECT_NEAR(collector_->costs().at(0).once_s, 0.007, 1e-9);
  // The first one stays as long as the process.
  main.put(offsetof(ring::Header, ended), std::uint32_t{1});
  pass();
  pass();
  EXPECT_TRUE(std::filesystem::exists(main.path));
  const auto decoded = finish();
  EXPECT_FALSE(std::filesystem::exists(main.path));
  EXPECT_FALSE(std::filesystem::exists(third.path));
  ASSERT_EQ(decoded.events.size(), 5U);  // and the end
  EXPECT_NEAR(decoded.events[1].second.process_s, 900e-9, 1e-12);
  const auto stats = of_type(decoded, "stats");
  ASSERT_FALSE(stats.empty());
  EXPECT_EQ(stats.back()["calls"], nlohmann::json::parse("[[3,15,0.0]]"));
  EXPECT_EQ(stats.back()["failed_polls"], 5);
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

// What a receive waits for may be sent by a thread whose own call returns later: sends count from their
// begin, receives from their end.
TEST_F(CollectorTest, AReceiveOfOneThreadDoesNotComeBeforeWhatAnotherSentMeanwhile) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, EventKind kind, std::uint64_t enter, std::uint64_t leave,
                      std::uint8_t flags = kFlagCallBegin) {
    ring::Record r = RingFile::record(kind, enter, leave);
    r.bytes = enter;
    r.flags = flags;
    file.append(r);
  };
  put(main_thread, EventKind::kRecv, 2000, 9000);
  put(other, EventKind::kSend, 3000, 3100);
  put(other, EventKind::kStartRecv, 4000, 20000);  // MPI_Sendrecv: its message is under way from 4000 on
  put(other, EventKind::kSend, 20000, 20000, 0);
  put(other, EventKind::kEndRecv, 20000, 20000, 0);
  pass();
  std::vector<EventKind> order;
  for (const auto& [rank, event] : finish().events) order.push_back(event.kind);
  EXPECT_THAT(order, testing::ElementsAre(EventKind::kSend, EventKind::kStartRecv, EventKind::kSend,
                                          EventKind::kRecv, EventKind::kEndRecv, EventKind::kExit));
}

// Two threads, each in a collective on a communicator of its own: both begin before one of them ends.
TEST_F(CollectorTest, CollectivesOfThreadsBeginAndEnd) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const auto put = [](RingFile& file, std::uint64_t enter, std::uint64_t leave, std::uint64_t bytes) {
    ring::Record r = RingFile::record(EventKind::kCollective, enter, leave);
    r.words_and_op |= static_cast<std::uint32_t>(CollectiveOp::kBcast) << 24;
    r.bytes = bytes;
    file.append(r);
  };
  put(main_thread, 2000, 9000, 1);
  put(other, 3000, 4000, 2);
  pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 5u);
  const auto& begin_1 = decoded.events[0].second;
  const auto& begin_2 = decoded.events[1].second;
  const auto& end_2 = decoded.events[2].second;
  const auto& end_1 = decoded.events[3].second;
  EXPECT_EQ(begin_1.kind, EventKind::kIcollective);
  EXPECT_EQ(begin_1.op, CollectiveOp::kBcast);
  EXPECT_EQ(begin_1.bytes, 1u);
  EXPECT_NE(begin_1.flags & kFlagBlockingCall, 0);
  EXPECT_EQ(begin_2.bytes, 2u);
  EXPECT_EQ(end_2.kind, EventKind::kWait);
  EXPECT_EQ(end_2.request, begin_2.request);
  EXPECT_NEAR(end_2.call_s, 1000e-9, 1e-12);
  EXPECT_EQ(end_1.request, begin_1.request);
  EXPECT_NE(begin_1.request, begin_2.request);
}

// One thread closes the window, another one ends the capture; both records bear the same time, and the latter's ring may be
// read first.
TEST_F(CollectorTest, TheEndOfACaptureComesBehindTheCloseThatAnotherThreadWrote) {
  for (const bool closer_is_first : {true, false}) {
    lbfd_.batches.clear();
    Sleeper process;
    RingFile main_thread(dir_.path(), process.pid(), process.pid());
    RingFile other(dir_.path(), process.pid(), process.pid() + 1);
    main_thread.append(RingFile::record(EventKind::kRecv, 2000, 2900));
    other.append(RingFile::record(EventKind::kRecv, 2100, 2950));
    (closer_is_first ? main_thread : other).append_adjust(10, 0, 0);
    (closer_is_first ? main_thread : other).append(RingFile::record(EventKind::kWindowClose, 3000, 3000));
    ring::Record end = RingFile::record(EventKind::kSkipped, 3000, 3000);
    end.words_and_op |= static_cast<std::uint32_t>(SkippedSide::kEverything) << 24;
    end.bytes = 1;
    (closer_is_first ? other : main_thread).append(end);
    ring::Record definition = RingFile::record(EventKind::kCommCreate, 3000, 3000);  // by the closer, while it counted
    definition.comm = 1;
    (closer_is_first ? main_thread : other).append(definition, {42, 0, 0, 1});
    pass();
    process.kill();
    auto again = Collector::make({dir_.path(), 2, 0});
    std::vector<EventKind> order;
    const auto decoded = finish();
    for (const auto& [rank, event] : decoded.events) order.push_back(event.kind);
    EXPECT_THAT(order, testing::ElementsAre(EventKind::kRecv, EventKind::kRecv, EventKind::kWindowClose, EventKind::kCommCreate,
                                            EventKind::kSkipped, EventKind::kWindowOpen, EventKind::kExit));
    EXPECT_NEAR(decoded.events.at(2).second.process_s, 40e-9, 1e-12) << "the close has its own adjustment";
    ASSERT_TRUE(again.ok());
    *collector_ = std::move(*again);
  }
}

// A rank's threads in calls side by side: its time passes once.
TEST_F(CollectorTest, CallsOfThreadsSideBySideTakeTheirTimeOnce) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  main_thread.append(RingFile::record(EventKind::kRecv, 2000, 9000));
  other.append(RingFile::record(EventKind::kRecv, 3000, 4000));
  other.append(RingFile::record(EventKind::kRecv, 5000, 6000));
  pass();
  Seconds all_s = 0;
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) all_s += decoded.events[i].second.process_s + decoded.events[i].second.call_s;
  EXPECT_NEAR(all_s, 8000e-9, 1e-12) << "from 1000 to 9000";
  EXPECT_NEAR(decoded.events[2].second.call_s, 3000e-9, 1e-12);
}

TEST_F(CollectorTest, ARanksCaptureEndsForAllOfItsThreads) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile ended(dir_.path(), process.pid(), process.pid() + 1);  // its thread was gone when the capture ended
  pass();
  for (const RingUse& use : collector_->ring_uses()) EXPECT_FALSE(use.off);
  main_thread.put(offsetof(ring::Header, off_ticks), std::uint64_t{2'000'001'000});
  main_thread.put(offsetof(ring::Header, off), std::uint32_t{1});
  pass();
  EXPECT_EQ(collector_->ring_uses().size(), 2U);
  for (const RingUse& use : collector_->ring_uses()) EXPECT_TRUE(use.off);
  EXPECT_NEAR(collector_->costs().at(0).watched_s, 2.0, 1e-9) << "since MPI_Init, not until now";
  (void)finish();
}

TEST_F(CollectorTest, ASendThatIsUnderWayHoldsTheOtherThreadsBack) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const std::uint64_t begin = now_ns_ + 1'000'000;
  constexpr std::uint32_t kSend = 6;
  ASSERT_EQ(mpi_function(kSend)->name, "MPI_Send");
  other.put(offsetof(ring::Header, in_call), ring::kInCall | kSend << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), begin);
  main_thread.append(RingFile::record(EventKind::kRecv, begin - 10, begin + 10));
  pass(2);
  // Its message may be what the receive's sender waited for: nothing of the receive yet.
  EXPECT_EQ(events_so_far(), 0U);
  other.append(RingFile::record(EventKind::kSend, begin, begin + 5000));
  other.put(offsetof(ring::Header, in_call), ring::kInProgram);
  pass(2);
  EXPECT_EQ(events_so_far(), 2U);
  const auto decoded = finish();
  EXPECT_EQ(decoded.events.at(0).second.kind, EventKind::kSend);
  EXPECT_EQ(decoded.events.at(1).second.kind, EventKind::kRecv);
}

TEST_F(CollectorTest, ASendThatTakesForEverDoesNotHoldForEver) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  other.put(offsetof(ring::Header, in_call), ring::kInCall | std::uint32_t{6} << ring::kWhereBits);
  other.put(offsetof(ring::Header, call_enter_ticks), now_ns_);
  main_thread.append(RingFile::record(EventKind::kRecv, now_ns_ - 10, now_ns_ + 10));
  pass(100);
  EXPECT_EQ(events_so_far(), 0U);
  pass(200);
  EXPECT_EQ(events_so_far(), 1U);
  (void)finish();
}

TEST_F(CollectorTest, WhatIsYoungerThanThePassWaitsForTheNext) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  const std::uint64_t soon = now_ns_ + 150'000'000 + 1000;  // a pass's time is read before its rings are
  main_thread.append(RingFile::record(EventKind::kRecv, soon, soon + 10));
  pass();
  EXPECT_EQ(events_so_far(), 0U);
  other.append(RingFile::record(EventKind::kRecv, soon - 500, soon - 400));
  pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), 3U);
  EXPECT_NEAR(decoded.events[0].second.call_s, 100e-9, 1e-12);
  EXPECT_NEAR(decoded.events[1].second.call_s, 10e-9, 1e-12);
}

TEST_F(CollectorTest, AThreadsCommunicatorIsDefinedForTheOthers) {
  Sleeper process;
  RingFile main_thread(dir_.path(), process.pid(), process.pid());
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  ring::Record use = RingFile::record(EventKind::kSend, 2000, 6000);
  use.comm = 1;
  main_thread.append(use);
  ring::Record definition = RingFile::record(EventKind::kCommCreate, 3000, 3000);
  definition.comm = 1;
  other.append(definition, {42, 0, 0, 1});
  pass();
  const auto decoded = finish();
  std::vector<EventKind> order;
  for (const auto& [rank, event] : decoded.events) order.push_back(event.kind);
  EXPECT_THAT(order, testing::ElementsAre(EventKind::kCommCreate, EventKind::kSend, EventKind::kCommCreate,
                                          EventKind::kExit));
}

// One thread has more in its ring than a pass takes: the other's later records wait for it.
TEST_F(CollectorTest, AThreadThatIsFarAheadWaits) {
  Sleeper process;
  RingFile busy(dir_.path(), process.pid(), process.pid(), 8 << 20);
  RingFile other(dir_.path(), process.pid(), process.pid() + 1);
  constexpr std::uint64_t kRecords = (6 << 20) / sizeof(ring::Record);
  std::vector<ring::Record> records;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    records.push_back(RingFile::record(EventKind::kRecv, 2000 + 10 * i, 2000 + 10 * i + 5));
  }
  busy.append_all(records);
  ring::Record last = RingFile::record(EventKind::kProbe, 2000 + 10 * kRecords, 2000 + 10 * kRecords);
  other.append(last);
  pass();
  EXPECT_LT(events_so_far(), kRecords);
  for (int i = 0; i < 10; ++i) pass();
  const auto decoded = finish();
  ASSERT_EQ(decoded.events.size(), kRecords + 2);
  EXPECT_EQ(decoded.events[kRecords].second.kind, EventKind::kProbe);
  Seconds process_s = 0;
  for (const auto& [rank, event] : decoded.events) process_s += event.process_s;
  EXPECT_NEAR(process_s, 1000e-9 + static_cast<double>(kRecords) * 5e-9, 1e-12);
}

TEST_F(CollectorTest, CallsThatWereLeftAreCounted) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.put(offsetof(ring::Header, abandoned_calls), std::uint32_t{3});
  pass();
  ring::Record use = RingFile::record(EventKind::kSend, 2000, 6000);
  use.comm = 1;
  file.append(use);
  pass();
  const auto stats = of_type(finish(), "stats");
  ASSERT_FALSE(stats.empty());
  EXPECT_EQ(stats.back()["abandoned_calls"], 3);
  EXPECT_EQ(stats.back()["events_without_communicator"], 1);
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

// Of a rank that polls, and is preempted, what has been measured so far is all that passed until its last record, with the time
// that is in no event: it is told whenever `elapsed_s` is, which progress is compared with.
TEST_F(CollectorTest, WhatIsInNoEventIsToldWhileTheWindowIsOpen) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  const auto measured_s = [&] {
    builder_.flush();
    Seconds sum_s = 0;
    for (const auto& [rank, event] : lbfd_.decode("s").events) sum_s += event.process_s + event.call_s + event.off_s;
    return sum_s;
  };
  file.append_adjust(0, 0, 600'000'000);
  file.append(RingFile::record(EventKind::kSend, 1'000'001'000, 1'100'001'000));
  pass();
  EXPECT_NEAR(measured_s(), 0.5, 1e-8) << "0.4 s of process time, 0.1 s in the call";
  file.append_adjust(100'000'000, 0, 50'000'000);
  file.append(RingFile::record(EventKind::kSend, 2'100'001'000, 2'100'001'000));
  pass(2100);
  EXPECT_NEAR(measured_s(), 2.1, 1e-8);
  file.append_adjust(0, 0, 200'000'000);
  file.append(RingFile::record(EventKind::kWindowClose, 3'100'001'000, 3'100'001'000));
  pass(2100);
  EXPECT_NEAR(measured_s(), 3.1, 1e-8);
  std::vector<std::pair<EventKind, Seconds>> told;
  const auto decoded = finish();
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kKeepAlive || event.kind == EventKind::kWindowClose) told.emplace_back(event.kind, event.call_s);
  }
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].first, EventKind::kKeepAlive);
  EXPECT_NEAR(told[0].second, 0.75, 1e-8);
  EXPECT_NEAR(told[1].second, 0.2, 1e-8);
}

// A kRecordProcedure as the capture writes it, or nearly.
void append_words(RingFile& file, ring::ProcedureWord word, std::uint32_t id, const std::string& name,
                  const std::string& text, std::uint64_t bytes) {
  ring::Record record{};
  record.kind = ring::kRecordProcedure;
  record.tag = static_cast<std::int32_t>(word);
  record.comm = id;
  record.request = static_cast<std::uint32_t>(name.size());
  record.bytes = bytes;
  std::vector<std::uint64_t> values((name.size() + text.size() + 7) / 8, 0);
  std::memcpy(values.data(), (name + text).data(), name.size() + text.size());
  EXPECT_TRUE(file.append(record, values));
}
void append_words(RingFile& file, ring::ProcedureWord word, std::uint32_t id, const std::string& name,
                  const std::string& text = {}) {
  append_words(file, word, id, name, text, name.size() + text.size());
}

TEST_F(CollectorTest, ProceduresAreNamedBeforeTheirTimes) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kName, 4, "grid::Solver::step(double)");
  append_words(file, ring::ProcedureWord::kRefused, 0, "memcpy", "other code jumps into it");
  append_words(file, ring::ProcedureWord::kName, 4, "another name of it");  // the first one holds
  ring::Record spent = RingFile::record(EventKind::kProcedure, 3000, 3000);
  spent.flags = 0;
  file.append(spent, {4, 1500, 700, 3});
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  append_words(file, ring::ProcedureWord::kOff, 4, "grid::Solver::step(double)", "too often\n");
  pass();
  const auto decoded = finish();
  const auto names = of_type(decoded, "procedure");
  ASSERT_EQ(names.size(), 1U);
  EXPECT_EQ(names[0]["rank"], 0);
  EXPECT_EQ(names[0]["id"], 4);
  EXPECT_EQ(names[0]["name"], "grid::Solver::step(double)");
  const auto remarks = of_type(decoded, "procedure_remark");
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_EQ(remarks[0]["kind"], "refused");
  EXPECT_EQ(remarks[0]["name"], "memcpy");
  EXPECT_EQ(remarks[0]["text"], "other code jumps into it");
  EXPECT_EQ(remarks[1]["kind"], "off");
  EXPECT_EQ(remarks[1]["text"], "too often?") << "one line";
  ASSERT_GE(decoded.events.size(), 2U);
  EXPECT_EQ(decoded.events[0].second.kind, EventKind::kProcedure);
  EXPECT_NEAR(decoded.events[0].second.process_s, 2000e-9, 1e-12);
  EXPECT_EQ(decoded.events[1].second.kind, EventKind::kSend);
  EXPECT_NEAR(decoded.events[1].second.process_s, 0, 1e-12) << "words and times take no time of their own";
}

TEST_F(CollectorTest, BrokenWordsAboutProceduresAreNotBelieved) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kName, 1, "f", "", 4000);          // longer than what is there
  append_words(file, static_cast<ring::ProcedureWord>(9), 1, "f");            // no such word
  append_words(file, ring::ProcedureWord::kName, 1u << 20, "f");              // no such number
  append_words(file, ring::ProcedureWord::kName, 2, std::string(8, '\xff'));  // no UTF-8
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto decoded = finish();
  EXPECT_EQ(of_type(decoded, "procedure").size(), 1U);
  EXPECT_EQ(of_type(decoded, "note").size(), 2U);
  EXPECT_EQ(decoded.events.size(), 2U) << "and the process's events go on";
}

TEST_F(CollectorTest, CandidatesAndSamplesBecomeRecords) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  append_words(file, ring::ProcedureWord::kCandidate, 0, "grid::Solver::step(double)", "0 2 130 200\nsolve\ngrid::run()\n");
  append_words(file, ring::ProcedureWord::kCandidate, 0, "pack", "1 2 20 200\n");
  append_words(file, ring::ProcedureWord::kSamples, 0, "tiny", "10 7 640");
  {
    ring::Record off{};  // 4,096 calls in a millisecond
    off.kind = ring::kRecordProcedure;
    off.tag = static_cast<std::int32_t>(ring::ProcedureWord::kOff);
    off.request = off.bytes = 4;
    off.enter = 4096;
    off.leave = 1'000'000;
    std::uint64_t name = 0;
    std::memcpy(&name, "tiny", 4);
    ASSERT_TRUE(file.append(off, {name}));
  }
  append_words(file, ring::ProcedureWord::kCandidate, 0, "f", "0 2 many");  // broken
  append_words(file, ring::ProcedureWord::kSamples, 0, "tiny", "10");       // broken
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto decoded = finish();
  const auto candidates = of_type(decoded, "procedure_candidate");
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0]["names"], nlohmann::json({"grid::Solver::step(double)", "solve", "grid::run()"}));
  EXPECT_EQ(candidates[0]["samples"], 130);
  EXPECT_EQ(candidates[0]["own_samples"], 200);
  EXPECT_EQ(candidates[1]["number"], 1);
  EXPECT_EQ(candidates[1]["of"], 2);
  EXPECT_EQ(candidates[1]["names"], nlohmann::json({"pack"}));
  const auto samples = of_type(decoded, "procedure_samples");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0]["inclusive"], 10);
  EXPECT_EQ(samples[0]["exclusive"], 7);
  EXPECT_EQ(samples[0]["of"], 640);
  const auto remarks = of_type(decoded, "procedure_remark");
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0]["kind"], "off");
  EXPECT_NEAR(remarks[0]["calls_per_s"].get<double>(), 4.096e6, 1);
  EXPECT_EQ(of_type(decoded, "note").size(), 2U);
}

// What is spent once while the program runs (a thread that begins late, the procedures of "auto") is neither the capture's cost
// nor the program's processor time, which pays for it.
TEST_F(CollectorTest, WhatIsSpentOnceLaterIsNobodysTime) {
  RingFile file(dir_.path(), ::getpid(), ::getpid());
  file.put(offsetof(ring::Header, once_cpu_ns), std::uint64_t{7'000'000});
  pass();
  ASSERT_EQ(collector_->costs().size(), 1U);
  EXPECT_NEAR(collector_->costs().at(0).once_s, 0.007, 1e-12);
  EXPECT_EQ(collector_->costs().at(0).late_once_s, 0) << "before MPI_Init returned: not in cpu_s";
  const std::clock_t until = std::clock() + CLOCKS_PER_SEC / 10;
  while (std::clock() < until) {
  }
  pass();
  const Seconds before_s = collector_->costs().at(0).program_cpu_s();
  ASSERT_GT(before_s, 0.08);
  file.put(offsetof(ring::Header, once_cpu_ns), std::uint64_t{57'000'000});
  pass();
  const RankCost& cost = collector_->costs().at(0);
  EXPECT_NEAR(cost.once_s, 0.057, 1e-12);
  EXPECT_NEAR(cost.late_once_s, 0.05, 1e-12);
  EXPECT_EQ(cost.observed.direct_s, 0);
  EXPECT_NEAR(cost.program_cpu_s(), cost.cpu_s - 0.05, 1e-12);
  // A ring that says less than before, or more than can be, takes nothing back and no more than all.
  file.put(offsetof(ring::Header, once_cpu_ns), std::uint64_t{0});
  pass();
  EXPECT_NEAR(collector_->costs().at(0).late_once_s, 0.05, 1e-12);
  file.put(offsetof(ring::Header, once_cpu_ns), ~std::uint64_t{0});
  pass();
  EXPECT_EQ(collector_->costs().at(0).program_cpu_s(), 0);
}

// What lbfd wants all ranks to measure goes into the rings of processes that are there and that come, and into the stream once.
TEST_F(CollectorTest, AListOfProceduresReachesTheRings) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.append(RingFile::record(EventKind::kSend, 3000, 3500));
  pass();
  const auto give = [&](std::uint64_t generation, std::vector<std::string> names) {
    auto list = std::make_shared<ProcedureList>();
    *list = {generation, std::move(names), "why"};
    collector_->give_procedure_list(std::move(list));
    pass();
  };
  const auto generation = [&] { return file.get<std::uint64_t>(offsetof(ring::Header, list_generation)); };
  EXPECT_EQ(generation(), 0U);
  give(2, {"solve", "pack"});
  EXPECT_EQ(generation(), 2U);
  EXPECT_EQ(file.get<std::uint64_t>(offsetof(ring::Header, list_begun)), 2U);
  EXPECT_EQ(file.get<std::uint32_t>(offsetof(ring::Header, list_bytes)), 11U);
  EXPECT_EQ(std::string(file.get<std::array<char, 11>>(offsetof(ring::Header, list)).data(), 11), "solve\npack\n");
  give(1, {"older"});
  EXPECT_EQ(generation(), 2U);
  const auto decoded = finish();
  const auto lists = of_type(decoded, "procedure_list");
  ASSERT_EQ(lists.size(), 1U);
  EXPECT_EQ(lists[0]["generation"], 2);
  EXPECT_EQ(lists[0]["rank"], 0);
  EXPECT_EQ(lists[0]["names"], nlohmann::json({"solve", "pack"}));
}

}  // namespace
}  // namespace lbf::relay
