// Finds the program's MPI library; see library.h.
#include "spank_plugin/capture/library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

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
  for (const char* prefix : {"libmpi.so", "libmpi_mpifh", "libmpi_usempif08"}) {
    if (void* p = symbol_of_loaded(prefix, name)) return p;
  }
  return nullptr;
}

void find_sentinel(const void* (&addresses)[4], const char* const (&names)[4]) noexcept {
  for (int i = 0; i < 4; ++i) {
    void* p = dlsym(RTLD_DEFAULT, names[i]);
    if (p == nullptr) p = symbol_of_loaded("libmpi_mpifh", names[i]);
    if (p != nullptr) addresses[i] = p;
  }
}

}  // namespace

const char* find_library() noexcept {
  if (library.comm_world != nullptr) return nullptr;
  auto* const world = symbol_anywhere("ompi_mpi_comm_world");
  if (world == nullptr) return "the program's MPI library is not Open MPI";
#define LBF_CAPTURE_FIND(name)                                                             \
  library.name = reinterpret_cast<decltype(&PMPI_##name)>(symbol_anywhere("PMPI_" #name)); \
  if (library.name == nullptr) return "the MPI library has no PMPI_" #name;
  LBF_CAPTURE_PMPI(LBF_CAPTURE_FIND)
#undef LBF_CAPTURE_FIND
  library.comm_self = static_cast<MPI_Comm>(symbol_anywhere("ompi_mpi_comm_self"));
  library.comm_null = static_cast<MPI_Comm>(symbol_anywhere("ompi_mpi_comm_null"));
  library.request_null = static_cast<MPI_Request>(symbol_anywhere("ompi_request_null"));
  library.request_empty = static_cast<MPI_Request>(symbol_anywhere("ompi_request_empty"));
  library.message_null = static_cast<MPI_Message>(symbol_anywhere("ompi_message_null"));
  library.message_no_proc = static_cast<MPI_Message>(symbol_anywhere("ompi_message_no_proc"));
  if (library.comm_self == nullptr || library.comm_null == nullptr || library.request_null == nullptr) {
    return "the MPI library lacks the predefined handles of Open MPI 4.1";
  }
  library.comm_world = static_cast<MPI_Comm>(world);
  find_fortran_sentinels();
  return nullptr;
}

void find_fortran_sentinels() noexcept {
  find_sentinel(library.fortran_in_place, {"mpi_fortran_in_place_", "mpi_fortran_in_place",
                                           "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  find_sentinel(library.fortran_status_ignore, {"mpi_fortran_status_ignore_", "mpi_fortran_status_ignore",
                                                "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE"});
  find_sentinel(library.fortran_statuses_ignore,
                {"mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore",
                 "mpi_fortran_statuses_ignore__", "MPI_FORTRAN_STATUSES_IGNORE"});
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
