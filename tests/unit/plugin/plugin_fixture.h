// lbf.so under the fake SPANK host, for the step and with the relay that the host describes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "tests/unit/plugin/fake_spank.h"

namespace lbf::plugin {

std::string contents(const std::string& path);  // "" where there is none

// Before each test the host is slurmstepd of step 42.3 on the second of two nodes, with two of four tasks;
// the plugin has not been started.
class PluginTest : public testing::Test {
 protected:
  PluginTest();
  static FakeHost& host() { return FakeHost::get(); }

  // A relay that leaves what it sees in the ring directory, waits for the end and answers ANSWER.
  void write_relay(const std::string& answer);
  // lbf-report: a shell that runs `script`.
  void write_report(const std::string& script);
  // Those of plugstack.conf: everything below the test's own directory.
  std::vector<std::string> arguments(std::vector<std::string> more = {});
  void start(spank_context_t context, std::vector<std::string> more = {});
  std::string rings() { return host().environment["LBF_CAPTURE_DIR"]; }
  // A file in the ring directory, up to 5 s: the relay writes its files after exec, when start has long
  // returned.
  std::string wait_for(const std::string& name);

  test::TemporaryDirectory directory_;
  const std::string dir_ = directory_.path();
  std::string ring_dir_;
  std::string capture_;
  std::string relay_;
};

}  // namespace lbf::plugin
