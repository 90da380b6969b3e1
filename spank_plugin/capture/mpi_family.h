// What the capture takes for granted of one MPI library family. The recorder's sources are compiled once for
// each family, against its mpi.h; everything that no macro of mpi.h tells the compiler stands in that family's
// header, which has the same names as the other's:
//
//   family::kFortran...                      names of the Fortran sentinels
//   family::find_predefined                  the predefined handles
//   family::kSharedQueues, shared_queue      handles that several complete requests have in common
//   family::learn_shared_requests            finds them where no header tells
//   family::learn_statuses, compare_status   finds where a status has its count, where no header tells
//   family::kIsAlwaysTested                  whether all libraries of the family have to pass the self-test
//   family::kName, tested_handles, may_be_comm   what the self-test uses
//   family::f08_first_index                  what mpi_f08 calls the first of an array
//   key_of                                   a handle as the key of a table
//   c_comm, c_type ...                       a Fortran handle as a C one
//   view_status                              the fields of a status
//   recorded_negative_rank, recorded_tag     MPI_ANY_SOURCE, MPI_PROC_NULL, MPI_ROOT, MPI_ANY_TAG as records have them
//   recorded_thread_level                    MPI_THREAD_SINGLE ... MPI_THREAD_MULTIPLE as 0 to 3
//   LBF_FAMILY_FORTRAN_HANDLES_DIFFER        whether an MPI_Fint handle is of another type than the C one
//
// docs/capture.md, "Library families".
#pragma once

#if !defined(LBF_MPI_FAMILY_MPICH)  // handles are addresses
#include <mpi.h>

#include <cstdint>

#define LBF_FAMILY_FORTRAN_HANDLES_DIFFER 1

namespace lbf::capture {

// The same for no two live objects of any kind.
inline std::uint64_t key_of(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}
namespace family {
inline bool may_be_comm(MPI_Comm comm) noexcept {
  return comm != nullptr;
}
}  // namespace family

}  // namespace lbf::capture
#endif

#if defined(LBF_MPI_FAMILY_MPICH)
#include "spank_plugin/capture/mpi_family_mpich.h"
#elif defined(LBF_MPI_FAMILY_ABI)
#include "spank_plugin/capture/mpi_family_abi.h"
#else
#include "spank_plugin/capture/mpi_family_openmpi.h"
#endif

// What every library has but those of the standard ABI.
#if !defined(LBF_MPI_FAMILY_ABI)
namespace lbf::capture {

namespace family {
inline constexpr bool kIsAlwaysTested = false;
inline bool learn_shared_requests() noexcept {
  return true;
}
inline void learn_statuses() noexcept {}
inline void compare_status(const MPI_Status&) noexcept {}
}  // namespace family

constexpr std::int32_t recorded_tag(int tag) noexcept {
  return tag;
}
constexpr int recorded_thread_level(int level) noexcept {
  return level;
}

}  // namespace lbf::capture
#endif
