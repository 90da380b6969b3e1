// Where the entries lead for each object that calls them: of MPI in local scopes (dlopen without RTLD_GLOBAL) each
// caller has its own, and it may be loaded anew.
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp). Slots that mean the same to every
// caller as long as the process lives are not in here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank_plugin/capture/dispatch.h"
#include "spank_plugin/capture/object_map.h"

namespace lbf::capture {

// Whether a function's calls go through a wrapper of the recorder.
enum class Recording : unsigned char { kNo, kYes };
// Where a function was found: in the scope of the whole process, in the caller's own, or elsewhere.
enum class Scope : unsigned char { kGlobal, kCaller, kElsewhere };
struct Function {
  lbf_function address = nullptr;
  Scope scope = Scope::kGlobal;
};

// Where each slot leads, and whether to a wrapper.
struct Bindings {
  lbf_function* targets;
  unsigned char* recorded;

  void set(std::uint32_t slot, lbf_function target, Recording recording) noexcept {
    __atomic_store_n(&recorded[slot], static_cast<unsigned char>(recording), __ATOMIC_RELAXED);
    __atomic_store_n(&targets[slot], target, __ATOMIC_RELEASE);
  }
  void clear() noexcept {
    for (std::uint32_t slot = 0; slot < lbf_dispatch_slots; ++slot) set(slot, nullptr, Recording::kNo);
  }
  // Nothing happens where no wrapper was bound.
  void lead(std::uint32_t slot, lbf_function to) noexcept {
    if (__atomic_load_n(&recorded[slot], __ATOMIC_RELAXED) != 0) __atomic_store_n(&targets[slot], to, __ATOMIC_RELEASE);
  }
};

// Looking up takes no lock. A caller beyond the room is not kept: whoever asks finds its function anew at each call.
class CallerBindings {
 public:
  // Where the slot leads for the object that `caller` lies in, nullptr if it is not bound; and where that object's
  // first function was found.
  Function find(std::uint32_t slot, const void* caller) noexcept {
    const Caller* const known = callers_.find(caller);
    if (known == nullptr) return {};
    return {__atomic_load_n(&known->bindings.targets[slot], __ATOMIC_ACQUIRE), known->scope};
  }
  void keep(std::uint32_t slot, const LoadedObject& object, Scope scope, lbf_function target,
            Recording recording) noexcept;
  void lead(std::uint32_t slot, lbf_function to) noexcept;
  // Nothing is bound any more for objects that the loader took away, nor for those that may have come back since.
  void forget_unloaded() noexcept;

 private:
  struct Caller {
    Scope scope = Scope::kGlobal;
    Bindings bindings{};
    char path[sizeof(LoadedObject::path)] = {};
  };

  ObjectMap<Caller, LBF_DISPATCH_CALLERS> callers_;
};

}  // namespace lbf::capture
