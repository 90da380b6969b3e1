#include "predictor/ingest/stream_merge.h"

#include <algorithm>
#include <utility>

namespace lbf {
namespace {

bool later(Seconds a_s, std::size_t a, Seconds b_s, std::size_t b) {
  return a_s != b_s ? a_s > b_s : a > b;
}

}  // namespace

StreamMerge::StreamMerge(CommunicatorTable& communicators, Rank max_ranks,
                         std::vector<std::unique_ptr<BatchSource>> sources)
    : communicators_(communicators), max_ranks_(max_ranks) {
  for (std::unique_ptr<BatchSource>& source : sources) {
    Stream& stream = streams_.emplace_back();
    stream.source = std::move(source);
    stream.decoder = std::make_unique<BatchDecoder>(communicators_, max_ranks_);
  }
}

Result<bool> StreamMerge::enqueue(std::size_t index) {
  Stream& stream = streams_[index];
  while (!stream.in_batch) {
    const Result<std::span<const std::byte>> batch = stream.source->next();
    if (!batch) return batch.error();
    if (batch->empty()) return false;
    const Result<BatchHeader> opened = stream.decoder->open(*batch);
    if (!opened) return stream.source->located(opened.error());
    stream.in_batch = opened->raw_bytes > 0;
  }
  const Rank rank = stream.decoder->next_rank();
  const bool known = rank >= 0 && static_cast<std::size_t>(rank) < time_s_.size();
  // Control records first: they say what is to be known of the ranks.
  heads_.push_back({rank == kAnyRank ? -1.0 : known ? time_s_[static_cast<std::size_t>(rank)] : 0.0, index});
  std::push_heap(heads_.begin(), heads_.end(),
                 [](const Head& a, const Head& b) { return later(a.time_s, a.stream, b.time_s, b.stream); });
  return true;
}

Result<bool> StreamMerge::next(const BatchSink& sink) {
  if (!std::exchange(started_, true)) {
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) {
      if (const Result<bool> queued = enqueue(stream); !queued) return queued;
    }
  }
  if (heads_.empty()) return false;
  std::pop_heap(heads_.begin(), heads_.end(),
                [](const Head& a, const Head& b) { return later(a.time_s, a.stream, b.time_s, b.stream); });
  const std::size_t index = heads_.back().stream;
  heads_.pop_back();
  Stream& stream = streams_[index];
  const Rank rank = stream.decoder->next_rank();
  Seconds passed_s = 0;
  const BatchSink timed{[&](Rank of, const Event& event) {
                          passed_s += event.process_s + event.call_s + event.off_s;
                          return sink.on_event(of, event);
                        },
                        sink.on_control};
  const Result<bool> more = stream.decoder->next(timed);
  if (!more) return stream.source->located(more.error());
  stream.in_batch = *more;
  if (rank >= 0) {
    if (static_cast<std::size_t>(rank) >= time_s_.size())
      time_s_.resize(static_cast<std::size_t>(rank) + 1, 0.0);
    time_s_[static_cast<std::size_t>(rank)] += passed_s;
  }
  if (const Result<bool> queued = enqueue(index); !queued) return queued;
  return true;
}

}  // namespace lbf
