// What the capture takes for granted of MPICH (4.0 to 5.0); see mpi_family.h. Sources: src/include/mpi.h.in,
// mpir_status.h, mpir_request.h, mpir_handlemem.h of v4.0.2; the first three of the branches 4.1.x, 4.2.x, 5.0.x, too.
//
// Handles are ints: two bits say how the object is stored (builtin 01, direct 10, indirect 11), four its kind,
// the rest is a number. mpif.h's functions call the C functions of the same name, and so do those of mpi_f08
// that take a buffer (mpi_send_f08ts_): the C wrappers see them. The other mpi_f08 functions (mpi_wait_f08_)
// call PMPI_*, and have wrappers of their own.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/library.h"

namespace lbf::capture {

#define LBF_FAMILY_FORTRAN_HANDLES_DIFFER 0

namespace family {

inline constexpr char kNoPredefined[] = "the MPI library's handles are not those of MPICH 4.0";

// No wrapper sees a Fortran buffer. mpi_f08's ignored statuses are objects.
inline constexpr const char* kFortranInPlace[4] = {};
inline constexpr const char* kFortranStatusIgnore[4] = {"MPIR_F08_MPI_STATUS_IGNORE_OBJ"};
inline constexpr const char* kFortranStatusesIgnore[4] = {"MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};

template <class Find>
bool find_predefined(Library& library, Find) noexcept {
  library.comm_self = MPI_COMM_SELF;
  library.comm_null = MPI_COMM_NULL;
  library.request_null = MPI_REQUEST_NULL;
  library.message_no_proc = MPI_MESSAGE_NO_PROC;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  library.Get_library_version(version, &length);
  constexpr char kWithZero[] = "MPICH Version:\t4.0";
  library.f08_first_index = __builtin_strncmp(version, kWithZero, sizeof(kWithZero) - 1) == 0 ? 0 : 1;
  library.comm_world = MPI_COMM_WORLD;
  return true;
}

// What the self-test uses (self_test.h).
inline constexpr char kName[] = "MPICH";
template <class Find>
TestedHandles tested_handles(Find) noexcept {
  return {MPI_ERRORS_RETURN, MPI_BYTE, MPI_INT, MPI_DOUBLE};
}
inline bool may_be_comm(MPI_Comm comm) noexcept {
  return (static_cast<std::uint32_t>(comm) >> 26 & 0xf) == 1;
}

}  // namespace family

// A message's handle is its request's: never both live. The kind's bits tell other objects apart.
inline std::uint64_t key_of(int handle) noexcept {
  return static_cast<std::uint32_t>(handle);
}

namespace family {

// Requests that were complete when they were made have the builtin handle of their kind
// (MPIR_REQUEST_COMPLETE + kind): sends, receives from MPI_PROC_NULL, collectives, and all others.
inline constexpr int kSharedQueues = 4;
inline int shared_queue(std::uint64_t request) noexcept {
  if ((request & ~std::uint64_t{0xff}) != 0x6c000000) [[likely]]
    return -1;
  switch (request & 0xff) {
    case 0x01:
      return 0;  // MPIR_REQUEST_COMPLETE_SEND
    case 0x02:
    case 0x10:
      return 1;  // MPIR_REQUEST_COMPLETE_RECV, MPIR_REQUEST_NULL_RECV
    case 0x06:
      return 2;  // MPIR_REQUEST_COMPLETE_COLL
    default:
      return 3;
  }
}

// The index that mpi_f08's Waitany and its like give for the first request: MPICH 4.0's bindings forget to count
// from 1 (maint/local_python/binding_f08.py has it from v4.1 on).
inline int f08_first_index() noexcept {
  return library.f08_first_index;
}

// Whether a call that gave this error ended a receive whose message was longer than its buffer, or may have: then the
// statuses say of which requests. A code's low seven bits are its class. Source and tag are in the status, not the
// length.
inline bool may_be_truncated(int code) noexcept {
  const int error_class = code & 0x7f;
  return error_class == MPI_ERR_TRUNCATE || error_class == MPI_ERR_IN_STATUS;
}

}  // namespace family

inline MPI_Comm c_comm(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Win c_win(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Group c_group(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Datatype c_type(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Request c_request(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Message c_message(const MPI_Fint* handle) noexcept {
  return *handle;
}
inline MPI_Session c_session(const MPI_Fint* handle) noexcept {
  return *handle;
}

// MPI_SOURCE, MPI_TAG, cancelled, bytes received: 63 bits of count over two integers, the lowest bit of the
// second one is the cancelled flag. Fortran's integers are the same memory.
struct StatusView {
  std::int32_t source;
  std::int32_t tag;
  bool cancelled;
  std::uint64_t bytes;
};
inline StatusView view_status(const void* status) noexcept {
  MPI_Status s;
  __builtin_memcpy(&s, status, sizeof(s));
  const auto high = static_cast<std::uint32_t>(s.count_hi_and_cancelled);
  return {s.MPI_SOURCE, s.MPI_TAG, (high & 1) != 0,
          static_cast<std::uint64_t>(high >> 1) << 32 | static_cast<std::uint32_t>(s.count_lo)};
}

// Records have Open MPI's numbers (event/event.h: kAnyRank, kAnyTag, kRootIsMe, kRootIsElsewhere).
static_assert(MPI_ANY_TAG == kAnyTag);
// A rank argument or root below 0 as records have it.
constexpr std::int32_t recorded_negative_rank(int rank) noexcept {
  switch (rank) {
    case MPI_ANY_SOURCE:
      return kAnyRank;
    case MPI_PROC_NULL:
      return kRootIsElsewhere;
    case MPI_ROOT:
      return kRootIsMe;
    default:
      return rank;
  }
}

}  // namespace lbf::capture
