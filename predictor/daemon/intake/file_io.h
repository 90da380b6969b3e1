// Files that must survive a crash: written beside, synchronised, then renamed into place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lbf::daemon {

// The operating system's error as one line. A full disk, quota or file size limit is kLimit (try again when
// there is room), ENOENT kNotFound, the rest kIo: the store's own rights are no matter of the caller's.
Error system_error(std::string_view doing, const std::string& path, int error_number);

// After success `path` has exactly `content`, even if the power fails now; before, it has its old content.
Result<void> write_file_durably(const std::string& path, std::string_view content);

// Errors: kNotFound, kLimit (longer than `limit_bytes`), kIo.
Result<std::string> read_whole_file(const std::string& path, std::size_t limit_bytes);

// Creates `path` (mode 0700) inside an existing directory, durably; an existing directory is fine.
Result<void> make_directory_durably(const std::string& path);

// Makes created, renamed and removed names in `directory` durable.
Result<void> sync_directory(const std::string& directory);

// All of `bytes` at `offset`; a partial write is continued.
Result<void> write_all_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path);

// Exactly `bytes.size()` bytes from `offset`. Errors: kIo, also when the file ends before.
Result<void> read_all_at(int fd, std::span<std::byte> bytes, std::uint64_t offset, const std::string& path);

}  // namespace lbf::daemon
