// RelayProcess: starts lbf-relay as the job's user and ends it (docs/plugin.md, "The relay's life").
//
// slurmstepd is root and has threads: between fork and exec only async-signal-safe calls are made, and every
// privilege is dropped for good before the relay's program runs. The relay is no child of slurmstepd (it is
// forked twice): slurmstepd's wait3() never meets it, and a SIGKILL to the step's process tree leaves it the
// time to deliver what the tasks wrote. It stays in slurmstepd's cgroup, inside the job's.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/units.h"

namespace lbf::plugin {

// Whose process it becomes. With an effective or real uid of 0 all of it is applied; without, it must be this
// process's own uid already.
struct UserIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> supplementary_gids;
};

enum class RelayOutcome {
  kDelivered,
  kDeliveredRuns,  // the same, with programs that mpirun started
  kSpooled,
  kLost,
  kDied,       // without a word
  kStillBusy,  // not finished within the time given
};

class RelayProcess {
 public:
  // Starts PROGRAM with ARGUMENTS (argv[1...]) and, behind them, "--end-fd 3 --status-fd 3": a socket whose
  // end of file, or the byte 'e', tells the relay that the step has ended, and on which it answers with one
  // byte and some words. Errors: kIo (no descriptors, fork, exec; the message says which).
  static Result<RelayProcess> start(const std::string& program, const std::vector<std::string>& arguments,
                                    const UserIdentity& user);

  // 0: not known.
  pid_t pid() const { return pid_; }
  // The step has ended, as LINES say (protocol/task_ends.h). May be called more than once.
  void signal_end(std::string lines = {}) noexcept;
  // Waits for the relay's answer, TIMEOUT_S at most. REQUIRES: signal_end() before.
  RelayOutcome wait(Seconds timeout_s);
  // Behind wait(), in the relay's words, on one line: why not everything was delivered, or what it found where it had
  // nothing to take; empty: nothing to say.
  const std::string& why() const { return why_; }

 private:
  static constexpr std::size_t kMostAnswerBytes = 512;
  RelayProcess(ScopedFd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  ScopedFd socket_;
  pid_t pid_;
  std::string why_;
};

}  // namespace lbf::plugin
