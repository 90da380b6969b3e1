#include "tools/trace/rank_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace lbf::tools {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;

// A chunk is this, then `bytes` of text.
struct ChunkHeader {
  std::uint64_t next;  // offset plus 1 of the rank's next chunk; 0: none
  std::uint64_t bytes;
};

Error spool_error(const char* what) {
  return {ErrorCode::kIo, std::string("the temporary file cannot be ") + what + ": " + std::strerror(errno) +
                              " (TMPDIR names another folder for it)"};
}

// TRANSFER (pwrite, pread) until all BYTES are done.
template <typename Transfer, typename Char>
bool transfer_all(Transfer transfer, int fd, Char* data, std::size_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t done = transfer(fd, data, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    bytes -= static_cast<std::size_t>(done);
    offset += static_cast<std::uint64_t>(done);
  }
  return true;
}

bool write_all(int fd, const char* data, std::size_t bytes, std::uint64_t offset) {
  return transfer_all(::pwrite, fd, data, bytes, offset);
}

bool read_all(int fd, char* data, std::size_t bytes, std::uint64_t offset) {
  return transfer_all(::pread, fd, data, bytes, offset);
}

}  // namespace

RankSpool::RankSpool(ScopedFd fd, Rank ranks)
    : fd_(std::move(fd)),
      limit_(std::clamp<std::size_t>(kMemory / static_cast<std::size_t>(ranks), 512, std::size_t{256} << 10)),
      parts_(static_cast<std::size_t>(ranks)) {}

Result<RankSpool> RankSpool::make(Rank ranks, const std::string& folder) {
  std::string path = folder;
  if (path.empty()) {
    const char* named = std::getenv("TMPDIR");
    path = named != nullptr && *named != '\0' ? named : "/tmp";
  }
  path += "/lbf-trace-XXXXXX";
  ScopedFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (fd.get() < 0) return spool_error("made");
  ::unlink(path.c_str());
  return RankSpool(std::move(fd), ranks);
}

Result<void> RankSpool::add(Rank rank, std::string_view text) {
  Part& part = parts_[static_cast<std::size_t>(rank)];
  part.pending += text;
  return part.pending.size() >= limit_ ? flush(part) : Result<void>();
}

Result<void> RankSpool::flush(Part& part) {
  const std::uint64_t at = end_;
  const ChunkHeader header{0, part.pending.size()};
  std::string chunk(reinterpret_cast<const char*>(&header), sizeof(header));
  chunk += part.pending;
  if (!write_all(fd_.get(), chunk.data(), chunk.size(), at)) return spool_error("written");
  end_ += chunk.size();
  const std::uint64_t link = at + 1;
  if (part.first == 0) {
    part.first = link;
  } else if (!write_all(fd_.get(), reinterpret_cast<const char*>(&link), sizeof(link), part.last - 1)) {
    return spool_error("written");
  }
  part.last = link;
  part.pending.clear();
  return {};
}

Result<void> RankSpool::read(Rank rank, const std::function<Result<void>(std::string_view)>& sink) {
  const Part& part = parts_[static_cast<std::size_t>(rank)];
  std::string text;
  for (std::uint64_t link = part.first; link != 0;) {
    ChunkHeader header{};
    if (!read_all(fd_.get(), reinterpret_cast<char*>(&header), sizeof(header), link - 1)) return spool_error("read");
    text.resize(static_cast<std::size_t>(header.bytes));
    if (!read_all(fd_.get(), text.data(), text.size(), link - 1 + sizeof(header))) return spool_error("read");
    if (Result<void> done = sink(text); !done) return done;
    link = header.next;
  }
  return part.pending.empty() ? Result<void>() : sink(part.pending);
}

}  // namespace lbf::tools
