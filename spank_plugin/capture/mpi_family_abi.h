// What the capture takes for granted of MPI's standard ABI (MPI 5.0, ch. 20), whatever library has it; see
// mpi_family.h. The constants are those of abi/mpi.h.
//
// The ABI says nothing of where a status has its count, nor of what codes errors have: that is learned of the library,
// or it is asked (abi_library.cpp). It has no Fortran, and no functions for Fortran's handles in C.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "event/event.h"
#include "spank_plugin/capture/library.h"

namespace lbf::capture {

// MPI_SOURCE, MPI_TAG, cancelled, bytes received.
struct StatusView {
  std::int32_t source;
  std::int32_t tag;
  bool cancelled;
  std::uint64_t bytes;
};

namespace family {

inline constexpr char kNoPredefined[] = "the MPI library's handles are not those of MPI's standard ABI";

inline constexpr const char* kFortranInPlace[4] = {};
inline constexpr const char* kFortranStatusIgnore[4] = {};
inline constexpr const char* kFortranStatusesIgnore[4] = {};

inline constexpr std::uint64_t kNoRequest = ~std::uint64_t{0};  // the key of no handle

template <class Find>
bool find_predefined(Library& library, Find find) noexcept {
  for (std::uint64_t& shared : library.shared_requests) shared = kNoRequest;
  // Of Open MPI's sends that the network took at once, which learn_shared_requests cannot make.
  if (const void* const send = find("ompi_request_empty_send"))
    library.shared_requests[0] = reinterpret_cast<std::uintptr_t>(send);
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
    if (request == library.shared_requests[i]) return i;
  }
  return -1;
}
// REQUIRES: MPI is initialised. false: it cannot be seen.
bool learn_shared_requests() noexcept;

// Where the library has a status's bytes and the mark of what was cancelled, in words of 32 bits. high_shift: of the
// count's upper half in its word. Not known: view_status asks.
struct StatusLayout {
  std::uint8_t low;
  std::uint8_t high;
  std::uint8_t high_shift;
  std::uint8_t cancelled;
  std::uint32_t cancelled_bits;
  bool known;
};
extern constinit StatusLayout status_layout;
// Learns it from statuses that the library sets. REQUIRES: MPI is initialised.
void learn_statuses() noexcept;
// Of a status that MPI filled: if it says something else than the library does, the layout is forgotten.
void compare_status(const MPI_Status& status) noexcept;
StatusView ask_status(const MPI_Status& status) noexcept;

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

inline StatusView view_status(const void* status) noexcept {
  const auto& s = *static_cast<const MPI_Status*>(status);
  const family::StatusLayout& layout = family::status_layout;
  if (!layout.known) [[unlikely]]
    return family::ask_status(s);
  const auto* const word = static_cast<const std::uint32_t*>(status);
  return {s.MPI_SOURCE, s.MPI_TAG, (word[layout.cancelled] & layout.cancelled_bits) != 0,
          word[layout.low] | static_cast<std::uint64_t>(word[layout.high] >> layout.high_shift) << 32};
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
