// Sampler: where the threads of this process spend their processor time, by statistical sampling.
//
// Place in the event's way: beside the patched procedures: finds candidates (`--lbf-procedures=auto`), and
// stands in for procedures that cannot be patched. Each thread has a timer on its processor-time clock that
// sends it a real-time signal the program does not use; the handler walks the stack by unwind information
// (libgcc's _Unwind_Backtrace, which since gcc 12 and glibc 2.35 finds it without a lock or the heap).
// docs/procedures.md, "Sampling".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "spank_plugin/procedures/loaded_symbols.h"

namespace lbf::procedures {

struct SampledCaller {
  std::string name;
  std::string module;
  std::uint64_t samples = 0;  // in which it was the next other procedure on the stack
};

struct SampledProcedure {
  std::string name;
  std::string module;
  std::uint64_t exclusive = 0;           // samples in the procedure itself
  std::uint64_t inclusive = 0;           // in it or in what it called; recursion counts once
  std::vector<SampledCaller> callers{};  // of those samples, most first
};

struct SampleProfile {
  std::uint64_t samples = 0;
  std::uint64_t dropped = 0;                 // the buffer was full
  std::vector<SampledProcedure> procedures;  // most inclusive samples first
};

// A piece of code in which samples are counted, as procedure `number`, below kMostWatched; kNotCounted: samples that
// have it on their stack do not count at all.
struct WatchedCode {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint32_t number = 0;
};
inline constexpr std::uint32_t kMostWatched = 256;
inline constexpr std::uint32_t kNotCounted = kMostWatched;

struct WatchedSamples {
  std::uint64_t inclusive = 0;  // in the procedure or in what it called
  std::uint64_t exclusive = 0;
  std::uint64_t of = 0;  // samples taken since it is watched
};

class Sampler {
 public:
  static constexpr std::uint64_t kDefaultInterval_ns = 1'000'000;

  // Samples all threads that exist now, each every `interval_ns` of its processor time (the kernel may make
  // it longer: one tick). kUnavailable: no signal is left, or the unwinder is not there.
  static Result<std::size_t> start(std::uint64_t interval_ns = kDefaultInterval_ns);
  // Threads that came since. Number of new ones.
  static std::size_t watch_new_threads();
  static void stop();
  // Samples since the start. Any thread.
  static std::uint64_t taken() noexcept;

  // Counts, instead of keeping stacks: of each sample of a thread that calls MPI (take_interval, resume have told) and
  // is in no call now, which of CODE is on its stack. Goes on for as long as the program runs and takes no memory for
  // it. Called again: numbers that were watched before go on, others begin. Ends a sampling that was started. Pieces
  // must not overlap. Errors: as start.
  static Result<std::size_t> watch(std::vector<WatchedCode> code, std::uint64_t interval_ns = kWatchInterval_ns);
  static constexpr std::uint64_t kWatchInterval_ns = 4'000'000;
  static WatchedSamples watched(std::uint32_t number) noexcept;
  static std::uint64_t watched_samples() noexcept;
  // What taking all samples so far cost, kept ones and counted ones, in TSC ticks.
  static std::uint64_t ticks() noexcept;

  // REQUIRES: stopped. `symbols` were read when everything of interest was loaded.
  static SampleProfile profile(const LoadedSymbols& symbols);
};

}  // namespace lbf::procedures
