// OperationReader: events of all ranks -> operations.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "event/event.h"
#include "skeleton/operation.h"

namespace lbf::skeleton {

class OperationReader {
 public:
  explicit OperationReader(Rank ranks);

  // The next event of `rank`. Errors: what a skeleton cannot be built from (lost events, intercommunicators,
  // neighbour collectives, a cancelled send), what breaks the trace (an unknown request or communicator).
  Result<void> add(Rank rank, const Event& event);

  // After the last event. Errors: a rank without its end (the trace is partial).
  Result<ProgramTrace> finish();

 private:
  struct Request {
    std::uint32_t slot;
    std::uint32_t operation;
    bool receive;
  };
  struct State {  // of one rank
    std::unordered_map<std::uint32_t, Request> requests;
    std::vector<std::uint32_t> free_slots;  // heap, the lowest first
    std::uint32_t slots = 0;
    double process_s = 0;  // since the last operation, of any number of events
    double idle_s = 0;
    bool in_wait = false;  // the last operation is a kWait that more completions may join
    bool in_recv = false;  // a blocking receive was posted and has not ended
    bool ended = false;
    std::uint8_t recv_flags = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> comm_of;  // comm of the trace -> ProgramTrace::comms
    std::unordered_set<std::uint32_t> comms_in_use;            // of ProgramTrace::comms
  };

  Error at(Rank rank, const std::string& what) const;
  Operation& push(Rank rank, OperationKind kind, const Event& event);
  std::uint32_t take_slot(State& state);
  Result<void> start(Rank rank, OperationKind kind, const Event& event);
  Result<void> complete(Rank rank, std::uint32_t request, const Event& event);
  Result<void> receive_ended(Rank rank, const Event& event);
  Result<void> waited(Rank rank, const Event& event);
  Result<void> collective(Rank rank, const Event& event);
  Result<void> dropped(Rank rank, const Event& event);
  Result<void> create_comm(Rank rank, const Event& event);
  Result<void> find_comm(Rank rank, Event& event);
  void add_values(Operation& operation, std::span<const std::uint64_t> values);

  ProgramTrace trace_;
  std::vector<State> states_;
  std::map<std::pair<std::vector<Rank>, std::uint32_t>, std::uint32_t> comms_;  // members, copy -> comm
  std::unordered_map<std::uint32_t, std::uint32_t> comm_of_trace_;              // comm of the trace -> comm
};

}  // namespace lbf::skeleton
