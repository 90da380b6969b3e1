// See spank_handle.h.
#include "spank_plugin/plugin/spank_handle.h"

#include <dlfcn.h>

namespace lbf::plugin {
namespace {

constexpr std::size_t kMaxEnvironmentBytes = 1 << 20;  // Slurm's node lists of large jobs are long

}  // namespace

std::vector<std::string> SpankHandle::arguments() const {
  int count = 0;
  char** values = nullptr;
  if (spank_get_item(spank_, S_JOB_ARGV, &count, &values) != ESPANK_SUCCESS || values == nullptr) return {};
  std::vector<std::string> out;
  for (int i = 0; i < count && values[i] != nullptr; ++i) out.emplace_back(values[i]);
  return out;
}

std::vector<gid_t> SpankHandle::supplementary_gids() const {
  gid_t* values = nullptr;
  int count = 0;
  if (spank_get_item(spank_, S_JOB_SUPPLEMENTARY_GIDS, &values, &count) != ESPANK_SUCCESS || values == nullptr ||
      count <= 0) {
    return {};
  }
  return {values, values + count};
}

std::optional<std::uint32_t> SpankHandle::global_task_id(std::uint32_t local) const {
  std::uint32_t global = 0;
  if (spank_get_item(spank_, S_JOB_LOCAL_TO_GLOBAL_ID, local, &global) != ESPANK_SUCCESS) return std::nullopt;
  return global;
}

std::optional<std::string> SpankHandle::environment(const char* name) const {
  for (std::size_t bytes = 4096; bytes <= kMaxEnvironmentBytes; bytes *= 16) {
    std::string value(bytes, '\0');
    const spank_err_t error = spank_getenv(spank_, name, value.data(), static_cast<int>(value.size()));
    if (error == ESPANK_NOSPACE) continue;
    if (error != ESPANK_SUCCESS) return std::nullopt;
    value.resize(value.find('\0') == std::string::npos ? value.size() : value.find('\0'));
    return value;
  }
  return std::nullopt;
}

bool SpankHandle::set_environment(const char* name, const std::string& value) const {
  return spank_setenv(spank_, name, value.c_str(), 1) == ESPANK_SUCCESS;
}

void SpankHandle::unset_environment(const char* name) const {
  (void)spank_unsetenv(spank_, name);
}

void say(const std::string& message) {
  slurm_spank_log("lbf: %s", message.c_str());
}

bool slurm_prints_information() {
  constexpr int kInformation = 3;  // LOG_LEVEL_INFO
  const auto level = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "slurm_get_log_level"));
  return level == nullptr || level() >= kInformation;
}

void log_for_admin(const std::string& message) {
  slurm_info("lbf: %s", message.c_str());
}

}  // namespace lbf::plugin
