// A collector over rings that the tests write, and what it says of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "spank_plugin/relay/collector.h"
#include "tests/support/temporary_directory.h"
#include "tests/unit/relay/fake_lbfd.h"
#include "tests/unit/relay/ring_file.h"

namespace lbf::relay {

// A process to whom a ring can belong. kill() ends it, and it is reaped.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Sleeper() { kill(); }
  pid_t pid() const { return pid_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

class CollectorTest : public testing::Test {
 protected:
  CollectorTest()
      : builder_([this](std::unique_ptr<BatchEncoder> encoder) {
          lbfd_.batches["s"].push_back(encoder->finish(0, lbfd_.batches["s"].size() + 1));
        }),
        rate_({0, 0}) {
    rate_.observe({3'000'000'000, 3'000'000'000});
    auto collector = Collector::make({dir_.path(), 2, 0});
    EXPECT_TRUE(collector.ok());
    collector_ = std::make_unique<Collector>(std::move(*collector));
  }
  void pass(std::uint64_t milliseconds = 150) {
    now_ns_ += milliseconds * 1'000'000;
    collector_->pass({now_ns_, now_ns_}, rate_, builder_);
  }
  FakeLbfd::Decoded finish() {
    now_ns_ += 1'000'000;
    collector_->finish({now_ns_, now_ns_}, rate_, builder_);
    return lbfd_.decode("s");
  }
  std::size_t events_so_far() {
    builder_.flush();
    return lbfd_.decode("s").events.size();
  }
  static std::vector<nlohmann::json> of_type(const FakeLbfd::Decoded& decoded, const std::string& type) {
    std::vector<nlohmann::json> out;
    for (const auto& json : decoded.controls) {
      if (json["type"] == type) out.push_back(json);
    }
    return out;
  }

  test::TemporaryDirectory dir_;
  FakeLbfd lbfd_;
  BatchBuilder builder_;
  TickRate rate_;
  std::unique_ptr<Collector> collector_;
  std::uint64_t now_ns_ = 10'000'000'000;
};

}  // namespace lbf::relay
