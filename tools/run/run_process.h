// Child processes of lbf-run: the private lbfd, relays, and the user's command.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/units.h"

namespace lbf::tools {

inline constexpr const char* kSiteNetworks = "/etc/lbf/networks.d";

// Where this installation's parts are: beside this program as in a build folder, else as installed.
struct Parts {
  std::string bin;  // folder of lbf-run, lbf-report
  std::string lbfd;
  std::string relay;
  std::string capture;
  std::string prolog;  // for SLURM_TASK_PROLOG
  std::string epilog;
  std::string nominal;  // folder of nominal networks; empty: they are not installed
};
// Errors: kNotFound, naming what is missing.
Result<Parts> find_parts();

struct ChildOptions {
  bool own_session = false;       // not reached by the terminal's Ctrl-C
  bool ends_with_parent = false;  // gets SIGTERM when the thread that starts it ends, however that happens
  std::string output;             // file for stdout and stderr; empty: this process's
  bool only_stderr = false;       // its stdout is this process's stderr
  int passed_fd = -1;             // becomes descriptor 3 of the child
  std::vector<int> ignored;  // signals that it is to ignore; others that this process handles or ignores are default
};
// Errors: kIo.
Result<pid_t> start_child(const std::vector<std::string>& words, const ChildOptions& options);
// From now on it runs when others leave the processor (nice 19). REQUIRES: it has a session of its own by now.
void run_in_background(pid_t child);
// Its status as a shell gives it (128 + signal); empty: not over after TIMEOUT_S (negative: for ever).
Result<int> wait_for_child(pid_t child, Seconds timeout_s);

// A relay of this node.
class LocalRelay {
 public:
  // RING_DIR exists and has DESCRIPTION (docs/relay.md) as step.json. LIMITS: cost::relay_arguments().
  // Errors: kIo.
  static Result<LocalRelay> start(const Parts& parts, const std::string& ring_dir, const std::string& server,
                                  const std::vector<std::string>& limits);
  struct Finished {
    bool delivered = false;  // else something was lost, or it did not end in time
    std::string nothing;     // where it had nothing to take: what it found, for people
  };
  // Ends it once it has delivered.
  Finished finish(Seconds timeout_s);

 private:
  LocalRelay(pid_t pid, ScopedFd end) : pid_(pid), end_(std::move(end)) {}
  pid_t pid_;
  ScopedFd end_;  // its end of file tells the relay that all is over; the relay's answer comes from it
};

// Errors: kIo.
Result<void> write_text(const std::string& path, const std::string& text);

}  // namespace lbf::tools
