// See loaded_symbol.h.
#include "spank_plugin/capture/loaded_symbol.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstring>

namespace lbf::capture {
namespace {

struct LoadedFile {
  const char* prefix;
  char path[1024];
};

int match_loaded(dl_phdr_info* info, std::size_t, void* data) {
  auto* wanted = static_cast<LoadedFile*>(data);
  const char* path = info->dlpi_name;
  if (path == nullptr || path[0] == '\0') return 0;
  const char* slash = std::strrchr(path, '/');
  const char* base = slash != nullptr ? slash + 1 : path;
  if (std::strncmp(base, wanted->prefix, std::strlen(wanted->prefix)) != 0) return 0;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof(wanted->path)) return 0;
  std::memcpy(wanted->path, path, length + 1);
  return 1;
}

}  // namespace

void* symbol_of_loaded(const char* prefix, const char* name) noexcept {
  LoadedFile file{prefix, {}};
  if (dl_iterate_phdr(match_loaded, &file) == 0) return nullptr;
  void* handle = dlopen(file.path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* symbol = dlsym(handle, name);
  dlclose(handle);  // RTLD_NOLOAD took a reference; the program keeps its own
  return symbol;
}

}  // namespace lbf::capture
