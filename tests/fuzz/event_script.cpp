// See event_script.h.
#include "tests/fuzz/event_script.h"

#include <algorithm>

#include "event/collective_op.h"

namespace lbf::fuzz {
namespace {

constexpr std::uint64_t kFirstWild = 128;
constexpr std::uint8_t kFirstCode = 200;  // of a number's first byte: longer ones

const char* const kLibraries[] = {"Open MPI v4.1.4", "Open MPI v5.0.3", "MPICH Version: 4.0.2"};

}  // namespace

EventScript::EventScript(std::span<const std::uint8_t> input) : input_(input) {
  const std::size_t ranks = 1 + byte() % 12;
  ranks_.resize(ranks);
  library_ = kLibraries[byte() % std::size(kLibraries)];
  const std::uint8_t layout = byte();
  const std::size_t nodes = 1 + layout % ranks;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t node = layout < kFirstWild ? rank * nodes / ranks : rank % nodes;
    node_of_rank_.push_back(static_cast<std::uint32_t>(node));
  }
  memory_bytes_ = Bytes{2} << (20 + byte() % 5);
  comms_.emplace_back();
  for (std::size_t rank = 0; rank < ranks; ++rank) comms_[0].group.push_back(static_cast<Rank>(rank));
}

std::uint8_t EventScript::byte() {
  return at_ < input_.size() ? input_[at_++] : 0;
}

std::uint64_t EventScript::number() {
  const std::uint8_t first = byte();
  if (first < kFirstCode) return first;
  const auto little_endian = [this](int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  };
  switch (first - kFirstCode) {
    case 0:
      return little_endian(2);
    case 1:
      return little_endian(4);
    case 2:
      return little_endian(8);
    case 3:
      return std::uint64_t{1} << byte() % 64;
    case 4:
      return (std::uint64_t{1} << byte() % 64) - 1;
    case 5:
      return (std::uint64_t{1} << byte() % 64) + 1;
    default:
      return ~std::uint64_t{0} - (first - kFirstCode);
  }
}

std::uint64_t EventScript::pick(std::size_t count) {
  const std::uint64_t value = number();
  return value < kFirstWild && count > 0 ? value % count : value;
}

EventScript::Request& EventScript::pick_request(RankModel& model, Wanted wanted) {
  const std::uint64_t which = pick(model.active.size());
  for (std::size_t i = which; i < model.active.size(); ++i) {
    const bool is_receive = model.active[i].kind == EventKind::kStartRecv;
    if (wanted == Wanted::kAny || is_receive == (wanted == Wanted::kReceive)) return model.active[i];
  }
  none_ = {};
  none_.number = static_cast<std::uint32_t>(which);
  return none_;
}

EventScript::Request EventScript::start_request(Event& event, RankModel& model) {
  event.flags |= kFlagHasRequest;
  event.request = model.next_request++;
  model.active.push_back({event.request, event.kind, event.peer, event.tag, event.comm});
  return model.active.back();
}

std::size_t EventScript::size_of(std::uint32_t comm) const {
  if (comm >= comms_.size()) return 1;
  return std::max(comms_[comm].group.size(), comms_[comm].remote.size());
}

const Step* EventScript::next() {
  if (++steps_ > kMostSteps) return nullptr;
  for (;;) {
    if (everybody_from_ != kAnyRank) {
      const Rank rank = everybody_from_++;
      if (rank < ranks()) {
        at_ = everybody_at_;
        start(byte() % kOperations, rank);
        return &step_;
      }
      everybody_from_ = kAnyRank;
      continue;
    }
    if (repeats_ > 0) {
      --repeats_;
      at_ = repeat_at_;
    }
    if (at_ >= input_.size()) return nullptr;
    const std::uint8_t operation = byte() % kOperations;
    if (operation == kDoRepeat && repeats_ == 0) {
      repeats_ = number() % kMostSteps;
      repeat_at_ = at_;
      continue;
    }
    if (operation == kDoEverybody) {
      everybody_from_ = 0;
      everybody_at_ = at_;
      continue;
    }
    start(operation, static_cast<Rank>(byte() % ranks_.size()));
    return &step_;
  }
}

void EventScript::start(std::uint8_t operation, Rank rank) {
  step_ = {};
  step_.rank = rank;
  values_.clear();
  step_.closes = operation == kDoClose;
  step_.advances = operation == kDoAdvance;
  if (step_.closes || step_.advances) return;
  make(operation, step_.event, ranks_[static_cast<std::size_t>(rank)]);
  step_.event.values = values_;
}

void EventScript::make(std::uint8_t operation, Event& event, RankModel& model) {
  const auto peer = [this] { return static_cast<Rank>(pick(ranks_.size())); };
  const auto comm = [this] { return static_cast<std::uint32_t>(pick(comms_.size())); };
  const auto message = [&](EventKind kind) {
    event.kind = kind;
    event.peer = peer();
    event.tag = tag();
    event.comm = comm();
  };
  const auto end = [&](Request& request, EventKind kind) {
    event.kind = kind;
    event.flags = kFlagHasRequest;
    event.request = request.number;
    if (&request == &none_) return;
    request = model.active.back();
    model.active.pop_back();
  };
  event.process_s = Duration::of_ns(1000);
  switch (operation) {
    case kDoSend:
      message(EventKind::kSend);
      event.bytes = number();
      event.flags = byte() & (kFlagSync | kFlagBuffered);
      return;
    case kDoIsend:
      message(EventKind::kIsend);
      event.bytes = number();
      event.flags = byte() & (kFlagSync | kFlagBuffered);
      start_request(event, model);
      return;
    case kDoStartRecv: {
      message(EventKind::kStartRecv);
      event.flags = byte() & (kFlagWildcardSource | kFlagWildcardTag);
      start_request(event, model);
      return;
    }
    case kDoEndRecv: {
      Request& found = pick_request(model, Wanted::kReceive);
      const Request request = found;
      end(found, EventKind::kEndRecv);
      event.peer = request.peer;
      event.tag = request.tag;
      event.comm = request.comm;
      return;
    }
    case kDoRecv:
      message(EventKind::kRecv);
      return;
    case kDoWait:
      return end(pick_request(model, Wanted::kNoReceive), EventKind::kWait);
    case kDoWaitAll:
      event.kind = EventKind::kWait;
      for (const Request& request : model.active) {
        if (request.kind != EventKind::kStartRecv) values_.push_back(request.number);
      }
      std::erase_if(model.active, [](const Request& request) { return request.kind != EventKind::kStartRecv; });
      if (values_.empty()) event.kind = EventKind::kCompute;
      return;
    case kDoProbe:
      return message(EventKind::kProbe);
    case kDoCollective:
      event.kind = EventKind::kCollective;
      return collective(event, model);
    case kDoIcollective:
      event.kind = EventKind::kIcollective;
      return collective(event, model);
    case kDoCommCreate:
      return comm_create(event, false);
    case kDoIntercommCreate:
      return comm_create(event, true);
    case kDoCommFree:
      event.kind = EventKind::kCommFree;
      event.comm = comm();
      return;
    case kDoCancel:
      return end(pick_request(model, Wanted::kAny), EventKind::kCancel);
    case kDoRequestFree:
      return end(pick_request(model, Wanted::kAny), EventKind::kRequestFree);
    case kDoOneSided:
      message(EventKind::kOneSided);
      event.op_code = static_cast<std::uint8_t>(pick(kOneSidedOpCount));
      event.bytes = number();
      if ((byte() & 1) != 0) start_request(event, model);
      return;
    case kDoOneSidedSync:
      message(EventKind::kOneSidedSync);
      return;
    case kDoWindowClose:
      event.kind = EventKind::kWindowClose;
      model.active.clear();
      return;
    case kDoWindowOpen:
      event = window_open_event(++model.window + (byte() >> 7));
      return;
    case kDoSkipped:
      message(EventKind::kSkipped);
      event.op_code = static_cast<std::uint8_t>(pick(kSkippedSideCount));
      event.bytes = number();
      return;
    case kDoGap:
      event = gap_event(number());
      return;
    case kDoOther: {
      constexpr EventKind kKinds[] = {EventKind::kBlocked, EventKind::kUnmodelled, EventKind::kKeepAlive,
                                      EventKind::kIo,      EventKind::kPhase,      EventKind::kEnter,
                                      EventKind::kLeave,   EventKind::kProcedure};
      event.kind = kKinds[pick(std::size(kKinds)) % std::size(kKinds)];
      event.call_s = Duration::of_ns(static_cast<Nanoseconds>(number()));
      event.off_s = Duration::of_ns(static_cast<Nanoseconds>(number()));
      event.bytes = number();
      return;
    }
    case kDoExit:
      event.kind = EventKind::kExit;
      return;
    default:
      event = vain_looks_event(pick(2) > 0 ? number() : 0, Duration::of_ns(static_cast<Nanoseconds>(number())));
      event.process_s = Duration::of_ns(static_cast<Nanoseconds>(number()));
  }
}

void EventScript::collective(Event& event, RankModel& model) {
  event.op_code = static_cast<std::uint8_t>(pick(kCollectiveOpCount));
  event.comm = static_cast<std::uint32_t>(pick(comms_.size()));
  const std::uint64_t root = number();
  event.root = root < kFirstWild ? static_cast<Rank>(root % size_of(event.comm)) : static_cast<Rank>(root);
  event.bytes = number();
  event.flags = byte() & (kFlagInPlace | kFlagBlockingCall);
  event.function = static_cast<std::uint16_t>(number());
  values_of_collective(event);
  if (event.kind == EventKind::kIcollective) start_request(event, model);
}

void EventScript::values_of_collective(const Event& event) {
  const std::uint64_t bytes = number();
  const std::size_t size = size_of(event.comm);
  const auto op = static_cast<CollectiveOp>(event.op_code);
  if (is_neighbour(op)) {
    const auto rank = static_cast<std::uint64_t>(step_.rank);
    const std::uint64_t left = (rank + ranks_.size() - 1) % ranks_.size();
    const std::uint64_t right = (rank + 1) % ranks_.size();
    values_ = {2, left, right, bytes, bytes, 2, left, right, bytes, bytes};
    return;
  }
  switch (op) {
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
    case CollectiveOp::kReduceScatter:
      values_.assign(size, bytes);
      return;
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      values_.assign(2 * size, bytes);
      return;
    default:
      return;
  }
}

void EventScript::comm_create(Event& event, bool intercommunicator) {
  event.kind = EventKind::kCommCreate;
  const std::uint64_t which = pick(comms_.size() + 1);
  const std::uint8_t shape = byte();
  const std::size_t ranks = ranks_.size();
  if (which == comms_.size() || which == 0) {  // a new one
    CommModel& made = comms_.emplace_back();
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto rank = static_cast<Rank>((shape & 1) != 0 ? ranks - 1 - i : (i * 5 + shape / 2) % ranks);
      std::vector<Rank>& group = intercommunicator && i >= (ranks + 1) / 2 ? made.remote : made.group;
      const bool is_twice = std::ranges::count(made.group, rank) + std::ranges::count(made.remote, rank) > 0;
      if (!is_twice || shape == 255) group.push_back(rank);
    }
    event.comm = static_cast<std::uint32_t>(comms_.size() - 1);
  } else {
    event.comm = static_cast<std::uint32_t>(which);
  }
  const std::size_t of = std::min<std::size_t>(event.comm, comms_.size() - 1);
  const CommModel& comm = comms_[of];
  values_ = {event.comm, comm.remote.empty() ? 0 : comm.group.size()};
  for (const Rank rank : comm.group) values_.push_back(static_cast<std::uint64_t>(rank));
  for (const Rank rank : comm.remote) values_.push_back(static_cast<std::uint64_t>(rank));
}

}  // namespace lbf::fuzz
