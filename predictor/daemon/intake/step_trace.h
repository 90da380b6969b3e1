// StepTrace: the stored trace of one step, and the write-ahead log of lbfd at the same time
// (docs/formats/trace-store-v1.md).
//
// Place in the event's way: relay -> HTTP -> *StepTrace* -> match. A batch is acknowledged only after it is
// durable, exactly once by its sequence number; every stored batch was decoded once before, so what is in
// here can be replayed. One file per stream; streams do not wait for each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "event/wire.h"
#include "predictor/daemon/intake/step_key.h"
#include "protocol/step_description.h"
#include "protocol/stream_messages.h"

namespace lbf::daemon {

// Ranks that one trace may hold; a batch with a higher one is refused.
inline constexpr Rank kMaxTraceRanks = protocol::kMaxStepTasks;

// A stream's end as it is stored: what its relay said, or lbfd for one that fell silent or grew too large.
struct StoredEnd : protocol::StreamEnd {
  Nanoseconds realtime_ns = 0;
};
// lbfd's own reason: a stream that fell silent. It is opened again if its relay returns.
inline constexpr std::string_view kReasonStreamTimeout = "stream_timeout";
// lbfd's own reason: the step's traces are as large as one step's may be; what comes later is not kept.
inline constexpr std::string_view kReasonTraceLimit = "trace_limit";
// Likewise: what the step's batches are checked against takes as much memory as one step may have.
inline constexpr std::string_view kReasonMemoryLimit = "memory_limit";
// `lbf-relay --abandon` says so of a relay that was killed.
inline constexpr std::string_view kReasonRelayKilled = "relay_killed";
// Of a stream that ended so, what comes later is acknowledged and not kept.
constexpr bool is_limit(std::string_view reason) {
  return reason == kReasonTraceLimit || reason == kReasonMemoryLimit;
}

enum class AppendOutcome {
  kStored,     // durable now
  kDuplicate,  // was durable already
  kGap,        // batches below are missing: nothing stored
  kEnded,      // the stream has ended below this sequence: nothing stored
};

struct AppendResult {
  AppendOutcome outcome = AppendOutcome::kStored;
  std::uint64_t next_sequence = 1;  // batches below are durable
};

struct StreamState {
  std::uint32_t stream = 0;
  std::uint64_t next_sequence = 1;
  std::uint64_t durable_bytes = 0;
  std::optional<StoredEnd> end;
  std::string damage;  // not empty: stored batches after durable_bytes are unreadable, and why
};

// Thread-safe. Calls for different streams run side by side.
class StepTrace {
 public:
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // A new step in `directory` (made here). `first` becomes the step's description, `owner` its owner.
  static Result<std::shared_ptr<StepTrace>> create(StepKey key, std::string directory,
                                                   const protocol::StepDescription& first, uid_t owner);
  // A stored one. Tails that a crash tore off in the middle of a batch are cut (they were never
  // acknowledged). Errors: kNotFound (no step.json: nothing was ever acknowledged for it), kInvalidInput
  // (damaged), kIo.
  static Result<std::shared_ptr<StepTrace>> open(StepKey key, std::string directory);
  // The same to read and copy it only, whoever writes it meanwhile: nothing is decoded or cut.
  static Result<std::shared_ptr<StepTrace>> open_to_read(StepKey key, std::string directory);

  const StepKey& key() const { return key_; }
  const std::string& directory() const { return directory_; }
  uid_t owner() const { return owner_; }
  Nanoseconds created_realtime_ns() const { return created_realtime_ns_; }
  // As the first stream registered it (its node_index and task_ids are that stream's).
  const protocol::StepDescription& description() const { return description_; }
  std::map<std::uint32_t, protocol::StreamDescription> stream_descriptions() const;  // of those that are registered

  // Registers stream S = description.node_index; again is fine. Returns the next sequence wanted.
  // Errors: kInvalidInput (contradicts the step's description in nodes or tasks), kLimit, kIo.
  Result<std::uint64_t> register_stream(const protocol::StepDescription& description);

  // Errors: kNotFound (stream not registered), kInvalidInput (the batch breaks the wire format, or carries
  // another stream or sequence: nothing stored), kLimit (disk full: nothing stored, try again later), kIo.
  Result<AppendResult> append(std::uint32_t stream, std::uint64_t sequence, std::span<const std::byte> batch);

  // Durable when it returns; ending an ended stream again changes nothing. Outcome kGap: `end` speaks of
  // batches that are neither here nor declared lost; the relay may still send them.
  Result<AppendResult> end_stream(std::uint32_t stream, const protocol::StreamEnd& end);

  // Ends a stream whose relay never registered, in lbfd's name. Nothing happens to a registered one.
  Result<void> end_missing_stream(std::uint32_t stream);

  // Takes back an end that lbfd itself made for a silent stream.
  Result<void> reopen_stream(std::uint32_t stream);

  std::vector<StreamState> streams() const;
  std::optional<StreamState> stream(std::uint32_t stream) const;
  // No further stream will come: every node has registered one or, where another launcher than Slurm placed
  // the ranks, those nodes have whose task_ids are all ranks together.
  bool all_registered() const;
  bool all_ended() const;  // all_registered(), and every stream has ended
  std::uint64_t stored_bytes() const;
  // Held in memory, more or less: description, streams, what their batches are checked against.
  Bytes memory_bytes() const;
  // Of a description of so many bytes alone: a number of two digits takes 16 as JSON.
  static constexpr Bytes bytes_of_description(std::size_t bytes) { return 8 * Bytes{bytes}; }
  Bytes check_bytes() const { return check_bytes_; }  // the last of these

  // Batch `sequence` (from 1), whole, into `buffer`. Errors: kNotFound (not durable here), kIo.
  Result<void> read_batch(std::uint32_t stream, std::uint64_t sequence, std::string& buffer) const;
  // Up to `limit_bytes` raw bytes from `offset`, for copies of the trace.
  Result<void> read_raw(std::uint32_t stream, std::uint64_t offset, std::size_t limit_bytes, std::string& buffer) const;

 private:
  struct Stream;
  StepTrace(StepKey key, std::string directory, protocol::StepDescription description, std::size_t description_bytes,
            uid_t owner, Nanoseconds created_realtime_ns);
  Stream* find_stream(std::uint32_t stream) const;
  bool all_registered_locked() const REQUIRES(mutex_);
  enum class Purpose { kWrite, kRead };
  static Result<std::shared_ptr<StepTrace>> open_for(Purpose purpose, StepKey key, std::string directory);
  Result<void> load_streams(Purpose purpose);
  // REQUIRES: there is none of this number. STORE writes stream-S.json: from then on it is registered.
  Result<void> add_stream(std::uint32_t stream, protocol::StreamDescription description,
                          const std::function<Result<void>()>& store) REQUIRES(mutex_);
  Result<void> store_description(std::uint32_t stream, const protocol::StepDescription& description) const;
  Result<void> store_missing(std::uint32_t stream) const;
  std::string stream_path(std::uint32_t stream, std::string_view suffix) const;

  const StepKey key_;
  const std::string directory_;
  const protocol::StepDescription description_;
  const std::size_t description_bytes_;  // as stored
  const uid_t owner_;
  const Nanoseconds created_realtime_ns_;
  std::atomic<Bytes> check_bytes_{0};
  mutable Mutex mutex_;  // taken before a stream's
  std::map<std::uint32_t, protocol::StreamDescription> descriptions_ GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::unique_ptr<Stream>> streams_ GUARDED_BY(mutex_);
};

}  // namespace lbf::daemon
