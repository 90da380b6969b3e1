// run_relay: the relay of one step on one node, from its first ring to the end of its streams: the step's own
// one, and one for each program that mpirun starts in it.
//
// Place in the event's way: capture -> ring -> *relay* -> lbfd. Implements docs/relay.md and
// docs/adr/0004-relay-is-a-process.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "spank_plugin/relay/delivery.h"

namespace lbf::relay {

struct RelayOptions {
  std::string ring_dir;
  std::string server;            // of lbfd: unix:/path or http://host:port
  std::string step_description;  // JSON (protocol/relay_description.h)
  std::string spool_dir;         // empty: no spool
  Bytes spool_limit_bytes = Bytes{1024} << 20;
  // Limits of the administrator's beside the overhead limit, which the step's description has.
  double cpu_limit = 0;                        // the relay's share of the program's processor time; 0: none of its own
  Bytes memory_limit_bytes = Bytes{32} << 20;  // of batches that wait
  double network_limit_bytes_per_s = 0;        // 0: none
  Seconds cpu_before_s = 0;                    // processor time of this process that went into something else before
  int end_fd = -1;                             // end of file or the byte 'e': the step has ended
  Seconds deliver_timeout_s = 5;               // after the end; then the rest is spooled
};

// The step's key and stream number from its description. Errors: kInvalidInput, as lbfd would refuse the description.
struct StepIdentity {
  std::string key;
  std::uint32_t stream = 0;
  std::uint32_t step_number = 0;
  std::int32_t tasks = 0;
  std::uint32_t local_tasks = 0;         // of this node; 0: the description does not say
  std::optional<double> overhead_limit;  // a share of the program's processor time; empty: nothing is regulated
};
Result<StepIdentity> read_step_identity(const std::string& description);

struct RelayResult {
  Outcome outcome = Outcome::kLost;
  std::string trouble;   // why not everything was delivered at once, for people
  std::string nothing;   // where no process was taken: why not, as far as something was found, for people
  std::size_t runs = 0;  // of programs that mpirun started
};

// Runs until the step ended or STOP becomes true (then: at once, with a short try). REQUEST as in Delivery; each run
// of the step (programs that mpirun starts side by side) calls it from a thread of its own.
// Errors: kInvalidInput (description), kIo (ring directory).
Result<RelayResult> run_relay(const RelayOptions& options, const RequestFunction& request,
                              const std::atomic<bool>& stop);

// A RequestFunction on HttpClients with munge credentials; several threads may call it at once. A request ends after
// LIMIT_S: while a job runs, what lbfd has not taken by then is tried again. Errors: kInvalidInput (SERVER).
constexpr Seconds kRequestLimitS = 3;
Result<RequestFunction> make_request_function(const std::string& server, Seconds limit_s = kRequestLimitS);
// How flush_spool makes them: it may be another lbfd for each file.
using RequestFactory = std::function<Result<RequestFunction>(const std::string& server)>;

// Of one request of --flush-spool: nobody's job waits for it.
constexpr Seconds kFlushRequestLimitS = 30;
// Delivers every spool file in DIR that no running relay uses: this user's, or, for root, each file as its
// owner. SERVER overrides the one in the files; empty: theirs. Returns the number of files left. Errors: kIo,
// DIR cannot be read.
Result<int> flush_spool(const std::string& dir, const std::string& server, const RequestFactory& make_request);

// Removes a ring directory, and nothing but rings and the step file in it.
void remove_ring_dir(const std::string& dir);

// After a relay that was killed: ends its stream, so that lbfd need not wait for its time-out, with a lost
// batch (what the relay had taken out of the rings died with it). DESCRIPTION as in RelayOptions. Errors:
// kInvalidInput, kUnavailable, or what lbfd answers.
Result<void> abandon_stream(const std::string& description, const RequestFunction& request);

}  // namespace lbf::relay
