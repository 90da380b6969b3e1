// Finds the program's MPI library, at the first MPI call, without being linked to it.
//
// Place in the event's way: inside *capture*. The preload is inherited by every program of the step, so it
// has no undefined MPI symbol: functions are looked up behind us in the search order (RTLD_NEXT: that is the
// next PMPI tool, or the library itself), and where MPI came through dlopen into a local scope (mpi4py), in
// the library that is loaded already. Where a library of another family (mpi_family.h) is loaded the capture
// stays off.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lbf::capture {

// What the recorder itself asks MPI. All of these are local calls.
#define LBF_CAPTURE_PMPI(X)                                                                                  \
  X(Comm_rank)                                                                                               \
  X(Comm_size)                                                                                               \
  X(Comm_remote_size)                                                                                        \
  X(Comm_test_inter) X(Comm_group) X(Comm_remote_group) X(Group_size) X(Group_translate_ranks) X(Group_free) \
      X(Type_size) X(Topo_test) X(Cartdim_get) X(Cart_shift) X(Graph_neighbors_count) X(Graph_neighbors)     \
          X(Dist_graph_neighbors_count) X(Dist_graph_neighbors) X(Get_library_version) X(Comm_f2c)           \
              X(Type_f2c) X(Request_f2c) X(Message_f2c) X(Win_f2c) X(Group_f2c)        \
                  X(Comm_get_parent)

struct Library {
#define LBF_CAPTURE_MEMBER(name) decltype(&PMPI_##name) name;
  LBF_CAPTURE_PMPI(LBF_CAPTURE_MEMBER)
#undef LBF_CAPTURE_MEMBER
  MPI_Comm comm_world;
  MPI_Comm comm_self;
  MPI_Comm comm_null;
  MPI_Request request_null;
  MPI_Request request_empty;  // shared by all requests that were complete when they were made; may be null
  MPI_Message message_null;
  MPI_Message message_no_proc;
  // Fortran sentinels are addresses; each has up to four spellings, as the compiler mangles a COMMON block.
  const void* fortran_in_place[4];
  const void* fortran_status_ignore[4];
  const void* fortran_statuses_ignore[4];
};
extern constinit Library library;

// Fills `library`. nullptr: done; else why not, in words for the user. Idempotent.
const char* find_library() noexcept;
// Looks for the Fortran sentinels (again: the Fortran library may be loaded later than the C one).
void find_fortran_sentinels() noexcept;

// The function behind wrapper number `slot`; nullptr: there is none in this process.
void* resolve_next(std::size_t slot) noexcept;
// All of them that can be found now, so that no look-up happens on the MPI path later.
void resolve_all_next() noexcept;

// Made by generate_wrappers.py: wrapper names, and the name of the PMPI entry of each.
extern const std::size_t wrapper_count;
extern const char* const wrapper_names[];
extern const char* const wrapper_pmpi_names[];
extern constinit std::atomic<void*> wrapper_next[];

inline void* next_function(std::size_t slot) noexcept {
  void* next = wrapper_next[slot].load(std::memory_order_relaxed);
  return next != nullptr ? next : resolve_next(slot);
}

}  // namespace lbf::capture
