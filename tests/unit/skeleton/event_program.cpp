#include "tests/unit/skeleton/event_program.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace lbf::skeleton_test {
namespace {

using skeleton::Operation;
using skeleton::OperationKind;

constexpr std::uint16_t kSomeFunction = 1;  // so that kFlagCallBegin tells where calls begin

Event base(EventKind kind, Seconds work) {
  Event event;
  event.kind = kind;
  event.flags = kFlagCallBegin;
  event.function = kSomeFunction;
  event.process_s = work;
  return event;
}

Event message(EventKind kind, Rank peer, Bytes bytes, std::int32_t tag, Seconds work, std::uint32_t comm) {
  Event event = base(kind, work);
  event.peer = peer;
  event.bytes = bytes;
  event.tag = tag;
  event.comm = comm;
  return event;
}

void with_request(Event& event, std::uint32_t request) {
  event.request = request;
  event.flags |= kFlagHasRequest;
}

}  // namespace

void EventProgram::send(Rank me, Rank to, Bytes bytes, std::int32_t tag, Seconds work, std::uint32_t comm) {
  event(me, message(EventKind::kSend, to, bytes, tag, work, comm));
}

void EventProgram::isend(Rank me, Rank to, Bytes bytes, std::uint32_t request, std::int32_t tag, Seconds work,
                         std::uint32_t comm) {
  Event e = message(EventKind::kIsend, to, bytes, tag, work, comm);
  with_request(e, request);
  event(me, e);
}

void EventProgram::recv(Rank me, Rank from, Bytes bytes, std::int32_t tag, Seconds work, std::uint32_t comm,
                        std::uint8_t flags) {
  Event e = message(EventKind::kRecv, from, bytes, tag, work, comm);
  e.flags |= flags;
  event(me, e);
}

void EventProgram::irecv(Rank me, Rank from, std::uint32_t request, std::int32_t tag, Seconds work, std::uint32_t comm,
                         std::uint8_t flags) {
  Event e = message(EventKind::kStartRecv, from, 0, tag, work, comm);
  e.flags |= flags;
  with_request(e, request);
  event(me, e);
}

void EventProgram::end_recv(Rank me, Rank from, Bytes bytes, std::uint32_t request, std::int32_t tag, bool first) {
  Event e = message(EventKind::kEndRecv, from, bytes, tag, 0, 0);
  if (!first) e.flags = 0;
  with_request(e, request);
  event(me, e);
}

void EventProgram::wait(Rank me, std::uint32_t request, bool first, Seconds work) {
  Event e = base(EventKind::kWait, work);
  if (!first) e.flags = 0;
  with_request(e, request);
  event(me, e);
}

void EventProgram::collective(Rank me, CollectiveOp op, Bytes bytes, Rank root, Seconds work, std::uint32_t comm,
                              std::vector<std::uint64_t> sizes) {
  Event e = message(EventKind::kCollective, kAnyRank, bytes, kAnyTag, work, comm);
  set_op(e, op);
  e.root = root;
  if (!sizes.empty()) e.values = values.emplace_back(std::move(sizes));
  event(me, e);
}

void EventProgram::icollective(Rank me, CollectiveOp op, Bytes bytes, std::uint32_t request, Seconds work,
                               std::uint32_t comm) {
  Event e = message(EventKind::kIcollective, kAnyRank, bytes, kAnyTag, work, comm);
  set_op(e, op);
  with_request(e, request);
  event(me, e);
}

void EventProgram::all(CollectiveOp op, Bytes bytes, Rank root, Seconds work) {
  for (Rank r = 0; r < ranks(); ++r) collective(r, op, bytes, root, work);
}

void EventProgram::make_comm(std::uint32_t comm, const std::vector<Rank>& members) {
  std::vector<std::uint64_t>& list = values.emplace_back(std::vector<std::uint64_t>{comm, 0});
  list.insert(list.end(), members.begin(), members.end());
  for (const Rank r : members) {
    Event e = base(EventKind::kCommCreate, 0);
    e.comm = comm;
    e.values = list;
    event(r, e);
  }
}

void EventProgram::free_comm(std::uint32_t comm, const std::vector<Rank>& members) {
  for (const Rank r : members) {
    Event e = base(EventKind::kCommFree, 0);
    e.comm = comm;
    event(r, e);
  }
}

void EventProgram::exit(Seconds work) {
  for (Rank r = 0; r < ranks(); ++r) event(r, base(EventKind::kExit, work));
}

Result<skeleton::ProgramTrace> read(const EventProgram& program) {
  skeleton::OperationReader reader(program.ranks());
  for (Rank r = 0; r < program.ranks(); ++r) {
    for (const Event& event : program.events[static_cast<std::size_t>(r)]) {
      if (Result<void> added = reader.add(r, event); !added) return added.error();
    }
  }
  return reader.finish();
}

skeleton::Signature signature_of(const EventProgram& program, const skeleton::SignatureOptions& options) {
  Result<skeleton::ProgramTrace> trace = read(program);
  EXPECT_TRUE(trace.ok()) << (trace ? "" : trace.error().message);
  if (!trace) return {};
  Result<skeleton::Signature> signature = make_signature(std::move(*trace), options);
  EXPECT_TRUE(signature.ok()) << (signature ? "" : signature.error().message);
  return signature ? std::move(*signature) : skeleton::Signature{};
}

namespace {

class Execution {
 public:
  Execution(const skeleton::Signature& signature, const skeleton::ScaledSignature& scaled)
      : signature_(signature), scaled_(scaled), program_(signature.ranks) {
    for (std::uint32_t comm = 1; comm < signature.comms.size(); ++comm) program_.make_comm(comm, signature.comms[comm]);
  }
  EventProgram run() {
    run(scaled_.elements);
    return std::move(program_);
  }

 private:
  void run(const skeleton::Elements& elements) {
    for (const skeleton::Element& element : elements) {
      if (element.is_loop) {
        for (std::uint64_t i = 0; i < element.count; ++i) run(scaled_.bodies[element.value]);
        continue;
      }
      symbol_ = scaled_.symbols[element.value];
      const skeleton::Exchange& exchange = scaled_.exchange_of(signature_, symbol_.exchange);
      for (const skeleton::Exchange::Part& part : exchange.parts) {
        for (std::uint32_t i = 0; i < part.count; ++i)
          operation(part.rank, exchange, exchange.operations[part.begin + i]);
      }
    }
  }

  void operation(Rank me, const skeleton::Exchange& exchange, const Operation& o) {
    const Bytes bytes = symbol_.of(o.bytes);
    const std::uint8_t wildcards = o.flags & (kFlagWildcardSource | kFlagWildcardTag);
    std::vector<std::uint64_t> values(exchange.values.begin() + o.values_begin,
                                      exchange.values.begin() + o.values_begin + o.values_count);
    Receive& receive = receives_[{me, o.slot}];
    switch (o.kind) {
      case OperationKind::kSend:
        return program_.send(me, o.peer, bytes, o.tag, 0, o.comm);
      case OperationKind::kIsend:
        receive.active = false;
        return program_.isend(me, o.peer, bytes, o.slot, o.tag, 0, o.comm);
      case OperationKind::kRecv:
        return program_.recv(me, o.peer, bytes, o.tag, 0, o.comm, wildcards);
      case OperationKind::kIrecv:
        receive = {true, o.peer, bytes, o.tag};
        return program_.irecv(me, o.peer, o.slot, o.tag, 0, o.comm, wildcards);
      case OperationKind::kWait: {
        bool first = true;
        for (const std::uint64_t slot : values) {
          const Receive& r = receives_[{me, static_cast<std::uint32_t>(slot)}];
          if (r.active) {
            program_.end_recv(me, r.peer, r.bytes, static_cast<std::uint32_t>(slot), r.tag, first);
          } else {
            program_.wait(me, static_cast<std::uint32_t>(slot), first);
          }
          first = false;
        }
        return;
      }
      case OperationKind::kCollective:
        for (std::uint64_t& value : values) value = symbol_.of(value);
        return program_.collective(me, o.op, bytes, o.root, 0, o.comm, values);
      case OperationKind::kIcollective:
        receive.active = false;
        return program_.icollective(me, o.op, bytes, o.slot, 0, o.comm);
      case OperationKind::kProbe: {
        Event e;
        e.kind = EventKind::kProbe;
        e.flags = kFlagCallBegin | wildcards;
        e.function = 1;
        e.peer = o.peer;
        e.tag = o.tag;
        e.comm = o.comm;
        return program_.event(me, e);
      }
      case OperationKind::kEnd: {
        Event e;
        e.kind = EventKind::kExit;
        return program_.event(me, e);
      }
      case OperationKind::kCompute:
        return;
      default:
        ADD_FAILURE() << "an operation that the tests' programs do not have";
    }
  }

  struct Receive {
    bool active = false;
    Rank peer = 0;
    Bytes bytes = 0;
    std::int32_t tag = 0;
  };
  const skeleton::Signature& signature_;
  const skeleton::ScaledSignature& scaled_;
  EventProgram program_;
  std::map<std::pair<Rank, std::uint32_t>, Receive> receives_;
  skeleton::ScaledExchange symbol_;
};

}  // namespace

EventProgram executed(const skeleton::Signature& signature, const skeleton::ScaledSignature& scaled) {
  return Execution(signature, scaled).run();
}

}  // namespace lbf::skeleton_test
