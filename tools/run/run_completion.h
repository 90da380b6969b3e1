// The end of an lbf-run: what the programs sent has been delivered, and lbfd goes on predicting from it for a
// while.
#pragma once

#include <signal.h>

#include "tools/run/run_daemon.h"

namespace lbf::tools {

enum class Completion {
  kComplete,     // no step is under way any more
  kInterrupted,  // `stop` was set
  kIdle,         // a step has not ended, and lbfd does nothing: something of it is still out, or lost
};

// Waits until DAEMON has completed all its predictions; on a terminal, from two seconds on, with a line that
// says so. What is left when it returns is completed by the next lbfd of the same directory.
Completion wait_for_predictions(const PrivateDaemon& daemon, const volatile sig_atomic_t& stop);

}  // namespace lbf::tools
