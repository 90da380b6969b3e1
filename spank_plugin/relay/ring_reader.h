// RingReader: takes the records out of one event ring without believing a word of it.
//
// Place in the event's way: capture -> ring -> *RingReader* -> ProcessStream -> batches. Implements the
// consumer's side of spank_plugin/capture/ring.h. The file belongs to the user's program, which may write
// anything into it or cut it at any moment: so the relay never maps it. Header, indices and records are
// copied out with pread() (a shortened file is then a short read, not a SIGBUS), every length and offset is
// checked in the copy, and the consumer's own index lives here; the one in the file is only written.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/scoped_fd.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::relay {

inline constexpr std::uint64_t kMinRingCapacityBytes = 4096;
inline constexpr std::uint64_t kMaxRingCapacityBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMaxRingHeaderBytes = std::uint64_t{1} << 20;
// With its values, each as long as the wire can make it, a record still fits into a batch (kMaxBatchRawBytes).
inline constexpr std::uint64_t kLongestRecordBytes = std::uint64_t{12} << 20;

// One ring::PrimitiveCounter. Whether the numbers can be true is CostMeter's business.
struct PrimitiveReading {
  std::uint64_t executions = 0;
  std::uint64_t sampled = 0;
  std::uint64_t sampled_ticks = 0;
  std::uint64_t ideal_ticks_256 = 0;
  std::uint64_t dear_ticks = 0;
};

// ring::ProcedureUse.
struct ProcedureReading {
  std::uint64_t calls = 0;
  std::uint64_t call_ticks_256 = 0;
  std::uint64_t record_ticks = 0;
};

// The part of the header that changes while the program runs, each field read once.
struct RingStatus {
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  ring::ProcessState state = ring::ProcessState::kStarting;
  std::uint32_t thread_level = 0;
  std::uint64_t init_leave_ticks = 0;
  std::uint64_t finalize_enter_ticks = 0;
  std::uint64_t cpu_threshold_ticks = 0;
  std::uint64_t unread_gap_ticks = 0;
  std::uint64_t failed_polls = 0;
  std::uint64_t lost_records = 0;
  std::uint64_t capture_ticks_estimate = 0;
  std::uint32_t where = ring::kWhereUnknown;  // Header::in_call
  std::uint16_t call_function = 0;            // with kInCall
  std::uint64_t call_enter_ticks = 0;
  std::uint32_t abandoned_calls = 0;
  std::uint32_t recording_window = 0;  // 0: it counts, or is off
  bool off = false;
  std::uint64_t off_ticks = 0;  // when that was; 0: not said
  bool ended = false;           // its thread; what else is read here may be older than that
  PrimitiveReading recorded;
  PrimitiveReading counted;
  ProcedureReading procedures;
  std::uint64_t once_cpu_ns = 0;
  std::uint64_t init_cpu_ns = 0;       // of the whole process: after MPI_Init; 0: not said
  std::uint64_t end_cpu_ns = 0;        // and when MPI_Finalize was called
  std::uint32_t device_libraries = 0;  // ring::DeviceLibrary, or'd; hostile: may have other bits
  std::string library;                 // MPI_Get_library_version; the program learns it in MPI_Init
};

// The part that does not change.
struct RingIdentity {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint32_t clock_source = 0;  // 0 TSC, 1 CLOCK_MONOTONIC
  std::int32_t slurm_procid = -1;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t start_realtime_ns = 0;
  std::string executable;
  // ring::Header::launch, what the process says of how it was started, as launch_of_environment() reads it; empty: it
  // has nothing to say.
  std::string launch;
  std::uint64_t wanted_bytes = 0;  // capacity_bytes as the capture was asked for
};

struct FunctionTotal {
  std::uint16_t function = 0;
  std::uint64_t count = 0;
  std::uint64_t ticks = 0;
};

// A record and its values. `values` points into the reader's buffer until the sink returns.
using RecordSink = std::function<void(const ring::Record& record, std::span<const std::uint64_t> values)>;

class RingReader {
 public:
  // NAME in the directory DIR_FD (parse_ring_name()). A longer record than LONGEST_RECORD_BYTES breaks the ring: it is
  // copied as a whole. Errors: kNotFound (gone, or not ready: the program has
  // not written the magic number yet), kInvalidInput (not a regular file of this user, or a header that
  // breaks ring.h), kIo.
  static Result<RingReader> open(int dir_fd, const std::string& name,
                                 std::uint64_t longest_record_bytes = kLongestRecordBytes);

  const RingIdentity& identity() const { return identity_; }

  // Errors: kInvalidInput, when the file was cut or the state or clocks make no sense.
  Result<RingStatus> read_status() const;
  Result<std::vector<FunctionTotal>> read_calls() const;  // functions with a count only

  // Bytes that wait to be drained, at this moment. Errors: kInvalidInput (indices that cannot be).
  Result<std::uint64_t> pending_bytes() const;

  // Its process is gone: what somebody writes into it after the first call is not read.
  void seal();

  // Hands on the records that were written before the call, at most about `limit_bytes` of them (at least
  // one), and gives their room back to the program. Returns the bytes consumed; 0: nothing there. After an
  // error (kInvalidInput) the ring cannot be read any further; the records handed on before it stand.
  Result<std::uint64_t> drain(std::uint64_t limit_bytes, const RecordSink& sink);

  // The control word (ring.h, "Control"): window and grants first, then the order; what is there already is not written
  // again. Errors: kIo.
  Result<void> write_control(ring::CaptureOrder order, std::uint32_t window, std::uint64_t grant,
                             std::uint64_t counted_grant = 0);

  // The list of procedures of all ranks (ring.h), where it is newer than what was written. Errors: kInvalidInput (LINES
  // are too many), kIo.
  Result<void> write_procedure_list(std::uint64_t generation, std::string_view lines);

  std::uint64_t consumed_bytes() const { return tail_; }

 private:
  RingReader() = default;
  Result<void> fill(std::uint64_t data_offset, std::uint64_t bytes);

  ScopedFd fd_;
  std::string name_;
  RingIdentity identity_;
  std::uint64_t header_bytes_ = 0;
  std::uint64_t longest_record_bytes_ = kLongestRecordBytes;
  std::uint64_t tail_ = 0;
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();  // seal(): what is written behind it does not count
  struct Control {
    ring::CaptureOrder order = ring::CaptureOrder::kOpen;
    std::uint32_t window = 0;
    std::uint64_t grant = 0;
    std::uint64_t counted_grant = 0;
  };
  std::optional<Control> control_;     // as written
  std::uint64_t list_generation_ = 0;  // as written
};

}  // namespace lbf::relay
