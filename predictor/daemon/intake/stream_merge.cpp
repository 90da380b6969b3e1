#include "predictor/daemon/intake/stream_merge.h"

#include <algorithm>
#include <utility>

namespace lbf::daemon {

StreamMerge::StreamMerge(CommunicatorTable& communicators, Rank max_ranks,
                         std::vector<std::unique_ptr<BatchSource>> sources)
    : communicators_(communicators), max_ranks_(max_ranks) {
  for (std::unique_ptr<BatchSource>& source : sources) {
    Stream& stream = streams_.emplace_back();
    stream.source = std::move(source);
    stream.decoder = std::make_unique<BatchDecoder>(communicators_, max_ranks_);
  }
}

void StreamMerge::push(std::uint32_t stream, std::uint32_t which, Rank rank) {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= time_s_.size()) time_s_.resize(index + 1, 0.0);
  heads_.push_back({time_s_[index], stream, which, rank});
  std::push_heap(heads_.begin(), heads_.end(), later);
}

Result<void> StreamMerge::refill(std::uint32_t index, const BatchSink& sink) {
  Stream& stream = streams_[index];
  for (;;) {
    if (!stream.in_batch) {
      const Result<std::span<const std::byte>> batch = stream.source->next();
      if (!batch) return batch.error();
      if (batch->empty()) return {};
      const Result<BatchHeader> opened = stream.decoder->open(*batch);
      if (!opened) return stream.source->located(opened.error());
      stream.in_batch = true;
    }
    const Result<std::span<const Rank>> ranks = stream.decoder->ranks(sink);
    if (!ranks) return stream.source->located(ranks.error());
    stream.in_batch = !ranks->empty();
    if (!stream.in_batch) continue;
    stream.ranks_left = ranks->size();
    for (std::uint32_t which = 0; which < ranks->size(); ++which) push(index, which, (*ranks)[which]);
    return {};
  }
}

Result<bool> StreamMerge::next(const BatchSink& sink) {
  if (!std::exchange(started_, true)) {
    for (std::uint32_t stream = 0; stream < static_cast<std::uint32_t>(streams_.size()); ++stream) {
      if (const Result<void> filled = refill(stream, sink); !filled) return filled.error();
    }
  }
  if (heads_.empty()) return false;
  std::pop_heap(heads_.begin(), heads_.end(), later);
  const Head head = heads_.back();
  heads_.pop_back();
  Stream& stream = streams_[head.stream];
  if (!heads_.empty()) streams_[heads_.front().stream].decoder->prefetch(heads_.front().which);
  const std::uint64_t in_cache = kMostOfAllRanks / static_cast<std::uint64_t>(std::max(max_ranks_, 1));
  const std::uint64_t most = sink.on_rounds ? std::clamp(in_cache, kMostEvents, kMostInRounds) : kMostEvents;
  const Result<BatchDecoder::Taken> taken = stream.decoder->next(head.which, most, sink);
  if (!taken) return stream.source->located(taken.error());
  time_s_[static_cast<std::size_t>(head.rank)] += taken->passed_s;
  if (taken->more) {
    push(head.stream, head.which, head.rank);
  } else if (--stream.ranks_left == 0) {
    if (const Result<void> filled = refill(head.stream, sink); !filled) return filled.error();
  }
  return true;
}

}  // namespace lbf::daemon
