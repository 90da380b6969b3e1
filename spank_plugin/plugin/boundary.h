// The boundary between Slurm and the plugin: nothing that goes wrong in here may reach the job (docs/plugin.md). An
// exception that leaves a hook aborts its host, and a hook that fails drains the node.
#pragma once

#include <exception>
#include <utility>

extern "C" {
#include <slurm/spank.h>
}

namespace lbf::plugin {

// For the boundary itself: no allocation, cannot throw.
inline void log_escaped(const char* hook, const char* what) noexcept {
  slurm_spank_log("lbf: %s: %s; the job runs without prediction", hook, what);
}

// Runs BODY, whatever it does, and returns ESPANK_SUCCESS.
template <typename Body>
int guarded(const char* hook, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (const std::exception& error) {
    log_escaped(hook, error.what());
  } catch (...) {
    log_escaped(hook, "unknown error");
  }
  return ESPANK_SUCCESS;
}

}  // namespace lbf::plugin
