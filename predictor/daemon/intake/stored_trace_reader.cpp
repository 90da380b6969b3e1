// StoredTraceReader, see stored_trace_reader.h.
#include "predictor/daemon/intake/stored_trace_reader.h"

#include <algorithm>
#include <utility>

namespace lbf::daemon {

struct StoredTraceReader::Stream {
  explicit Stream(std::uint32_t stream_number) : number(stream_number) {}
  std::uint32_t number;
  std::uint64_t next_sequence = 1;
  bool broken = false;      // nothing more of it is read
  Seconds replayed_s = 0;   // measured time of its events, all its ranks
  std::uint32_t ranks = 0;  // that it carries

  Seconds mean_replayed_s() const { return ranks == 0 ? 0 : replayed_s / ranks; }
};

StoredTraceReader::StoredTraceReader(std::shared_ptr<const StepTrace> trace, Rank ranks)
    : trace_(std::move(trace)), stream_of_rank_(static_cast<std::size_t>(ranks), -1) {}

StoredTraceReader::~StoredTraceReader() = default;

StoredTraceReader::Stream& StoredTraceReader::stream(std::uint32_t number) {
  auto& stream = streams_[number];
  if (stream == nullptr) stream = std::make_unique<Stream>(number);
  return *stream;
}

StoredTraceReader::Next StoredTraceReader::next(const std::vector<StreamState>& streams) const {
  Next next;
  Seconds next_s = kNeverS;
  Seconds least_waiting_s = kNeverS;
  for (const StreamState& state : streams) {
    const auto found = streams_.find(state.stream);
    const Stream* stream = found == streams_.end() ? nullptr : found->second.get();
    const Seconds at_s = stream == nullptr ? 0 : stream->mean_replayed_s();
    const bool has_batch =
        stream == nullptr ? state.next_sequence > 1 : !stream->broken && stream->next_sequence < state.next_sequence;
    if (has_batch && (!next.stream || at_s < next_s)) {
      next.stream = state.stream;
      next_s = at_s;
    }
    if (!has_batch && !state.end) least_waiting_s = std::min(least_waiting_s, at_s);
  }
  next.is_ahead = next.stream && next_s > least_waiting_s;
  return next;
}

StoredTraceReader::Origin StoredTraceReader::origin_of(Stream& stream, Rank rank) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= stream_of_rank_.size()) return Origin::kNoRankOfStep;
  std::int64_t& carrier = stream_of_rank_[static_cast<std::size_t>(rank)];
  if (carrier == stream.number) return Origin::kAsBefore;
  if (carrier >= 0) return Origin::kOtherStream;
  carrier = stream.number;
  ++stream.ranks;
  return Origin::kFirst;
}

Result<void> StoredTraceReader::read(std::uint32_t number, const Sink& sink) {
  Stream& from = stream(number);
  BatchSink batch_sink;
  batch_sink.on_events = [&](Rank rank, std::span<const Event> events) -> Result<void> {
    const Origin origin = origin_of(from, rank);
    if (origin == Origin::kFirst || origin == Origin::kAsBefore) {
      for (const Event& event : events) from.replayed_s += event.process_s + event.call_s + event.off_s;
    }
    sink.on_events(number, rank, events, origin);
    return {};
  };
  if (sink.on_rounds) {
    batch_sink.on_rounds = [&](Rank rank, const Rounds& rounds) -> Result<bool> {
      const Origin origin = origin_of(from, rank);
      Result<bool> taken = sink.on_rounds(rank, rounds, origin);
      if (!taken || !*taken || origin == Origin::kNoRankOfStep || origin == Origin::kOtherStream) return taken;
      Event event;
      for (const Rounds::Times& times : rounds.times) {
        Rounds::set(event, times);
        from.replayed_s += event.process_s + event.call_s + event.off_s;
      }
      return taken;
    };
  }
  batch_sink.on_control = [&](std::string_view text) -> Result<void> {
    // StepTrace::append refuses what is no record.
    if (const auto record = protocol::decode_control(text)) sink.on_control(number, *record);
    return {};
  };
  const auto fail = [&](const Error& error) {
    from.broken = true;
    return Error{error.code, "stream " + std::to_string(number) + ", batch " + std::to_string(from.next_sequence) +
                                 ": " + error.message};
  };
  if (const auto read = trace_->read_batch(number, from.next_sequence, batch_); !read) return fail(read.error());
  const auto decoded = decoder_.decode(std::as_bytes(std::span(batch_.data(), batch_.size())), batch_sink);
  if (!decoded) return fail(decoded.error());
  ++from.next_sequence;
  read_bytes_ += batch_.size();
  return {};
}

std::string StoredTraceReader::give_up(std::uint32_t number, const std::string& what) {
  Stream& from = stream(number);
  from.broken = true;
  return "the replay of stream " + std::to_string(number) + " stopped at batch " + std::to_string(from.next_sequence) +
         ": " + what;
}

std::uint64_t StoredTraceReader::next_sequence(std::uint32_t number) const {
  const auto found = streams_.find(number);
  return found == streams_.end() ? 1 : found->second->next_sequence;
}

Bytes StoredTraceReader::memory_bytes() const {
  return communicators_.memory_bytes() + stream_of_rank_.capacity() * sizeof(stream_of_rank_[0]) +
         streams_.size() * (sizeof(Stream) + 64) + batch_.capacity();
}

std::optional<std::uint32_t> StoredTraceReader::stream_of(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (rank < 0 || index >= stream_of_rank_.size() || stream_of_rank_[index] < 0) return std::nullopt;
  return static_cast<std::uint32_t>(stream_of_rank_[index]);
}

Seconds StoredTraceReader::replayed_s() const {
  Seconds sum_s = 0;
  for (const auto& [number, stream] : streams_) sum_s += stream->replayed_s;
  return sum_s;
}

}  // namespace lbf::daemon
