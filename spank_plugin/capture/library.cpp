// Finds the program's MPI library; see library.h.
#include "spank_plugin/capture/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture {

constinit Library library{};

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

// A symbol of a library that is loaded already but that our search order does not reach.
void* symbol_of_loaded(const char* prefix, const char* name) noexcept {
  LoadedFile file{prefix, {}};
  if (dl_iterate_phdr(match_loaded, &file) == 0) return nullptr;
  void* handle = dlopen(file.path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* symbol = dlsym(handle, name);
  dlclose(handle);  // RTLD_NOLOAD took a reference; the program keeps its own
  return symbol;
}

// REQUIRES: we do not export `name`. The default search order, not RTLD_NEXT: of a data object
// (MPI_COMM_WORLD) that the program was linked against, the program itself may hold the one copy that
// everybody uses.
void* symbol_anywhere(const char* name) noexcept {
  if (void* p = dlsym(RTLD_DEFAULT, name)) return p;
  for (const char* prefix : family::kLibraries) {
    if (void* p = symbol_of_loaded(prefix, name)) return p;
  }
  return nullptr;
}

void find_sentinel(const void* (&addresses)[4], const char* const (&names)[4]) noexcept {
  for (int i = 0; i < 4; ++i) {
    void* p = dlsym(RTLD_DEFAULT, names[i]);
    if (p == nullptr) p = symbol_of_loaded(family::kFortranLibrary, names[i]);
    if (p != nullptr) addresses[i] = p;
  }
}

}  // namespace

const char* find_library() noexcept {
  if (library.comm_world != MPI_Comm{}) return nullptr;
  void* const world = symbol_anywhere(family::kCommWorld);
  if (world == nullptr) return family::kNotThis;
#define LBF_CAPTURE_FIND(name)                                                             \
  library.name = reinterpret_cast<decltype(&PMPI_##name)>(symbol_anywhere("PMPI_" #name)); \
  if (library.name == nullptr) return "the MPI library has no PMPI_" #name;
  LBF_CAPTURE_PMPI(LBF_CAPTURE_FIND)
#undef LBF_CAPTURE_FIND
  library.comm_self = predefined_handle<MPI_Comm>(symbol_anywhere(family::kCommSelf));
  library.comm_null = predefined_handle<MPI_Comm>(symbol_anywhere(family::kCommNull));
  library.request_null = predefined_handle<MPI_Request>(symbol_anywhere(family::kRequestNull));
  library.request_empty = predefined_handle<MPI_Request>(symbol_anywhere(family::kRequestEmpty));
  library.message_null = predefined_handle<MPI_Message>(symbol_anywhere(family::kMessageNull));
  library.message_no_proc = predefined_handle<MPI_Message>(symbol_anywhere(family::kMessageNoProc));
  if (library.comm_self == MPI_Comm{} || library.comm_null == MPI_Comm{} ||
      library.request_null == MPI_Request{}) {
    return family::kNoPredefined;
  }
  library.comm_world = predefined_handle<MPI_Comm>(world);
  find_fortran_sentinels();
  return nullptr;
}

void find_fortran_sentinels() noexcept {
  find_sentinel(library.fortran_in_place, family::kFortranInPlace);
  find_sentinel(library.fortran_status_ignore, family::kFortranStatusIgnore);
  find_sentinel(library.fortran_statuses_ignore, family::kFortranStatusesIgnore);
}

void* resolve_next(std::size_t slot) noexcept {
  void* next = dlsym(RTLD_NEXT, wrapper_names[slot]);
  if (next == nullptr) next = symbol_anywhere(wrapper_pmpi_names[slot]);
  if (next != nullptr) wrapper_next[slot].store(next, std::memory_order_relaxed);
  return next;
}

void resolve_all_next() noexcept {
  // A Fortran binding whose library is not loaded has none of its functions: one failed look-up tells.
  bool missing_fortran = false;
  bool missing_f08 = false;
  for (std::size_t slot = 0; slot < wrapper_count; ++slot) {
    const char* name = wrapper_names[slot];
    const std::size_t length = std::strlen(name);
    const bool f08 = length > 5 && std::strcmp(name + length - 5, "_f08_") == 0;
    bool missing_c = false;
    bool& missing = f08 ? missing_f08 : name[0] == 'm' ? missing_fortran : missing_c;
    if (missing || wrapper_next[slot].load(std::memory_order_relaxed) != nullptr) continue;
    if (resolve_next(slot) == nullptr) missing = true;
  }
}

}  // namespace lbf::capture
