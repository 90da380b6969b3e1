// See recorded_library.h.
#include "spank_plugin/capture/recorded_library.h"

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

#include "spank_plugin/capture/object_map.h"
#include "spank_plugin/capture/recorder_name.h"

namespace lbf::capture {
namespace {

constexpr char kVersionFunction[] = "PMPI_Get_library_version";  // callable before MPI_Init

enum class Decision { kOpen, kDeciding, kOn, kOver };
constinit std::atomic<Decision> decision{Decision::kOpen};
constinit std::atomic<pthread_t> deciding_thread{};
constinit const lbf_recorder* recorder = nullptr;
constinit void* recorded_version = nullptr;  // that library's kVersionFunction
constinit void* refused_version = nullptr;   // of the one that no recorder knew last
constinit bool is_recorded_globally = false;
constinit std::atomic<bool> is_self_test_open{false};

// An object with MPI functions. One that is recorded has a handle, which keeps it loaded.
struct MpiObject {
  Judgement judgement;
  void* handle = nullptr;
};
constinit ObjectMap<MpiObject, 64> mpi_objects;

bool is_rank_0() noexcept {
  // As far as the launcher's environment tells: MPI may not be initialised yet.
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}) {
    const char* rank = getenv(name);
    if (rank != nullptr && *rank != '\0') return strcmp(rank, "0") == 0;
  }
  return true;
}

void say_off(const char* why, const char* detail) noexcept {
  if (is_rank_0()) dprintf(STDERR_FILENO, "lbf: capture is off: %s%s\n", why, detail);
}

// Once for each reason.
void say_passed_by(bool& said, const char* path, const char* why) noexcept {
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) && is_rank_0())
    dprintf(STDERR_FILENO, "lbf: MPI calls to %s are not recorded: %s\n", path, why);
}

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
    return say_off("the path of the capture library is too long", ""), nullptr;
  }
  void* const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return say_off("", dlerror()), nullptr;
  const auto entry = reinterpret_cast<lbf_recorder_entry>(dlsym(handle, LBF_RECORDER_ENTRY));
  const lbf_recorder* const loaded = entry != nullptr ? entry(&host) : nullptr;
  if (loaded == nullptr || loaded->layout != lbf_dispatch_layout) {
    return say_off("of another build than the preload: ", path), nullptr;
  }
  return loaded;
}

// Name and number; packager and dates come after them.
void shorten(char* version) noexcept {
  version[strcspn(version, "\n,")] = '\0';
  for (char* tab = strchr(version, '\t'); tab != nullptr; tab = strchr(tab, '\t')) *tab = ' ';
}

// Version of MPI's standard ABI that the library has; below 1: none.
int abi_version(ObjectScope& library) noexcept {
  using GetAbiVersion = int (*)(int*, int*);
  int major = 0, minor = 0;
  for (const char* const name : kAbiVersionFunctions) {
    const auto get_version = reinterpret_cast<GetAbiVersion>(library.symbol(name));
    if (get_version != nullptr && get_version(&major, &minor) == 0) return major;
  }
  return 0;
}

// The recorder for the library that has this kVersionFunction; nullptr: none, and the user was told why.
const lbf_recorder* recorder_for(void* version_function) noexcept {
  LoadedObject library;
  if (!find_object(version_function, library)) return nullptr;
  ObjectScope scope(library.path);
  const int abi = abi_version(scope);
  if (abi > kKnownAbi) return say_off("this version of MPI's standard ABI is too new: ", library.path), nullptr;
  const Exports exports = abi == kKnownAbi                          ? Exports::kStandardAbi
                          : scope.symbol(kOpenMpiObject) != nullptr ? Exports::kOpenMpi
                                                                    : Exports::kOther;
  using GetLibraryVersion = int (*)(char*, int*);
  constexpr std::size_t kLongestVersion = 8192;  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING; Open MPI's is 256
  static constinit char version[kLongestVersion + 1] = {};
  int length = 0;
  reinterpret_cast<GetLibraryVersion>(version_function)(version, &length);
  const RecorderChoice choice = choose_recorder(version, exports);
  const lbf_recorder* const loaded = load_recorder(choice.file);
  if (loaded != nullptr && choice.proof == Proof::kSelfTest) {
    shorten(version);
    host.unlisted_library = version;
    is_self_test_open.store(true, std::memory_order_relaxed);
  }
  return loaded;
}

// Decides whether the library of this kVersionFunction is recorded, if none is so far. false: this thread is about to,
// further up its stack.
bool decide(void* version_function) noexcept {
  for (;;) {
    Decision now = Decision::kOpen;
    if (decision.compare_exchange_strong(now, Decision::kDeciding, std::memory_order_acquire)) break;
    if (now != Decision::kDeciding) return true;
    if (deciding_thread.load(std::memory_order_relaxed) == pthread_self()) return false;
    sched_yield();
  }
  if (version_function == refused_version) {
    decision.store(Decision::kOpen, std::memory_order_release);
    return true;
  }
  deciding_thread.store(pthread_self(), std::memory_order_relaxed);
  const std::uint64_t begin_ns = thread_cpu_ns();
  recorder = recorder_for(version_function);
  host.load_cpu_ns = thread_cpu_ns() - begin_ns;
  (recorder != nullptr ? recorded_version : refused_version) = version_function;
  is_recorded_globally = global_symbol(kVersionFunction) == version_function;
  deciding_thread.store(pthread_t{}, std::memory_order_relaxed);
  decision.store(recorder != nullptr ? Decision::kOn : Decision::kOpen, std::memory_order_release);
  return true;
}

// A tool that was linked to no MPI has one behind it all the same. A stand-in for MPI has none.
void* version_behind(const char* name) noexcept {
  char behind[256];
  if (snprintf(behind, sizeof(behind), "%c%s", name[0] == 'M' ? 'P' : 'p', name) >= static_cast<int>(sizeof(behind)))
    return nullptr;
  void* const function = global_symbol(behind);
  LoadedObject library;
  return function != nullptr && find_object(function, library) ? ObjectScope(library.path).symbol(kVersionFunction)
                                                               : nullptr;
}

// false: the self-test is over.
bool refuse() noexcept {
  if (!is_self_test_open.exchange(false, std::memory_order_relaxed)) return false;
  release_recorded_library();
  mpi_objects.keep_if([](const Range&, const MpiObject&) { return false; });
  return true;
}

bool is_capture_wanted() noexcept {
  const char* const directory = getenv("LBF_CAPTURE_DIR");
  return directory != nullptr && *directory != '\0';
}

// Fills in `judged`, but for whether it stays.
void examine(const char* name, const LoadedObject& object, MpiObject& judged) noexcept {
  static constinit bool said_nameless = false, said_other = false;
  judged.judgement.is_final = true;
  if (!is_capture_wanted()) return;
  ObjectScope scope(object.path);
  void* version = scope.symbol(kVersionFunction);
  if (version == nullptr) version = version_behind(name);
  if (version == nullptr) return say_passed_by(said_nameless, object.path, "it does not say which MPI library it is");
  if (!decide(version)) {
    judged.judgement.is_final = false;
    return;
  }
  if (decision.load(std::memory_order_acquire) != Decision::kOn) return;
  if (version != recorded_version) return say_passed_by(said_other, object.path, "another MPI library is recorded");
  judged.judgement.recording = Recording::kYes;
  judged.handle = scope.release_handle();
}

}  // namespace

Judgement judge(const char* name, lbf_function function) noexcept {
  const void* const address = reinterpret_cast<const void*>(function);
  if (const MpiObject* const known = mpi_objects.find(address)) return known->judgement;
  LoadedObject object;
  MpiObject judged;
  if (!find_object(address, object)) return {.is_final = true};
  judged.judgement.stays = object.index < startup_objects();
  examine(name, object, judged);
  // Before the constructors of the start nobody knows what stays.
  const bool is_known = judged.judgement.is_final && startup_objects() != 0;
  const auto fill = [&judged](MpiObject& added, std::size_t) { added = judged; };
  MpiObject* const kept = is_known ? mpi_objects.add(object, fill) : nullptr;
  if (judged.handle != nullptr && (kept == nullptr || kept->handle != judged.handle)) dlclose(judged.handle);
  return judged.judgement;
}

const lbf_recorder& loaded_recorder() noexcept {
  return *recorder;
}

void* recorded_symbol(const char* name) noexcept {
  // The default search order: of a data object (MPI_COMM_WORLD) that the program was linked against, the program itself
  // may hold the one copy that everybody uses.
  void* symbol = is_recorded_globally ? global_symbol(name) : nullptr;
  mpi_objects.for_each([&](MpiObject& object) {
    if (symbol == nullptr && object.handle != nullptr) symbol = dlsym(object.handle, name);
  });
  return symbol;
}

void release_recorded_library() noexcept {
  decision.store(Decision::kOver, std::memory_order_release);
  mpi_objects.for_each([](MpiObject& object) {
    if (void* const handle = __atomic_exchange_n(&object.handle, nullptr, __ATOMIC_RELAXED)) dlclose(handle);
  });
}

bool waits_for_self_test(const char* name) noexcept {
  if (!is_self_test_open.load(std::memory_order_relaxed)) [[likely]]
    return false;
  const auto is_called = [name](const char* c, const char* fortran) {
    return strncmp(name, c, strlen(c)) == 0 || strncmp(name, fortran, strlen(fortran)) == 0;
  };
  // MPI_Initialized as well: no handle is among its arguments, either.
  if (is_called("MPI_Init", "mpi_init")) return false;
  // Each call is looked up anew meanwhile, and without MPI_Init there is no end to it.
  constexpr unsigned kMostCalls = 10'000;
  static constinit std::atomic<unsigned> calls{0};
  if (is_called("MPI_Session_init", "mpi_session_init") || calls.fetch_add(1) == kMostCalls) {
    if (refuse()) say_off("its self-test needs MPI_Init: ", host.unlisted_library);
  }
  return true;
}

void accept_recorded_library() noexcept {
  is_self_test_open.store(false, std::memory_order_relaxed);
}

void refuse_recorded_library() noexcept {
  refuse();
}

void forget_unloaded_libraries() noexcept {
  mpi_objects.keep_if(
      [](const Range&, MpiObject& object) { return object.handle != nullptr || object.judgement.stays; });
}

}  // namespace lbf::capture
