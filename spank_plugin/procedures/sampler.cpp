#include "spank_plugin/procedures/sampler.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "spank_plugin/procedures/call_times.h"
#include "spank_plugin/procedures/stopped_threads.h"

namespace lbf::procedures {
namespace {

using Backtrace = _Unwind_Reason_Code (*)(_Unwind_Trace_Fn, void*);
using GetIp = _Unwind_Ptr (*)(_Unwind_Context*);

// Samples one behind the other: number of addresses, then the addresses, innermost first.
struct Buffer {
  std::uintptr_t* words = nullptr;
  std::atomic<std::size_t> used{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> samples{0};
};
constexpr std::size_t kBufferWords = std::size_t{1} << 21;
constexpr std::size_t kMaxFrames = 128;
constinit Buffer buffer;
constinit Backtrace backtrace = nullptr;
constinit GetIp get_ip = nullptr;
constinit std::atomic<bool> running{false};
int sample_signal = 0;
std::uint64_t interval = 0;
struct ThreadTimer {
  int tid;
  int timer;
};
std::vector<ThreadTimer>* timers = nullptr;

// What samples are counted in. Never freed: a handler may look at it at any time.
struct Watch {
  std::vector<WatchedCode> code;  // by address
};
constinit std::atomic<const Watch*> watching{nullptr};
struct WatchCount {
  std::atomic<std::uint64_t> inclusive{0};
  std::atomic<std::uint64_t> exclusive{0};
  std::uint64_t since = 0;  // samples before it was watched
  bool known = false;
};
constinit WatchCount watch_counts[kMostWatched];
constinit std::atomic<std::uint64_t> watch_samples{0};
constinit std::atomic<std::uint64_t> spent_ticks{0};

struct Walk {
  std::uintptr_t from;  // where the signal came
  std::size_t count = 0;
  std::uintptr_t frames[kMaxFrames];
};

_Unwind_Reason_Code next_frame(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const std::uintptr_t ip = get_ip(context);
  if (walk.count == 0) {
    // The handler's own frames come first.
    if (ip == walk.from) walk.frames[walk.count++] = ip;
    return _URC_NO_REASON;
  }
  if (ip == 0 || walk.count == kMaxFrames) return _URC_END_OF_STACK;
  if (ip != reinterpret_cast<std::uintptr_t>(&lbf_procedures_return)) walk.frames[walk.count++] = ip - 1;
  return _URC_NO_REASON;
}

const WatchedCode* piece_at(const Watch& watch, std::uintptr_t address) noexcept {
  auto it = std::upper_bound(watch.code.begin(), watch.code.end(), address,
                             [](std::uintptr_t a, const WatchedCode& piece) { return a < piece.begin; });
  if (it == watch.code.begin() || address >= (--it)->end) return nullptr;
  return &*it;
}

void count_sample(const Watch& watch, const Walk& walk) noexcept {
  for (std::size_t i = 0; i < walk.count; ++i) {
    const WatchedCode* const piece = piece_at(watch, walk.frames[i]);
    if (piece != nullptr && piece->number == kNotCounted) return;
  }
  watch_samples.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t seen[kMostWatched / 64] = {};
  for (std::size_t i = 0; i < walk.count; ++i) {
    const WatchedCode* const piece = piece_at(watch, walk.frames[i]);
    if (piece == nullptr) continue;
    WatchCount& count = watch_counts[piece->number];
    if (i == 0) count.exclusive.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t& word = seen[piece->number / 64];
    const std::uint64_t bit = std::uint64_t{1} << piece->number % 64;
    if ((word & bit) == 0) count.inclusive.fetch_add(1, std::memory_order_relaxed);
    word |= bit;
  }
}

void keep_sample(const Walk& walk) noexcept {
  buffer.samples.fetch_add(1, std::memory_order_relaxed);
  const std::size_t at = buffer.used.fetch_add(walk.count + 1, std::memory_order_relaxed);
  if (at + walk.count + 1 <= kBufferWords) {
    buffer.words[at] = walk.count;
    std::memcpy(buffer.words + at + 1, walk.frames, walk.count * sizeof(std::uintptr_t));
  } else {
    if (at < kBufferWords) buffer.words[at] = 0;
    buffer.dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

void take_sample(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  const Watch* const watch = watching.load(std::memory_order_acquire);
  if (watch != nullptr ? is_between_mpi_calls() : running.load(std::memory_order_acquire)) {
    const std::uint64_t begin = __builtin_ia32_rdtsc();
    Walk walk;
    walk.from = static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    backtrace(next_frame, &walk);
    if (walk.count == 0) walk.frames[walk.count++] = walk.from;
    if (watch != nullptr) {
      count_sample(*watch, walk);
    } else {
      keep_sample(walk);
    }
    spent_ticks.fetch_add(__builtin_ia32_rdtsc() - begin, std::memory_order_relaxed);
  }
  errno = saved_errno;
}

bool begin_timer(int tid) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = sample_signal;
  event._sigev_un._tid = tid;
  int timer = 0;
  // The processor-time clock of any thread, by its number (as pthread_getcpuclockid makes it).
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u);
  if (syscall(SYS_timer_create, clock, &event, &timer) != 0) return false;
  itimerspec every{};
  every.it_interval.tv_sec = static_cast<time_t>(interval / 1'000'000'000);
  every.it_interval.tv_nsec = static_cast<long>(interval % 1'000'000'000);
  every.it_value = every.it_interval;
  if (syscall(SYS_timer_settime, timer, 0, &every, nullptr) != 0) {
    syscall(SYS_timer_delete, timer);
    return false;
  }
  timers->push_back({tid, timer});
  return true;
}

}  // namespace

namespace {

// What every sampling needs. Errors: kUnavailable.
Result<void> prepare() {
  void* const unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (unwinder != nullptr) {
    backtrace = reinterpret_cast<Backtrace>(dlsym(unwinder, "_Unwind_Backtrace"));
    get_ip = reinterpret_cast<GetIp>(dlsym(unwinder, "_Unwind_GetIP"));
  }
  if (backtrace == nullptr || get_ip == nullptr)
    return Error{ErrorCode::kUnavailable, "procedures are not sampled: libgcc_s.so.1 cannot be loaded"};
  if (sample_signal == 0) {
    const int number = unused_signal();
    if (number == 0)
      return Error{ErrorCode::kUnavailable, "procedures are not sampled: the program uses all real-time signals"};
    struct sigaction action {};
    action.sa_sigaction = take_sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
    sample_signal = number;
  }
  // What it does once only (loading, first look-ups) happens here.
  Walk warm_up{};
  backtrace(next_frame, &warm_up);
  if (timers == nullptr) timers = new std::vector<ThreadTimer>;
  return {};
}

}  // namespace

Result<std::size_t> Sampler::start(std::uint64_t interval_ns) {
  const NotMeasured no_times;
  if (const Result<void> prepared = prepare(); !prepared) return prepared.error();
  if (buffer.words == nullptr) {
    void* memory = mmap(nullptr, kBufferWords * sizeof(std::uintptr_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return Error{ErrorCode::kLimit, "procedures are not sampled: no memory"};
    buffer.words = static_cast<std::uintptr_t*>(memory);
  }
  buffer.used.store(0, std::memory_order_relaxed);
  buffer.dropped.store(0, std::memory_order_relaxed);
  buffer.samples.store(0, std::memory_order_relaxed);
  watching.store(nullptr, std::memory_order_release);
  interval = interval_ns;
  running.store(true, std::memory_order_release);
  const std::size_t watched = watch_new_threads();
  if (watched == 0) {
    running.store(false, std::memory_order_release);
    return Error{ErrorCode::kUnavailable, "procedures are not sampled: the system gives no timers"};
  }
  return watched;
}

Result<std::size_t> Sampler::watch(std::vector<WatchedCode> code, std::uint64_t interval_ns) {
  const NotMeasured no_times;
  if (const Result<void> prepared = prepare(); !prepared) return prepared.error();
  std::erase_if(code, [](const WatchedCode& piece) { return piece.number > kNotCounted || piece.begin >= piece.end; });
  std::sort(code.begin(), code.end(), [](const WatchedCode& a, const WatchedCode& b) { return a.begin < b.begin; });
  for (const WatchedCode& piece : code) {
    if (piece.number == kNotCounted) continue;
    WatchCount& count = watch_counts[piece.number];
    if (!count.known) count.since = watch_samples.load(std::memory_order_relaxed);
    count.known = true;
  }
  const bool is_on = watching.load(std::memory_order_relaxed) != nullptr;
  if (!is_on) stop();
  watching.store(new Watch{std::move(code)}, std::memory_order_release);
  if (is_on) return timers->size();
  interval = interval_ns;
  const std::size_t watched = watch_new_threads();
  if (watched != 0) return watched;
  watching.store(nullptr, std::memory_order_release);
  return Error{ErrorCode::kUnavailable, "procedures are not sampled: the system gives no timers"};
}

WatchedSamples Sampler::watched(std::uint32_t number) noexcept {
  if (number >= kMostWatched || !watch_counts[number].known) return {};
  const WatchCount& count = watch_counts[number];
  return {count.inclusive.load(std::memory_order_relaxed), count.exclusive.load(std::memory_order_relaxed),
          watched_samples() - count.since};
}

std::uint64_t Sampler::watched_samples() noexcept {
  return watch_samples.load(std::memory_order_relaxed);
}

std::uint64_t Sampler::ticks() noexcept {
  return spent_ticks.load(std::memory_order_relaxed);
}

std::size_t Sampler::watch_new_threads() {
  std::size_t added = 0;
  for (const int tid : thread_ids()) {
    const auto known = std::find_if(timers->begin(), timers->end(), [&](const ThreadTimer& t) { return t.tid == tid; });
    if (known == timers->end() && begin_timer(tid)) ++added;
  }
  return added;
}

void Sampler::stop() {
  running.store(false, std::memory_order_release);
  watching.store(nullptr, std::memory_order_release);
  if (timers == nullptr) return;
  for (const ThreadTimer& timer : *timers) syscall(SYS_timer_delete, timer.timer);
  timers->clear();
}

std::uint64_t Sampler::taken() noexcept {
  return buffer.samples.load(std::memory_order_relaxed);
}

SampleProfile Sampler::profile(const LoadedSymbols& symbols) {
  SampleProfile out;
  out.dropped = buffer.dropped.load(std::memory_order_relaxed);
  const std::vector<LoadedSymbol>& all = symbols.symbols();
  // Symbols by address -> index of the procedure in `out`; one per name and module.
  std::unordered_map<std::string, std::size_t> by_name;
  std::unordered_map<const LoadedSymbol*, std::size_t> by_symbol;
  const auto procedure_at = [&](std::uintptr_t address) -> std::size_t {
    auto it = std::upper_bound(all.begin(), all.end(), address,
                               [](std::uintptr_t a, const LoadedSymbol& s) { return a < s.address; });
    const LoadedSymbol* symbol = it == all.begin() ? nullptr : &*--it;
    if (symbol != nullptr && address >= symbol->address + std::max<std::uint64_t>(symbol->size, 1)) symbol = nullptr;
    if (const auto known = by_symbol.find(symbol); known != by_symbol.end()) return known->second;
    const std::string name = symbol == nullptr ? "(no symbol)" : spellings_of(symbol->linkage).display;
    const std::string module = symbol == nullptr ? "" : symbols.modules()[symbol->module].file;
    const auto [entry, is_new] = by_name.emplace(module + '\n' + name, out.procedures.size());
    if (is_new) out.procedures.push_back({name, module});
    by_symbol.emplace(symbol, entry->second);
    return entry->second;
  };
  const std::size_t used = std::min(buffer.used.load(std::memory_order_acquire), kBufferWords);
  std::unordered_set<std::size_t> seen;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> calls;  // procedure, caller -> samples
  std::vector<std::size_t> stack;                                      // scratch
  for (std::size_t at = 0; at < used;) {
    const std::size_t count = buffer.words[at];
    if (count == 0 || count > kMaxFrames || at + 1 + count > used) break;
    ++out.samples;
    seen.clear();
    stack.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t procedure = procedure_at(buffer.words[at + 1 + i]);
      if (i == 0) ++out.procedures[procedure].exclusive;
      if (stack.empty() || stack.back() != procedure) stack.push_back(procedure);
    }
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (!seen.insert(stack[i]).second) continue;
      ++out.procedures[stack[i]].inclusive;
      if (i + 1 < stack.size()) ++calls[{stack[i], stack[i + 1]}];
    }
    at += count + 1;
  }
  for (const auto& [edge, samples] : calls) {
    const SampledProcedure& caller = out.procedures[edge.second];
    out.procedures[edge.first].callers.push_back({caller.name, caller.module, samples});
  }
  for (SampledProcedure& procedure : out.procedures) {
    std::stable_sort(procedure.callers.begin(), procedure.callers.end(),
                     [](const SampledCaller& a, const SampledCaller& b) { return a.samples > b.samples; });
  }
  std::stable_sort(out.procedures.begin(), out.procedures.end(),
                   [](const SampledProcedure& a, const SampledProcedure& b) {
                     return a.inclusive != b.inclusive ? a.inclusive > b.inclusive : a.exclusive > b.exclusive;
                   });
  return out;
}

}  // namespace lbf::procedures
