// What the capture takes for granted of one MPI library family: here Open MPI (4.1, 5.0).
//
// Place in the event's way: inside *capture*, under library and recorder. Everything that another family has
// otherwise stands in this file: how a handle becomes a key, where a status has its fields, what the
// predefined handles and the Fortran sentinels are called, which numbers MPI_ROOT and the wildcards are. A
// capture library for another family has its own version of this content; the recorder is compiled as it is
// against that family's mpi.h. What no macro can tell the compiler is in here only.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "event/event.h"

namespace lbf::capture {

namespace family {

inline constexpr char kNotThis[] = "the program's MPI library is not Open MPI";
inline constexpr char kNoPredefined[] = "the MPI library lacks the predefined handles of Open MPI 4.1";

// Data objects behind the predefined handles (MPI_COMM_WORLD is the address of the first). An empty name: the
// family has no such object.
inline constexpr char kCommWorld[] = "ompi_mpi_comm_world";
inline constexpr char kCommSelf[] = "ompi_mpi_comm_self";
inline constexpr char kCommNull[] = "ompi_mpi_comm_null";
inline constexpr char kRequestNull[] = "ompi_request_null";
// All requests that were complete when they were made share this one handle.
inline constexpr char kRequestEmpty[] = "ompi_request_empty";
inline constexpr char kMessageNull[] = "ompi_message_null";
inline constexpr char kMessageNoProc[] = "ompi_message_no_proc";

// Libraries that hold the family's functions: C first, then the Fortran bindings.
inline constexpr const char* kLibraries[] = {"libmpi.so", "libmpi_mpifh", "libmpi_usempif08"};
inline constexpr char kFortranLibrary[] = "libmpi_mpifh";

// Fortran sentinels are addresses of COMMON blocks, in the four spellings of Fortran compilers.
inline constexpr const char* kFortranInPlace[4] = {"mpi_fortran_in_place_", "mpi_fortran_in_place",
                                                   "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"};
inline constexpr const char* kFortranStatusIgnore[4] = {
    "mpi_fortran_status_ignore_", "mpi_fortran_status_ignore", "mpi_fortran_status_ignore__",
    "MPI_FORTRAN_STATUS_IGNORE"};
inline constexpr const char* kFortranStatusesIgnore[4] = {
    "mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore", "mpi_fortran_statuses_ignore__",
    "MPI_FORTRAN_STATUSES_IGNORE"};

}  // namespace family

// A handle as the key of the capture's tables: the same for no two live objects of any kind. Handles are
// pointers here.
inline std::uint64_t key_of(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

// A predefined handle from the address of its object.
template <class Handle>
Handle predefined_handle(void* object) noexcept {
  return static_cast<Handle>(object);
}

// MPI_SOURCE, MPI_TAG, cancelled, bytes received. Fortran's integers are the same memory (mpif.h and mpi_f08
// both), but only 4-byte aligned.
struct StatusView {
  std::int32_t source;
  std::int32_t tag;
  bool cancelled;
  std::uint64_t bytes;
};
inline StatusView view_status(const void* status) noexcept {
  MPI_Status s;
  __builtin_memcpy(&s, status, sizeof(s));
  return {s.MPI_SOURCE, s.MPI_TAG, s._cancelled != 0, s._ucount};
}

// Records have Open MPI's numbers (event/event.h: kAnyRank, kAnyTag, kRootIsMe, kRootIsElsewhere).
static_assert(MPI_ANY_SOURCE == kAnyRank && MPI_ANY_TAG == kAnyTag);
static_assert(MPI_ROOT == kRootIsMe && MPI_PROC_NULL == kRootIsElsewhere);
// A rank argument or root below 0 as records have it.
constexpr std::int32_t recorded_negative_rank(int rank) noexcept {
  return rank;
}

}  // namespace lbf::capture
