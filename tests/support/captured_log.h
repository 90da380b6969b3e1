// CapturedLog: what a test's code logs with spdlog, as text; the logger from before comes back at the end.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

namespace lbf::test {

class CapturedLog {
 public:
  CapturedLog() {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { spdlog::set_default_logger(before_); }

  // The lines since the last call, "LEVEL TEXT" each.
  std::string said() {
    std::string all = text_.str();
    text_.str("");
    return all;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace lbf::test
