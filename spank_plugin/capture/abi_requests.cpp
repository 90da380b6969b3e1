// Which handles several requests of a library of MPI's standard ABI share at a time, because they were complete when
// they were made: the ABI leaves that to the library. Two such requests of a kind are made, and have one handle or two.
//
// Place in the event's way: inside *capture*, when MPI_Init returns (recorder_process.cpp).
#include "spank_plugin/capture/library.h"
#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture::family {
namespace {

// clang-format off
#define LBF_CAPTURE_MAKING(X) X(Isend) X(Irecv) X(Ibarrier) X(Wait)
// clang-format on

struct Making {
#define LBF_CAPTURE_MEMBER(name) decltype(&PMPI_##name) name;
  LBF_CAPTURE_MAKING(LBF_CAPTURE_MEMBER)
#undef LBF_CAPTURE_MEMBER
};

// make(request): of a request that is complete at once; false: it failed.
template <class Make>
bool learn(const Making& mpi, Make make) noexcept {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  const bool made = make(&requests[0]) == MPI_SUCCESS && make(&requests[1]) == MPI_SUCCESS;
  const std::uint64_t handle = key_of(requests[0]);
  if (made && requests[0] == requests[1] && requests[0] != MPI_REQUEST_NULL && shared_queue(handle) < 0) {
    for (std::uint64_t& shared : library.shared_requests) {
      if (shared != 0) continue;
      shared = handle;
      break;
    }
  }
  bool ended = true;
  for (MPI_Request& request : requests) ended &= mpi.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  return made && ended;
}

}  // namespace

bool learn_shared_requests() noexcept {
  Making mpi{};
#define LBF_CAPTURE_FIND(name)                                                        \
  mpi.name = reinterpret_cast<decltype(Making::name)>(library_symbol("PMPI_" #name)); \
  if (mpi.name == nullptr) return false;
  LBF_CAPTURE_MAKING(LBF_CAPTURE_FIND)
#undef LBF_CAPTURE_FIND
  const auto send = [&](MPI_Request* request) {
    return mpi.Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, request);
  };
  const auto receive = [&](MPI_Request* request) {
    return mpi.Irecv(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, request);
  };
  const auto meet = [&](MPI_Request* request) { return mpi.Ibarrier(MPI_COMM_SELF, request); };
  return learn(mpi, send) && learn(mpi, receive) && learn(mpi, meet);
}

}  // namespace lbf::capture::family
