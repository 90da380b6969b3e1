// What /proc tells about a process of the job.
#pragma once

#include <cstdint>
#include <optional>

namespace lbf::relay {

struct ProcessStat {
  bool alive = false;    // neither gone nor a zombie: some thread of it runs
  bool stopped = false;  // by a signal: scontrol suspend sends SIGTSTP
  // Waits for a disk and the like; or was stopped and then frozen by its cgroup (proctrack/cgroup with version 1's
  // freezer), which hides the stop from Linux 6.1 on.
  bool uninterruptible = false;
  std::uint64_t start_time_clock = 0;  // with the pid, names one process for good
};

// The process now. A process that cannot be seen is not alive.
ProcessStat read_process_stat(std::int32_t pid);

// Processor time of one thread so far, in ns: exact where the kernel has schedstat, else in clock ticks (10
// ms). Empty when the thread is gone.
std::optional<std::uint64_t> read_thread_cpu_ns(std::int32_t pid, std::int32_t tid);

// For how long the first thread of a process was ready to run and had no processor, so far, in ns. Empty: the kernel
// has no schedstat, or the process is gone.
std::optional<std::uint64_t> read_run_delay_ns(std::int32_t pid);

// Processor time of all threads of a process so far, ended ones included, in ns. Empty: it is gone.
std::optional<std::uint64_t> read_process_cpu_ns(std::int32_t pid);

}  // namespace lbf::relay
