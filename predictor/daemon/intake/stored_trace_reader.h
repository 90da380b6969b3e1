// StoredTraceReader: the stored batches of a step, which may still run -> events of its ranks and control records.
//
// Place in the event's way: trace store -> *StoredTraceReader* -> match -> replay. Each replay of a step has one. It
// reads one batch at a time, always of the stream whose ranks are furthest behind, so that a replay holds little: what
// one rank sent and another has not received yet. A whole trace is read event by event (StreamMerge).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "event/wire.h"
#include "predictor/daemon/intake/step_trace.h"
#include "protocol/control_records.h"

namespace lbf::daemon {

class StoredTraceReader {
 public:
  // Whose events these are.
  enum class Origin {
    kFirst,         // of a rank of which there were none before
    kAsBefore,      // of a rank, from its stream
    kOtherStream,   // of a rank that another stream carries
    kNoRankOfStep,  // its number is too large
  };
  struct Sink {
    std::function<void(std::uint32_t stream, Rank rank, std::span<const Event> events, Origin origin)> on_events;
    std::function<void(std::uint32_t stream, const protocol::ControlRecord& record)> on_control;
    // Who wants rounds (event/rounds.h) takes them here, or says false: as events.
    std::function<Result<bool>(Rank rank, const Rounds& rounds, Origin origin)> on_rounds{};
  };

  // RANKS of the step.
  StoredTraceReader(std::shared_ptr<const StepTrace> trace, Rank ranks);
  ~StoredTraceReader();
  StoredTraceReader(const StoredTraceReader&) = delete;
  StoredTraceReader& operator=(const StoredTraceReader&) = delete;

  // The stream whose next batch comes next; nothing: no batch is here that was not read.
  struct Next {
    std::optional<std::uint32_t> stream;
    bool is_ahead = false;  // of a stream that has nothing here now, but will
  };
  Next next(const std::vector<StreamState>& streams) const;
  // Reads the next batch of STREAM. After an error (which names stream and batch) nothing more of this stream is read.
  Result<void> read(std::uint32_t stream, const Sink& sink);
  // The same for an exception that SINK threw: WHAT for people. Nothing more of this stream is read.
  std::string give_up(std::uint32_t stream, const std::string& what);

  // The stream that carries the rank; nothing: no event of it came.
  std::optional<std::uint32_t> stream_of(Rank rank) const;
  std::uint64_t next_sequence(std::uint32_t stream) const;
  Bytes memory_bytes() const;
  Bytes read_bytes() const { return read_bytes_; }  // of batches, so far
  // Measured time of the events read so far, all ranks.
  Seconds replayed_s() const;

 private:
  struct Stream;
  Stream& stream(std::uint32_t number);
  Origin origin_of(Stream& stream, Rank rank);

  const std::shared_ptr<const StepTrace> trace_;
  CommunicatorTable communicators_;
  BatchDecoder decoder_{communicators_, kMaxTraceRanks};  // of all streams, whose batches are read one after the other
  std::map<std::uint32_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::int64_t> stream_of_rank_;  // -1: none yet
  std::string batch_;                         // scratch
  Bytes read_bytes_ = 0;
};

}  // namespace lbf::daemon
