// What the capture takes for granted of MPI's standard ABI (MPI 5.0, ch. 20), whatever library has it; see
// mpi_family.h. The constants are those of abi/mpi.h.
//
// The ABI says nothing of where a status has its count, nor of what codes errors have: the library is asked. It has no
// Fortran, and no functions for Fortran's handles in C.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/library.h"

namespace lbf::capture {

namespace family {

inline constexpr char kNoPredefined[] = "the MPI library's handles are not those of MPI's standard ABI";

inline constexpr const char* kFortranInPlace[4] = {};
inline constexpr const char* kFortranStatusIgnore[4] = {};
inline constexpr const char* kFortranStatusesIgnore[4] = {};

template <class Find>
bool find_predefined(Library& library, Find find) noexcept {
  // Of Open MPI's sends that the network took at once, which learn_shared_requests cannot make.
  library.shared_requests[0] = reinterpret_cast<std::uintptr_t>(find("ompi_request_empty_send"));
  library.comm_self = MPI_COMM_SELF;
  library.comm_null = MPI_COMM_NULL;
  library.request_null = MPI_REQUEST_NULL;
  library.message_no_proc = MPI_MESSAGE_NO_PROC;
  library.comm_world = MPI_COMM_WORLD;
  return true;
}

// Every library of the ABI is tested, and in a session there is nothing to test it with.
inline constexpr bool kIsAlwaysTested = true;
// What the self-test uses (self_test.h).
inline constexpr char kName[] = "MPI's standard ABI";
template <class Find>
TestedHandles tested_handles(Find) noexcept {
  return {MPI_ERRORS_RETURN, MPI_BYTE, MPI_INT, MPI_DOUBLE};
}

// Which requests share a handle, because they were complete when they were made, is seen when MPI_Init returns.
inline constexpr int kSharedQueues = kSharedRequests;
inline int shared_queue(std::uint64_t request) noexcept {
  for (int i = 0; i < kSharedQueues; ++i) {
    if (request == library.shared_requests[i] && request != 0) return i;
  }
  return -1;
}
// REQUIRES: MPI is initialised. false: it cannot be seen.
bool learn_shared_requests() noexcept;

inline bool may_be_truncated(int code) noexcept {
  int error_class = code;
  library.Error_class(code, &error_class);
  return error_class == MPI_ERR_TRUNCATE || error_class == MPI_ERR_IN_STATUS;
}

}  // namespace family

// Fortran's handles: there are none.
inline MPI_Comm c_comm(const MPI_Fint*) noexcept {
  return MPI_COMM_NULL;
}
inline MPI_Datatype c_type(const MPI_Fint*) noexcept {
  return MPI_DATATYPE_NULL;
}
inline MPI_Request c_request(const MPI_Fint*) noexcept {
  return MPI_REQUEST_NULL;
}

struct StatusView {
  std::int32_t source;
  std::int32_t tag;
  const MPI_Status* status;
  std::uint64_t bytes;
};
inline StatusView view_status(const void* status) noexcept {
  const auto* const s = static_cast<const MPI_Status*>(status);
  MPI_Count bytes = 0;
  library.Get_count_c(s, MPI_BYTE, &bytes);
  return {s->MPI_SOURCE, s->MPI_TAG, s, bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0};
}
inline bool is_cancelled(const StatusView& status) noexcept {
  int flag = 0;
  library.Test_cancelled(status.status, &flag);
  return flag != 0;
}

// Records have Open MPI's numbers (event/event.h: kAnyRank, kAnyTag, kRootIsMe, kRootIsElsewhere).
static_assert(MPI_ANY_SOURCE == kAnyRank && MPI_ROOT == kRootIsMe);
// A rank argument or root below 0 as records have it.
constexpr std::int32_t recorded_negative_rank(int rank) noexcept {
  return rank == MPI_PROC_NULL ? kRootIsElsewhere : rank;
}
constexpr std::int32_t recorded_tag(int tag) noexcept {
  return tag == MPI_ANY_TAG ? kAnyTag : tag;
}
constexpr int recorded_thread_level(int level) noexcept {
  return level >= MPI_THREAD_MULTIPLE ? 3 : level / MPI_THREAD_FUNNELED;
}

}  // namespace lbf::capture
