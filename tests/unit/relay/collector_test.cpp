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

#include "spank_plugin/relay/process_probe.h"
#include "tests/unit/relay/collector_fixture.h"

namespace lbf::relay::collector_test {
namespace {

// A container's /dev/shm of 64 MB: rings are smaller, and the report says so once.
TEST_F(CollectorTest, SmallRingsAreNotedOnce) {
  Sleeper a;
  Sleeper b;
  RingFile first(dir_.path(), a.pid(), a.pid());
  first.put(offsetof(ring::Header, wanted_bytes), std::uint64_t{8} << 20);
  RingFile second(dir_.path(), b.pid(), b.pid());
  second.put(offsetof(ring::Header, rank), std::int32_t{1});
  second.put(offsetof(ring::Header, wanted_bytes), std::uint64_t{8} << 20);
  pass();
  const auto notes = of_type(finish(), "note");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0]["text"].get<std::string>(), testing::HasSubstr("an event ring has 4 KiB instead of 8192 KiB"));
}

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

// Another process has the ring of a dead one mapped and goes on writing: the relay never left its last look.
TEST_F(CollectorTest, OfADeadProcessNoMoreIsReadThanItHadWritten) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  pass();
  for (std::uint64_t i = 0; i < 20; ++i) file.append(RingFile::record(EventKind::kSend, 2000 + i, 2000 + i));
  process.kill();
  int written = 0;
  const auto write_more = [&] {
    if (++written <= 1000) file.append(RingFile::record(EventKind::kSend, 3000, 3000));
    return true;
  };
  collector_->finish({now_ns_, now_ns_}, rate_, builder_, {std::numeric_limits<Bytes>::max(), write_more});
  const auto decoded = lbfd_.decode("s");
  EXPECT_EQ(decoded.events.size(), 21U);
  EXPECT_LT(written, 5);
  EXPECT_EQ(of_type(decoded, "process_end").at(0)["how"], "killed");
}

// What 64 ranks leave in their rings when they are killed is more than the relay may hold.
TEST_F(CollectorTest, WhatTheSenderHasNoRoomForWaitsForTheNextPass) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid(), 1 << 20);
  pass();
  const std::vector<ring::Record> records(10'000, RingFile::record(EventKind::kSend, 2000, 2000));
  file.append_all(records);
  process.kill();
  const auto look = [&](Bytes bytes, bool left) {
    now_ns_ += 1'000'000'000;
    collector_->pass({now_ns_, now_ns_}, rate_, builder_, {bytes, [=] { return left; }});
  };
  look(0, false);
  EXPECT_NEAR(static_cast<double>(file.get<std::uint64_t>(offsetof(ring::Header, tail))),
              static_cast<double>(kLeastRingBytesPerPass), 5000);
  EXPECT_FALSE(collector_->idle());
  look(0, true);
  EXPECT_TRUE(collector_->idle());
  const auto decoded = finish();
  EXPECT_EQ(decoded.events.size(), records.size() + 1);
  EXPECT_EQ(of_type(decoded, "process_end").at(0)["how"], "killed");
}

// A rank that sleeps, waits in a call or is suspended, and what a program does after MPI_Finalize: lbfd would give up a
// stream from which nothing comes.
TEST_F(CollectorTest, WhereNothingIsRecordedAnEmptyBatchComes) {
  Sleeper process;
  pass(60'000);
  EXPECT_EQ(lbfd_.batches["s"].size(), 0U) << "no MPI program: nothing to say";
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.append(RingFile::record(EventKind::kSend, 2000, 2001));
  const auto batches_of_a_minute = [this] {
    for (int i = 0; i < 4; ++i) pass(1000);  // for the event and the stats
    const std::size_t before = lbfd_.batches["s"].size();
    for (int i = 0; i < 60; ++i) pass(1000);
    return lbfd_.batches["s"].size() - before;
  };
  EXPECT_THAT(batches_of_a_minute(), testing::AllOf(testing::Ge(9U), testing::Le(12U)));
  file.append(RingFile::record(EventKind::kExit, 3000, 3001));
  file.set_state(ring::ProcessState::kFinalized);
  EXPECT_THAT(batches_of_a_minute(), testing::AllOf(testing::Ge(9U), testing::Le(12U)));
  const auto decoded = finish();
  EXPECT_EQ(decoded.events.size(), 2U);
  EXPECT_EQ(of_type(decoded, "process_end").size(), 1U);
}

// Linux says within 5 s that the process is in this state.
bool state_is(pid_t pid, const std::string& wanted) {
  for (int i = 0; i < 5000; ++i) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, letter;
    file >> number >> name >> letter;
    if (letter == wanted) return true;
    ::usleep(1000);
  }
  return false;
}

// It was stopped while its calls were counted, and the capture ended afterwards: what comes then is not what the stop
// is in.
TEST_F(CollectorTest, AStopBetweenWindowsIsInNoEvent) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.append(RingFile::record(EventKind::kSend, 2000, 2001));
  pass(1000);
  const std::uint64_t closed = now_ns_;
  file.append(RingFile::record(EventKind::kWindowClose, closed, closed));
  pass(1000);
  ::kill(process.pid(), SIGSTOP);
  ASSERT_TRUE(state_is(process.pid(), "T"));
  for (int i = 0; i < 10; ++i) pass(1000);
  ::kill(process.pid(), SIGCONT);
  ASSERT_TRUE(state_is(process.pid(), "S"));
  pass(1000);
  ring::Record end = RingFile::record(EventKind::kSkipped, closed, closed);
  ring::set_skipped(end, SkippedSide::kEverything, 1);
  file.append(end);
  pass(1000);
  process.kill();
  pass(1000);
  const auto decoded = finish();
  ASSERT_FALSE(decoded.events.empty());
  Seconds away_s = 0;
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kWindowOpen) away_s = event.call_s;
  }
  EXPECT_NEAR(away_s, 14 - 10, 0.1);
}

// A rank that is stopped, and one that is frozen after it: Linux says D of it, which alone means a disk.
TEST_F(CollectorTest, AStoppedRankThatIsThenFrozenIsStillStopped) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    // In state D as long as its child of a vfork() lives.
    ::setpgid(0, 0);
    struct sigaction wait_in_vfork = {};
    wait_in_vfork.sa_handler = [](int) {
      if (::syscall(SYS_vfork) == 0) {
        for (;;) ::pause();
      }
    };
    ::sigaction(SIGUSR1, &wait_in_vfork, nullptr);
    for (;;) ::pause();
  }
  ASSERT_TRUE(state_is(pid, "S"));
  RingFile file(dir_.path(), pid, pid);
  file.append(RingFile::record(EventKind::kSend, 2000, 2001));
  pass(1000);
  ::kill(pid, SIGSTOP);
  ASSERT_TRUE(state_is(pid, "T"));
  pass(1000);
  ::kill(pid, SIGUSR1);
  ::kill(pid, SIGCONT);
  ASSERT_TRUE(state_is(pid, "D"));
  for (int i = 0; i < 10; ++i) pass(1000);
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  const auto decoded = finish();
  const auto notes = of_type(decoded, "note");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0]["text"].get<std::string>(),
              testing::HasSubstr("was stopped (a suspended job?) for about 10.5 s"));
  EXPECT_NEAR(notes[0]["stopped_s"].get<double>(), 10.5, 0.01);
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

// All its MPI sessions were closed, and none had a communicator.
TEST_F(CollectorTest, AProcessThatEndsBetweenSessionsIsNotCalledKilled) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.set_state(ring::ProcessState::kBetweenSessions);
  pass();
  EXPECT_TRUE(of_type(lbfd_.decode("s"), "process_end").empty());
  process.kill();
  pass();
  EXPECT_EQ(of_type(finish(), "process_end").at(0)["how"], "finalized");
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
  const auto notes = of_type(decoded, "note");  // the first by name, the number at the end
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[0]["text"].get<std::string>(), testing::HasSubstr("rank 0 of 1"));
  EXPECT_THAT(notes[0]["text"].get<std::string>(), testing::HasSubstr("srun --mpi=pmix"));
  EXPECT_EQ(decoded.events.size(), 2U);  // and the exit
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

// Open MPI without --mpi=pmix ends there: the step was "complete", and "no process called MPI_Init".
TEST_F(CollectorTest, AProcessThatEndsInMpiInitIsNamed) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.set_state(ring::ProcessState::kStarting);
  pass();
  process.kill();
  const auto decoded = finish();
  EXPECT_EQ(collector_->processes_left_out(), 0U) << "it may be a tool beside the program";
  const auto notes = of_type(decoded, "note");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0]["text"].get<std::string>(), testing::HasSubstr("never came out of MPI_Init"));
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

TEST_F(CollectorTest, LibrariesOfDevicesAreTold) {
  Sleeper process;
  RingFile file(dir_.path(), process.pid(), process.pid());
  file.put(offsetof(ring::Header, device_libraries), std::uint32_t{0x80 | ring::kCudaLibrary | ring::kHipLibrary});
  pass();
  const auto stats = of_type(finish(), "stats");
  ASSERT_FALSE(stats.empty());
  EXPECT_EQ(stats.back()["devices"], (nlohmann::json{"CUDA", "HIP"}));
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
  for (const char* name : {"step.json", "x.ring", "1.ring", "-5.6.ring", "12.ring.ring", "99999999999.1.ring"}) {
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
  file.put(offsetof(ring::Header, device_libraries), std::uint32_t{ring::kCudaLibrary});  // loaded, by MPI say
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

// Of a rank that polls, and is preempted, what has been measured so far is all that passed until its last record, with
// the time that is in no event: it is told whenever `elapsed_s` is, which progress is compared with.
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
  Seconds by_others_s = 0;
  const auto decoded = finish();
  for (const auto& [rank, event] : decoded.events) {
    if (event.kind == EventKind::kKeepAlive || event.kind == EventKind::kWindowClose)
      told.emplace_back(event.kind, event.call_s);
    if (event.kind == EventKind::kPreempted) by_others_s += event.off_s;
  }
  EXPECT_NEAR(by_others_s, 0.1, 1e-8);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].first, EventKind::kKeepAlive);
  EXPECT_NEAR(told[0].second, 0.65, 1e-8) << "the rest had others, as far as is known after a moment";
  EXPECT_NEAR(told[1].second, 0.2, 1e-8);
}

// What is spent once while the program runs (a thread that begins late, the procedures of "auto") is neither the
// capture's cost nor the program's processor time, which pays for it.
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

// A run of 0.12 s was looked at last 0.1 s before its end, and had "overheads of 800 %".
TEST_F(CollectorTest, TheProcessorTimeOfAProcessThatIsGoneIsWhatItSaidAtItsEnd) {
  Sleeper sleeper;
  RingFile file(dir_.path(), sleeper.pid(), sleeper.pid());
  file.put(offsetof(ring::Header, init_leave_ticks), now_ns_);
  pass(20);
  ASSERT_EQ(collector_->costs().size(), 1U);
  EXPECT_LT(collector_->costs().at(0).cpu_s, 0.05);

  file.put(offsetof(ring::Header, end_cpu_ns), std::uint64_t{100'000'000});
  file.put(offsetof(ring::Header, finalize_enter_ticks), now_ns_ + 100'000'000);
  sleeper.kill();
  pass();
  EXPECT_NEAR(collector_->costs().at(0).cpu_s, 0.1, 0.05);

  // More than all processors together have in that time nobody uses.
  Sleeper other;
  RingFile liar(dir_.path(), other.pid(), other.pid());
  liar.put(offsetof(ring::Header, rank), std::int32_t{1});
  liar.put(offsetof(ring::Header, init_leave_ticks), now_ns_);
  pass(20);
  liar.put(offsetof(ring::Header, end_cpu_ns), std::uint64_t{1} << 62);
  liar.put(offsetof(ring::Header, finalize_enter_ticks), now_ns_ + 100'000'000);
  other.kill();
  pass();
  EXPECT_LE(collector_->costs().at(1).cpu_s, 0.13 * static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace
}  // namespace lbf::relay::collector_test