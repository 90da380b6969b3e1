// A hand-made event ring, as capture would write it, or as it never would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "event/event.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::relay {

// Writes with pwrite, like a producer that shares the page cache with the relay. clock_source 1: ticks are
// ns.
class RingFile {
 public:
  RingFile(const std::string& dir, std::int32_t pid, std::int32_t tid, std::uint64_t capacity = 4096)
      : name(std::to_string(pid) + "." + std::to_string(tid) + ".ring"), path(dir + "/" + name), capacity_(capacity) {
    std::vector<char> zero(sizeof(ring::Header) + capacity, 0);
    std::ofstream(path, std::ios::binary).write(zero.data(), static_cast<std::streamsize>(zero.size()));
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    put(offsetof(ring::Header, magic), ring::kMagic);
    put(offsetof(ring::Header, version), ring::kVersion);
    put(offsetof(ring::Header, header_bytes), static_cast<std::uint32_t>(sizeof(ring::Header)));
    put(offsetof(ring::Header, capacity_bytes), capacity);
    put(offsetof(ring::Header, pid), pid);
    put(offsetof(ring::Header, tid), tid);
    put(offsetof(ring::Header, clock_source), std::uint32_t{1});
    put(offsetof(ring::Header, slurm_procid), std::int32_t{0});
    put(offsetof(ring::Header, start_ticks), std::uint64_t{500});
    put(offsetof(ring::Header, rank), std::int32_t{0});
    put(offsetof(ring::Header, world_size), std::int32_t{2});
    put(offsetof(ring::Header, state), std::uint32_t{1});
    put(offsetof(ring::Header, init_leave_ticks), std::uint64_t{1000});
  }
  ~RingFile() { ::close(fd_); }
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  template <typename T>
  void put(std::size_t offset, T value) {
    ASSERT_EQ(::pwrite(fd_, &value, sizeof value, static_cast<off_t>(offset)), static_cast<ssize_t>(sizeof value));
  }
  template <typename T>
  T get(std::size_t offset) const {
    T value{};
    EXPECT_EQ(::pread(fd_, &value, sizeof value, static_cast<off_t>(offset)), static_cast<ssize_t>(sizeof value));
    return value;
  }

  static ring::Record record(EventKind kind, std::uint64_t enter, std::uint64_t leave) {
    ring::Record r{};
    r.words_and_op = ring::kRecordWords;
    r.kind = static_cast<std::uint8_t>(kind);
    r.flags = kFlagCallBegin;
    r.enter = enter;
    r.leave = leave;
    r.peer = 1;
    return r;
  }

  // As the producer does: a pad where the record would wrap. False: no room.
  bool append(ring::Record r, const std::vector<std::uint64_t>& values = {}) {
    const std::uint64_t bytes = sizeof r + values.size() * 8;
    r.words_and_op = (r.words_and_op & 0xff000000U) | static_cast<std::uint32_t>(bytes / 8);
    const std::uint64_t offset = head_ % capacity_;
    const std::uint64_t pad = offset + bytes > capacity_ ? capacity_ - offset : 0;
    const auto tail = get<std::uint64_t>(offsetof(ring::Header, tail));
    if (head_ + pad + bytes - tail > capacity_) return false;
    if (pad > 0) {
      const std::uint32_t pad_words = static_cast<std::uint32_t>(pad / 8);
      put(sizeof(ring::Header) + offset, pad_words);
      put(sizeof(ring::Header) + offset + 4, std::uint8_t{ring::kRecordPad});
      head_ += pad;
    }
    const std::size_t at = sizeof(ring::Header) + head_ % capacity_;
    EXPECT_EQ(::pwrite(fd_, &r, sizeof r, static_cast<off_t>(at)), static_cast<ssize_t>(sizeof r));
    if (!values.empty()) {
      EXPECT_EQ(::pwrite(fd_, values.data(), values.size() * 8, static_cast<off_t>(at + sizeof r)),
                static_cast<ssize_t>(values.size() * 8));
    }
    head_ += bytes;
    put(offsetof(ring::Header, head), head_);
    return true;
  }
  // Many at once, without values, into a ring that has room for them before its end.
  void append_all(const std::vector<ring::Record>& records) {
    const std::size_t bytes = records.size() * sizeof(ring::Record);
    ASSERT_LE(head_ + bytes, capacity_);
    ASSERT_EQ(::pwrite(fd_, records.data(), bytes, static_cast<off_t>(sizeof(ring::Header) + head_)),
              static_cast<ssize_t>(bytes));
    head_ += bytes;
    put(offsetof(ring::Header, head), head_);
  }
  void append_adjust(std::uint64_t preempted, std::uint64_t blocked, std::uint64_t waiting) {
    EXPECT_TRUE(append(ring::record_of(ring::Adjustment{preempted, blocked, waiting})));
  }
  void set_state(ring::ProcessState state) { put(offsetof(ring::Header, state), static_cast<std::uint32_t>(state)); }
  std::uint64_t head() const { return head_; }

  const std::string name;
  const std::string path;

 private:
  std::uint64_t capacity_;
  std::uint64_t head_ = 0;
  int fd_ = -1;
};

}  // namespace lbf::relay
