// SpoolFile, see spool.h.
#include "spank_plugin/relay/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crc32c.h"
#include "base/directory_handle.h"
#include "base/unique_handle.h"
#include "event/wire.h"

namespace lbf::relay {
namespace {

constexpr std::array<char, 8> kMagic{'L', 'B', 'F', 'S', 'P', 'L', '0', '1'};
constexpr std::uint32_t kMaxHeaderJsonBytes = 16 << 20;
constexpr std::size_t kFileHeaderBytes = 16;
constexpr std::size_t kRecordHeaderBytes = 16;
// The directory is everybody's: somebody's endless files are not all looked at.
constexpr std::size_t kMaxDirectoryEntries = 65536;

// Little-endian in the file.
void put32(char* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>(value >> (8 * i));
}
std::uint32_t get32(const char* at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  return value;
}

Error spool_error(const std::string& path, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return {full ? ErrorCode::kLimit : ErrorCode::kIo, "spool " + path + ": " + std::strerror(code)};
}

bool write_exactly(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    offset += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

bool read_exactly(int fd, char* to, std::size_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

// What else is in a header is not built: it may be many times as large as its text.
bool is_of_header(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
  using Seen = nlohmann::json::parse_event_t;
  if (event == Seen::array_start) return false;
  if (event == Seen::object_start) return depth == 0;
  return event != Seen::key || parsed == "key" || parsed == "stream" || parsed == "server" || parsed == "description";
}

std::string file_safe(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'); },
      '_');
  return text.substr(0, 100);
}

}  // namespace

std::vector<std::string> list_spool_files(const std::string& dir) {
  std::vector<std::pair<std::int64_t, std::string>> files;
  const DirectoryHandle handle(::opendir(dir.c_str()));
  if (!handle) return {};
  std::size_t entries = 0;
  while (const dirent* entry = ::readdir(handle.get())) {
    if (::geteuid() != 0 && ++entries > kMaxDirectoryEntries) break;
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSpoolSuffix)) continue;
    struct stat status {};
    if (::fstatat(::dirfd(handle.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode) || (::geteuid() != 0 && status.st_uid != ::geteuid())) continue;
    files.emplace_back(status.st_mtim.tv_sec, dir + "/" + std::string(name));
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> paths;
  for (auto& file : files) paths.push_back(std::move(file.second));
  return paths;
}

Result<SpoolFile> SpoolFile::create(const std::string& dir, const SpoolHeader& header, Bytes limit_bytes) {
  SpoolFile file;
  file.header_ = header;
  std::uint64_t used = 0;
  for (const std::string& path : list_spool_files(dir)) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid()) {
      used += static_cast<std::uint64_t>(status.st_size);
    }
  }
  file.limit_offset_ = limit_bytes > used ? limit_bytes - used : 0;
  std::string path =
      dir + "/" + file_safe(header.key) + "-" + std::to_string(header.stream) + "-XXXXXX" + std::string(kSpoolSuffix);
  // mkostemps: O_EXCL, mode 0600, never through a link that somebody put there.
  file.fd_.reset(::mkostemps(path.data(), static_cast<int>(kSpoolSuffix.size()), O_CLOEXEC));
  if (!file.fd_) return spool_error(dir, errno);
  file.path_ = path;
  ::flock(file.fd_.get(), LOCK_EX | LOCK_NB);
  const std::string json = nlohmann::json{
      {"key", header.key},
      {"stream", header.stream},
      {"server", header.server},
      {"description",
       header.description}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string bytes(kMagic.data(), kMagic.size());
  bytes.resize(kFileHeaderBytes);
  put32(bytes.data() + 8, static_cast<std::uint32_t>(json.size()));
  put32(bytes.data() + 12, crc32c(json));
  bytes += json;
  if (bytes.size() > file.limit_offset_ || !write_exactly(file.fd_.get(), bytes, 0)) {
    const Error error = bytes.size() > file.limit_offset_
                            ? Error{ErrorCode::kLimit, "spool " + dir + ": this user's " +
                                                           std::to_string(limit_bytes >> 20) + " MB are used up"}
                            : spool_error(path, errno);
    file.remove();
    return error;
  }
  file.read_offset_ = file.write_offset_ = bytes.size();
  return file;
}

Result<SpoolFile> SpoolFile::open(const std::string& path) {
  SpoolFile file;
  file.path_ = path;
  file.fd_.reset(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.fd_) return spool_error(path, errno);
  struct stat status {};
  if (::fstat(file.fd_.get(), &status) != 0) return spool_error(path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    return invalid_input("spool " + path + " is not a regular file of this user");
  }
  if (::flock(file.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kUnavailable, "spool " + path + " is in use by a running relay"};
  }
  const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
  std::array<char, kFileHeaderBytes> head;
  if (!read_exactly(file.fd_.get(), head.data(), head.size(), 0) ||
      std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    return invalid_input("spool " + path + " is not a spool file of version 1");
  }
  const std::uint32_t json_bytes = get32(head.data() + 8);
  if (json_bytes > kMaxHeaderJsonBytes || kFileHeaderBytes + json_bytes > file_bytes) {
    return invalid_input("spool " + path + ": the header is cut");
  }
  std::string json(json_bytes, '\0');
  if (!read_exactly(file.fd_.get(), json.data(), json.size(), kFileHeaderBytes) ||
      crc32c(json) != get32(head.data() + 12)) {
    return invalid_input("spool " + path + ": the header's checksum is wrong");
  }
  const auto parsed = nlohmann::json::parse(json, is_of_header, false);
  const auto text = [&parsed](const char* name) {
    const auto found = parsed.is_object() ? parsed.find(name) : parsed.end();
    return parsed.is_object() && found != parsed.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
  };
  file.header_.key = text("key");
  file.header_.server = text("server");
  file.header_.description = text("description");
  if (parsed.is_object() && parsed.contains("stream") && parsed["stream"].is_number_unsigned()) {
    file.header_.stream = parsed["stream"].get<std::uint32_t>();
  }
  if (file.header_.key.empty() || file.header_.description.empty()) {
    return invalid_input("spool " + path + ": the header names no step");
  }
  file.read_offset_ = kFileHeaderBytes + json_bytes;
  file.write_offset_ = file_bytes;
  file.limit_offset_ = file_bytes;  // nothing is added to another relay's file
  return file;
}

Result<void> SpoolFile::append(SpoolRecordKind kind, std::string_view bytes) {
  // The end is a few bytes and closes the stream: it may go beyond the limit.
  if (kind != SpoolRecordKind::kEnd && write_offset_ + kRecordHeaderBytes + bytes.size() > limit_offset_) {
    return Error{ErrorCode::kLimit, "spool " + path_ + " is full"};
  }
  std::string record(kRecordHeaderBytes, '\0');
  put32(record.data(), static_cast<std::uint32_t>(kind));
  put32(record.data() + 4, static_cast<std::uint32_t>(bytes.size()));
  put32(record.data() + 8, crc32c(bytes));
  record += bytes;
  if (!write_exactly(fd_.get(), record, write_offset_)) {
    const Error error = spool_error(path_, errno);
    // Gives the disk back. Where even this fails, the checksum keeps the cut record from being believed.
    [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(write_offset_));
    return error;
  }
  write_offset_ += record.size();
  return {};
}

Result<std::optional<SpoolRecord>> SpoolFile::next() {
  std::array<char, kRecordHeaderBytes> head;
  if (write_offset_ - read_offset_ < head.size() || !read_exactly(fd_.get(), head.data(), head.size(), read_offset_)) {
    read_offset_ = write_offset_;
    return std::optional<SpoolRecord>();
  }
  const std::uint32_t kind = get32(head.data());
  const std::uint32_t bytes = get32(head.data() + 4);
  const bool known = kind == static_cast<std::uint32_t>(SpoolRecordKind::kBatch) ||
                     kind == static_cast<std::uint32_t>(SpoolRecordKind::kEnd);
  if (!known || bytes > kMaxBatchBytes || bytes > write_offset_ - read_offset_ - head.size()) {
    read_offset_ = write_offset_;
    return std::optional<SpoolRecord>();
  }
  SpoolRecord record{static_cast<SpoolRecordKind>(kind), std::string(bytes, '\0')};
  if (!read_exactly(fd_.get(), record.bytes.data(), bytes, read_offset_ + head.size()) ||
      crc32c(record.bytes) != get32(head.data() + 8)) {
    read_offset_ = write_offset_;
    return std::optional<SpoolRecord>();
  }
  read_offset_ += head.size() + bytes;
  return std::optional<SpoolRecord>(std::move(record));
}

void SpoolFile::remove() {
  ::unlink(path_.c_str());
  fd_.reset();
}

}  // namespace lbf::relay
