// What MPI's standard ABI leaves to the library. Which handles several requests share at a time, because they were
// complete when they were made: two such requests of a kind are made, and have one handle or two. Where a status has
// its count and the mark of what was cancelled: seen in statuses that the library is made to set.
//
// Place in the event's way: inside *capture*, when MPI_Init returns (recorder_process.cpp).
#include <bit>

#include "spank_plugin/capture/library.h"
#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture::family {

constinit StatusLayout status_layout = {};

namespace {

struct StatusWords {
  std::uint32_t word[sizeof(MPI_Status) / sizeof(std::uint32_t)];
};

// What the library keeps in a status of that many bytes.
class StatusSetter {
 public:
  StatusSetter() noexcept
      : set_elements_(symbol<decltype(set_elements_)>("PMPI_Status_set_elements_x")),
        set_cancelled_(symbol<decltype(set_cancelled_)>("PMPI_Status_set_cancelled")) {}
  bool set(std::uint64_t bytes, bool cancelled, StatusWords& words) const noexcept {
    MPI_Status status{};
    if (set_elements_ == nullptr || set_cancelled_ == nullptr ||
        set_elements_(&status, MPI_BYTE, static_cast<MPI_Count>(bytes)) != MPI_SUCCESS ||
        set_cancelled_(&status, cancelled) != MPI_SUCCESS)
      return false;
    __builtin_memcpy(&words, &status, sizeof(words));
    return true;
  }

 private:
  template <class F>
  static F symbol(const char* name) noexcept {
    return reinterpret_cast<F>(library_symbol(name));
  }

  decltype(&PMPI_Status_set_elements_x) set_elements_;
  decltype(&PMPI_Status_set_cancelled) set_cancelled_;
};

// The only word in which two statuses differ, and the bits in which it does; -1: there is no such word.
int changed_word(const StatusWords& a, const StatusWords& b, std::uint32_t& bits) noexcept {
  int found = -1;
  for (int i = 0; i < static_cast<int>(std::size(a.word)); ++i) {
    if (a.word[i] == b.word[i]) continue;
    if (found >= 0) return -1;
    found = i;
    bits = a.word[i] ^ b.word[i];
  }
  return found;
}

constexpr int kCountBits = 48;  // 256 TiB in one message

// A layout of the form that StatusLayout has, if the library's is one.
bool find_status_layout(StatusLayout& layout) noexcept {
  const StatusSetter setter;
  StatusWords zero, one;
  std::uint32_t bits = 0;
  if (!setter.set(0, false, zero) || !setter.set(0, true, one)) return false;
  const int cancelled = changed_word(zero, one, layout.cancelled_bits);
  if (cancelled < 0 || zero.word[cancelled] != 0) return false;
  int low = -1, high = -1, shift = 0;
  for (int bit = 0; bit < kCountBits; ++bit) {
    if (!setter.set(std::uint64_t{1} << bit, false, one)) return false;
    const int word = changed_word(zero, one, bits);
    if (word < 0 || zero.word[word] != 0 || !std::has_single_bit(bits)) return false;
    const int place = std::countr_zero(bits);
    if (bit == 0) low = word;
    if (bit == 32) high = word, shift = place;
    if (bit < 32 ? word != low || place != bit : word != high || place != bit - 32 + shift) return false;
  }
  layout.low = static_cast<std::uint8_t>(low);
  layout.high = static_cast<std::uint8_t>(high);
  layout.high_shift = static_cast<std::uint8_t>(shift);
  layout.cancelled = static_cast<std::uint8_t>(cancelled);
  layout.known = true;
  return true;
}

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
      if (shared != kNoRequest) continue;
      shared = handle;
      break;
    }
  }
  bool ended = true;
  for (MPI_Request& request : requests) ended &= mpi.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  return made && ended;
}

}  // namespace

void learn_statuses() noexcept {
  StatusLayout layout{};
  if (find_status_layout(layout)) status_layout = layout;
}

StatusView ask_status(const MPI_Status& status) noexcept {
  MPI_Count bytes = 0;
  int cancelled = 0;
  library.Get_count_c(&status, MPI_BYTE, &bytes);
  library.Test_cancelled(&status, &cancelled);
  return {status.MPI_SOURCE, status.MPI_TAG, cancelled != 0, bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0};
}

void compare_status(const MPI_Status& status) noexcept {
  const StatusView read = view_status(&status), asked = ask_status(status);
  if (read.bytes != asked.bytes || read.cancelled != asked.cancelled) status_layout.known = false;
}

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
