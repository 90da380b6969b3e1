// Wire format, version 1 (docs/formats/wire-v1.md): batches of events as the relay POSTs them, as lbfd
// stores them, and as `lbf-whatif` reads them back. A stored trace is a sequence of batches.
//
// A batch is self-contained (dictionaries start anew in each) and is checked before anything in it is
// believed: magic, version, lengths, CRC32C of header and payload, then zstd with the declared size as the
// bound. Inside, a section per rank: varint-coded events that refer to a dictionary of "shapes" (kind,
// flags, function, op, peer, tag, comm, root, bytes, values), so that a repeated event costs a shape number,
// its process time and its call time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/seeded_hash.h"
#include "event/event.h"
#include "event/event_sink.h"
#include "event/rank_list.h"
#include "event/rounds.h"
#include "event/text_trace.h"

namespace lbf {

inline constexpr std::uint16_t kWireVersion = 1;
inline constexpr std::size_t kMaxBatchRawBytes = std::size_t{16} << 20;  // a decoder refuses more
inline constexpr std::size_t kMaxBatchBytes = std::size_t{16} << 20;     // header + compressed payload
inline constexpr std::size_t kMaxControlBytes = std::size_t{1} << 20;    // one JSON control record

// A trace stays in memory while its job runs: a client that defines communicators without end must not fill
// it.
inline constexpr std::size_t kMaxTraceCommunicators = std::size_t{1} << 20;

struct BatchHeader {
  std::uint16_t version = kWireVersion;
  std::uint32_t stream = 0;     // which relay of the step: the node's index in the step (0-based)
  std::uint64_t sequence = 0;   // 1, 2, 3 ... per stream; a retry carries the same number
  std::uint32_t raw_bytes = 0;  // payload before compression
  std::uint32_t compressed_bytes = 0;
  std::uint32_t events = 0;
};

// Collects events of any ranks. A time that cannot be (negative, or too long for the wire) becomes 0 or the longest.
class BatchEncoder {
 public:
  BatchEncoder();
  ~BatchEncoder();
  BatchEncoder(const BatchEncoder&) = delete;
  BatchEncoder& operator=(const BatchEncoder&) = delete;

  void add(Rank rank, const Event& event);
  // A JSON object for lbfd (docs/formats/http-v1.md, "control records"), kept in order with the events that
  // were added before it. REQUIRES: json.size() <= kMaxControlBytes.
  void add_control(std::string_view json);
  bool empty() const;
  std::size_t raw_bytes() const;  // so that the caller can cut batches
  std::uint32_t events() const;
  // Nothing is added before finish(): gives back what only adding needs, so that raw_bytes() is what it holds.
  void close();
  // The finished batch, header included; the encoder is empty afterwards.
  // REQUIRES: raw_bytes() <= kMaxBatchRawBytes - kMaxBatchRawBytes / 64 (decoders refuse a batch beyond the
  // limits; relays cut at about 1 MiB).
  std::string finish(std::uint32_t stream, std::uint64_t sequence);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Header of a batch, checked (magic, version, lengths against `bytes` and the limits, header CRC). `bytes`
// may hold more than one batch: the first ends at kBatchHeaderBytes + compressed_bytes.
inline constexpr std::size_t kBatchHeaderBytes = 48;
Result<BatchHeader> read_batch_header(std::span<const std::byte> bytes);
// Whether the payload is what its checksum in the header says. REQUIRES: `batch` is one whole batch, by its header.
bool has_whole_payload(std::span<const std::byte> batch);

struct BatchSink {
  EventBlockSink on_events;                                       // empty: the batch is only checked
  std::function<Result<void>(std::string_view json)> on_control;  // may be empty
  RoundsSink on_rounds;                                           // empty: everything comes as events
};

// Joins the communicators of the ranks of one trace. On the wire each rank numbers its communicators itself
// (0 = MPI_COMM_WORLD, then 1, 2 ... never reused) and defines them with a uid that all members computed
// alike; here uid -> dense global index.
class CommunicatorTable {
 public:
  explicit CommunicatorTable(std::size_t max_communicators = kMaxTraceCommunicators)
      : max_communicators_(max_communicators) {}
  // From a kCommCreate event. Errors: the members differ from an earlier definition of the same uid (for an
  // intercommunicator: neither equal nor the two groups swapped); `rank` is not a member; the local index is
  // taken by another uid; local index 0; more communicators or members
  // than any trace can need (kLimit).
  Result<std::uint32_t> define(Rank rank, std::uint32_t local_index, std::span<const std::uint64_t> values);
  Result<std::uint32_t> translate(Rank rank, std::uint32_t local_index) const;
  // From a kGap event: definitions of this rank may be missing from here on.
  void note_gap(Rank rank);
  bool has_gap(Rank rank) const;
  std::uint32_t size() const;  // number of global indices, the world included
  Bytes memory_bytes() const;

 private:
  struct Definition {
    RankList group;   // of the rank that came first
    RankList remote;  // intercommunicator: the other group
  };
  std::vector<Definition> communicators_;  // by global index - 1
  std::unordered_map<std::uint64_t, std::uint32_t, SeededHash> global_by_uid_;
  std::unordered_map<std::uint64_t, std::uint32_t, SeededHash> global_by_rank_and_local_;
  std::size_t max_communicators_;
  Bytes members_bytes_ = 0;
  std::vector<bool> gap_by_rank_;
};

// Decodes batches; events leave with global communicator indices. Hostile input gives kInvalidInput;
// nothing is handed on before the checksums of the batch were found right. Keeps its buffers between calls.
//
// What a gap took along is no error: after a kGap event of its rank (in this or an earlier batch), an event
// on a communicator that is not defined leaves as a kGap of one event, with its times. So does a definition
// beyond what a trace may have (CommunicatorTable, kLimit), and what refers to it.
class BatchDecoder {
 public:
  // REQUIRES: `communicators` outlives the decoder. World ranks >= max_ranks are refused.
  BatchDecoder(CommunicatorTable& communicators, Rank max_ranks);
  ~BatchDecoder();
  BatchDecoder(const BatchDecoder&) = delete;
  BatchDecoder& operator=(const BatchDecoder&) = delete;
  Result<BatchHeader> decode(std::span<const std::byte> batch, const BatchSink& sink);

  // The same in steps. open() checks a batch, which may then go away.
  Result<BatchHeader> open(std::span<const std::byte> batch);
  // The ranks whose events come next; the control records before them are handed on. When all events of all
  // of them were taken, the next call gives further ones. Empty: the batch is over.
  Result<std::span<const Rank>> ranks(const BatchSink& sink);
  // Hands on at most `most` events of the rank at this place in ranks().
  struct Taken {
    bool more = false;     // the rank has further ones, now
    Seconds passed_s = 0;  // all times of those that were handed on
  };
  Result<Taken> next(std::size_t which, std::uint64_t most, const BatchSink& sink);
  // These will be asked for soon. REQUIRES: which < ranks().size().
  void prefetch(std::size_t which) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lbf
