#include "tools/trace/trace_output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace lbf::tools {

Result<std::unique_ptr<TraceOutput>> TraceOutput::open(const std::string& path) {
  std::unique_ptr<TraceOutput> output(new TraceOutput());
  output->path_ = path;
  if (path == "-") {
    output->path_ = "standard output";
    output->stream_ = &std::cout;
    return output;
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) {
    return Error{ErrorCode::kIo, path + " is a folder: name the file to write"};
  }
  std::string name = path;
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) {
    output->temporary_ = path + ".new-" + std::to_string(::getpid());
    name = output->temporary_;
  }
  output->buffer_.resize(std::size_t{1} << 20);
  output->file_.rdbuf()->pubsetbuf(output->buffer_.data(), static_cast<std::streamsize>(output->buffer_.size()));
  errno = 0;
  output->file_.open(name, std::ios::binary | std::ios::trunc);
  if (!output->file_) {
    const Error failed{ErrorCode::kIo, path + ": cannot be written: " + std::strerror(errno)};
    output->temporary_.clear();
    return failed;
  }
  output->stream_ = &output->file_;
  return output;
}

TraceOutput::~TraceOutput() {
  if (temporary_.empty()) return;
  file_.close();
  std::remove(temporary_.c_str());
}

Error TraceOutput::failed() const {
  return {ErrorCode::kIo, path_ + ": cannot be written" +
                              (errno != 0 ? std::string(": ") + std::strerror(errno)
                                          : std::string("; is the disk full or the pipe closed?"))};
}

Result<void> TraceOutput::write(std::string_view text) {
  errno = 0;
  stream_->write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!*stream_) return failed();
  return {};
}

Result<void> TraceOutput::commit() {
  errno = 0;
  stream_->flush();
  if (!*stream_) return failed();
  if (stream_ != &file_) return {};
  file_.close();
  if (!file_) return failed();
  if (temporary_.empty()) return {};
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed();
  temporary_.clear();
  return {};
}

}  // namespace lbf::tools
