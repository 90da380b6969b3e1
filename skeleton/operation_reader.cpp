#include "skeleton/operation_reader.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "event/collective_op.h"

namespace lbf::skeleton {
namespace {

constexpr std::uint32_t kMostCopies = 10'000;  // each is one more communicator of the skeleton
constexpr std::uint32_t kRefused = ~0u;        // in State::comm_of: an intercommunicator

bool has_request(const Event& event) {
  return (event.flags & kFlagHasRequest) != 0;
}

}  // namespace

OperationReader::OperationReader(Rank ranks) : states_(static_cast<std::size_t>(ranks)) {
  trace_.ranks.resize(states_.size());
  std::vector<Rank> world(states_.size());
  std::iota(world.begin(), world.end(), 0);
  trace_.comms.push_back(std::move(world));
  comm_of_trace_[0] = 0;
}

Error OperationReader::at(Rank rank, const std::string& what) const {
  const std::size_t operations = trace_.ranks[static_cast<std::size_t>(rank)].size();
  return invalid_input("rank " + std::to_string(rank) + ", after " + std::to_string(operations) +
                       " operations: " + what);
}

Operation& OperationReader::push(Rank rank, OperationKind kind, const Event& event) {
  State& state = states_[static_cast<std::size_t>(rank)];
  Operation operation;
  operation.kind = kind;
  operation.flags = event.flags & (kFlagWildcardSource | kFlagWildcardTag | kFlagSync | kFlagBuffered);
  operation.peer = event.peer;
  operation.tag = event.tag;
  operation.comm = event.comm;
  operation.bytes = event.bytes;
  operation.process_s = static_cast<float>(std::exchange(state.process_s, 0.0));
  operation.idle_s = static_cast<float>(std::exchange(state.idle_s, 0.0));
  operation.call_s = static_cast<float>(event.call_s);
  state.in_wait = false;
  std::vector<Operation>& operations = trace_.ranks[static_cast<std::size_t>(rank)];
  operations.push_back(operation);
  return operations.back();
}

void OperationReader::add_values(Operation& operation, std::span<const std::uint64_t> values) {
  operation.values_begin = static_cast<std::uint32_t>(trace_.values.size());
  operation.values_count = static_cast<std::uint32_t>(values.size());
  trace_.values.insert(trace_.values.end(), values.begin(), values.end());
}

std::uint32_t OperationReader::take_slot(State& state) {
  if (state.free_slots.empty()) return state.slots++;
  std::pop_heap(state.free_slots.begin(), state.free_slots.end(), std::greater<>());
  const std::uint32_t slot = state.free_slots.back();
  state.free_slots.pop_back();
  return slot;
}

Result<void> OperationReader::start(Rank rank, OperationKind kind, const Event& event) {
  State& state = states_[static_cast<std::size_t>(rank)];
  if (!has_request(event)) return at(rank, "a non-blocking operation without a request");
  if (state.requests.contains(event.request))
    return at(rank, "request " + std::to_string(event.request) + " is active already");
  Operation& operation = push(rank, kind, event);
  operation.slot = take_slot(state);
  const std::uint32_t index = static_cast<std::uint32_t>(trace_.ranks[static_cast<std::size_t>(rank)].size() - 1);
  state.requests[event.request] = {operation.slot, index, kind == OperationKind::kIrecv};
  return {};
}

// One request of a wait. The completions of one MPI call (a Waitall makes several events) are one operation.
Result<void> OperationReader::complete(Rank rank, std::uint32_t request, const Event& event) {
  State& state = states_[static_cast<std::size_t>(rank)];
  const auto found = state.requests.find(request);
  if (found == state.requests.end())
    return at(rank, "request " + std::to_string(request) + " ends but was never started");
  std::vector<Operation>& operations = trace_.ranks[static_cast<std::size_t>(rank)];
  if (event.kind == EventKind::kEndRecv) {
    if (!found->second.receive) return at(rank, "a receive ends with the request of a send");
    Operation& posted = operations[found->second.operation];
    posted.peer = event.peer;
    posted.tag = event.tag;
    posted.bytes = event.bytes;
  }
  const bool same_call =
      event.function == 0 ? state.process_s == 0 && state.idle_s == 0 : (event.flags & kFlagCallBegin) == 0;
  if (state.in_wait && same_call) {
    Operation& wait = operations.back();
    wait.process_s += static_cast<float>(std::exchange(state.process_s, 0.0));
    wait.call_s += static_cast<float>(event.call_s);
    ++wait.values_count;
    // Ranks interleave: what another rank added meanwhile lies behind this wait's slots.
    if (wait.values_begin + wait.values_count - 1 != trace_.values.size()) {
      const std::uint32_t begin = static_cast<std::uint32_t>(trace_.values.size());
      for (std::uint32_t i = 0; i + 1 < wait.values_count; ++i)
        trace_.values.push_back(trace_.values[wait.values_begin + i]);
      wait.values_begin = begin;
    }
    trace_.values.push_back(found->second.slot);
  } else {
    const std::uint64_t slot = found->second.slot;
    Event wait;  // of a receive's end only the times: peer, tag and bytes are the receive's
    wait.call_s = event.call_s;
    add_values(push(rank, OperationKind::kWait, wait), {&slot, 1});
    state.in_wait = true;
  }
  state.free_slots.push_back(found->second.slot);
  std::push_heap(state.free_slots.begin(), state.free_slots.end(), std::greater<>());
  state.requests.erase(found);
  return {};
}

Result<void> OperationReader::receive_ended(Rank rank, const Event& event) {
  if (has_request(event)) return complete(rank, event.request, event);
  State& state = states_[static_cast<std::size_t>(rank)];
  if (!state.in_recv) return at(rank, "a receive ends that was not posted");
  state.in_recv = false;
  push(rank, OperationKind::kRecv, event).flags |= state.recv_flags;
  return {};
}

Result<void> OperationReader::waited(Rank rank, const Event& event) {
  if (has_request(event)) return complete(rank, event.request, event);
  Event each = event;
  for (const std::uint64_t request : event.values) {
    if (Result<void> done = complete(rank, static_cast<std::uint32_t>(request), each); !done) return done;
    each.flags &= static_cast<std::uint8_t>(~kFlagCallBegin);  // the rest is the same call
    each.call_s = 0;
  }
  return {};
}

Result<void> OperationReader::collective(Rank rank, const Event& event) {
  if (is_neighbour(collective_op(event))) {
    return at(rank, "a neighbour collective, which skeletons do not support yet (docs/skeletons.md, limits)");
  }
  const std::vector<Rank>& members = trace_.comms[event.comm];
  if (event.root < 0 || event.root >= static_cast<Rank>(members.size()))
    return at(rank, "a collective whose root is not in its communicator");
  const RootRole role = members[static_cast<std::size_t>(event.root)] == rank ? RootRole::kRoot : RootRole::kOther;
  const std::size_t needed = values_needed(collective_op(event), members.size(), role);
  if (event.values.size() < needed) return at(rank, "a collective without the bytes of each peer");
  if (event.kind == EventKind::kIcollective) {
    if (Result<void> started = start(rank, OperationKind::kIcollective, event); !started) return started;
  } else {
    push(rank, OperationKind::kCollective, event);
  }
  Operation& operation = trace_.ranks[static_cast<std::size_t>(rank)].back();
  operation.op = collective_op(event);
  operation.root = event.root;
  operation.peer = 0;
  operation.tag = 0;
  add_values(operation, event.values.first(needed));
  return {};
}

// A request that was cancelled or freed.
Result<void> OperationReader::dropped(Rank rank, const Event& event) {
  State& state = states_[static_cast<std::size_t>(rank)];
  const auto found = state.requests.find(event.request);
  if (found == state.requests.end()) return at(rank, "a request is given up that was never started");
  const bool cancel = event.kind == EventKind::kCancel;
  if (cancel != found->second.receive) {
    return at(rank, cancel ? "a cancelled send, which skeletons do not support (docs/skeletons.md, limits)"
                           : "a receive whose request was freed: nobody knows which message it took");
  }
  // A slot whose send goes on for ever is free again all the same: the skeleton frees the request too.
  if (cancel) trace_.ranks[static_cast<std::size_t>(rank)][found->second.operation].peer = kAnyRank;
  push(rank, cancel ? OperationKind::kCancel : OperationKind::kRequestFree, event).slot = found->second.slot;
  state.free_slots.push_back(found->second.slot);
  std::push_heap(state.free_slots.begin(), state.free_slots.end(), std::greater<>());
  state.requests.erase(found);
  return {};
}

// Communicators with the same members that are not alive at the same time are one: a loop that duplicates and
// frees a communicator has the same one in every iteration.
Result<void> OperationReader::create_comm(Rank rank, const Event& event) {
  State& state = states_[static_cast<std::size_t>(rank)];
  if (event.values.size() < 2) return at(rank, "a communicator without members");
  if (event.values[1] != 0) {
    state.comm_of[event.comm] = kRefused;
    return {};
  }
  std::vector<Rank> members;
  for (const std::uint64_t member : event.values.subspan(2)) {
    if (member >= states_.size()) return at(rank, "a communicator with a member that is no rank");
    members.push_back(static_cast<Rank>(member));
  }
  // Which copy of a communicator with these members: the lowest that is not in use on this rank.
  std::uint32_t copy = 0;
  auto known = comms_.find({members, copy});
  while (known != comms_.end() && state.comms_in_use.contains(known->second)) {
    if (++copy == kMostCopies) {
      return at(rank, "more than " + std::to_string(kMostCopies) + " communicators with the same members at a time");
    }
    known = comms_.find({members, copy});
  }
  if (known == comms_.end()) {
    known = comms_.emplace(std::pair(members, copy), static_cast<std::uint32_t>(trace_.comms.size())).first;
    trace_.comms.push_back(std::move(members));
  }
  const auto [of_all, first] = comm_of_trace_.emplace(event.comm, known->second);
  if (!first && of_all->second != known->second) {
    return at(rank, "communicators are created and freed in another order than on other ranks");
  }
  state.comm_of[event.comm] = known->second;
  state.comms_in_use.insert(known->second);
  return {};
}

Result<void> OperationReader::find_comm(Rank rank, Event& event) {
  if (event.comm == 0) return {};
  const State& state = states_[static_cast<std::size_t>(rank)];
  const auto found = state.comm_of.find(event.comm);
  if (found == state.comm_of.end())
    return at(rank, "communicator " + std::to_string(event.comm) + " was never defined");
  if (found->second == kRefused) {
    return at(rank, "an intercommunicator, which skeletons do not support yet (docs/skeletons.md, limits)");
  }
  event.comm = found->second;
  return {};
}

Result<void> OperationReader::add(Rank rank, const Event& given) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= states_.size())
    return invalid_input("an event of rank " + std::to_string(rank) + ", which the program does not have");
  State& state = states_[static_cast<std::size_t>(rank)];
  if (state.ended) return at(rank, "an event after the end");
  Event event = given;
  ++trace_.events;
  state.process_s += event.process_s;
  const auto peer_is_rank = [&] { return event.peer >= 0 && static_cast<std::size_t>(event.peer) < states_.size(); };
  switch (event.kind) {
    case EventKind::kCompute:
    case EventKind::kKeepAlive:
    case EventKind::kPhase:
    case EventKind::kEnter:
    case EventKind::kLeave:
    case EventKind::kProcedure:
    case EventKind::kRegions:
    case EventKind::kPreempted:
      return {};
    case EventKind::kDevice:
      state.process_s -= event.process_s;
      state.idle_s += event.process_s;
      trace_.blocked_s += event.process_s;
      return {};
    case EventKind::kBlocked:
      state.idle_s += event.off_s;
      trace_.blocked_s += event.off_s;
      return {};
    case EventKind::kUnmodelled:
    case EventKind::kIo:
    case EventKind::kOneSided:
    case EventKind::kOneSidedSync:
      if (event.kind == EventKind::kOneSided && has_request(event)) {
        return at(rank,
                  "a one-sided operation with a request (MPI_Rput ...), which skeletons do not support "
                  "(docs/skeletons.md, limits)");
      }
      state.idle_s += event.call_s;
      trace_.unmodelled_s += event.call_s;
      return {};
    case EventKind::kGap:
      return at(rank, std::to_string(lost_events(event)) +
                          " events were lost here: no skeleton can be built from a partial trace; record it "
                          "again with a larger ring (LBF_CAPTURE_RING_BYTES)");
    case EventKind::kWindowOpen:
      return {};
    case EventKind::kWindowClose:
    case EventKind::kSkipped:
      return at(rank,
                "from here on calls were only counted, to stay within the overhead limit or by MPI_Pcontrol(0): no "
                "skeleton can be built from a trace with lost windows; record it again with a higher limit (srun "
                "--lbf-overhead, up to the site's overhead_limit; lbf-run --overhead 100)");
    case EventKind::kCommCreate:
      return create_comm(rank, event);
    case EventKind::kCommFree:
      if (const auto freed = state.comm_of.find(event.comm); freed != state.comm_of.end()) {
        state.comms_in_use.erase(freed->second);
        state.comm_of.erase(freed);
      }
      return {};
    case EventKind::kExit:
      push(rank, OperationKind::kEnd, Event{}).peer = 0;
      state.ended = true;
      return {};
    case EventKind::kWait:
      return waited(rank, event);
    case EventKind::kCancel:
    case EventKind::kRequestFree:
      return dropped(rank, event);
    default:
      break;
  }
  if (Result<void> known = find_comm(rank, event); !known) return known;
  switch (event.kind) {
    case EventKind::kCollective:
    case EventKind::kIcollective:
      return collective(rank, event);
    case EventKind::kStartRecv:
      if (has_request(event)) return start(rank, OperationKind::kIrecv, event);
      state.in_recv = true;
      state.recv_flags = event.flags & (kFlagWildcardSource | kFlagWildcardTag);
      return {};
    default:
      break;
  }
  if (!peer_is_rank()) return at(rank, "a message to or from a rank that the program does not have");
  switch (event.kind) {
    case EventKind::kSend:
      push(rank, OperationKind::kSend, event);
      return {};
    case EventKind::kIsend:
      return start(rank, OperationKind::kIsend, event);
    case EventKind::kRecv:
      push(rank, OperationKind::kRecv, event);
      return {};
    case EventKind::kProbe:
      push(rank, OperationKind::kProbe, event);
      return {};
    case EventKind::kEndRecv:
      return receive_ended(rank, event);
    default:
      return at(rank, "an event of a kind that is not known");
  }
}

Result<ProgramTrace> OperationReader::finish() {
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    if (states_[rank].ended) continue;
    return invalid_input("rank " + std::to_string(rank) + " has no end in the trace after " +
                         std::to_string(trace_.ranks[rank].size()) +
                         " operations: the trace is partial (was the job killed, or is it still running?), and "
                         "no skeleton can be built from it");
  }
  return std::move(trace_);
}

}  // namespace lbf::skeleton
