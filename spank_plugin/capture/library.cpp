// Finds the program's MPI library; see library.h.
#include "spank_plugin/capture/library.h"

#include <cstring>
#include <initializer_list>

#include "spank_plugin/capture/mpi_family.h"

namespace lbf::capture {

constinit Library library{};

namespace {

constinit const lbf_dispatch_host* host = nullptr;

void find_sentinel(const void* (&addresses)[4], const char* const (&names)[4]) noexcept {
  for (int i = 0; i < 4 && names[i] != nullptr; ++i) {
    if (void* p = host->symbol(names[i])) addresses[i] = p;
  }
}

}  // namespace

const char* find_library() noexcept {
  if (library.comm_world != MPI_Comm{}) return nullptr;
#define LBF_CAPTURE_FIND(name)                                                           \
  library.name = reinterpret_cast<decltype(Library::name)>(host->symbol("PMPI_" #name)); \
  if (library.name == nullptr) return "the MPI library has no PMPI_" #name;
  LBF_CAPTURE_PMPI(LBF_CAPTURE_FIND)
#undef LBF_CAPTURE_FIND
#define LBF_CAPTURE_FIND_IF_ANY(name) \
  library.name = reinterpret_cast<decltype(Library::name)>(host->symbol("PMPI_" #name))
  LBF_CAPTURE_FIND_IF_ANY(Group_from_session_pset);
  LBF_CAPTURE_FIND_IF_ANY(Session_f2c);
#undef LBF_CAPTURE_FIND_IF_ANY
  if (!family::find_predefined(library, host->symbol)) return family::kNoPredefined;
  find_fortran_sentinels();
  return nullptr;
}

void* library_symbol(const char* name) noexcept {
  return host->symbol(name);
}

const char* unlisted_library() noexcept {
  return host->unlisted_library;
}

void accept_library() noexcept {
  host->accept_library();
}

void refuse_library() noexcept {
  host->refuse_library();
}

void find_fortran_sentinels() noexcept {
  find_sentinel(library.fortran_in_place, family::kFortranInPlace);
  find_sentinel(library.fortran_status_ignore, family::kFortranStatusIgnore);
  find_sentinel(library.fortran_statuses_ignore, family::kFortranStatusesIgnore);
}

void resolve_all_next() noexcept {
  host->bind_all();
}

void release_library() noexcept {
  host->release_library();
}

std::uint64_t load_cpu_ns() noexcept {
  return host->load_cpu_ns;
}

const RegionHost& preload_regions() noexcept {
  return *host->regions;
}

const DeviceHost& preload_devices() noexcept {
  return *host->devices;
}

void lead_calls_to_wrappers() noexcept {
  for (std::size_t i = 0; i < counting_wrapper_count; ++i) {
    const std::uint32_t slot = counting_wrappers[i].slot;
    host->lead(slot, wrappers[slot]);
  }
}

void lead_calls_to_counting_wrappers(bool shared) noexcept {
  for (std::size_t i = 0; i < counting_wrapper_count; ++i) {
    const CountingWrapper& counting = counting_wrappers[i];
    host->lead(counting.slot, shared ? counting.shared_wrapper : counting.wrapper);
  }
}

void lead_calls_past_wrappers() noexcept {
  const auto ends_the_process = [](std::uint32_t slot) {
    for (std::size_t i = 0; i < ending_slot_count; ++i) {
      if (ending_slots[i] == slot) return true;
    }
    return false;
  };
  for (std::uint32_t slot = 0; slot < wrapper_slots; ++slot) {
    if (const lbf_function next = next_function(slot); next != nullptr && !ends_the_process(slot))
      host->lead(slot, next);
  }
}

}  // namespace lbf::capture

// What the preload looks for; dispatch.h.
extern "C" __attribute__((visibility("default"))) const lbf_recorder* lbf_capture_recorder(
    const lbf_dispatch_host* preload) {
  static constinit lbf_recorder recorder{};
  recorder = {lbf::capture::wrapper_layout, lbf::capture::wrappers, lbf::capture::wrapper_next};
  lbf::capture::host = preload;
  return &recorder;
}
