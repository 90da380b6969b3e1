#include "event/synth.h"

#include <cmath>
#include <vector>

namespace lbf {
namespace {

constexpr Bytes kRingBytes = 1024;
constexpr Bytes kStencilBytes = 8192;
constexpr Bytes kAlltoallBytes = 512;
constexpr Bytes kAllreduceBytes = 1024;

class Synth {
 public:
  Synth(Rank ranks, const EventSink& sink) : ranks_(ranks), sink_(sink) {}

  Result<void> ring() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (auto done = add(rank, event(EventKind::kSend, (rank + 1) % ranks_, 0, kRingBytes)); !done) return done;
      if (auto done = add(rank, event(EventKind::kRecv, (rank + ranks_ - 1) % ranks_, 0, kRingBytes)); !done) {
        return done;
      }
    }
    return {};
  }

  Result<void> stencil2d() {
    Rank width = static_cast<Rank>(std::sqrt(static_cast<double>(ranks_)));
    while (ranks_ % width != 0) --width;
    const Rank height = ranks_ / width;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      const Rank x = rank % width;
      const Rank y = rank / width;
      const auto at = [&](Rank px, Rank py) { return (py + height) % height * width + (px + width) % width; };
      peers_ = {at(x - 1, y), at(x + 1, y), at(x, y - 1), at(x, y + 1)};
      if (auto done = exchange(rank, kStencilBytes); !done) return done;
    }
    return {};
  }

  Result<void> alltoall() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      peers_.clear();
      for (Rank i = 1; i < ranks_; ++i) peers_.push_back((rank + i) % ranks_);
      if (auto done = exchange(rank, kAlltoallBytes); !done) return done;
    }
    return {};
  }

  Result<void> allreduce() {
    for (Rank rank = 0; rank < ranks_; ++rank) {
      Event call = event(EventKind::kCollective, kAnyRank, kAnyTag, kAllreduceBytes);
      set_op(call, CollectiveOp::kAllreduce);
      if (auto done = add(rank, call); !done) return done;
    }
    return {};
  }

  Result<void> exit() {
    Event end;
    end.kind = EventKind::kExit;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (auto done = add(rank, end); !done) return done;
    }
    return {};
  }

 private:
  Result<void> add(Rank rank, const Event& event) { return sink_(rank, event); }

  // Process times differ a little between ranks and events, as in life.
  Seconds work_s() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return 1e-6 * static_cast<double>(20 + (state_ >> 58));
  }
  Event event(EventKind kind, Rank peer, std::int32_t tag, Bytes bytes) {
    Event e;
    e.kind = kind;
    e.peer = peer;
    e.tag = tag;
    e.bytes = bytes;
    e.process_s = work_s();
    e.call_s = 1e-6;
    e.flags = kFlagCallBegin;
    return e;
  }
  Event request_event(EventKind kind, Rank peer, Bytes bytes, std::uint32_t request) {
    Event e = event(kind, peer, 0, bytes);
    e.flags |= kFlagHasRequest;
    e.request = request;
    return e;
  }

  // Receives posted from every peer, sends to every peer, one Waitall.
  Result<void> exchange(Rank rank, Bytes bytes) {
    std::uint32_t request = 0;
    for (Rank peer : peers_) {
      if (auto done = add(rank, request_event(EventKind::kStartRecv, peer, 0, request++)); !done) return done;
    }
    for (Rank peer : peers_) {
      if (auto done = add(rank, request_event(EventKind::kIsend, peer, bytes, request++)); !done) return done;
    }
    request = 0;
    for (Rank peer : peers_) {
      if (auto done = add(rank, request_event(EventKind::kEndRecv, peer, bytes, request++)); !done) return done;
    }
    sends_.clear();
    for (std::size_t i = 0; i < peers_.size(); ++i) sends_.push_back(request++);
    Event wait = event(EventKind::kWait, kAnyRank, kAnyTag, 0);
    wait.values = sends_;
    return add(rank, wait);
  }

  Rank ranks_;
  const EventSink& sink_;
  std::uint64_t state_ = 1;
  std::vector<Rank> peers_;
  std::vector<std::uint64_t> sends_;
};

using Iterate = Result<void> (Synth::*)();
Iterate iterate_of(std::string_view pattern) {
  if (pattern == "ring") return &Synth::ring;
  if (pattern == "stencil2d") return &Synth::stencil2d;
  if (pattern == "alltoall") return &Synth::alltoall;
  if (pattern == "allreduce") return &Synth::allreduce;
  return nullptr;
}

}  // namespace

std::uint64_t synth_events_per_iteration(std::string_view pattern, Rank ranks) {
  const auto all = static_cast<std::uint64_t>(ranks);
  if (pattern == "ring") return 2 * all;
  if (pattern == "stencil2d") return (3 * 4 + 1) * all;
  if (pattern == "alltoall") return (3 * (all - 1) + 1) * all;
  if (pattern == "allreduce") return all;
  return 0;
}

Result<void> synthesize(std::string_view pattern, Rank ranks, std::uint64_t iterations, const EventSink& sink) {
  const Iterate iterate = iterate_of(pattern);
  if (iterate == nullptr) {
    return invalid_input("'" + std::string(pattern) + "' is no pattern: ring, stencil2d, alltoall or allreduce");
  }
  if (ranks < kMinSynthRanks || ranks > kMaxSynthRanks) {
    return invalid_input("a synthetic trace has " + std::to_string(kMinSynthRanks) + " to " +
                         std::to_string(kMaxSynthRanks) + " ranks, not " + std::to_string(ranks));
  }
  Synth synth(ranks, sink);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    if (Result<void> done = (synth.*iterate)(); !done) return done;
  }
  return synth.exit();
}

}  // namespace lbf
