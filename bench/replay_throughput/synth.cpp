#include "bench/replay_throughput/synth.h"

#include <cmath>

#include "event/wire.h"

namespace lbf::bench {
namespace {

constexpr Rank kRanksPerStream = 8;
constexpr std::size_t kBatchRawBytes = std::size_t{256} << 10;

class Writer {
 public:
  explicit Writer(Rank ranks) {
    trace_.ranks = ranks;
    const std::size_t streams = static_cast<std::size_t>((ranks + kRanksPerStream - 1) / kRanksPerStream);
    encoders_ = std::vector<BatchEncoder>(streams);
    trace_.streams.resize(streams);
  }
  void add(Rank rank, const Event& event) {
    const std::size_t stream = static_cast<std::size_t>(rank / kRanksPerStream);
    encoders_[stream].add(rank, event);
    ++trace_.events;
    if (encoders_[stream].raw_bytes() >= kBatchRawBytes) cut(stream);
  }
  std::uint64_t events() const { return trace_.events; }
  StoredTrace finish() {
    Event end;
    end.kind = EventKind::kExit;
    for (Rank rank = 0; rank < trace_.ranks; ++rank) add(rank, end);
    for (std::size_t stream = 0; stream < encoders_.size(); ++stream) {
      if (!encoders_[stream].empty()) cut(stream);
    }
    return std::move(trace_);
  }

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

 private:
  void cut(std::size_t stream) {
    auto& batches = trace_.streams[stream];
    batches.push_back(encoders_[stream].finish(static_cast<std::uint32_t>(stream), batches.size() + 1));
    trace_.stored_bytes += batches.back().size();
  }
  StoredTrace trace_;
  std::vector<BatchEncoder> encoders_;
  std::uint64_t state_ = 1;
};

void ring(Writer& writer, Rank ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    writer.add(rank, writer.event(EventKind::kSend, (rank + 1) % ranks, 0, 1024));
    writer.add(rank, writer.event(EventKind::kRecv, (rank + ranks - 1) % ranks, 0, 1024));
  }
}

// Receives posted from every peer, sends to every peer, one Waitall.
void exchange(Writer& writer, Rank rank, const std::vector<Rank>& peers, Bytes bytes) {
  std::uint32_t request = 0;
  for (Rank peer : peers) writer.add(rank, writer.request_event(EventKind::kStartRecv, peer, 0, request++));
  for (Rank peer : peers) writer.add(rank, writer.request_event(EventKind::kIsend, peer, bytes, request++));
  request = 0;
  for (Rank peer : peers) writer.add(rank, writer.request_event(EventKind::kEndRecv, peer, bytes, request++));
  std::vector<std::uint64_t> sends;
  for (std::size_t i = 0; i < peers.size(); ++i) sends.push_back(request++);
  Event wait = writer.event(EventKind::kWait, kAnyRank, kAnyTag, 0);
  wait.values = sends;
  writer.add(rank, wait);
}

void stencil2d(Writer& writer, Rank ranks) {
  Rank width = static_cast<Rank>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % width != 0) --width;
  const Rank height = ranks / width;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Rank x = rank % width;
    const Rank y = rank / width;
    const auto at = [&](Rank px, Rank py) { return (py + height) % height * width + (px + width) % width; };
    exchange(writer, rank, {at(x - 1, y), at(x + 1, y), at(x, y - 1), at(x, y + 1)}, 8192);
  }
}

void alltoall(Writer& writer, Rank ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    std::vector<Rank> peers;
    for (Rank i = 1; i < ranks; ++i) peers.push_back((rank + i) % ranks);
    exchange(writer, rank, peers, 512);
  }
}

}  // namespace

StoredTrace make_trace(std::string_view pattern, Rank ranks, std::uint64_t events) {
  void (*iterate)(Writer&, Rank) = pattern == "ring"        ? ring
                                   : pattern == "stencil2d" ? stencil2d
                                   : pattern == "alltoall"  ? alltoall
                                                            : nullptr;
  if (iterate == nullptr) return {};
  Writer writer(ranks);
  do {
    iterate(writer, ranks);
  } while (writer.events() < events);
  return writer.finish();
}

}  // namespace lbf::bench
