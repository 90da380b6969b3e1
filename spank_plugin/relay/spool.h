// Spool: batches that lbfd could not be given, in a bounded local file.
//
// Place in the event's way: Delivery -> *SpoolFile* -> (lbfd is back) -> Delivery, or the next relay of the
// same user on this node, or `lbf-relay --flush-spool`. Implements docs/formats/spool-v1.md. A
// record is believed only after its checksum; a file that was cut in the middle of a record ends before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "base/units.h"

namespace lbf::relay {

inline constexpr std::string_view kSpoolSuffix = ".lbfspool";

// Where the batches in the file belong.
struct SpoolHeader {
  std::string key;  // CLUSTER/JOB/STEP/RESTART/SUBMIT, as in http-v1
  std::uint32_t stream = 0;
  std::string server;       // of lbfd
  std::string description;  // the step's, JSON, for PUT
};

enum class SpoolRecordKind : std::uint32_t { kBatch = 1, kEnd = 2 };

struct SpoolRecord {
  SpoolRecordKind kind = SpoolRecordKind::kBatch;
  std::string bytes;  // a whole batch, or the JSON body of the stream's end
};

class SpoolFile {
 public:
  // A new file in DIR, locked for as long as the object lives. This user's spool files in DIR together never
  // hold more than LIMIT_BYTES. Errors: kIo (the directory cannot be written), kLimit (no room at all).
  static Result<SpoolFile> create(const std::string& dir, const SpoolHeader& header, Bytes limit_bytes);

  // A file that another relay left. Errors: kUnavailable (its relay still lives), kInvalidInput (not a spool
  // file of this user and version), kIo.
  static Result<SpoolFile> open(const std::string& path);

  const SpoolHeader& header() const { return header_; }
  const std::string& path() const { return path_; }

  // Errors: kLimit (limit or disk full; the file is as before), kIo.
  Result<void> append(SpoolRecordKind kind, std::string_view bytes);

  // The next record; nothing at the end of the file or of what is whole in it.
  Result<std::optional<SpoolRecord>> next();
  bool at_end() const { return read_offset_ >= write_offset_; }

  // Everything was delivered: removes the file.
  void remove();

 private:
  SpoolFile() = default;

  std::string path_;
  ScopedFd fd_;
  SpoolHeader header_;
  std::uint64_t read_offset_ = 0;
  std::uint64_t write_offset_ = 0;
  std::uint64_t limit_offset_ = 0;
};

// This user's spool files in DIR (of every user for root), oldest first.
std::vector<std::string> list_spool_files(const std::string& dir);

}  // namespace lbf::relay
