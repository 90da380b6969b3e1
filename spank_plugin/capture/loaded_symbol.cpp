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

LoadedLibrary::~LoadedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);  // the program keeps its own reference
}

void* LoadedLibrary::symbol(const char* name) noexcept {
  if (prefix_ != nullptr) {
    LoadedFile file{prefix_, {}};
    prefix_ = nullptr;
    if (dl_iterate_phdr(match_loaded, &file) != 0) handle_ = dlopen(file.path, RTLD_LAZY | RTLD_NOLOAD);
  }
  return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
}

}  // namespace lbf::capture
