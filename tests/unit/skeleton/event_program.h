// Programs as events of all ranks, for the tests: one call per MPI call.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "event/event.h"
#include "skeleton/operation_reader.h"
#include "skeleton/scale.h"
#include "skeleton/signature.h"

namespace lbf::skeleton_test {

class EventProgram {
 public:
  explicit EventProgram(Rank ranks) : events(static_cast<std::size_t>(ranks)) {}

  void send(Rank me, Rank to, Bytes bytes, std::int32_t tag = 0, Seconds work = 0, std::uint32_t comm = 0);
  void isend(Rank me, Rank to, Bytes bytes, std::uint32_t request, std::int32_t tag = 0, Seconds work = 0,
             std::uint32_t comm = 0);
  void recv(Rank me, Rank from, Bytes bytes, std::int32_t tag = 0, Seconds work = 0, std::uint32_t comm = 0,
            std::uint8_t flags = 0);
  void irecv(Rank me, Rank from, std::uint32_t request, std::int32_t tag = 0, Seconds work = 0, std::uint32_t comm = 0,
             std::uint8_t flags = 0);
  // Ends a receive. `first`: of its MPI call (a Waitall has several).
  void end_recv(Rank me, Rank from, Bytes bytes, std::uint32_t request, std::int32_t tag = 0, bool first = true);
  void wait(Rank me, std::uint32_t request, bool first = true, Seconds work = 0);
  void collective(Rank me, CollectiveOp op, Bytes bytes, Rank root = 0, Seconds work = 0, std::uint32_t comm = 0,
                  std::vector<std::uint64_t> values = {});
  void icollective(Rank me, CollectiveOp op, Bytes bytes, std::uint32_t request, Seconds work = 0,
                   std::uint32_t comm = 0);
  void all(CollectiveOp op, Bytes bytes, Rank root = 0, Seconds work = 0);
  void make_comm(std::uint32_t comm, const std::vector<Rank>& members);
  void free_comm(std::uint32_t comm, const std::vector<Rank>& members);
  void event(Rank me, Event event) { events[static_cast<std::size_t>(me)].push_back(event); }
  void exit(Seconds work = 0);

  Rank ranks() const { return static_cast<Rank>(events.size()); }

  std::vector<std::vector<Event>> events;
  std::deque<std::vector<std::uint64_t>> values;  // what the events' values point to
};

Result<skeleton::ProgramTrace> read(const EventProgram& program);
// Fails the test where the program has no signature.
skeleton::Signature signature_of(const EventProgram& program, const skeleton::SignatureOptions& options = {});

// What a skeleton executes, as events of its own: the scaled signature written out. Sizes are divided as the
// C program divides them.
EventProgram executed(const skeleton::Signature& signature, const skeleton::ScaledSignature& scaled);

}  // namespace lbf::skeleton_test
