// See bypass.h. The System V ABI's dynamic section and relocations.
#include "spank_plugin/capture/bypass.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <span>

#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {
namespace {

#if defined(__aarch64__)
constexpr ElfW(Xword) kCalled = R_AARCH64_JUMP_SLOT, kReferred = R_AARCH64_GLOB_DAT, kStored = R_AARCH64_ABS64;
#else
constexpr ElfW(Xword) kCalled = R_X86_64_JUMP_SLOT, kReferred = R_X86_64_GLOB_DAT, kStored = R_X86_64_64;
#endif

constinit std::atomic<unsigned long long> looked_at{0};  // load counts, added up
constinit SpinMutex unprotecting;  // who protects a page again must not do it under another one's hands

// A place in an object that the loader fills with what a name means.
struct Place {
  const char* name;
  void** at;
  void* leads_to;
  bool is_bound;  // else the loader fills it at the first call: so far it leads back into the object
};

// What an object wants of others, as its dynamic section tells it.
class Needs {
 public:
  // REQUIRES: the object stays loaded as long as this lives.
  explicit Needs(const LoadedObject& object) noexcept : object_(object) {
    const ElfW(Rela)* calls = nullptr, *others = nullptr;
    std::size_t call_bytes = 0, other_bytes = 0, own_addresses = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dynamic);
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = at<ElfW(Sym)>(*entry);
          break;
        case DT_STRTAB:
          names_ = at<char>(*entry);
          break;
        case DT_JMPREL:
          calls = at<ElfW(Rela)>(*entry);
          break;
        case DT_PLTRELSZ:
          call_bytes = entry->d_un.d_val;
          break;
        case DT_RELA:
          others = at<ElfW(Rela)>(*entry);
          break;
        case DT_RELASZ:
          other_bytes = entry->d_un.d_val;
          break;
        case DT_RELACOUNT:  // of the object's own addresses, which come first
          own_addresses = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
    if (symbols_ == nullptr || names_ == nullptr) return;
    if (calls != nullptr) relocations_[0] = {calls, call_bytes / sizeof(ElfW(Rela))};
    if (others == nullptr || own_addresses > other_bytes / sizeof(ElfW(Rela))) return;
    relocations_[1] = std::span(others, other_bytes / sizeof(ElfW(Rela))).subspan(own_addresses);
  }
  // use(Place) for each place of an MPI function.
  template <class Use>
  void for_each(Use use) const noexcept {
    for (const std::span<const ElfW(Rela)>& relocations : relocations_) {
      for (const ElfW(Rela) & relocation : relocations) {
        const auto type = ELF64_R_TYPE(relocation.r_info);
        if (type != kCalled && type != kReferred && type != kStored) continue;
        const char* const name = names_ + symbols_[ELF64_R_SYM(relocation.r_info)].st_name;
        if (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "mpi_", 4) != 0) continue;
        const std::uintptr_t address = object_.base + relocation.r_offset;
        if (address % sizeof(void*) != 0) continue;  // it could not be written at once
        auto* const place = reinterpret_cast<void**>(address);
        void* const leads_to = __atomic_load_n(place, __ATOMIC_RELAXED);
        const bool is_bound = type != kCalled || !object_.range.holds(reinterpret_cast<std::uintptr_t>(leads_to));
        use(Place{name, place, leads_to, is_bound});
      }
    }
  }

 private:
  // glibc has made addresses of the section's offsets.
  template <class T>
  const T* at(const ElfW(Dyn) & entry) const noexcept {
    const std::uintptr_t value = entry.d_un.d_ptr;
    return reinterpret_cast<const T*>(value < object_.base ? object_.base + value : value);
  }

  const LoadedObject& object_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  std::span<const ElfW(Rela)> relocations_[2];
};

// use(Place, what its name means to the object itself) for each place that leads to an entry of ours, or will; not for
// names that mean the same to everybody.
template <class Use>
void for_each_entry(const LoadedObject& object, Use use) noexcept {
  ObjectScope scope(object.path);
  // Until it was held, another thread may have closed it, and opened it elsewhere.
  if (!scope.is_loaded() || !is_loaded(object.range, object.path)) return;
  Needs(object).for_each([&](const Place& place) {
    if (dlsym(RTLD_NEXT, place.name) != nullptr) return;
    void* const own = scope.symbol(place.name);
    if (own == nullptr || own == place.leads_to) return;
    if (is_own_function(place.is_bound ? place.leads_to : global_symbol(place.name))) use(place, own);
  });
}

// false: it may not be written.
bool write(const LoadedObject& object, void** place, void* function) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  if (!object.writable.holds(address)) return false;
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  if (!protected_pages(object.read_only_after_start, page_bytes).holds(address)) {
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
    return true;
  }
  auto* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  unprotecting.lock();
  const bool is_open = mprotect(page, page_bytes, PROT_READ | PROT_WRITE) == 0;
  if (is_open) {
    __atomic_store_n(place, function, __ATOMIC_RELEASE);
    mprotect(page, page_bytes, PROT_READ);
  }
  unprotecting.unlock();
  return is_open;
}

unsigned long long changes() noexcept {
  const LoadCounts counts = load_counts();
  return counts.loaded + counts.unloaded;
}

}  // namespace

bool has_newcomers() noexcept {
  return looked_at.load(std::memory_order_relaxed) != changes();
}

void bypass_newcomers(IsRecorded is_recorded) noexcept {
  unsigned long long now = changes();
  if (looked_at.exchange(now, std::memory_order_relaxed) == now) return;
  bool is_over = true;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    for_each_entry(object, [&](const Place& place, void* own) {
      if (is_recorded(place.name, reinterpret_cast<lbf_function>(own))) return;
      // The first call of it, in another thread, may bind it just now and write our entry there after this.
      if (write(object, place.at, own) && !place.is_bound) is_over = false;
    });
  }
  if (!is_over) looked_at.compare_exchange_strong(now, 0, std::memory_order_relaxed);
}

lbf_function function_of_last_caller(const char* name) noexcept {
  void* function = nullptr;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    for_each_entry(object, [&](const Place& place, void* own) {
      if (strcmp(place.name, name) == 0) function = own;
    });
  }
  return reinterpret_cast<lbf_function>(function);
}

}  // namespace lbf::capture
