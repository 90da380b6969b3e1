// See self_test.h.
#include "spank_plugin/capture/self_test.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture {
namespace {

constexpr int kTag = 4711;
constexpr int kSentBytes = 1013;

// Room for a T of the library's, which may be longer than ours.
template <class T>
class Returned {
 public:
  Returned() noexcept { memset(bytes_, kUntouched, sizeof(bytes_)); }
  T* place() noexcept { return reinterpret_cast<T*>(bytes_); }
  T value() const noexcept {
    T value;
    memcpy(&value, bytes_, sizeof(value));
    return value;
  }
  bool fits() const noexcept {
    for (std::size_t i = sizeof(T); i < sizeof(bytes_); ++i) {
      if (bytes_[i] != kUntouched) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char kUntouched = 0xa5;
  alignas(16) unsigned char bytes_[sizeof(T) + 64];
};

// clang-format off
#define LBF_CAPTURE_TESTED(X) X(Type_size) X(Comm_dup) X(Comm_free) X(Comm_set_errhandler) X(Send) X(Irecv) X(Test) X(Cancel) X(Iprobe)
// clang-format on

class SelfTest {
 public:
  const char* failed_check() noexcept {
#define LBF_CAPTURE_FIND(name)                                                         \
  mpi_.name = reinterpret_cast<decltype(Tested::name)>(library_symbol("PMPI_" #name)); \
  if (mpi_.name == nullptr) return "it has no PMPI_" #name;
    LBF_CAPTURE_TESTED(LBF_CAPTURE_FIND)
#undef LBF_CAPTURE_FIND
    Returned<MPI_Comm> parent;
    library.Comm_get_parent(parent.place());
    if (!parent.fits() || !family::may_be_comm(parent.value())) return "a communicator's handle";
    if (parent.value() != library.comm_null) return nullptr;  // of a spawned process, which is not recorded
    if (!is_world_right()) return "MPI_COMM_WORLD";
    if (!are_types_right()) return "MPI_Type_size of predefined datatypes";
    if (library.comm_self == MPI_Comm{} || mpi_.Comm_dup(library.comm_self, &own_) != MPI_SUCCESS)
      return "MPI_COMM_SELF";
    const char* const failed = failed_on_own();
    mpi_.Comm_free(&own_);
    return failed;
  }

 private:
  struct Tested {
#define LBF_CAPTURE_MEMBER(name) decltype(&PMPI_##name) name;
    LBF_CAPTURE_TESTED(LBF_CAPTURE_MEMBER)
#undef LBF_CAPTURE_MEMBER
  };

  bool is_world_right() const noexcept {
    int rank = -1, size = 0;
    return library.Comm_rank(library.comm_world, &rank) == MPI_SUCCESS &&
           library.Comm_size(library.comm_world, &size) == MPI_SUCCESS && rank >= 0 && rank < size;
  }

  bool are_types_right() const noexcept {
    const auto has = [this](MPI_Datatype type, std::size_t bytes) {
      int size = -1;
      return type != MPI_Datatype{} && mpi_.Type_size(type, &size) == MPI_SUCCESS && size == static_cast<int>(bytes);
    };
    return has(handles_.byte, 1) && has(handles_.integer, sizeof(int)) && has(handles_.real, sizeof(double));
  }

  // Errors are returned here, where elsewhere they may end the program.
  const char* failed_on_own() noexcept {
    int size = 0;
    if (library.Comm_size(own_, &size) != MPI_SUCCESS || size != 1) return "MPI_COMM_SELF";
    if (handles_.errors_return == MPI_Errhandler{} ||
        mpi_.Comm_set_errhandler(own_, handles_.errors_return) != MPI_SUCCESS)
      return "MPI_ERRORS_RETURN";
    if (!is_message_right()) return "the status of a message";
    if (!is_cancelled_right()) return "the status of a cancelled receive";
    return is_proc_null_right() ? nullptr : "MPI_PROC_NULL";
  }

  bool is_message_right() noexcept {
    char sent[kSentBytes] = {}, received[kSentBytes + 8];
    if (!post(received, sizeof(received), MPI_ANY_SOURCE, MPI_ANY_TAG)) return false;
    const bool is_sent = mpi_.Send(sent, kSentBytes, handles_.byte, 0, kTag, own_) == MPI_SUCCESS;
    if (!is_sent) mpi_.Cancel(&request_);
    Returned<MPI_Status> status;
    if (!is_complete(status)) return false;
    const StatusView got = view_status(status.place());
    return is_sent && got.source == 0 && got.tag == kTag && got.bytes == kSentBytes && !got.cancelled;
  }

  bool is_cancelled_right() noexcept {
    char nothing = 0;
    Returned<MPI_Status> status;
    return post(&nothing, 1, 0, kTag) && mpi_.Cancel(&request_) == MPI_SUCCESS && is_complete(status) &&
           view_status(status.place()).cancelled;
  }

  // Not by a receive, whose status MPICH 4.0 leaves at 0.
  bool is_proc_null_right() noexcept {
    int flag = 0;
    Returned<MPI_Status> status;
    if (mpi_.Iprobe(MPI_PROC_NULL, kTag, own_, &flag, status.place()) != MPI_SUCCESS || flag == 0) return false;
    family::compare_status(*status.place());
    const StatusView got = view_status(status.place());
    return got.source == MPI_PROC_NULL && got.tag == MPI_ANY_TAG && got.bytes == 0 && !got.cancelled;
  }

  bool post(void* buffer, std::size_t bytes, int source, int tag) noexcept {
    return mpi_.Irecv(buffer, static_cast<int>(bytes), handles_.byte, source, tag, own_, &request_) == MPI_SUCCESS;
  }

  // It is over, with a status of the size that is expected, and its handle is null. One that never is over is given up.
  bool is_complete(Returned<MPI_Status>& status) noexcept {
    constexpr int kMostTests = 100'000;
    int flag = 0;
    for (int i = 0; i < kMostTests && flag == 0; ++i) {
      if (mpi_.Test(&request_, &flag, status.place()) != MPI_SUCCESS) return false;
    }
    if (flag == 0) mpi_.Cancel(&request_);
    if (flag == 0 || !status.fits()) return false;
    family::compare_status(*status.place());
    return request_ == library.request_null;
  }

  Tested mpi_{};
  TestedHandles handles_ = family::tested_handles(library_symbol);
  MPI_Comm own_{};
  MPI_Request request_{};
};

}  // namespace

const char* failed_check() noexcept {
  return SelfTest().failed_check();
}

const char* refusal(const char* what) noexcept {
  static constinit char text[384] = {};
  if (const char* const name = unlisted_library()) {
    snprintf(text, sizeof(text), "it does not know this MPI library: %.180s; as one of %s's family it fails at: %s",
             name, family::kName, what);
  } else {
    snprintf(text, sizeof(text), "the MPI library does not do as %s has it: %s", family::kName, what);
  }
  return text;
}

}  // namespace lbf::capture
