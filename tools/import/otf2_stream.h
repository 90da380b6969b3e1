// The records of a rank of an OTF2 archive that the import uses, those of all its threads by time. No file but the
// import needs it.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/import/otf2_definitions.h"

namespace lbf::tools::otf2 {

struct Record {
  enum class Kind : std::uint8_t {
    kEnter,  // region
    kLeave,
    kSend,  // comm, peer, tag, bytes
    kIsend,
    kIsendComplete,  // request
    kIrecvRequest,
    kRecv,
    kIrecv,
    kCancelled,
    kCollectiveBegin,
    kCollectiveEnd,        // op, comm, peer: root, bytes: sent, received
    kNonblockingRequest,   // request
    kNonblockingComplete,  // as kCollectiveEnd, request
    kFlush,                // bytes: nanoseconds until its end
    kOff,                  // nothing is recorded ...
    kOn,                   // ... until here
    kFork,
    kJoin,
    kTeamBegin,
    kTeamEnd,
    kPut,  // comm: window, peer, bytes, request: id of the operation
    kGet,
    kAtomic,     // op: OTF2_RmaAtomicType
    kDoneHere,   // comm: window, request: id of the operation
    kDoneThere,  // the same
    kLock,       // comm: window, peer
    kUnlock,
    kGroupSync,  // comm: window, peer: group
    kWindowEnd,  // of a collective on the window `comm`: op
  };
  Kind kind = Kind::kEnter;
  std::uint8_t op = 0;
  std::uint16_t thread = 0;  // of the rank; 0: that of its MPI calls
  const Region* region = nullptr;
  std::uint32_t comm = 0;
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint64_t received = 0;
  std::uint64_t request = 0;
  Nanoseconds ns = 0;          // by the rank's clock, with the offsets that the archive has
  std::uint64_t position = 0;  // of its location, from 1
};

// One archive that is open for its events. Not for two threads.
class Archive {
 public:
  // Errors: kInvalidInput, kLimit; they begin with ANCHOR.
  static Result<std::unique_ptr<Archive>> open(const std::string& anchor);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  const Definitions& definitions() const { return definitions_; }
  const std::string& anchor() const { return anchor_; }

 private:
  friend class LocationRecords;
  explicit Archive(std::string anchor) : anchor_(std::move(anchor)) {}
  Result<void> open_events();

  std::string anchor_;
  OTF2_Reader* reader_ = nullptr;
  OTF2_EvtReaderCallbacks* callbacks_ = nullptr;
  Definitions definitions_;
};

// Of one location. Memory: some records, and the library's chunk.
class LocationRecords {
 public:
  // REQUIRES: `archive` outlives it.
  LocationRecords(Archive& archive, const Location& location, std::uint16_t thread, Nanoseconds shift_ns)
      : archive_(archive), location_(location), thread_(thread), shift_ns_(shift_ns) {}

  // The next one; nullptr: the end. Valid until the next take().
  Result<const Record*> front();
  void take() { ++at_; }
  std::uint64_t backwards() const { return backwards_; }

 private:
  friend struct Callbacks;
  Result<void> fill();
  Nanoseconds ns(std::uint64_t ticks) const;
  Record& add(Record::Kind kind, std::uint64_t ticks, std::uint64_t position);

  Archive& archive_;
  Location location_;
  std::uint16_t thread_;
  Nanoseconds shift_ns_;
  OTF2_EvtReader* reader_ = nullptr;
  std::vector<Record> records_;
  std::size_t at_ = 0;
  bool ended_ = false;
  Nanoseconds last_ns_ = 0;
  bool any_ = false;
  bool is_too_late_ = false;
  std::uint64_t backwards_ = 0;  // records that are earlier than the one before them
};

class RankRecords {
 public:
  // SHIFT_NS is added to the times of its records.
  RankRecords(Archive& archive, Rank rank, Nanoseconds shift_ns);
  // As of LocationRecords.
  Result<const Record*> front();
  void take() { threads_[first_].take(); }
  std::uint64_t backwards() const;

 private:
  std::vector<LocationRecords> threads_;
  std::size_t first_ = 0;  // that has the earliest record
};

}  // namespace lbf::tools::otf2
