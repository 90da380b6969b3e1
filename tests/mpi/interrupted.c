/* Preloaded: another kernel's fallocate.
 * ROOM=N: there is room for N files of the process, then ENOSPC.
 * Else as kernels have it that give up for any signal (tmpfs of older ones), in a program with an interval timer that
 * is shorter than what a ring takes. Interrupted while SIGPROF can come, and the first times even so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static atomic_int files, calls;
  const char* const room = getenv("ROOM");
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  if (room != NULL && atomic_fetch_add(&files, 1) >= atoi(room)) {
    errno = ENOSPC;
    return -1;
  }
  if (room == NULL && (!sigismember(&blocked, SIGPROF) || atomic_fetch_add(&calls, 1) < 3)) {
    errno = EINTR;
    return -1;
  }
  return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

int fallocate64(int fd, int mode, off_t offset, off_t bytes) {
  return fallocate(fd, mode, offset, bytes);
}
