// Where lbf-cluster-inventory is, which asks Slurm what the cluster has.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace lbf::tools {

// Beside this program in a build folder, else where it was installed. REQUIRES: the target defines LBF_LIBEXEC_DIR.
inline std::string inventory_program() {
  constexpr const char* kInventory = "lbf-cluster-inventory";
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (std::filesystem::exists(here / kInventory, ignored)) return (here / kInventory).string();
  return std::string(LBF_LIBEXEC_DIR) + "/" + kInventory;
}

}  // namespace lbf::tools
