// The program's MPI library as the recorder asks it, without being linked to it: found when the preload has
// loaded this recorder (dispatch.h), at the first MPI call.
//
// Place in the event's way: inside *capture*. What each wrapper forwards to stands in `wrapper_next`: the next
// PMPI tool, or the library itself.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/dispatch.h"

#if defined(OMPI_MAJOR_VERSION) && \
    OMPI_MAJOR_VERSION < 5  // a pointer, as all its handles; a later library's sessions have it
using MPI_Session = struct ompi_instance_t*;
#endif

namespace lbf::capture {

// What one family alone needs: Fortran's handles, which MPICH has as macros; what the standard ABI does not tell.
#if defined(LBF_MPI_FAMILY_MPICH)
#define LBF_CAPTURE_PMPI_FAMILY(X)
#elif defined(LBF_MPI_FAMILY_ABI)
#define LBF_CAPTURE_PMPI_FAMILY(X) X(Get_count_c) X(Test_cancelled) X(Error_class)
#else
#define LBF_CAPTURE_PMPI_FAMILY(X) X(Comm_f2c) X(Type_f2c) X(Request_f2c) X(Message_f2c) X(Win_f2c) X(Group_f2c)
#endif
// What the recorder itself asks MPI. All of these are local calls.
// clang-format off
#define LBF_CAPTURE_PMPI(X) \
  X(Comm_rank) X(Comm_size) X(Comm_remote_size) X(Comm_test_inter) X(Comm_group) X(Comm_remote_group) X(Group_size) \
  X(Group_rank) X(Group_translate_ranks) X(Group_free) X(Type_size_x) X(Topo_test) X(Cartdim_get) X(Cart_shift) \
  X(Graph_neighbors_count) X(Graph_neighbors) X(Dist_graph_neighbors_count) X(Dist_graph_neighbors) \
  X(Get_library_version) X(Comm_get_parent) X(Query_thread) X(Request_get_status) X(Initialized) \
  LBF_CAPTURE_PMPI_FAMILY(X)
// clang-format on

inline constexpr int kSharedRequests = 4;

struct Library {
#define LBF_CAPTURE_MEMBER(name) decltype(&PMPI_##name) name;
  LBF_CAPTURE_PMPI(LBF_CAPTURE_MEMBER)
#undef LBF_CAPTURE_MEMBER
  // Of MPI 4.0's sessions; null where the library has none of that name.
  int (*Group_from_session_pset)(MPI_Session, const char*, MPI_Group*);
  MPI_Session (*Session_f2c)(MPI_Fint);
  MPI_Comm comm_world;
  MPI_Comm comm_self;
  MPI_Comm comm_null;
  MPI_Request request_null;
  MPI_Request request_empty;       // Open MPI's ompi_request_empty; may be null
  MPI_Request request_empty_send;  // the same of sends; without one of its own: request_empty
  MPI_Message message_no_proc;
  int f08_first_index;                             // MPICH's
  std::uint64_t shared_requests[kSharedRequests];  // the standard ABI's: handles of several requests
  // Fortran sentinels are addresses; each has up to four spellings, as the compiler mangles a COMMON block.
  const void* fortran_in_place[4];
  const void* fortran_status_ignore[4];
  const void* fortran_statuses_ignore[4];
};
extern constinit Library library;

// Predefined handles that the self-test uses (self_test.h).
struct TestedHandles {
  MPI_Errhandler errors_return;
  MPI_Datatype byte, integer, real;
};

// Fills `library`. nullptr: done; else why not, in words for the user. Idempotent.
const char* find_library() noexcept;
// What a name means to the library; nullptr: nothing.
void* library_symbol(const char* name) noexcept;
// What the library says of itself where its self-test decides whether it is recorded (self_test.h); nullptr: else.
const char* unlisted_library() noexcept;
// How the self-test ended.
void accept_library() noexcept;
void refuse_library() noexcept;
// Looks for the Fortran sentinels (again: the Fortran library may be loaded later than the C one).
void find_fortran_sentinels() noexcept;

// Made by generate_wrappers.py. Slots are those of the preload (dispatch.h).
extern const std::uint64_t wrapper_layout;
extern const std::size_t wrapper_slots;
extern constinit const lbf_function wrappers[];
extern constinit lbf_function wrapper_next[];
// Wrappers of the same calls that only count (counted_call.h).
struct CountingWrapper {
  std::uint32_t slot;
  lbf_function wrapper;
  lbf_function shared_wrapper;  // where several threads are in MPI at once
};
extern constinit const CountingWrapper counting_wrappers[];
extern const std::size_t counting_wrapper_count;
// MPI_Finalize, MPI_Abort and what opens and closes sessions, in all bindings.
extern constinit const std::uint32_t ending_slots[];
extern const std::size_t ending_slot_count;

// What wrapper number `slot` forwards to: the preload set it before it let the wrapper be called.
inline lbf_function next_function(std::size_t slot) noexcept {
  return __atomic_load_n(&wrapper_next[slot], __ATOMIC_RELAXED);
}
// All of them that can be found now, so that no look-up happens on the MPI path later.
void resolve_all_next() noexcept;
// MPI is finalised: the library may be unloaded from here on.
void release_library() noexcept;
// Processor time that the preload needed to find and load this library, in ns.
std::uint64_t load_cpu_ns() noexcept;
// Parallel regions of OpenMP (regions.h).
const RegionHost& preload_regions() noexcept;
// Waits for devices (devices.h).
const DeviceHost& preload_devices() noexcept;

// Where the preload's entries lead. Only a matter of speed: each wrapper finds out by itself what a call is to leave.
void lead_calls_to_wrappers() noexcept;
void lead_calls_to_counting_wrappers(bool shared) noexcept;
// To the next function at once, but for what ends the process. For good.
void lead_calls_past_wrappers() noexcept;

}  // namespace lbf::capture
