// Calls that the program left by longjmp or by an exception, from an error handler: how the next call finds
// out, and what becomes of the one that was left. Runs only where a wrapper finds its thread inside a call
// already. See process.h; docs/capture.md, "Start, stop, and what can go wrong".
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include "spank_plugin/capture/procedure_times.h"
#include "spank_plugin/capture/process.h"

namespace lbf::capture {

// The stack that the system gave the thread, if this is called on it; not one of the program's own making,
// which may go away. The main thread's is named, another thread's ends below its control block.
void note_stack(Thread& thread, pid_t tid) noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto control_block = static_cast<std::uintptr_t>(pthread_self());
  const bool is_main = tid == getpid();
  constexpr char kName[] = "[stack]";
  char text[4096];
  std::uintptr_t bounds[2] = {};
  int part = 0;       // of a line: 0, 1 its bounds, 2 the rest
  unsigned name = 0;  // characters of kName that the line has at its end
  ssize_t length = 0;
  while (thread.stack.high == nullptr && (length = read(fd, text, sizeof(text))) > 0) {
    for (ssize_t i = 0; i < length; ++i) {
      const char c = text[i];
      if (c == '\n') {
        if (bounds[0] <= here && here < bounds[1]) {
          const bool own = is_main ? name == sizeof(kName) - 1 : here < control_block && control_block < bounds[1];
          if (own) {
            thread.stack.low = reinterpret_cast<const std::byte*>(bounds[0]);
            thread.stack.high = reinterpret_cast<const std::byte*>(is_main ? bounds[1] : control_block);
          }
          close(fd);
          return;
        }
        part = 0;
        name = 0;
        bounds[0] = bounds[1] = 0;
      } else if (part < 2) {
        const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                               : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                      : 16;
        if (digit < 16) {
          bounds[part] = bounds[part] * 16 + digit;
        } else {
          ++part;
        }
      } else {
        name = name < sizeof(kName) - 1 && c == kName[name] ? name + 1 : c == kName[0] ? 1 : 0;
      }
    }
  }
  close(fd);
}

namespace {

// Whether the return address of the outermost wrapper still stands on its stack: anything else there means
// that the frame is gone. Where that cannot be read the answer is yes. A stack of the program's own making (a
// coroutine's) may be unmapped: the kernel reads it for us, which is too slow for every call.
bool outermost_frame_stands(const Thread& thread) noexcept {
#if defined(__x86_64__)
  const std::byte* const at = thread.outermost.frame - sizeof(void*);
  const void* found = nullptr;
  if (at >= thread.stack.low && at < thread.stack.high) [[likely]] {
    __builtin_memcpy(&found, at, sizeof(found));
    return found == thread.outermost.return_address;
  }
  constexpr std::uint64_t kFirstLook = 8;
  if (thread.nested.entries < kFirstLook || (thread.nested.entries & (thread.nested.entries - 1)) != 0) return true;
  const int saved_errno = errno;
  iovec here{&found, sizeof(found)};
  iovec there{const_cast<std::byte*>(at), sizeof(found)};
  const ssize_t got = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  const bool unmapped = got < 0 && errno == EFAULT;
  errno = saved_errno;
  return got == static_cast<ssize_t>(sizeof(found)) ? found == thread.outermost.return_address : !unmapped;
#else
  (void)thread;
  return true;
#endif
}

// A call inside another one has its frame below that one's; the stack grows down. One at the same place or
// above means that the outermost call's frame is gone: it was left by longjmp or by an exception (an error
// handler's). A program that goes on further down after the jump has written over the frame. With coroutines
// that call MPI on stacks of their own inside one another's calls (from a callback) the comparison may be
// wrong: the outer call's time is then counted twice, nothing else happens.
bool was_left_by_a_jump(Thread& thread, const std::byte* frame, Entry entry) noexcept {
  if (frame >= thread.outermost.frame) return true;
  const std::uint64_t outermost =
      thread.ring.enter() ^ reinterpret_cast<std::uintptr_t>(thread.outermost.return_address);
  if (thread.nested.outermost != outermost) {
    thread.nested.outermost = outermost;
    thread.nested.entries = 0;
    thread.nested.recordable = 0;
  }
  ++thread.nested.entries;
  if (!outermost_frame_stands(thread)) return true;
  if (entry == Entry::kCall) ++thread.nested.recordable;
  return false;
}

// The call that was left keeps all time since its enter: when it was left nobody saw. Calls that were taken
// for calls inside it are lost.
void resume_after_jump(Thread& thread) noexcept {
  ring::Header& header = *thread.header;
  header.abandoned_calls.store(header.abandoned_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool in_call =
      (header.in_call.load(std::memory_order_relaxed) & ((1u << ring::kWhereBits) - 1)) == ring::kInCall;
  if (thread.mode.counting || thread.mode.epoch != process.mode.epoch.load(std::memory_order_acquire)) {
    process.mode.uncounted.fetch_add(thread.nested.recordable, std::memory_order_relaxed);
  } else if (in_call && process.run.initialised.load(std::memory_order_acquire)) {  // else: a call without records
    const std::uint64_t now = ticks_now();
    const std::uint64_t enter = thread.ring.enter();
    thread.ring.append(EventKind::kUnmodelled);
    thread.ring.commit(now);
    ring::CallCounter& counter = header.calls[thread.ring.function()];
    counter.count.store(counter.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    counter.ticks.store(counter.ticks.load(std::memory_order_relaxed) + (now - enter), std::memory_order_relaxed);
    thread.ring.lose_calls(thread.nested.recordable, now);
    thread.clock.renew();
    thread.last_leave = now;
    thread.mode.last_was_failed_poll = false;
  }
  begin_procedure_interval(ticks_now());
  header.in_call.store(thread.mode.counting ? ring::kWhereUnknown : ring::kInProgram, std::memory_order_relaxed);
  thread.nested.outermost = 0;
  thread.nested.entries = 0;
  thread.nested.recordable = 0;
}

}  // namespace

bool resume_left_call(Thread& thread, const std::byte* frame, Entry entry) noexcept {
  if (!was_left_by_a_jump(thread, frame, entry)) return false;
  resume_after_jump(thread);
  return true;
}

}  // namespace lbf::capture
