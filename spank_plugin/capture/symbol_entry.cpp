// dlsym's entry in the preload: a jump into the next dlsym, another tool's or libc's, which looks at who calls. Only
// names of CUDA's and HIP's functions are looked at (device_entries.h).
//
// Place in the event's way: inside *capture*, under the preload. Compiled by itself, with LBF_DEFINES_DLSYM
// (glibc_floor.h); and optimised, so that calls at the end are jumps.
#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include "spank_plugin/capture/device_entries.h"
#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/object_needs.h"

namespace lbf::capture {
namespace {

constinit FindSymbol* next_dlsym = nullptr;

// The loader's list of objects, as debuggers find it (the System V ABI's DT_DEBUG). nullptr: not where it should be.
const link_map* first_object() noexcept {
  const auto* const header = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const std::size_t count = header != nullptr ? getauxval(AT_PHNUM) : 0;
  std::uintptr_t base = 0;
  const ElfW(Dyn)* entry = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if (header[i].p_type == PT_PHDR) base = reinterpret_cast<std::uintptr_t>(header) - header[i].p_vaddr;
    if (header[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(base + header[i].p_vaddr);
  }
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0)
      return reinterpret_cast<const r_debug*>(entry->d_un.d_ptr)->r_map;
  }
  return nullptr;
}

FindSymbol* dlsym_of(std::uintptr_t base, const void* dynamic) noexcept {
  LoadedObject object;
  object.base = base;
  object.dynamic = reinterpret_cast<std::uintptr_t>(dynamic);
  return reinterpret_cast<FindSymbol*>(Needs(object).defined("dlsym"));
}

// The next tool's or the C library's, in the order of loading. dlsym would answer with the entry here, dlvsym is
// missing in musl. It may be wanted before anything else: sanitizers' own string functions and dl_iterate_phdr are not
// ready.
[[gnu::noinline, gnu::cold]] FindSymbol* find_next_dlsym() noexcept {
  FindSymbol* found = nullptr;
  const link_map* object = first_object();
  while (object != nullptr && object->l_ld != _DYNAMIC) object = object->l_next;
  while (object != nullptr && found == nullptr) {
    object = object->l_next;
    if (object != nullptr) found = dlsym_of(object->l_addr, object->l_ld);
  }
  if (found == nullptr) __builtin_trap();
  __atomic_store_n(&next_dlsym, found, __ATOMIC_RELAXED);
  return found;
}

}  // namespace
}  // namespace lbf::capture

extern "C" __attribute__((visibility("default"))) void* lbf_dlsym(void* handle, const char* name) __asm__("dlsym");
extern "C" void* lbf_dlsym(void* handle, const char* name) {
  using namespace lbf::capture;
  FindSymbol* next = __atomic_load_n(&next_dlsym, __ATOMIC_RELAXED);
  if (next == nullptr) [[unlikely]]
    next = find_next_dlsym();
  if (!is_device_name(name)) [[likely]]
    return next(handle, name);
  return device_symbol(next, handle, name, __builtin_return_address(0));
}
