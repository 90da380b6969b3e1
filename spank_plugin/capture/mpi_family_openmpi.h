// What the capture takes for granted of Open MPI (4.1, 5.0, 6.0); see mpi_family.h. Sources: ompi/include/mpi.h.in,
// ompi/request/request.h, ompi/mpi/fortran/base/constants.h of v4.1.4, v5.0.7 and the v6.0.x branch.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/library.h"

namespace lbf::capture {

namespace family {

inline constexpr char kNoPredefined[] = "the MPI library lacks the predefined handles of Open MPI 4.1";

// Fortran sentinels are addresses of COMMON blocks, in the four spellings of Fortran compilers.
inline constexpr const char* kFortranInPlace[4] = {"mpi_fortran_in_place_", "mpi_fortran_in_place",
                                                   "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"};
inline constexpr const char* kFortranStatusIgnore[4] = {"mpi_fortran_status_ignore_", "mpi_fortran_status_ignore",
                                                        "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE"};
inline constexpr const char* kFortranStatusesIgnore[4] = {"mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore",
                                                          "mpi_fortran_statuses_ignore__",
                                                          "MPI_FORTRAN_STATUSES_IGNORE"};

// A predefined handle is the address of a data object of the library. `find`: name -> address or nullptr.
template <class Find>
bool find_predefined(Library& library, Find find) noexcept {
  library.comm_self = static_cast<MPI_Comm>(find("ompi_mpi_comm_self"));
  library.comm_null = static_cast<MPI_Comm>(find("ompi_mpi_comm_null"));
  library.request_null = static_cast<MPI_Request>(find("ompi_request_null"));
  library.request_empty = static_cast<MPI_Request>(find("ompi_request_empty"));
  library.request_empty_send = static_cast<MPI_Request>(find("ompi_request_empty_send"));
  if (library.request_empty_send == nullptr) library.request_empty_send = library.request_empty;  // before 6.0
  library.message_no_proc = static_cast<MPI_Message>(find("ompi_message_no_proc"));
  auto* const world = static_cast<MPI_Comm>(find("ompi_mpi_comm_world"));
  if (library.comm_self == nullptr || library.comm_null == nullptr || library.request_null == nullptr) return false;
  library.comm_world = world;  // last: it says that the library was found
  return world != nullptr;
}

// What the self-test uses (self_test.h).
inline constexpr char kName[] = "Open MPI";
template <class Find>
TestedHandles tested_handles(Find find) noexcept {
  return {static_cast<MPI_Errhandler>(find("ompi_mpi_errors_return")), static_cast<MPI_Datatype>(find("ompi_mpi_byte")),
          static_cast<MPI_Datatype>(find("ompi_mpi_int")), static_cast<MPI_Datatype>(find("ompi_mpi_double"))};
}

// All requests that were complete when they were made share one handle; from 6.0 on sends have one of their own.
inline constexpr int kSharedQueues = 2;
// Which of them it is; -1: a handle of its own.
inline int shared_queue(std::uint64_t request) noexcept {
  if (request == key_of(library.request_empty)) return 0;
  return request == key_of(library.request_empty_send) ? 1 : -1;
}

// The index that mpi_f08's Waitany and its like give for the first request.
inline int f08_first_index() noexcept {
  return 1;
}

// Whether a call that gave this error ended a receive whose message was longer than its buffer, or may have: then the
// statuses say of which requests. Codes are classes. Source, tag and the message's own length are in the status.
inline bool may_be_truncated(int code) noexcept {
  return code == MPI_ERR_TRUNCATE || code == MPI_ERR_IN_STATUS;
}

}  // namespace family

inline MPI_Comm c_comm(const MPI_Fint* handle) noexcept {
  return library.Comm_f2c(*handle);
}
inline MPI_Win c_win(const MPI_Fint* handle) noexcept {
  return library.Win_f2c(*handle);
}
inline MPI_Group c_group(const MPI_Fint* handle) noexcept {
  return library.Group_f2c(*handle);
}
inline MPI_Datatype c_type(const MPI_Fint* handle) noexcept {
  return library.Type_f2c(*handle);
}
inline MPI_Request c_request(const MPI_Fint* handle) noexcept {
  return library.Request_f2c(*handle);
}
inline MPI_Message c_message(const MPI_Fint* handle) noexcept {
  return library.Message_f2c(*handle);
}
inline MPI_Session c_session(const MPI_Fint* handle) noexcept {
  return library.Session_f2c != nullptr ? library.Session_f2c(*handle) : MPI_Session{};
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
