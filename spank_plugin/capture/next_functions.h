// The functions behind entries of the preload that are not MPI's: the next ones of these names, found when they are
// first called, and for callers whose library came through dlopen, in a scope of its own, by caller.
//
// Place in the event's way: inside *capture*, under the preload (region_functions.cpp, device_functions.cpp).
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "spank_plugin/capture/dispatch.h"
#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/object_map.h"

namespace lbf::capture {

template <std::size_t kFunctions>
class NextFunctions {
 public:
  // GLOBAL: by slot, those that are the same for every caller.
  constexpr explicit NextFunctions(lbf_function (&global)[kFunctions]) noexcept : global_(global) {}

  // What NAME, whose slot is SLOT, is to the code at CALLER; nullptr: the process has none.
  lbf_function find(std::size_t slot, const char* name, const void* caller) noexcept {
    if (Own* const known = own_.find(caller)) {
      if (const lbf_function found = __atomic_load_n(&known->functions[slot], __ATOMIC_RELAXED)) return found;
    }
    if (void* const next = dlsym(RTLD_NEXT, name)) {
      const auto found = reinterpret_cast<lbf_function>(next);
      __atomic_store_n(&global_[slot], found, __ATOMIC_RELAXED);
      return found;
    }
    forget_unloaded();
    LoadedObject object;
    if (!find_object(caller, object)) return reinterpret_cast<lbf_function>(symbol_of_any_object(name));
    const auto own = reinterpret_cast<lbf_function>(ObjectScope(object.path).symbol(name));
    if (own == nullptr) return reinterpret_cast<lbf_function>(symbol_of_any_object(name));
    Own* const kept = own_.add(object, [](Own& added, std::size_t) { added = {}; });
    if (kept != nullptr) __atomic_store_n(&kept->functions[slot], own, __ATOMIC_RELAXED);
    return own;
  }

 private:
  struct Own {
    lbf_function functions[kFunctions] = {};
  };
  void forget_unloaded() noexcept {
    const unsigned long long unloaded = load_counts().unloaded;
    if (__atomic_exchange_n(&unloaded_, unloaded, __ATOMIC_RELAXED) == unloaded) return;
    own_.keep_if([](const Range&, Own&) { return false; });
  }

  lbf_function (&global_)[kFunctions];
  ObjectMap<Own, 32> own_;
  unsigned long long unloaded_ = 0;
};

}  // namespace lbf::capture
