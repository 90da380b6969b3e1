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

namespace lbf {

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
  StreamMerge(CommunicatorTable& communicators, Rank max_ranks,
              std::vector<std::unique_ptr<BatchSource>> sources);

  // Hands on one block: events of one rank, or a control record. false: there was none left. After an error
  // the merge must not be used any more.
  Result<bool> next(const BatchSink& sink);

 private:
  struct Stream {
    std::unique_ptr<BatchSource> source;
    std::unique_ptr<BatchDecoder> decoder;
    bool in_batch = false;
  };
  struct Head {
    Seconds time_s;  // how far the rank is whose events come next
    std::size_t stream;
  };
  // Makes the stream's next block its head; false: it is over.
  Result<bool> enqueue(std::size_t stream);

  CommunicatorTable& communicators_;
  Rank max_ranks_;
  std::vector<Stream> streams_;
  std::vector<Head> heads_;      // heap, the earliest first
  std::vector<Seconds> time_s_;  // by rank
  bool started_ = false;
};

}  // namespace lbf
