// A directory of its own for one test, removed at its end with everything in it.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace lbf::test {

// Not copied, not moved: the fixture or the test that holds it is its owner. Directories of tests that run at
// the same time never meet; the mode is 0700, whatever the umask.
class TemporaryDirectory {
 public:
  // Throws std::runtime_error, which GoogleTest reports as the test's failure, where none can be made.
  TemporaryDirectory() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) throw std::runtime_error("no directory for temporary files (TMPDIR): " + error.message());
    path_ = (parent / "lbf-test-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("cannot make a temporary directory in " + parent.string() + ": " +
                               std::generic_category().message(errno));
    }
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) std::fprintf(stderr, "%s is left over: %s\n", path_.c_str(), error.message().c_str());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // Absolute, without a slash at its end.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lbf::test
