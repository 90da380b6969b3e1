// StreamMerge: the stored streams of one step, read side by side.
//
// Place in the event's way: trace store -> *events of all ranks* -> match. Always goes on with the stream
// whose next rank is furthest behind in measured time, so that a replay which is fed with the events holds
// little: what one rank sent and another has not received yet.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "event/wire.h"

namespace lbf::daemon {

// The batches of one stream, in order.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The next batch, valid until the next call; empty: there are no more.
  virtual Result<std::span<const std::byte>> next() = 0;
  // An error that decoding the last batch gave, with the place where it lies.
  virtual Error located(const Error& error) const { return error; }
};

class StreamMerge {
 public:
  // REQUIRES: `communicators` outlives the merge. World ranks >= max_ranks are refused.
  StreamMerge(CommunicatorTable& communicators, Rank max_ranks, std::vector<std::unique_ptr<BatchSource>> sources);

  // Hands on some events of one rank, and the control records that come with them. False: there was nothing
  // left. After an error the merge must not be used any more.
  Result<bool> next(const BatchSink& sink);
  // Of one rank at a time.
  static constexpr std::uint64_t kMostEvents = 64;
  // ... where the sink takes rounds, and so many of all ranks together stay in the cache: what rounds have in common is
  // then looked up less often. An encoder's sections have no more.
  static constexpr std::uint64_t kMostInRounds = 256;
  static constexpr std::uint64_t kMostOfAllRanks = 8192;

 private:
  struct Stream {
    std::unique_ptr<BatchSource> source;
    std::unique_ptr<BatchDecoder> decoder;
    bool in_batch = false;
    std::size_t ranks_left = 0;  // in heads_
  };
  struct Head {
    Seconds time_s;  // how far the rank is
    std::uint32_t stream;
    std::uint32_t which;  // rank of the stream's decoder
    Rank rank;
  };
  static bool later(const Head& a, const Head& b) {
    return a.time_s != b.time_s ? a.time_s > b.time_s : a.rank > b.rank;
  }
  // Makes heads of the stream's next ranks, if it has any.
  Result<void> refill(std::uint32_t stream, const BatchSink& sink);
  void push(std::uint32_t stream, std::uint32_t which, Rank rank);

  CommunicatorTable& communicators_;
  Rank max_ranks_;
  std::vector<Stream> streams_;
  std::vector<Head> heads_;      // heap, the earliest first
  std::vector<Seconds> time_s_;  // by rank
  bool started_ = false;
};

}  // namespace lbf::daemon
