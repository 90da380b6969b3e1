// See region_functions.h.
#include "spank_plugin/capture/region_functions.h"

#include <dlfcn.h>

#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/object_map.h"

namespace lbf::capture {

constinit lbf_function region_functions[static_cast<std::uint32_t>(RegionFunction::kCount)] = {};

namespace {

constexpr const char* kRegionFunctionNames[] = {
#define LBF_REGION_FUNCTION(name) #name,
    LBF_REGION_FUNCTIONS(LBF_REGION_FUNCTION)
#undef LBF_REGION_FUNCTION
};

// Of a caller whose runtime came through dlopen, in a scope of its own.
struct OwnRuntime {
  lbf_function functions[static_cast<std::uint32_t>(RegionFunction::kCount)] = {};
};
constinit ObjectMap<OwnRuntime, 32> own_runtimes;
constinit unsigned long long unloaded_objects = 0;

void forget_unloaded_runtimes() noexcept {
  const unsigned long long unloaded = load_counts().unloaded;
  if (__atomic_exchange_n(&unloaded_objects, unloaded, __ATOMIC_RELAXED) == unloaded) return;
  own_runtimes.keep_if([](const Range&, OwnRuntime&) { return false; });
}

}  // namespace

lbf_function find_region_function(RegionFunction function, const void* caller) noexcept {
  const auto slot = static_cast<std::uint32_t>(function);
  if (OwnRuntime* const known = own_runtimes.find(caller)) {
    if (const lbf_function found = __atomic_load_n(&known->functions[slot], __ATOMIC_RELAXED)) return found;
  }
  const char* const name = kRegionFunctionNames[slot];
  if (void* const next = dlsym(RTLD_NEXT, name)) {
    const auto found = reinterpret_cast<lbf_function>(next);
    __atomic_store_n(&region_functions[slot], found, __ATOMIC_RELAXED);
    return found;
  }
  forget_unloaded_runtimes();
  LoadedObject object;
  if (!find_object(caller, object)) return reinterpret_cast<lbf_function>(symbol_of_any_object(name));
  const auto own = reinterpret_cast<lbf_function>(ObjectScope(object.path).symbol(name));
  if (own == nullptr) return reinterpret_cast<lbf_function>(symbol_of_any_object(name));
  OwnRuntime* const kept = own_runtimes.add(object, [](OwnRuntime& added, std::size_t) { added = {}; });
  if (kept != nullptr) __atomic_store_n(&kept->functions[slot], own, __ATOMIC_RELAXED);
  return own;
}

}  // namespace lbf::capture
