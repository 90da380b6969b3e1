// Patching this very program: counts, times between MPI calls, switching while threads run, the cost limit,
// sampling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>
#include <ucontext.h>

#include <atomic>
#include <span>
#include <stdexcept>
#include <thread>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/procedures.h"
#include "spank_plugin/procedures/sampler.h"

namespace measured {

std::atomic<long> sink{0};

[[gnu::noinline, gnu::noclone]] long work(long n) {
  for (long i = 0; i < n; ++i) sink.fetch_add(1, std::memory_order_relaxed);
  return n;
}
[[gnu::noinline, gnu::noclone]] long outer_work(long n) {
  const long result = work(n) + work(n);
  sink.fetch_add(1, std::memory_order_relaxed);
  return result;
}
[[gnu::noinline, gnu::noclone]] long tiny(long n) {
  sink.store(n, std::memory_order_relaxed);
  return n + 1;
}
[[gnu::noinline, gnu::noclone]] long late_one(long n) {
  return work(2) + n + 1;
}
[[gnu::noinline, gnu::noclone]] long sampled_inner(long n) {
  for (long i = 0; i < 3 * n; ++i) sink.fetch_add(1, std::memory_order_relaxed);
  return n;
}
[[gnu::noinline, gnu::noclone]] long sampled_outer(long n) {
  for (long i = 0; i < n; ++i) sink.fetch_add(1, std::memory_order_relaxed);
  const long result = sampled_inner(n);
  sink.fetch_add(result, std::memory_order_relaxed);
  return result;
}
// Works, and does not run for 20 ms.
[[gnu::noinline, gnu::noclone]] long naps(long n) {
  const long result = work(n);
  constexpr timespec kNap{0, 20'000'000};
  nanosleep(&kNap, nullptr);
  return result + work(n);
}
[[gnu::noinline, gnu::noclone]] void throwing(long n) {
  sink.store(n, std::memory_order_relaxed);
  if (n >= 0) throw std::runtime_error("thrown");
}

ucontext_t resumer;
ucontext_t coroutine;
[[gnu::noinline, gnu::noclone]] long yields(long n) {
  sink.store(n, std::memory_order_relaxed);
  swapcontext(&coroutine, &resumer);
  return sink.load(std::memory_order_relaxed) + 1;
}
long yielded = 0;
void run_coroutine() {
  yielded = yields(41);
}

}  // namespace measured

// Several short instructions that take long: a thread that calls this stands between two that the jump
// replaces, mostly.
extern "C" long lbf_test_slow_entry(long n);
__asm__(
    ".text\n.balign 16\n.globl lbf_test_slow_entry\n.type lbf_test_slow_entry, "
    "@function\nlbf_test_slow_entry:\n"
    "pause\npause\npause\nlea 1(%rdi), %rax\nret\n.size lbf_test_slow_entry, . - lbf_test_slow_entry\n");

namespace lbf::procedures::measuring_test {
namespace {

using testing::HasSubstr;

class Measuring : public testing::Test {
 protected:
  // Once in a process: stubs stay.
  static Procedures& all() {
    static Procedures* procedures = [] {
      auto* made = new Procedures;
      const auto opened = made->open(
          "measured::work,measured::outer_work,measured::naps,measured::tiny,measured::throwing,measured::tyni,"
          "measured::"
          "yields,lbf_test_slow_entry");
      EXPECT_TRUE(opened);
      return made;
    }();
    return *procedures;
  }
  static std::uint32_t id(const std::string& name) {
    for (const SelectedProcedure& procedure : all().selection().selected) {
      if (procedure.name == name || procedure.name.find("::" + name + "(") != std::string::npos) return procedure.id;
    }
    ADD_FAILURE() << name << " is not selected";
    return 0;
  }
  void TearDown() override {
    cost_rule.limit_65536.store(0);
    for (const SelectedProcedure& procedure : all().selection().selected) ASSERT_TRUE(all().unpatch(procedure.id));
  }
};

TEST_F(Measuring, UnknownNameListsNearOnes) {
  ASSERT_EQ(all().selection().refused.size(), 1u);
  EXPECT_THAT(all().selection().refused[0].reason, HasSubstr("near: measured::tiny(long)"));
}

TEST_F(Measuring, CountsOnlyWhilePatched) {
  const std::uint32_t tiny = id("tiny");
  const std::uint64_t before = sums_of(tiny).calls;
  measured::tiny(1);
  EXPECT_EQ(sums_of(tiny).calls, before);
  ASSERT_TRUE(all().patch(tiny));
  EXPECT_EQ(all().state(tiny), ProcedureState::kMeasured);
  for (long i = 0; i < 1000; ++i) EXPECT_EQ(measured::tiny(i), i + 1);
  EXPECT_EQ(sums_of(tiny).calls, before + 1000);
  ASSERT_TRUE(all().unpatch(tiny));
  EXPECT_EQ(all().state(tiny), ProcedureState::kSwitchedOff);
  for (long i = 0; i < 1000; ++i) EXPECT_EQ(measured::tiny(i), i + 1);
  EXPECT_EQ(sums_of(tiny).calls, before + 1000);
}

TEST_F(Measuring, IntervalsEndAtMpiCallsAndTimeInsideIsNotCharged) {
  ASSERT_TRUE(all().patch_all());
  IntervalSums out[kMaxProcedures];
  measured::tiny(0);  // the thread has its memory now
  take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
  const std::uint64_t from = __builtin_ia32_rdtsc();
  resume(from);
  measured::outer_work(2000);
  measured::work(500);
  const std::uint64_t to = __builtin_ia32_rdtsc();
  const std::uint32_t count = take_interval(to, out, kMaxProcedures);
  ASSERT_EQ(count, 2u);
  CallSums work;
  CallSums outer;
  for (const IntervalSums& sums : std::span(out, count)) (sums.procedure == id("work") ? work : outer) = sums.sums;
  EXPECT_EQ(work.calls, 3u);
  EXPECT_EQ(outer.calls, 1u);
  EXPECT_LE(work.inclusive_ticks + outer.self_ticks, to - from);
  EXPECT_GE(outer.inclusive_ticks, outer.self_ticks);
  EXPECT_EQ(work.self_ticks, work.inclusive_ticks);
  EXPECT_GT(work.inclusive_ticks, outer.self_ticks);
  // Inside "MPI": calls count, time does not.
  measured::work(2000);
  resume(__builtin_ia32_rdtsc());
  const std::uint32_t again = take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
  ASSERT_EQ(again, 1u);
  EXPECT_EQ(out[0].sums.calls, 1u);
  EXPECT_EQ(out[0].sums.inclusive_ticks, 0u);
  resume(__builtin_ia32_rdtsc());
  EXPECT_EQ(take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures), 0u);
  resume(__builtin_ia32_rdtsc());
}

// Whoever else runs, or when it sleeps: what the thread did not run is in no procedure. The first interval shows that
// there are long stretches; from the second on the processor's clock is read where they begin.
TEST_F(Measuring, LongStretchesCountAsFarAsTheThreadRan) {
  timespec began{};
  clock_gettime(CLOCK_MONOTONIC, &began);
  const std::uint64_t from = __builtin_ia32_rdtsc();
  constexpr timespec kBaseline{0, 5'000'000};
  nanosleep(&kBaseline, nullptr);
  timespec ended{};
  clock_gettime(CLOCK_MONOTONIC, &ended);
  const double ns =
      1e9 * static_cast<double>(ended.tv_sec - began.tv_sec) + static_cast<double>(ended.tv_nsec - began.tv_nsec);
  const double ticks_per_ns = static_cast<double>(__builtin_ia32_rdtsc() - from) / ns;
  ticks_per_2_20_ns.store(static_cast<std::uint64_t>(ticks_per_ns * (1 << 20)));
  const auto nap = static_cast<std::uint64_t>(20e6 * ticks_per_ns);

  ASSERT_TRUE(all().patch(id("naps")));
  measured::tiny(0);
  IntervalSums out[kMaxProcedures];
  const auto interval = [&](long n) {
    resume(__builtin_ia32_rdtsc());
    measured::naps(n);
    const std::uint32_t count = take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(out[0].procedure, id("naps"));
    return out[0];
  };
  take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
  measured::naps(1);  // the thread has its memory now
  take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
  const IntervalSums first = interval(1000);
  EXPECT_EQ(first.processor_time, 0u);
  EXPECT_GT(first.sums.self_ticks, nap);
  for (int i = 0; i < 3; ++i) {
    resume(__builtin_ia32_rdtsc());  // a short one between
    take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
    const IntervalSums later = interval(1000);
    EXPECT_EQ(later.processor_time, 1u);
    EXPECT_GT(later.sums.self_ticks, 0u);
    EXPECT_LT(later.sums.self_ticks, nap / 4);
    EXPECT_EQ(later.sums.inclusive_ticks, later.sums.self_ticks);
  }
  // Another procedure inside: the nap is the outer one's only.
  ASSERT_TRUE(all().patch(id("work")));
  resume(__builtin_ia32_rdtsc());
  measured::naps(1000);
  ASSERT_EQ(take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures), 2u);
  for (const IntervalSums& sums : std::span(out, 2)) {
    EXPECT_EQ(sums.processor_time, 1u);
    EXPECT_LT(sums.sums.inclusive_ticks, nap / 4);
  }
  // Without the clock's rate it is the TSC's time again.
  ticks_per_2_20_ns.store(0);
  resume(__builtin_ia32_rdtsc());
}

TEST_F(Measuring, ExceptionsPassAndEndTheCall) {
  const std::uint32_t throwing = id("throwing");
  ASSERT_TRUE(all().patch(throwing));
  const CallSums before = sums_of(throwing);
  int caught = 0;
  for (int i = 0; i < 50; ++i) {
    try {
      measured::throwing(i);
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  EXPECT_EQ(caught, 50);
  const CallSums after = sums_of(throwing);
  EXPECT_EQ(after.calls - before.calls, 50u);
  EXPECT_EQ(after.left_by_jump - before.left_by_jump, 50u);
}

TEST_F(Measuring, CoroutineReturnsInAnotherThread) {
  ASSERT_TRUE(all().patch(id("yields")));
  const std::uint64_t before = sums_of(id("yields")).calls;
  std::vector<char> stack(64 * 1024);
  getcontext(&measured::coroutine);
  measured::coroutine.uc_stack.ss_sp = stack.data();
  measured::coroutine.uc_stack.ss_size = stack.size();
  measured::coroutine.uc_link = &measured::resumer;
  makecontext(&measured::coroutine, measured::run_coroutine, 0);
  const auto go_on = [] { swapcontext(&measured::resumer, &measured::coroutine); };
  std::thread(go_on).join();
  measured::yielded = 0;
  std::thread second([&] {
    go_on();
    measured::tiny(1);
  });
  second.join();
  EXPECT_EQ(measured::yielded, 42);
  EXPECT_EQ(sums_of(id("yields")).calls, before + 1);
}

TEST_F(Measuring, SwitchedWhileThreadsCallIt) {
  const std::uint32_t tiny = id("tiny");
  const std::uint32_t slow = id("lbf_test_slow_entry");
  std::atomic<bool> stop{false};
  std::atomic<long> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (long i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        if (measured::tiny(i) != i + 1 || lbf_test_slow_entry(i) != i + 1) wrong.fetch_add(1);
      }
    });
  }
  const std::uint64_t before = sums_of(tiny).calls;
  const std::uint64_t before_slow = sums_of(slow).calls;
  for (int round = 0; round < 40; ++round) {
    for (const std::uint32_t procedure : {tiny, slow}) {
      const auto patched = all().patch(procedure);
      ASSERT_TRUE(patched) << patched.error().message;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    for (const std::uint32_t procedure : {slow, tiny}) {
      const auto unpatched = all().unpatch(procedure);
      ASSERT_TRUE(unpatched) << unpatched.error().message;
    }
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(sums_of(tiny).calls, before);
  EXPECT_GT(sums_of(slow).calls, before_slow);
}

TEST_F(Measuring, CostLimitSwitchesOffWhatIsCalledTooOften) {
  const double call_ticks = Procedures::measure_call_ticks();
  ASSERT_GT(call_ticks, 10.0);
  ASSERT_TRUE(all().patch_all());
  all().limit_cost(0.02, call_ticks);
  for (long i = 0; i < 200; ++i) measured::work(5000);
  EXPECT_EQ(all().state(id("work")), ProcedureState::kMeasured);
  for (long i = 0; i < 200000; ++i) measured::tiny(i);
  EXPECT_EQ(all().state(id("tiny")), ProcedureState::kSwitchedOffByCost);
  EXPECT_EQ(all().state(id("work")), ProcedureState::kMeasured);
  // It can be switched on again.
  all().limit_cost(0, call_ticks);
  const std::uint64_t before = sums_of(id("tiny")).calls;
  ASSERT_TRUE(all().patch(id("tiny")));
  measured::tiny(1);
  EXPECT_EQ(sums_of(id("tiny")).calls, before + 1);
}

// What the hooks cost there nobody knew: no MPI call comes that could tell it.
TEST_F(Measuring, CallsOfThreadsThatCallNoMpiAreToldAtTheirReviews) {
  const std::uint32_t tiny = id("tiny");
  ASSERT_TRUE(all().patch(tiny));
  const std::uint64_t before = sums_of(tiny).calls;
  std::uint64_t made = 0;
  std::uint64_t told = 0;
  std::uint64_t taken = 0;
  std::uint64_t told_after_mpi = 0;
  std::thread([&] {
    const auto call = [&](std::uint64_t times) {
      for (std::uint64_t i = 0; i < times; ++i) measured::tiny(1);
      made += times;
    };
    // Up to a review: the thread may go on with what one that ended has left.
    const std::uint64_t at_first = calls_beside();
    while (calls_beside() == at_first && made <= kCallsPerReview) call(1);
    const std::uint64_t begin = calls_beside();
    call(2 * kCallsPerReview + 100);
    told = calls_beside() - begin;
    IntervalSums out[kMaxProcedures];
    const std::uint32_t count = take_interval(__builtin_ia32_rdtsc(), out, kMaxProcedures);
    for (const IntervalSums& sums : std::span(out, count)) taken += sums.sums.calls;
    resume(__builtin_ia32_rdtsc());
    call(2 * kCallsPerReview);
    told_after_mpi = calls_beside() - begin - told;
  }).join();
  EXPECT_EQ(told, 2 * kCallsPerReview);
  EXPECT_EQ(taken, 100u) << "and none of them twice";
  EXPECT_EQ(told_after_mpi, 0u) << "from its first MPI call on it tells its calls itself";
  EXPECT_EQ(sums_of(tiny).calls - before, made);
}

TEST_F(Measuring, PredictedShare) {
  EXPECT_DOUBLE_EQ(predicted_share(1e6, 40), 0.04);
}

TEST_F(Measuring, SamplesFindWhereTheTimeGoes) {
  ASSERT_TRUE(all().patch(id("outer_work")));  // unwinding passes measured procedures
  const std::uint64_t spent_before = Sampler::ticks();
  const auto watched = Sampler::start(1'000'000);
  ASSERT_TRUE(watched) << watched.error().message;
  const auto used_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  };
  const std::int64_t end = used_ns() + 300'000'000;
  while (used_ns() < end) measured::outer_work(20000);
  Sampler::stop();
  LoadedSymbols symbols;
  ASSERT_TRUE(symbols.read(""));
  const SampleProfile profile = Sampler::profile(symbols);
  ASSERT_GT(profile.samples, 20u);
  SampledProcedure work;
  SampledProcedure outer;
  for (const SampledProcedure& procedure : profile.procedures) {
    if (procedure.name == "measured::work(long)") work = procedure;
    if (procedure.name == "measured::outer_work(long)") outer = procedure;
  }
  EXPECT_GT(static_cast<double>(work.exclusive), 0.8 * static_cast<double>(profile.samples));
  EXPECT_GT(static_cast<double>(outer.inclusive), 0.8 * static_cast<double>(profile.samples));
  EXPECT_LT(static_cast<double>(outer.exclusive), 0.2 * static_cast<double>(profile.samples));
  // Walking a stack takes a microsecond or some.
  EXPECT_GT(Sampler::ticks() - spent_before, 200 * profile.samples) << "what is charged";
}

// "auto" reads the symbols once, for its choice and for what is opened then.
TEST_F(Measuring, SymbolsAreReadOnceForAll) {
  Procedures fresh;
  ASSERT_TRUE(fresh.read());
  const std::size_t symbols = fresh.symbols().symbols().size();
  ASSERT_GT(symbols, 1000u);
  const LoadedSymbol* const first = fresh.symbols().symbols().data();
  ASSERT_TRUE(fresh.read());
  const auto opened = fresh.open("measured::sampled_outer");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(*opened, 1u);
  EXPECT_EQ(fresh.symbols().symbols().size(), symbols);
  EXPECT_EQ(fresh.symbols().symbols().data(), first);
}

// The list of all ranks may name what nobody asked for before.
TEST_F(Measuring, FurtherProceduresCanBeOpened) {
  const std::size_t before = all().selection().selected.size();
  const std::uint32_t work = id("work");
  const auto opened = all().open("measured::late_one,measured::work");
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_EQ(all().selection().selected.size(), before + 1);
  EXPECT_EQ(id("work"), work) << "what is known keeps its number";
  ASSERT_TRUE(all().patch(id("late_one")));
  ASSERT_TRUE(all().patch(work));
  const std::uint64_t works = sums_of(work).calls;
  for (long i = 0; i < 10; ++i) EXPECT_EQ(measured::late_one(i), i + 3);
  EXPECT_EQ(sums_of(id("late_one")).calls, 10u);
  EXPECT_EQ(sums_of(work).calls, works + 10);
}

// Samples that are counted as they come, of a thread that calls MPI, between its calls.
TEST_F(Measuring, SamplesAreCountedInWatchedCode) {
  std::vector<WatchedCode> code;
  std::uint32_t number = 0;
  for (const char* const name : {"measured::sampled_inner(long)", "measured::sampled_outer(long)"}) {
    ASSERT_TRUE(all().open(name)) << name;
    for (const ProcedurePiece& piece : all().selection().code) {
      if (piece.name == name) code.push_back({piece.begin, piece.end, number});
    }
    ++number;
  }
  ASSERT_GE(code.size(), 2u);
  const std::uint64_t before = Sampler::watched_samples();
  ASSERT_TRUE(Sampler::watch(code));
  const auto work_until = [&](std::uint64_t samples) {
    timespec begin{};
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    // So long that looking at the clock gets none of the samples, and never twice as long: no step with the samples.
    long turn = 0;
    do {
      measured::sampled_outer(50'000 + ++turn * 7'919 % 100'000);
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (Sampler::watched_samples() < before + samples && now.tv_sec - begin.tv_sec < 5);
  };
  IntervalSums sums[kMaxProcedures];
  take_interval(__builtin_ia32_rdtsc(), sums, kMaxProcedures);  // "in MPI"
  const std::uint64_t then = Sampler::watched_samples();
  timespec begin{};
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  do {
    measured::sampled_outer(2000);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec < 100'000'000);
  EXPECT_EQ(Sampler::watched_samples(), then) << "inside MPI calls nothing counts";
  resume(__builtin_ia32_rdtsc());
  work_until(60);
  Sampler::stop();
  const WatchedSamples inner = Sampler::watched(0);
  const WatchedSamples outer = Sampler::watched(1);
  ASSERT_GE(inner.of, 60u);
  EXPECT_EQ(inner.of, outer.of);
  EXPECT_GT(outer.inclusive, 9 * outer.of / 10) << "all of it is in there";
  EXPECT_GT(inner.exclusive, outer.of / 2) << "most of that in what it calls";
  EXPECT_LT(inner.exclusive, outer.of) << "but not all";
  EXPECT_GE(outer.inclusive, inner.inclusive);
  EXPECT_LE(outer.exclusive + inner.exclusive, outer.of);
  EXPECT_GT(Sampler::ticks(), 0u);
}

}  // namespace
}  // namespace lbf::procedures::measuring_test