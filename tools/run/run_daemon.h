// The private lbfd of `lbf-run`: in the user's own directory, for the user alone, as long as the command
// runs.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/units.h"
#include "tools/run/owned_directory.h"
#include "tools/run/run_process.h"

namespace lbf::tools {

struct DaemonOptions {
  std::string dir;            // state, log, number of the last run
  bool dir_was_given = true;  // else the next free one of DIR, DIR-2, ...
  std::string networks_dir;   // empty: DIR/networks.d, or the site's where that is not there
  std::string network;        // which of them this machine has; empty: as lbfd decides
  bool tcp = false;           // relays on other nodes
  bool only_asked = false;    // nothing runs: what was cut off before is ended as partial
};

// Where NETWORKS, a folder of network files, has no folder `nominal`, NOMINAL stands for it: what lbfd predicts on as
// long as no network is described. A link of an earlier run is made anew. Empty NOMINAL: nothing is done.
void link_nominal_networks(const std::string& nominal, const std::string& networks);

class PrivateDaemon {
 public:
  // Starts it and waits until it answers. With `only_asked` that of another lbf-run which has DIR now is as good.
  // Errors: kUnavailable (DIR in use), kIo; the message says what to do.
  static Result<PrivateDaemon> start(const Parts& parts, const DaemonOptions& options);
  PrivateDaemon(PrivateDaemon&& other) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  ~PrivateDaemon();

  const std::string& dir() const { return dir_; }
  std::string server() const { return "unix:" + socket_dir_ + "/lbfd.sock"; }
  const std::string& token() const { return token_; }
  std::uint16_t port() const { return port_; }  // of TCP; 0: none
  // It is another lbf-run's, and ends with it.
  bool is_joined() const { return !lock_; }
  // Of all threads of lbfd so far; zeros once it has ended.
  struct ProcessorUse {
    Seconds cpu_s = 0;
    Seconds delayed_s = 0;  // ready to run without a processor; 0 where the kernel does not tell
  };
  ProcessorUse processor_use() const;
  // 1, 2, 3 ...: of this directory, for runs that have no job number.
  std::uint32_t next_run_number() const;

 private:
  PrivateDaemon() = default;
  Result<void> take_dir(const DaemonOptions& options);
  bool join();
  Result<void> launch(const Parts& parts, const DaemonOptions& options);
  std::string dir_;
  std::string socket_dir_;
  std::optional<OwnedDirectory> owned_socket_dir_;
  std::string token_;
  std::uint16_t port_ = 0;
  ScopedFd lock_;  // of dir_; its file says where the lbfd of the one that has it listens
  pid_t pid_ = -1;
};

}  // namespace lbf::tools
