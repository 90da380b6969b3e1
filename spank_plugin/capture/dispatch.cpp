// The preload: binds each MPI function at its first call; see dispatch.h.
#include "spank_plugin/capture/dispatch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>

#include "spank_plugin/capture/loaded_symbol.h"
#include "spank_plugin/capture/recorder_name.h"

namespace lbf::capture {
namespace {

enum class Decision { kOpen, kDeciding, kOff, kOn };
constinit std::atomic<Decision> decision{Decision::kOpen};
constinit std::atomic<pthread_t> deciding_thread{};
constinit const lbf_recorder* recorder = nullptr;

// Libraries with MPI in them, as far as they are loaded: found once for many look-ups.
class MpiLibraries {
 public:
  // REQUIRES: we do not export `name`.
  void* symbol_anywhere(const char* name) noexcept {
    if (void* p = dlsym(RTLD_DEFAULT, name)) return p;
    for (LoadedLibrary& library : libraries_) {
      if (void* p = library.symbol(name)) return p;
    }
    return nullptr;
  }
  lbf_function next_of(std::uint32_t slot) noexcept {
    void* next = dlsym(RTLD_NEXT, lbf_dispatch_names[slot]);
    if (next == nullptr) next = symbol_anywhere(lbf_dispatch_pmpi_names[slot]);
    return reinterpret_cast<lbf_function>(next);
  }

 private:
  LoadedLibrary libraries_[5] = {LoadedLibrary("libmpi.so"), LoadedLibrary("libmpich.so"),
                                 LoadedLibrary("libmpi_mpifh"), LoadedLibrary("libmpi_usempif08"),
                                 LoadedLibrary("libmpichfort.so")};
};

// One line, from rank 0 as far as the launcher's environment tells: MPI may not be initialised yet.
void say(const char* what, const char* detail) noexcept {
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* rank = getenv(name);
    if (rank == nullptr || *rank == '\0') continue;
    if (strcmp(rank, "0") != 0) return;
    break;
  }
  dprintf(STDERR_FILENO, "lbf: capture is off: %s%s\n", what, detail);
}

void bind_all() noexcept;
void lead(std::uint32_t slot, lbf_function to) noexcept;
constinit lbf_dispatch_host host{bind_all, lead, 0};

std::uint64_t thread_cpu_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

const lbf_recorder* load_recorder(const char* file) noexcept {
  Dl_info self{};
  char path[4096];
  const char* slash = dladdr(&host, &self) != 0 ? strrchr(self.dli_fname, '/') : nullptr;
  const int directory = slash != nullptr ? static_cast<int>(slash - self.dli_fname) + 1 : 0;
  if (snprintf(path, sizeof(path), "%.*s%s", directory, self.dli_fname, file) >= static_cast<int>(sizeof(path))) {
    return say("the path of the capture library is too long", ""), nullptr;
  }
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return say("", dlerror()), nullptr;
  const auto entry = reinterpret_cast<lbf_recorder_entry>(dlsym(handle, LBF_RECORDER_ENTRY));
  const lbf_recorder* const loaded = entry != nullptr ? entry(&host) : nullptr;
  if (loaded == nullptr || loaded->layout != lbf_dispatch_layout) {
    return say("of another build than the preload: ", path), nullptr;
  }
  return loaded;
}

// The recorder for the MPI library that this process has; nullptr: none, and the user was told why unless
// nobody asked for capture.
const lbf_recorder* choose_recorder() noexcept {
  const char* directory = getenv("LBF_CAPTURE_DIR");
  if (directory == nullptr || *directory == '\0') return nullptr;
  using GetLibraryVersion = int (*)(char*, int*);  // callable before MPI_Init
  const auto get_version =
      reinterpret_cast<GetLibraryVersion>(MpiLibraries().symbol_anywhere("PMPI_Get_library_version"));
  if (get_version == nullptr) return say("the MPI library does not say which one it is", ""), nullptr;
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(get_version), &library) != 0 && is_standard_abi(library.dli_fname)) {
    return say("it does not know the handles of MPI's standard ABI: ", library.dli_fname), nullptr;
  }
  constexpr std::size_t kLongestVersion = 8192;  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING; Open MPI's is 256
  char version[kLongestVersion + 1] = {};
  int length = 0;
  get_version(version, &length);
  if (const char* const name = recorder_name(version)) return load_recorder(name);
  version[strcspn(version, "\n,")] = '\0';  // name and number; packager and dates come after them
  for (char* tab = strchr(version, '\t'); tab != nullptr; tab = strchr(tab, '\t')) *tab = ' ';
  char detail[256];
  snprintf(detail, sizeof(detail), "%.180s; it knows %s", version, kKnownLibraries);
  return say("it does not know this MPI library: ", detail), nullptr;
}

// REQUIRES: decision is kOff or kOn.
lbf_function bind(std::uint32_t slot, lbf_function next) noexcept {
  lbf_function target = next;
  if (decision.load(std::memory_order_acquire) == Decision::kOn && recorder->wrappers[slot] != nullptr) {
    __atomic_store_n(&recorder->next[slot], next, __ATOMIC_RELEASE);
    target = recorder->wrappers[slot];
  }
  __atomic_store_n(&lbf_dispatch_targets[slot], target, __ATOMIC_RELEASE);
  return target;
}

// The binding of an entry by its name, as generate_dispatch.py makes it; C's large counts for themselves.
enum Binding { kC, kLargeCounts, kMpifh, kF08, kF08ts, kBindings };
Binding binding_of(const char* name) noexcept {
  const std::size_t length = strlen(name);
  const auto ends_with = [&](const char* end) {
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
  };
  return ends_with("_f08ts_") ? kF08ts
         : ends_with("_f08_") ? kF08
         : name[0] == 'm'     ? kMpifh
         : ends_with("_c")    ? kLargeCounts
                              : kC;
}

// A binding whose library is not loaded, or does not have it, has none of its functions: one failed look-up tells, if
// it is the first one. Whatever is left out is bound when it is called.
void bind_all() noexcept {
  MpiLibraries libraries;
  enum { kUntried, kThere, kMissing } state[kBindings] = {kThere};
  for (std::uint32_t slot = 0; slot < lbf_dispatch_slots; ++slot) {
    auto& binding = state[binding_of(lbf_dispatch_names[slot])];
    if (binding == kMissing) continue;
    const lbf_function next = libraries.next_of(slot);
    if (next != nullptr) {
      bind(slot, next);
      binding = kThere;
    } else if (binding == kUntried) {
      binding = kMissing;
    }
  }
}

// Another thread that binds the slot just now may set its wrapper again after this: a longer way to the same.
void lead(std::uint32_t slot, lbf_function to) noexcept {
  if (__atomic_load_n(&recorder->next[slot], __ATOMIC_ACQUIRE) == nullptr) return;
  __atomic_store_n(&lbf_dispatch_targets[slot], to, __ATOMIC_RELEASE);
}

// Makes the decision if nobody made it yet. false: this thread is about to, further up its stack (the library
// that is asked who it is calls an MPI function).
bool decide() noexcept {
  for (;;) {
    Decision now = Decision::kOpen;
    if (decision.compare_exchange_strong(now, Decision::kDeciding, std::memory_order_acquire)) break;
    if (now != Decision::kDeciding) return true;
    if (deciding_thread.load(std::memory_order_relaxed) == pthread_self()) return false;
    sched_yield();
  }
  deciding_thread.store(pthread_self(), std::memory_order_relaxed);
  const std::uint64_t begin_ns = thread_cpu_ns();
  recorder = choose_recorder();
  host.load_cpu_ns = thread_cpu_ns() - begin_ns;
  deciding_thread.store(pthread_t{}, std::memory_order_relaxed);
  decision.store(recorder != nullptr ? Decision::kOn : Decision::kOff, std::memory_order_release);
  return true;
}

}  // namespace
}  // namespace lbf::capture

extern "C" lbf_function lbf_dispatch_bind(std::uint32_t slot) {
  using namespace lbf::capture;
  const lbf_function next = MpiLibraries().next_of(slot);
  if (next == nullptr || !decide()) return next;
  return bind(slot, next);
}
