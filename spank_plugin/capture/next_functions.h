// The functions behind entries of the preload that are not MPI's: the next ones of these names, found when they are
// first called, and for callers whose library came through dlopen, in a scope of its own, by caller.
//
// Place in the event's way: inside *capture*, under the preload (region_functions.cpp, device_functions.cpp).
#pragma once

#include <dlfcn.h>
#include <string.h>

#include <cstddef>
#include <span>

#include "spank_plugin/capture/dispatch.h"
#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/object_map.h"
#include "spank_plugin/capture/object_needs.h"

namespace lbf::capture {

template <std::size_t kFunctions>
class NextFunctions {
 public:
  // GLOBAL: by slot, those that are the same for every caller. SIBLINGS: how names of the same libraries begin.
  constexpr NextFunctions(lbf_function (&global)[kFunctions], std::span<const char* const> siblings) noexcept
      : global_(global), siblings_(siblings) {}

  // What NAME, whose slot is SLOT, is to the code at CALLER; nullptr: the process has none. What the process was
  // started with comes before all else in every scope. Of others a caller has the ones that it was bound to, which need
  // not be those that it would be bound to now.
  lbf_function find(std::size_t slot, const char* name, const void* caller) noexcept {
    if (Own* const known = own_.find(caller)) {
      if (const lbf_function found = __atomic_load_n(&known->functions[slot].function, __ATOMIC_RELAXED)) return found;
    }
    const auto next = reinterpret_cast<lbf_function>(dlsym(RTLD_NEXT, name));
    LoadedObject object;
    if (next != nullptr && find_object(reinterpret_cast<const void*>(next), object) &&
        object.index < startup_objects()) {
      __atomic_store_n(&global_[slot], next, __ATOMIC_RELAXED);
      return next;
    }
    forget_unloaded();
    if (!find_object(caller, object)) return or_of_any_object(next, name);
    lbf_function found = nullptr;
    if (object.index >= startup_objects()) found = of_siblings(object, name);
    if (found == nullptr) found = next;
    if (found == nullptr) found = reinterpret_cast<lbf_function>(ObjectScope(object.path).symbol(name));
    if (found == nullptr) return or_of_any_object(nullptr, name);
    Own* const kept = own_.add(object, [&](Own& added, std::size_t) { added = {identity(object), {}}; });
    if (kept != nullptr) {
      kept->functions[slot].library = identity_at(reinterpret_cast<const void*>(found));
      __atomic_store_n(&kept->functions[slot].function, found, __ATOMIC_RELAXED);
    }
    return found;
  }

 private:
  struct Found {
    lbf_function function = nullptr;
    std::uint64_t library = 0;
  };
  struct Own {
    std::uint64_t object = 0;
    Found functions[kFunctions] = {};
  };
  static lbf_function or_of_any_object(lbf_function next, const char* name) noexcept {
    return next != nullptr ? next : reinterpret_cast<lbf_function>(symbol_of_any_object(name));
  }
  // What NAME is in the library where the object's other names with a prefix of `siblings_` were found; nullptr: none
  // was yet.
  lbf_function of_siblings(const LoadedObject& object, const char* name) const noexcept {
    ObjectScope held(object.path);
    if (!held.is_loaded() || !is_loaded(object.range, object.path)) return nullptr;
    void* found = nullptr;
    Needs(object).for_each([&](const Place& place) {
      if (found != nullptr || !place.is_bound || place.leads_to == nullptr || is_own_function(place.leads_to)) return;
      for (const char* const sibling : siblings_) {
        LoadedObject provider;
        if (strncmp(place.name, sibling, strlen(sibling)) == 0 && find_object(place.leads_to, provider))
          found = ObjectScope(provider.path).symbol(name);
      }
    });
    return reinterpret_cast<lbf_function>(found);
  }
  // What objects were bound to that are gone, or that others took the place of; and that to such libraries.
  void forget_unloaded() noexcept {
    const unsigned long long unloaded = load_counts().unloaded;
    if (__atomic_exchange_n(&unloaded_, unloaded, __ATOMIC_RELAXED) == unloaded) return;
    own_.keep_if([](const Range& range, Own& own) {
      for (Found& found : own.functions) {
        if (found.function != nullptr && identity_at(reinterpret_cast<const void*>(found.function)) != found.library)
          __atomic_store_n(&found.function, lbf_function{}, __ATOMIC_RELAXED);
      }
      return identity_at(reinterpret_cast<const void*>(range.begin)) == own.object;
    });
  }

  lbf_function (&global_)[kFunctions];
  std::span<const char* const> siblings_;
  ObjectMap<Own, 128> own_;
  unsigned long long unloaded_ = 0;
};

}  // namespace lbf::capture
