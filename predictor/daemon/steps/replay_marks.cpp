// ReplayMarks, see replay_marks.h.
#include "predictor/daemon/steps/replay_marks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/scoped_fd.h"
#include "predictor/daemon/intake/file_io.h"

namespace lbf::daemon {
namespace {

constexpr std::size_t kFileBytes = ReplayMarks::kSlots * ReplayMarks::kSlotBytes;

}  // namespace

Result<std::unique_ptr<ReplayMarks>> ReplayMarks::open(const std::string& path) {
  const ScopedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return system_error("open", path, errno);
  // Its blocks are there before the memory is used: a full disk is an error here, not a signal later.
  if (::ftruncate(fd.get(), kFileBytes) != 0) return system_error("make", path, errno);
  if (const int wrong = ::posix_fallocate(fd.get(), 0, kFileBytes); wrong != 0)
    return system_error("make", path, wrong);
  void* const memory = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("map", path, errno);
  return std::unique_ptr<ReplayMarks>(new ReplayMarks(static_cast<char*>(memory)));
}

ReplayMarks::ReplayMarks(char* memory) : memory_(memory) {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const char* const text = memory_ + slot * kSlotBytes;
    const std::string_view mark(text, ::strnlen(text, kSlotBytes));
    const std::size_t blank = std::min(mark.find(' '), mark.size());
    if (!mark.empty()) found_.emplace(mark.substr(0, blank), mark.substr(std::min(blank + 1, mark.size())));
  }
  std::memset(memory_, 0, kFileBytes);
}

ReplayMarks::~ReplayMarks() {
  (void)::munmap(memory_, kFileBytes);
}

ReplayMarks::Mark::Mark(ReplayMarks& marks, std::string_view step) : marks_(marks), slot_(0) {
  while (slot_ < kSlots && marks_.taken_[slot_].exchange(true)) ++slot_;
  if (slot_ == kSlots) return;
  char* const text = marks_.memory_ + slot_ * kSlotBytes;
  step = step.substr(0, kSlotBytes / 2);
  step_bytes_ = step.size();
  std::copy(step.begin(), step.end(), text);
  text[step_bytes_] = 0;
}

void ReplayMarks::Mark::set_at_hand(std::string_view what) {
  if (slot_ == kSlots) return;
  char* const text = marks_.memory_ + slot_ * kSlotBytes + step_bytes_;
  what = what.substr(0, kSlotBytes - step_bytes_ - 2);
  std::copy(what.begin(), what.end(), text + 1);
  text[1 + what.size()] = 0;
  text[0] = ' ';
}

ReplayMarks::Mark::~Mark() {
  if (slot_ == kSlots) return;
  marks_.memory_[slot_ * kSlotBytes] = 0;
  marks_.taken_[slot_] = false;
}

}  // namespace lbf::daemon
