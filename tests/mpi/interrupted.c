/* Preloaded: fallocate as kernels have it that give up for any signal (tmpfs of older ones), in a program with an
 * interval timer that is shorter than what a ring takes. Interrupted while SIGPROF can come, and the first times even so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static int interruptions = 3;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  if (!sigismember(&blocked, SIGPROF) || interruptions-- > 0) {
    errno = EINTR;
    return -1;
  }
  return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int fallocate64(int fd, int mode, off_t offset, off_t bytes) {
  return fallocate(fd, mode, offset, bytes);
}
