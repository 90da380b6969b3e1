#include "tests/unit/pattern/program_script.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lbf::pattern::testing {

using skeleton::Operation;
using skeleton::OperationKind;

Operation& Script::add(OperationKind kind) {
  auto& operations = trace_.ranks[static_cast<std::size_t>(me)];
  Operation operation;
  operation.kind = kind;
  operation.process_s = static_cast<float>(std::exchange(process_s_, 0.0));
  operations.push_back(operation);
  return operations.back();
}

void Script::message(OperationKind kind, Rank peer, std::int32_t tag, Bytes bytes) {
  Operation& operation = add(kind);
  operation.peer = peer;
  operation.tag = tag;
  operation.bytes = bytes;
  if (!skeleton::begins_request(kind)) return;
  std::uint32_t slot = 0;
  while (std::any_of(active_.begin(), active_.end(), [&](const Active& active) { return active.slot == slot; })) ++slot;
  operation.slot = slot;
  active_.push_back({slot, kind == OperationKind::kIrecv});
}

void Script::send(Rank to, std::int32_t tag, Bytes bytes) {
  message(OperationKind::kSend, to, tag, bytes);
}
void Script::recv(Rank from, std::int32_t tag, Bytes bytes) {
  message(OperationKind::kRecv, from, tag, bytes);
}
void Script::isend(Rank to, std::int32_t tag, Bytes bytes) {
  message(OperationKind::kIsend, to, tag, bytes);
}
void Script::irecv(Rank from, std::int32_t tag, Bytes bytes) {
  message(OperationKind::kIrecv, from, tag, bytes);
}

void Script::wait(bool receives_only) {
  std::vector<Active> left;
  std::vector<std::uint64_t> slots;
  for (const Active& active : active_) {
    if (receives_only && !active.is_receive) {
      left.push_back(active);
    } else {
      slots.push_back(active.slot);
    }
  }
  active_ = std::move(left);
  if (slots.empty()) return;
  Operation& operation = add(OperationKind::kWait);
  operation.values_begin = static_cast<std::uint32_t>(trace_.values.size());
  operation.values_count = static_cast<std::uint32_t>(slots.size());
  trace_.values.insert(trace_.values.end(), slots.begin(), slots.end());
}
void Script::wait_for_all() {
  wait(false);
}
void Script::wait_for_receives() {
  wait(true);
}

void Script::collective(CollectiveOp op, Bytes bytes, Rank root, std::uint32_t comm) {
  Operation& operation = add(OperationKind::kCollective);
  operation.op = op;
  operation.bytes = bytes;
  operation.root = root;
  operation.comm = comm;
}

void Script::cancel() {
  add(OperationKind::kCancel);
}

skeleton::ProgramTrace run_of(Rank ranks, const ProgramScript& program,
                              const std::vector<std::vector<Rank>>& communicators) {
  skeleton::ProgramTrace trace;
  trace.ranks.resize(static_cast<std::size_t>(ranks));
  std::vector<Rank> world(static_cast<std::size_t>(ranks));
  std::iota(world.begin(), world.end(), 0);
  trace.comms.push_back(std::move(world));
  trace.comms.insert(trace.comms.end(), communicators.begin(), communicators.end());
  for (Rank me = 0; me < ranks; ++me) {
    Script script(trace, ranks, me);
    program(script);
    Operation end;
    end.kind = OperationKind::kEnd;
    trace.ranks[static_cast<std::size_t>(me)].push_back(end);
  }
  return trace;
}

}  // namespace lbf::pattern::testing
