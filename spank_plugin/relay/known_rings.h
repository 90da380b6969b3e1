// KnownRings: the ring files of a directory that were seen, by name and inode: a thread's number may be given
// out again, and its ring then takes the place of the one before.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "spank_plugin/relay/ring_directory.h"

namespace lbf::relay {

class KnownRings {
 public:
  static constexpr std::size_t kMaxRings = 65536;

  explicit KnownRings(std::shared_ptr<RingDirectory> directory) : directory_(std::move(directory)) {}

  bool is_new(const RingDirectory::Ring& ring) const {
    const auto known = inodes_.find(ring.name);
    return inodes_.size() < kMaxRings && (known == inodes_.end() || known->second != ring.inode);
  }
  void add(const RingDirectory::Ring& ring) { inodes_[ring.name] = ring.inode; }
  // Removes the file, unless another thread's ring has its name.
  void remove(const std::string& name, std::uint64_t inode) {
    const auto known = inodes_.find(name);
    if (known == inodes_.end() || known->second != inode) return;
    ::unlinkat(directory_->fd(), name.c_str(), 0);
    inodes_.erase(known);
  }
  RingDirectory& directory() { return *directory_; }

 private:
  std::shared_ptr<RingDirectory> directory_;
  std::map<std::string, std::uint64_t> inodes_;
};

}  // namespace lbf::relay
