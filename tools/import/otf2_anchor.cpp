#include <filesystem>

#include "tools/import/otf2_import.h"

namespace lbf::tools {

std::string otf2_anchor(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return std::filesystem::path(path).extension() == ".otf2" && std::filesystem::is_regular_file(path, error) ? path
                                                                                                               : "";
  }
  std::string found;
  for (auto it = std::filesystem::directory_iterator(path, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (it->path().extension() != ".otf2") continue;
    if (!found.empty()) return "";
    found = it->path().string();
  }
  return found;
}

std::uint64_t otf2_bytes(const std::string& anchor) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(std::filesystem::path(anchor).replace_extension(), error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    std::error_code unreadable;
    const std::uintmax_t size = it->file_size(unreadable);
    if (!unreadable) bytes += size;
  }
  return bytes;
}

}  // namespace lbf::tools
