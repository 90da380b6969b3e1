// dlsym's entry in the preload: a jump into libc's dlsym, which looks at who calls. Only names of CUDA's and HIP's
// functions are looked at (device_entries.h).
//
// Place in the event's way: inside *capture*, under the preload. Compiled by itself, with LBF_DEFINES_DLSYM
// (glibc_floor.h); and optimised, so that calls at the end are jumps.
#include <dlfcn.h>

#include "spank_plugin/capture/device_entries.h"

namespace lbf::capture {
namespace {

constinit FindSymbol* libc_dlsym = nullptr;

[[gnu::noinline, gnu::cold]] FindSymbol* find_libc_dlsym() noexcept {
#if defined(__aarch64__)
  constexpr const char* kFirstVersion = "GLIBC_2.17";
#else
  constexpr const char* kFirstVersion = "GLIBC_2.2.5";
#endif
  auto* const found = reinterpret_cast<FindSymbol*>(dlvsym(RTLD_NEXT, "dlsym", kFirstVersion));
  __atomic_store_n(&libc_dlsym, found, __ATOMIC_RELAXED);
  return found;
}

}  // namespace
}  // namespace lbf::capture

extern "C" __attribute__((visibility("default"))) void* lbf_dlsym(void* handle, const char* name) __asm__("dlsym");
extern "C" void* lbf_dlsym(void* handle, const char* name) {
  using namespace lbf::capture;
  FindSymbol* next = __atomic_load_n(&libc_dlsym, __ATOMIC_RELAXED);
  if (next == nullptr) [[unlikely]]
    next = find_libc_dlsym();
  if (!is_device_name(name)) [[likely]]
    return next(handle, name);
  return device_symbol(next, handle, name, __builtin_return_address(0));
}
