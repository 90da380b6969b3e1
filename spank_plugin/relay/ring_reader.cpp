// RingReader, see ring_reader.h.
#include "spank_plugin/relay/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/io_error.h"
#include "event/event.h"
#include "protocol/procedure_list.h"

namespace lbf::relay {
namespace {

// Bytes copied out in one go: small enough to stay in the cache between the copy and the decoding.
constexpr std::uint64_t kChunkBytes = 256 << 10;
constexpr std::uint64_t kLeastChunkBytes = 4096;

// A thread drains its rings one after the other: one copy serves them all.
thread_local std::vector<std::uint64_t> copy_of_ring;

// The header is copied as bytes and its fields are taken out by offset: ring::Header holds atomics, which
// cannot be copied as a whole.
constexpr std::size_t kCallsOffset = offsetof(ring::Header, calls);
constexpr std::size_t kHeadOffset = offsetof(ring::Header, head);
constexpr std::size_t kTailOffset = offsetof(ring::Header, tail);

template <typename T>
T field(const std::byte* header, std::size_t offset) {
  T value;
  std::memcpy(&value, header + offset, sizeof value);
  return value;
}

static_assert(sizeof(ring::PrimitiveCounter) == 40);
PrimitiveReading primitive(const std::byte* header, std::size_t offset) {
  return {field<std::uint64_t>(header, offset + offsetof(ring::PrimitiveCounter, executions)),
          field<std::uint64_t>(header, offset + offsetof(ring::PrimitiveCounter, sampled)),
          field<std::uint64_t>(header, offset + offsetof(ring::PrimitiveCounter, sampled_ticks)),
          field<std::uint64_t>(header, offset + offsetof(ring::PrimitiveCounter, ideal_ticks_256)),
          field<std::uint64_t>(header, offset + offsetof(ring::PrimitiveCounter, dear_ticks))};
}

// pread of exactly `bytes`; false when the file is shorter or cannot be read.
bool read_exactly(int fd, void* to, std::size_t bytes, std::uint64_t offset) {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::string text(const std::byte* from, std::size_t capacity) {
  const auto* chars = reinterpret_cast<const char*>(from);
  std::string out(chars, strnlen(chars, capacity));
  // It ends in JSON and on terminals: keep printable ASCII only.
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return out;
}

}  // namespace

Result<RingReader> RingReader::open(int dir_fd, const std::string& name, std::uint64_t longest_record_bytes) {
  RingReader reader;
  reader.name_ = name;
  reader.longest_record_bytes_ = std::min(longest_record_bytes, kLongestRecordBytes);
  reader.fd_.reset(::openat(dir_fd, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!reader.fd_) {
    if (errno == ENOENT) return Error{ErrorCode::kNotFound, "ring " + name + " is gone"};
    return Error{errno == ELOOP ? ErrorCode::kInvalidInput : ErrorCode::kIo,
                 "ring " + name + ": " + std::strerror(errno)};
  }
  struct stat status {};
  if (::fstat(reader.fd_.get(), &status) != 0) {
    return io_error("ring " + name);
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    return invalid_input("ring " + name + " is not a regular file of this user");
  }
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  if (file_bytes < sizeof(ring::Header)) return Error{ErrorCode::kNotFound, "ring " + name + " is not ready"};
  std::array<std::byte, kCallsOffset> header;
  if (!read_exactly(reader.fd_.get(), header.data(), header.size(), 0)) {
    return invalid_input("ring " + name + " was cut while it was read");
  }
  const std::byte* h = header.data();
  const auto magic = field<std::uint64_t>(h, offsetof(ring::Header, magic));
  if (magic == 0) return Error{ErrorCode::kNotFound, "ring " + name + " is not ready"};
  if (magic != ring::kMagic) return invalid_input("ring " + name + " does not start with the ring's magic number");
  const auto version = field<std::uint32_t>(h, offsetof(ring::Header, version));
  if (version != ring::kVersion) {
    return invalid_input("ring " + name + " has version " + std::to_string(version) + ", this relay reads version " +
                         std::to_string(ring::kVersion) + ": install capture and relay of one release");
  }
  reader.header_bytes_ = field<std::uint32_t>(h, offsetof(ring::Header, header_bytes));
  const auto capacity = field<std::uint64_t>(h, offsetof(ring::Header, capacity_bytes));
  if (reader.header_bytes_ < sizeof(ring::Header) || reader.header_bytes_ > kMaxRingHeaderBytes ||
      reader.header_bytes_ % 8 != 0) {
    return invalid_input("ring " + name + ": header of " + std::to_string(reader.header_bytes_) + " bytes");
  }
  if (!std::has_single_bit(capacity) || capacity < kMinRingCapacityBytes || capacity > kMaxRingCapacityBytes) {
    return invalid_input("ring " + name + ": capacity of " + std::to_string(capacity) + " bytes");
  }
  if (file_bytes < reader.header_bytes_ + capacity) {
    return invalid_input("ring " + name + ": " + std::to_string(file_bytes) + " bytes, shorter than its header says");
  }
  RingIdentity& id = reader.identity_;
  id.capacity_bytes = capacity;
  id.pid = field<std::int32_t>(h, offsetof(ring::Header, pid));
  id.tid = field<std::int32_t>(h, offsetof(ring::Header, tid));
  id.clock_source = field<std::uint32_t>(h, offsetof(ring::Header, clock_source));
  id.slurm_procid = field<std::int32_t>(h, offsetof(ring::Header, slurm_procid));
  id.start_ticks = field<std::uint64_t>(h, offsetof(ring::Header, start_ticks));
  id.start_realtime_ns = field<std::uint64_t>(h, offsetof(ring::Header, start_realtime_ns));
  id.executable = text(h + offsetof(ring::Header, executable), sizeof(ring::Header::executable));
  if (id.pid < 1 || id.tid < 1) return invalid_input("ring " + name + ": no process id");
  if (id.clock_source > 1) return invalid_input("ring " + name + ": unknown clock");
  std::array<char, ring::kMaxLaunchBytes> launch;
  if (!read_exactly(reader.fd_.get(), launch.data(), launch.size(), offsetof(ring::Header, launch)) ||
      !read_exactly(reader.fd_.get(), &id.wanted_bytes, sizeof id.wanted_bytes, offsetof(ring::Header, wanted_bytes))) {
    return invalid_input("ring " + name + " was cut while it was read");
  }
  if (launch.front() != '\0') id.launch.assign(launch.data(), launch.size());
  // A relay that was started anew goes on where the last one ended; capture starts at 0.
  if (!read_exactly(reader.fd_.get(), &reader.tail_, sizeof reader.tail_, kTailOffset)) {
    return invalid_input("ring " + name + " was cut while it was read");
  }
  auto pending = reader.pending_bytes();
  if (!pending) return pending.error();
  return reader;
}

Result<RingStatus> RingReader::read_status() const {
  std::array<std::byte, kCallsOffset> header;
  if (!read_exactly(fd_.get(), header.data(), header.size(), 0)) {
    return invalid_input("ring " + name_ + " was cut while the program ran");
  }
  const std::byte* h = header.data();
  RingStatus status;
  status.rank = field<std::int32_t>(h, offsetof(ring::Header, rank));
  status.world_size = field<std::int32_t>(h, offsetof(ring::Header, world_size));
  const auto state = field<std::uint32_t>(h, offsetof(ring::Header, state));
  if (state > static_cast<std::uint32_t>(ring::ProcessState::kBetweenSessions)) {
    return invalid_input("ring " + name_ + ": unknown process state " + std::to_string(state));
  }
  status.state = static_cast<ring::ProcessState>(state);
  status.thread_level = field<std::uint32_t>(h, offsetof(ring::Header, thread_level));
  status.init_leave_ticks = field<std::uint64_t>(h, offsetof(ring::Header, init_leave_ticks));
  status.finalize_enter_ticks = field<std::uint64_t>(h, offsetof(ring::Header, finalize_enter_ticks));
  status.cpu_threshold_ticks = field<std::uint64_t>(h, offsetof(ring::Header, cpu_threshold_ticks));
  status.unread_gap_ticks = field<std::uint64_t>(h, offsetof(ring::Header, unread_gap_ticks));
  status.failed_polls = field<std::uint64_t>(h, offsetof(ring::Header, failed_polls));
  status.lost_records = field<std::uint64_t>(h, offsetof(ring::Header, lost_records));
  status.capture_ticks_estimate = field<std::uint64_t>(h, offsetof(ring::Header, capture_ticks_estimate));
  const auto in_call = field<std::uint32_t>(h, offsetof(ring::Header, in_call));
  status.where = in_call & ((1U << ring::kWhereBits) - 1);
  status.call_function = static_cast<std::uint16_t>(in_call >> ring::kWhereBits);
  status.call_enter_ticks = field<std::uint64_t>(h, offsetof(ring::Header, call_enter_ticks));
  status.abandoned_calls = field<std::uint32_t>(h, offsetof(ring::Header, abandoned_calls));
  status.recording_window = field<std::uint32_t>(h, offsetof(ring::Header, recording_window));
  status.off = field<std::uint32_t>(h, offsetof(ring::Header, off)) != 0;
  status.off_ticks = field<std::uint64_t>(h, offsetof(ring::Header, off_ticks));
  status.ended = field<std::uint32_t>(h, offsetof(ring::Header, ended)) != 0;
  status.recorded = primitive(h, offsetof(ring::Header, recorded));
  status.counted = primitive(h, offsetof(ring::Header, counted));
  constexpr std::size_t kProcedures = offsetof(ring::Header, procedures);
  status.procedures = {field<std::uint64_t>(h, kProcedures + offsetof(ring::ProcedureUse, calls)),
                       field<std::uint64_t>(h, kProcedures + offsetof(ring::ProcedureUse, call_ticks_256)),
                       field<std::uint64_t>(h, kProcedures + offsetof(ring::ProcedureUse, record_ticks))};
  status.once_cpu_ns = field<std::uint64_t>(h, offsetof(ring::Header, once_cpu_ns));
  status.init_cpu_ns = field<std::uint64_t>(h, offsetof(ring::Header, init_cpu_ns));
  status.end_cpu_ns = field<std::uint64_t>(h, offsetof(ring::Header, end_cpu_ns));
  status.device_libraries = field<std::uint32_t>(h, offsetof(ring::Header, device_libraries));
  status.library = text(h + offsetof(ring::Header, library), sizeof(ring::Header::library));
  return status;
}

Result<void> RingReader::write_procedure_list(std::uint64_t generation, std::string_view lines) {
  if (generation <= list_generation_) return {};
  static_assert(ring::kMaxProcedureListBytes == protocol::kMaxProcedureListBytes);
  if (lines.size() > ring::kMaxProcedureListBytes)
    return invalid_input("ring " + name_ + ": the list of procedures is too long");
  const auto put = [&](const void* data, std::size_t size, std::size_t offset) {
    return ::pwrite(fd_.get(), data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  };
  const auto bytes = static_cast<std::uint32_t>(lines.size());
  bool ok = put(&generation, sizeof generation, offsetof(ring::Header, list_begun));
  // The producer reads the text between the two numbers, and believes it where they are the same.
  std::atomic_thread_fence(std::memory_order_release);
  ok = ok && put(&bytes, sizeof bytes, offsetof(ring::Header, list_bytes)) &&
       put(lines.data(), lines.size(), offsetof(ring::Header, list));
  std::atomic_thread_fence(std::memory_order_release);
  ok = ok && put(&generation, sizeof generation, offsetof(ring::Header, list_generation));
  if (!ok) return Error{ErrorCode::kIo, "ring " + name_ + ": the list of procedures cannot be written"};
  list_generation_ = generation;
  return {};
}

Result<void> RingReader::write_control(ring::CaptureOrder order, std::uint32_t window, std::uint64_t grant,
                                       std::uint64_t counted_grant) {
  const auto put = [&](const void* from, std::size_t bytes, std::size_t offset) {
    ssize_t done = 0;
    do {
      done = ::pwrite(fd_.get(), from, bytes, static_cast<off_t>(offset));
    } while (done < 0 && errno == EINTR);
    return done == static_cast<ssize_t>(bytes);
  };
  bool ok = true;
  if (!control_ || control_->grant != grant) ok &= put(&grant, sizeof grant, offsetof(ring::Header, grant));
  if (!control_ || control_->counted_grant != counted_grant) {
    ok &= put(&counted_grant, sizeof counted_grant, offsetof(ring::Header, counted_grant));
  }
  if (!control_ || control_->window != window) ok &= put(&window, sizeof window, offsetof(ring::Header, window));
  if (!control_ || control_->order != order) {
    // Pairs with the producer's acquire load of the order.
    std::atomic_thread_fence(std::memory_order_release);
    const auto word = static_cast<std::uint32_t>(order);
    ok &= put(&word, sizeof word, offsetof(ring::Header, order));
  }
  if (!ok) return io_error("ring " + name_);
  control_ = Control{order, window, grant, counted_grant};
  return {};
}

Result<std::vector<FunctionTotal>> RingReader::read_calls() const {
  std::vector<std::uint64_t> pairs(ring::kMaxFunctions * 2);
  static_assert(sizeof(ring::CallCounter) == 16);
  if (!read_exactly(fd_.get(), pairs.data(), pairs.size() * 8, kCallsOffset)) {
    return invalid_input("ring " + name_ + " was cut while the program ran");
  }
  std::vector<FunctionTotal> totals;
  for (std::size_t i = 0; i < ring::kMaxFunctions; ++i) {
    if (pairs[2 * i] != 0) totals.push_back({static_cast<std::uint16_t>(i), pairs[2 * i], pairs[2 * i + 1]});
  }
  return totals;
}

Result<std::uint64_t> RingReader::pending_bytes() const {
  std::uint64_t head = 0;
  if (!read_exactly(fd_.get(), &head, sizeof head, kHeadOffset)) {
    return invalid_input("ring " + name_ + " was cut while the program ran");
  }
  // Pairs with the producer's release store of `head`: what it covers is read after it.
  std::atomic_thread_fence(std::memory_order_acquire);
  head = std::min(head, end_);
  const std::uint64_t pending = head - tail_;
  if (head % 8 != 0 || tail_ % 8 != 0 || head < tail_ || pending > identity_.capacity_bytes) {
    return invalid_input("ring " + name_ + ": impossible indices (head " + std::to_string(head) + ", tail " +
                         std::to_string(tail_) + ")");
  }
  return pending;
}

void RingReader::seal() {
  if (end_ != std::numeric_limits<std::uint64_t>::max()) return;
  if (const auto pending = pending_bytes()) end_ = tail_ + *pending;
}

Result<void> RingReader::fill(std::uint64_t data_offset, std::uint64_t bytes) {
  if (copy_of_ring.size() < bytes / 8) copy_of_ring.resize(bytes / 8);
  if (!read_exactly(fd_.get(), copy_of_ring.data(), bytes, header_bytes_ + data_offset)) {
    return invalid_input("ring " + name_ + " was cut while the program ran");
  }
  return {};
}

Result<std::uint64_t> RingReader::drain(std::uint64_t limit_bytes, const RecordSink& sink) {
  auto pending = pending_bytes();
  if (!pending) return pending.error();
  const std::uint64_t start = tail_;
  const std::vector<std::uint64_t>& copy = copy_of_ring;  // finding a thread's own takes time
  const std::uint64_t head = tail_ + *pending;
  Result<void> outcome;
  while (tail_ < head && (tail_ == start || tail_ - start < limit_bytes) && outcome.ok()) {
    const std::uint64_t offset = tail_ & (identity_.capacity_bytes - 1);
    const std::uint64_t to_end = identity_.capacity_bytes - offset;  // records never wrap
    const std::uint64_t wanted = std::max(limit_bytes - std::min(limit_bytes, tail_ - start), kLeastChunkBytes);
    std::uint64_t chunk = std::min({head - tail_, to_end, kChunkBytes, wanted & ~std::uint64_t{7}});
    outcome = fill(offset, chunk);
    std::uint64_t at = 0;
    while (outcome.ok() && at < chunk) {
      const auto* words = copy.data() + at / 8;
      ring::Record record{};
      const std::uint64_t left = chunk - at;
      // A pad may be shorter than a record: only its first word counts.
      std::memcpy(&record, words, std::min<std::uint64_t>(left, sizeof record));
      const std::uint64_t bytes = ring::length_words(record) * std::uint64_t{8};
      const bool pad = record.kind == ring::kRecordPad;
      if (bytes == 0 || (!pad && bytes < sizeof record)) {
        outcome = invalid_input("ring " + name_ + ": a record of " + std::to_string(bytes) + " bytes");
        break;
      }
      if (bytes > left) {
        // Either this chunk ends inside the record, or the record lies about its length.
        if (bytes > std::min(head - tail_, to_end) - at) {
          outcome = invalid_input("ring " + name_ + ": a record of " + std::to_string(bytes) +
                                  " bytes reaches beyond what was written");
          break;
        }
        if (at > 0) break;  // the next chunk starts with it
        if (pad) {          // nothing of it is read
          at = bytes;
          break;
        }
        if (bytes > longest_record_bytes_) {
          outcome =
              invalid_input("ring " + name_ + ": a record of " + std::to_string(bytes) + " bytes, the relay reads " +
                            std::to_string(longest_record_bytes_) + " at most; raise its memory limit");
          break;
        }
        chunk = bytes;  // longer than a chunk
        outcome = fill(offset, chunk);
        continue;
      }
      if (!pad) {
        const bool is_event = record.kind != ring::kRecordAdjust && record.kind != ring::kRecordProcedure;
        if (is_event && record.kind >= kEventKindCount) {
          outcome = invalid_input("ring " + name_ + ": unknown record kind " + std::to_string(record.kind));
          break;
        }
        if (ring::op_code(record) >= kCollectiveOpCount || record.function >= ring::kMaxFunctions) {
          outcome = invalid_input("ring " + name_ + ": a record with an unknown collective or function");
          break;
        }
        sink(record, std::span<const std::uint64_t>(words + ring::kRecordWords, bytes / 8 - ring::kRecordWords));
      }
      at += bytes;
    }
    tail_ += at;
  }
  if (copy_of_ring.size() > kChunkBytes / 8) std::vector<std::uint64_t>().swap(copy_of_ring);  // of a long record
  if (tail_ != start) {
    // The copies above happened before the program sees the room as free.
    std::atomic_thread_fence(std::memory_order_release);
    ssize_t put = 0;
    do {
      put = ::pwrite(fd_.get(), &tail_, sizeof tail_, kTailOffset);
    } while (put < 0 && errno == EINTR);
    if (put != sizeof tail_ && outcome.ok()) {
      return io_error("ring " + name_);
    }
  }
  if (!outcome) return outcome.error();
  return tail_ - start;
}

}  // namespace lbf::relay
