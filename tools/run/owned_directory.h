// OwnedDirectory: a directory of this process's, which others can tell from one that a killed process left behind.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/scoped_fd.h"

namespace lbf::tools {

class OwnedDirectory {
 public:
  // BASE/PREFIX and six characters, mode 0700, locked until this object ends. Errors: kIo.
  static Result<OwnedDirectory> make(const std::string& base, const std::string& prefix);

  const std::string& path() const { return path_; }

 private:
  OwnedDirectory(std::string path, ScopedFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  ScopedFd lock_;
};

// Removes the directories of that name which no process has any more, with the files in them. Of this user only. One
// from before the lock is known by a socket that answers, or the ring of a process that lives.
void remove_leftovers(const std::string& base, const std::string& prefix);

}  // namespace lbf::tools
