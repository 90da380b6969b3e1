// Where lbf-trace writes: a file that appears when it is complete, or standard output.
#pragma once

#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lbf::tools {

class TraceOutput {
 public:
  // "-": standard output. A file is written beside its place and renamed by commit(); what is no ordinary
  // file (a pipe, /dev/null) is written to as it is. Errors: kIo.
  static Result<std::unique_ptr<TraceOutput>> open(const std::string& path);
  // Without a commit() nothing is left.
  ~TraceOutput();
  TraceOutput(const TraceOutput&) = delete;
  TraceOutput& operator=(const TraceOutput&) = delete;

  std::ostream& stream() { return *stream_; }
  Result<void> write(std::string_view text);
  Result<void> commit();

 private:
  TraceOutput() = default;
  Error failed() const;

  std::string path_;
  std::string temporary_;  // empty: written in place
  std::vector<char> buffer_;
  std::ofstream file_;
  std::ostream* stream_ = nullptr;
};

}  // namespace lbf::tools
