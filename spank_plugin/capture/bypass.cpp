// See bypass.h. The System V ABI's dynamic section and relocations.
#include "spank_plugin/capture/bypass.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/spin_mutex.h"

namespace lbf::capture {
namespace {

#if defined(__aarch64__)
constexpr ElfW(Xword) kCalled = R_AARCH64_JUMP_SLOT, kReferred = R_AARCH64_GLOB_DAT;
#else
constexpr ElfW(Xword) kCalled = R_X86_64_JUMP_SLOT, kReferred = R_X86_64_GLOB_DAT;
#endif

constinit std::atomic<unsigned long long> looked_at{0};  // load counts, added up
constinit SpinMutex unprotecting;  // who protects a page again must not do it under another one's hands

// What an object calls of others, as its file tells it.
class CallTable {
 public:
  // REQUIRES: the object stays loaded as long as this lives.
  explicit CallTable(const LoadedObject& object) noexcept : object_(object) {
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dynamic);
    std::size_t own_addresses = 0;
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = at<ElfW(Sym)>(*entry);
          break;
        case DT_STRTAB:
          names_ = at<char>(*entry);
          break;
        case DT_JMPREL:
          relocations_[0].begin = at<ElfW(Rela)>(*entry);
          break;
        case DT_PLTRELSZ:
          relocations_[0].count = entry->d_un.d_val / sizeof(ElfW(Rela));
          break;
        case DT_RELA:
          relocations_[1].begin = at<ElfW(Rela)>(*entry);
          break;
        case DT_RELASZ:
          relocations_[1].count = entry->d_un.d_val / sizeof(ElfW(Rela));
          break;
        case DT_RELACOUNT:  // of the object's own addresses, which come first
          own_addresses = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
    Relocations& others = relocations_[1];
    if (others.begin == nullptr || own_addresses > others.count) return;
    others.begin += own_addresses;
    others.count -= own_addresses;
  }
  // use(name, place) for each place that leads to an entry of ours, or will (the loader has not bound it so far). The
  // first `use` that says true ends it.
  template <class Use>
  bool find(Use use) const noexcept {
    if (symbols_ == nullptr || names_ == nullptr) return false;
    for (const Relocations& relocations : relocations_) {
      for (std::size_t i = 0; relocations.begin != nullptr && i < relocations.count; ++i) {
        const ElfW(Rela)& relocation = relocations.begin[i];
        const auto type = ELF64_R_TYPE(relocation.r_info);
        if (type != kCalled && type != kReferred) continue;
        const char* const name = names_ + symbols_[ELF64_R_SYM(relocation.r_info)].st_name;
        if (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "mpi_", 4) != 0) continue;
        auto* const place = reinterpret_cast<void**>(object_.base + relocation.r_offset);
        if (leads_to_entry(name, __atomic_load_n(place, __ATOMIC_RELAXED)) && use(name, place)) return true;
      }
    }
    return false;
  }
  void write(void** place, void* function) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    if (!object_.read_only_after_start.holds(address)) return __atomic_store_n(place, function, __ATOMIC_RELEASE);
    const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
    unprotecting.lock();
    if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) == 0) {
      __atomic_store_n(place, function, __ATOMIC_RELEASE);
      mprotect(page, page_bytes, PROT_READ);
    }
    unprotecting.unlock();
  }

 private:
  // glibc has made addresses of the section's offsets.
  template <class T>
  const T* at(const ElfW(Dyn) & entry) const noexcept {
    const std::uintptr_t value = entry.d_un.d_ptr;
    return reinterpret_cast<const T*>(value < object_.base ? object_.base + value : value);
  }
  bool leads_to_entry(const char* name, void* function) const noexcept {
    if (object_.range.holds(reinterpret_cast<std::uintptr_t>(function))) function = global_symbol(name);
    return is_own_function(function);
  }

  struct Relocations {
    const ElfW(Rela) * begin = nullptr;
    std::size_t count = 0;
  };
  const LoadedObject& object_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Relocations relocations_[2];
};

// use(name, place, what the name means to the object itself, table); not for names that mean the same to everybody.
template <class Use>
bool find_call(const LoadedObject& object, Use use) noexcept {
  ObjectScope scope(object.path);
  if (!scope.is_loaded()) return false;
  const CallTable table(object);
  return table.find([&](const char* name, void** place) {
    if (dlsym(RTLD_NEXT, name) != nullptr) return false;
    void* const own = scope.symbol(name);
    return own != nullptr && use(name, place, own, table);
  });
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
  const unsigned long long now = changes();
  if (looked_at.exchange(now, std::memory_order_relaxed) == now) return;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    find_call(object, [&](const char* name, void** place, void* own, const CallTable& table) {
      if (!is_recorded(name, reinterpret_cast<lbf_function>(own))) table.write(place, own);
      return false;
    });
  }
}

lbf_function function_of_last_caller(const char* name) noexcept {
  void* function = nullptr;
  LoadedObject object;
  for (std::size_t index = startup_objects(); object_at(index, object); ++index) {
    find_call(object, [&](const char* called, void**, void* own, const CallTable&) {
      if (strcmp(called, name) != 0) return false;
      function = own;
      return true;
    });
  }
  return reinterpret_cast<lbf_function>(function);
}

}  // namespace lbf::capture
