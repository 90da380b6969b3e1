// See plugin_fixture.h.
#include "tests/unit/plugin/plugin_fixture.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace lbf::plugin {

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

PluginTest::PluginTest() {
  for (const char* name : {"LBF_PREDICT", "LBF_NETWORKS", "LBF_OVERHEAD", "LBF_PROCEDURES", "LBF_LIMITS",
                           "SLURM_LBF_SUBMIT", "SLURM_JOB_ID"})
    ::unsetenv(name);
  ::chmod(dir_.c_str(), 0755);
  ring_dir_ = dir_ + "/shm";
  std::filesystem::create_directory(ring_dir_);
  ::chmod(ring_dir_.c_str(), 01777);
  capture_ = dir_ + "/capture.so";
  std::ofstream(capture_) << "x";
  relay_ = dir_ + "/lbf-relay";
  write_relay("D");
  host() = FakeHost();
  host().items = {{S_JOB_UID, ::getuid()},
                  {S_JOB_GID, ::getgid()},
                  {S_JOB_ID, 42},
                  {S_JOB_STEPID, 3},
                  {S_JOB_NNODES, 2},
                  {S_JOB_NODEID, 1},
                  {S_JOB_LOCAL_TASK_COUNT, 2},
                  {S_JOB_TOTAL_TASK_COUNT, 4},
                  {S_JOB_NCPUS, 8},
                  {S_JOB_ARGV, 0},
                  {S_JOB_LOCAL_TO_GLOBAL_ID, 2},
                  {S_JOB_SUPPLEMENTARY_GIDS, 0},
                  {S_SLURM_RESTART_COUNT, 1},
                  {S_JOB_ARRAY_ID, 40},
                  {S_JOB_ARRAY_TASK_ID, 5}};
  host().environment = {{"SLURM_STEP_NODELIST", "node[1-2]"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                        {"SLURM_CLUSTER_NAME", "test"},
                        {"SLURM_JOB_USER", "me"}};
}

void PluginTest::write_relay(const std::string& answer) {
  std::ofstream(relay_) << "#!/bin/sh\n"
                           "cat /proc/self/status >\"$2/status.txt\"\n"
                           "env >\"$2/env.txt\"\n"
                           "printf '%s\\n' \"$@\" >\"$2/arguments.txt\"\n"
                           "ls /proc/$$/fd >\"$2/fds.txt\"\n"
                           "ps -o sid= -p $$ >\"$2/session.txt\" 2>/dev/null\n"
                           "echo $$ >\"$2/pid.txt\"\n"
                           "head -c 1 <&3 >\"$2/end.txt\"\n"
                           "printf '"
                        << answer << "' >&3\n";
  ::chmod(relay_.c_str(), 0755);
}

void PluginTest::write_report(const std::string& script) {
  const std::string path = dir_ + "/lbf-report";
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  ::chmod(path.c_str(), 0755);
}

std::vector<std::string> PluginTest::arguments(std::vector<std::string> more) {
  std::vector<std::string> all{"relay=" + relay_,       "capture=" + capture_,
                               "ring_dir=" + ring_dir_, "report=" + dir_ + "/lbf-report",
                               "spool_dir=/s",          "relay_wait_s=5"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void PluginTest::start(spank_context_t context, std::vector<std::string> more) {
  host().context = context;
  ASSERT_EQ(call_hook("init", arguments(std::move(more))), ESPANK_SUCCESS);
}

std::string PluginTest::wait_for(const std::string& name) {
  const std::string path = rings() + "/" + name;
  for (int i = 0; i < 500; ++i) {
    if (const std::string text = contents(path); !text.empty()) return text;
    ::poll(nullptr, 0, 10);
  }
  ADD_FAILURE() << path << " did not appear";
  return {};
}

}  // namespace lbf::plugin
