// OpenMP's entries in the preload: GNU's and LLVM's runtime functions that begin a region, wait for its team or make a
// task, each in front of the runtime's own.
//
// Place in the event's way: OpenMP program -> *entry* -> regions.h. gcc's combined loops and sections do not call
// GOMP_parallel, so each has an entry; gcc's programs on LLVM's runtime have GNU's names. docs/adr/0012-threads.md. The
// result is the runtime's own; without a runtime (weak references) a region is its body.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

#include "spank_plugin/capture/region_functions.h"
#include "spank_plugin/capture/regions.h"

namespace lbf::capture {
namespace {

using Body = void (*)(void*);

template <class Function>
Function* next_of(RegionFunction which, const void* caller) noexcept {
  lbf_function found = __atomic_load_n(&region_functions[static_cast<std::uint32_t>(which)], __ATOMIC_RELAXED);
  if (found == nullptr) [[unlikely]]
    found = find_region_function(which, caller);
  return reinterpret_cast<Function*>(found);
}

// --- GNU

void run_member(void* lent) {
  auto& region = *static_cast<Region*>(lent);
  const Member member(region);
  reinterpret_cast<Body>(const_cast<void*>(region.body()))(region.data());
}

// `if` that is false, and one thread by name, are one thread: serial work.
template <class... Rest>
void enter_parallel(void (*next)(Body, void*, unsigned, Rest...), Body body, void* data, unsigned threads,
                    std::type_identity_t<Rest>... rest) {
  if (next == nullptr) return body(data);
  const auto* const key = reinterpret_cast<const void*>(body);
  const RegionDecision decided = threads != 1 ? decide_region(key) : RegionDecision{RegionMeasure::kNot, 0};
  if (decided.measure == RegionMeasure::kNot) return next(body, data, threads, rest...);
  if (decided.measure == RegionMeasure::kWall) {
    const PassedRegion passed(key, decided.begin);
    return next(body, data, threads, rest...);
  }
  Region region(key, data, decided.begin);
  next(run_member, &region, threads, rest...);
}

// In front of a task's data. GNU's runtime copies both.
struct TaskHead {
  Region* region;
  Body body;
  void (*copy)(void*, void*);
  void* data;           // the program's, where `copy` makes the task's of it
  std::size_t data_at;  // of the task's, from here
};

void run_task(void* lent) {
  const auto& head = *static_cast<TaskHead*>(lent);
  const TeamTask task(head.region);
  head.body(static_cast<char*>(lent) + head.data_at);
}

void copy_task(void* to, void* from) {
  const auto& head = *static_cast<const TaskHead*>(from);
  memcpy(to, &head, sizeof(head));
  head.copy(static_cast<char*>(to) + head.data_at, head.data);
}

// Behind the flags are what depends on the program's OpenMP, and on no flag that the runtime does not look at.
struct TaskRest {
  bool if_clause;
  unsigned flags;
  void** depend;
  int priority;
  void* detach;
};
using NextTask = void(Body, void*, void (*)(void*, void*), long, long, bool, unsigned, void**, int, void*);

void enter_task(NextTask* next, Body body, void* data, void (*copy)(void*, void*), long bytes, long align,
                const TaskRest& rest) {
  constexpr unsigned kDetach = 1u << 13;  // the runtime writes the data's first word
  constexpr long kMostBytes = 4096;       // of a thread's stack
  Region* const region = current_region();
  // A task that runs at once is of its body. LLVM's runtime does not copy its data, whatever `copy` is.
  const bool is_wrapped =
      region != nullptr && rest.if_clause && (rest.flags & kDetach) == 0 && bytes <= kMostBytes && align <= kMostBytes;
  if (!is_wrapped)
    return next(body, data, copy, bytes, align, rest.if_clause, rest.flags, rest.depend, rest.priority, rest.detach);
  charge_task();
  constexpr auto kLeastAlign = static_cast<long>(alignof(TaskHead));
  const long block_align = align > kLeastAlign ? align : kLeastAlign;
  const long data_at = (static_cast<long>(sizeof(TaskHead)) + block_align - 1) & -block_align;
  const TaskHead head{region, body, copy, data, static_cast<std::size_t>(data_at)};
  const auto block_bytes = static_cast<std::size_t>(data_at + bytes);
  char room[block_bytes + static_cast<std::size_t>(block_align)];
  auto* const block = room + (-reinterpret_cast<std::uintptr_t>(room) & static_cast<std::uintptr_t>(block_align - 1));
  memcpy(block, &head, sizeof(head));
  if (copy == nullptr && bytes > 0) memcpy(block + data_at, data, static_cast<std::size_t>(bytes));
  next(run_task, block, copy != nullptr ? copy_task : nullptr, static_cast<long>(block_bytes), block_align,
       rest.if_clause, rest.flags, rest.depend, rest.priority, rest.detach);
}

// --- LLVM

using Micro = void (*)(std::int32_t*, std::int32_t*, ...);
using NextFork = void(void*, std::int32_t, Micro, ...);

// What an outlined function takes: a pointer for each variable. `values` has room for room_for(`count`).
struct MicroArguments {
  static constexpr std::size_t kFew = 32;
  static constexpr std::size_t kMost = 1024;
  std::size_t count;
  void** values;
};
constexpr std::size_t room_for(std::int32_t count) noexcept {
  return static_cast<std::size_t>(count) <= MicroArguments::kFew ? MicroArguments::kFew : MicroArguments::kMost;
}

template <class Call, std::size_t... kAt>
void call_with(Call call, const MicroArguments& arguments, std::index_sequence<kAt...>) {
  call(arguments.values[kAt]...);
}
// With some that mean nothing behind them: who takes fewer does not see them.
template <class Call>
void call_with(Call call, const MicroArguments& arguments) {
  if (arguments.count <= 8) return call_with(call, arguments, std::make_index_sequence<8>());
  if (arguments.count <= MicroArguments::kFew)
    return call_with(call, arguments, std::make_index_sequence<MicroArguments::kFew>());
  call_with(call, arguments, std::make_index_sequence<MicroArguments::kMost>());
}

void run_micro(Micro micro, std::int32_t* thread, std::int32_t* bound, const MicroArguments& arguments) {
  call_with([&](auto... values) { micro(thread, bound, values...); }, arguments);
}

void run_micro_member(std::int32_t* thread, std::int32_t* bound, ...) {
  va_list list;
  va_start(list, bound);
  auto& region = *va_arg(list, Region*);
  va_end(list);
  const Member member(region);
  run_micro(reinterpret_cast<Micro>(const_cast<void*>(region.body())), thread, bound,
            *static_cast<const MicroArguments*>(region.data()));
}

void take_arguments(MicroArguments& arguments, va_list list) {
  for (std::size_t i = 0; i < arguments.count && i < MicroArguments::kMost; ++i)
    arguments.values[i] = va_arg(list, void*);
  for (std::size_t i = arguments.count; i < MicroArguments::kFew; ++i) arguments.values[i] = nullptr;
}

// `next`(micro, how many arguments, the arguments).
template <class Next>
void enter_fork(Micro micro, MicroArguments& arguments, Next next) {
  const auto* const key = reinterpret_cast<const void*>(micro);
  const auto count = static_cast<std::int32_t>(arguments.count);
  const auto pass_on = [&] { call_with([&](auto... values) { next(micro, count, values...); }, arguments); };
  const RegionDecision decided = decide_region(key);
  if (decided.measure == RegionMeasure::kNot) return pass_on();
  if (decided.measure == RegionMeasure::kWall) {
    const PassedRegion passed(key, decided.begin);
    return pass_on();
  }
  Region region(key, &arguments, decided.begin);
  next(run_micro_member, 1, &region);
}

void run_alone(Micro micro, const MicroArguments& arguments) {
  std::int32_t zero = 0;
  run_micro(micro, &zero, &zero, arguments);
}

void enter_micro(NextFork* next, void* where, Micro micro, MicroArguments& arguments) {
  if (next == nullptr) return run_alone(micro, arguments);
  enter_fork(micro, arguments,
             [&](Micro body, std::int32_t count, auto... values) { next(where, count, body, values...); });
}

}  // namespace
}  // namespace lbf::capture

using namespace lbf::capture;

#define LBF_ENTRY extern "C" __attribute__((visibility("default")))
#define LBF_NEXT(name, ...) next_of<__VA_ARGS__>(RegionFunction::k_##name, __builtin_return_address(0))

LBF_ENTRY void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  enter_parallel(LBF_NEXT(GOMP_parallel, void(Body, void*, unsigned, unsigned)), body, data, threads, flags);
}

LBF_ENTRY void GOMP_parallel_sections(Body body, void* data, unsigned threads, unsigned count, unsigned flags) {
  enter_parallel(LBF_NEXT(GOMP_parallel_sections, void(Body, void*, unsigned, unsigned, unsigned)), body, data, threads,
                 count, flags);
}

#define LBF_CHUNKED_LOOP(name)                                                                                         \
  LBF_ENTRY void name(Body body, void* data, unsigned threads, long begin, long end, long step, long chunk,            \
                      unsigned flags) {                                                                                \
    enter_parallel(LBF_NEXT(name, void(Body, void*, unsigned, long, long, long, long, unsigned)), body, data, threads, \
                   begin, end, step, chunk, flags);                                                                    \
  }
#define LBF_RUNTIME_LOOP(name)                                                                                    \
  LBF_ENTRY void name(Body body, void* data, unsigned threads, long begin, long end, long step, unsigned flags) { \
    enter_parallel(LBF_NEXT(name, void(Body, void*, unsigned, long, long, long, unsigned)), body, data, threads,  \
                   begin, end, step, flags);                                                                      \
  }
LBF_CHUNKED_LOOP(GOMP_parallel_loop_static)
LBF_CHUNKED_LOOP(GOMP_parallel_loop_dynamic)
LBF_CHUNKED_LOOP(GOMP_parallel_loop_guided)
LBF_CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LBF_CHUNKED_LOOP(GOMP_parallel_loop_nonmonotonic_guided)
LBF_RUNTIME_LOOP(GOMP_parallel_loop_runtime)
LBF_RUNTIME_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
LBF_RUNTIME_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

// What the threads' number was.
LBF_ENTRY unsigned GOMP_parallel_reductions(Body body, void* data, unsigned threads, unsigned flags) {
  auto* const next = LBF_NEXT(GOMP_parallel_reductions, unsigned(Body, void*, unsigned, unsigned));
  if (next == nullptr) return body(data), 1;
  const auto* const key = reinterpret_cast<const void*>(body);
  const RegionDecision decided = threads != 1 ? decide_region(key) : RegionDecision{RegionMeasure::kNot, 0};
  if (decided.measure == RegionMeasure::kNot) return next(body, data, threads, flags);
  if (decided.measure == RegionMeasure::kWall) {
    const PassedRegion passed(key, decided.begin);
    return next(body, data, threads, flags);
  }
  Region region(key, data, decided.begin);
  region.lend_first_word();
  const unsigned team = next(run_member, &region, threads, flags);
  region.return_first_word();
  return team;
}

#define LBF_WAIT(name)                         \
  LBF_ENTRY void name() {                      \
    auto* const next = LBF_NEXT(name, void()); \
    const TeamWait wait;                       \
    if (next != nullptr) next();               \
  }
#define LBF_CANCELLABLE_WAIT(name)             \
  LBF_ENTRY bool name() {                      \
    auto* const next = LBF_NEXT(name, bool()); \
    const TeamWait wait;                       \
    return next != nullptr && next();          \
  }
LBF_WAIT(GOMP_barrier)
LBF_WAIT(GOMP_loop_end)
LBF_WAIT(GOMP_sections_end)
LBF_WAIT(GOMP_taskwait)
LBF_WAIT(GOMP_taskgroup_end)
LBF_CANCELLABLE_WAIT(GOMP_barrier_cancel)
LBF_CANCELLABLE_WAIT(GOMP_loop_end_cancel)
LBF_CANCELLABLE_WAIT(GOMP_sections_end_cancel)

LBF_ENTRY void* GOMP_single_copy_start() {
  auto* const next = LBF_NEXT(GOMP_single_copy_start, void*());
  const TeamWait wait;
  return next != nullptr ? next() : nullptr;
}

LBF_ENTRY void GOMP_task(Body body, void* data, void (*copy)(void*, void*), long bytes, long align, bool if_clause,
                         unsigned flags, void** depend, int priority, void* detach) {
  auto* const next = LBF_NEXT(GOMP_task, NextTask);
  if (next == nullptr) return body(data);
  enter_task(next, body, data, copy, bytes, align, {if_clause, flags, depend, priority, detach});
}

LBF_ENTRY void __kmpc_fork_call(void* where, std::int32_t count, Micro micro, ...) {
  void* values[room_for(count)];
  MicroArguments arguments{static_cast<std::size_t>(count), values};
  va_list list;
  va_start(list, micro);
  take_arguments(arguments, list);
  va_end(list);
  enter_micro(LBF_NEXT(__kmpc_fork_call, NextFork), where, micro, arguments);
}

LBF_ENTRY void __kmpc_fork_teams(void* where, std::int32_t count, Micro micro, ...) {
  void* values[room_for(count)];
  MicroArguments arguments{static_cast<std::size_t>(count), values};
  va_list list;
  va_start(list, micro);
  take_arguments(arguments, list);
  va_end(list);
  enter_micro(LBF_NEXT(__kmpc_fork_teams, NextFork), where, micro, arguments);
}

LBF_ENTRY void __kmpc_fork_call_if(void* where, std::int32_t count, Micro micro, std::int32_t condition, void* data) {
  auto* const next = LBF_NEXT(__kmpc_fork_call_if, void(void*, std::int32_t, Micro, std::int32_t, void*));
  if (condition == 0 && next != nullptr) return next(where, count, micro, condition, data);
  void* values[8] = {data};
  MicroArguments arguments{1, values};
  if (next == nullptr) return run_alone(micro, arguments);
  // Flang's outlined functions have one argument, or none.
  enter_fork(micro, arguments, [&](Micro body, std::int32_t, auto first, auto...) {
    next(where, body == micro ? count : 1, body, condition, first);
  });
}

LBF_ENTRY void __kmpc_barrier(void* where, std::int32_t thread) {
  auto* const next = LBF_NEXT(__kmpc_barrier, void(void*, std::int32_t));
  const TeamWait wait;
  if (next != nullptr) next(where, thread);
}

LBF_ENTRY std::int32_t __kmpc_cancel_barrier(void* where, std::int32_t thread) {
  auto* const next = LBF_NEXT(__kmpc_cancel_barrier, std::int32_t(void*, std::int32_t));
  const TeamWait wait;
  return next != nullptr ? next(where, thread) : 0;
}

#undef LBF_CANCELLABLE_WAIT
#undef LBF_WAIT
#undef LBF_RUNTIME_LOOP
#undef LBF_CHUNKED_LOOP
#undef LBF_NEXT
#undef LBF_ENTRY
