// See all_threads_barrier.h.
#include "spank_plugin/capture/all_threads_barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lbf::capture {
namespace {

bool membarrier(int command) noexcept {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool register_all_threads_barrier() noexcept {
  const int saved_errno = errno;
  // The first one here: a filter may let the registration pass alone.
  const bool has_it =
      membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  errno = saved_errno;
  return has_it;
}

void all_threads_barrier() noexcept {
  const int saved_errno = errno;
  // It fails for want of a page of memory only. The other one needs none, and some milliseconds.
  while (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_GLOBAL)) sched_yield();
  errno = saved_errno;
}

}  // namespace lbf::capture
