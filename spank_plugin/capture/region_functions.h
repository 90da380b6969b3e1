// The OpenMP runtime's functions behind the preload's entries (region_entries.cpp): the next ones of these names, found
// when they are first called.
//
// Place in the event's way: inside *capture*, under the preload.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/dispatch.h"

namespace lbf::capture {

// X(name): each function that has an entry.
#define LBF_REGION_FUNCTIONS(X)                    \
  X(GOMP_parallel)                                 \
  X(GOMP_parallel_reductions)                      \
  X(GOMP_parallel_sections)                        \
  X(GOMP_parallel_loop_static)                     \
  X(GOMP_parallel_loop_dynamic)                    \
  X(GOMP_parallel_loop_guided)                     \
  X(GOMP_parallel_loop_runtime)                    \
  X(GOMP_parallel_loop_nonmonotonic_dynamic)       \
  X(GOMP_parallel_loop_nonmonotonic_guided)        \
  X(GOMP_parallel_loop_nonmonotonic_runtime)       \
  X(GOMP_parallel_loop_maybe_nonmonotonic_runtime) \
  X(GOMP_barrier)                                  \
  X(GOMP_barrier_cancel)                           \
  X(GOMP_loop_end)                                 \
  X(GOMP_loop_end_cancel)                          \
  X(GOMP_sections_end)                             \
  X(GOMP_sections_end_cancel)                      \
  X(GOMP_single_copy_start)                        \
  X(GOMP_taskwait)                                 \
  X(GOMP_taskgroup_end)                            \
  X(GOMP_task)                                     \
  X(__kmpc_fork_call)                              \
  X(__kmpc_fork_call_if)                           \
  X(__kmpc_fork_teams)                             \
  X(__kmpc_barrier)                                \
  X(__kmpc_cancel_barrier)

enum class RegionFunction : std::uint32_t {
#define LBF_REGION_FUNCTION(name) k_##name,
  LBF_REGION_FUNCTIONS(LBF_REGION_FUNCTION)
#undef LBF_REGION_FUNCTION
      kCount
};

// What the function is to the code at `caller`; nullptr: the process has none.
lbf_function find_region_function(RegionFunction function, const void* caller) noexcept;

// The same where every caller means the same one; nullptr: ask find_region_function().
extern constinit lbf_function region_functions[static_cast<std::uint32_t>(RegionFunction::kCount)];

}  // namespace lbf::capture
