// The preload: binds each MPI function when it is first called; see dispatch.h.
#include "spank_plugin/capture/dispatch.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "spank_plugin/capture/bypass.h"
#include "spank_plugin/capture/caller_bindings.h"
#include "spank_plugin/capture/devices.h"
#include "spank_plugin/capture/loaded_object.h"
#include "spank_plugin/capture/recorded_library.h"
#include "spank_plugin/capture/regions.h"

namespace lbf::capture {
namespace {

constinit CallerBindings callers;
constinit std::atomic<unsigned long long> unloaded_before{0};
constinit std::atomic<const void*> recorded_caller{nullptr};  // whose call was the first one to be recorded

// The object that calls, and its scope once it is needed.
class Caller {
 public:
  explicit Caller(const void* address) noexcept : address_(address) {}
  // As the loader finds it: first where every caller does, then in the caller's own scope. The other way round where
  // its first function was found there: all of them come from one library.
  Function find(std::uint32_t slot) noexcept {
    const char* const name = lbf_dispatch_names[slot];
    const bool own_first = callers.find(slot, address_).scope == Scope::kCaller;
    if (own_first) {
      if (const lbf_function own = find_own(name)) return {own, Scope::kCaller};
    }
    if (void* const next = dlsym(RTLD_NEXT, name)) return {reinterpret_cast<lbf_function>(next), Scope::kGlobal};
    return own_first ? Function{} : Function{find_own(name), Scope::kCaller};
  }
  void keep(std::uint32_t slot, Scope found_in, lbf_function target, Recording recording) noexcept {
    if (is_found()) callers.keep(slot, object_, found_in, target, recording);
  }

 private:
  bool is_found() noexcept {
    if (state_ == State::kUntried) state_ = find_object(address_, object_) ? State::kFound : State::kNoObject;
    return state_ == State::kFound;
  }
  // The program's own scope is the global one.
  lbf_function find_own(const char* name) noexcept {
    return is_found() ? reinterpret_cast<lbf_function>(scope_.symbol(name)) : nullptr;
  }

  enum class State { kUntried, kFound, kNoObject } state_ = State::kUntried;
  const void* address_;
  LoadedObject object_;
  ObjectScope scope_{object_.path};
};

// Of a caller that was not linked to the library that it calls; or its last call is a jump, and its own caller seems to
// call.
Function find_elsewhere(std::uint32_t slot) noexcept {
  const unsigned long long loaded = load_counts().loaded;
  if (__atomic_load_n(&lbf_dispatch_missing[slot], __ATOMIC_RELAXED) == loaded) return {};
  lbf_function function = function_of_last_caller(lbf_dispatch_names[slot]);
  if (function == nullptr) function = reinterpret_cast<lbf_function>(symbol_of_any_object(lbf_dispatch_names[slot]));
  if (function == nullptr) __atomic_store_n(&lbf_dispatch_missing[slot], loaded, __ATOMIC_RELAXED);
  return {function, Scope::kElsewhere};
}

// The recorder forwards to one function for each slot. Whoever has another one of the same library (a tool's, behind
// one plugin alone) gets to that, unrecorded.
Recording wrap(std::uint32_t slot, lbf_function function) noexcept {
  if (loaded_recorder().wrappers[slot] == nullptr) return Recording::kNo;
  lbf_function before = nullptr;
  const bool fits = __atomic_compare_exchange_n(&loaded_recorder().next[slot], &before, function, false,
                                                __ATOMIC_RELEASE, __ATOMIC_RELAXED) ||
                    before == function;
  return fits ? Recording::kYes : Recording::kNo;
}

lbf_function bind(std::uint32_t slot, const Function& function, Caller& caller) noexcept {
  const Judgement judgement = judge(lbf_dispatch_names[slot], function.address);
  if (!judgement.is_final) return function.address;
  if (judgement.recording == Recording::kYes && waits_for_self_test(lbf_dispatch_names[slot])) return function.address;
  const Recording recording = judgement.recording == Recording::kYes ? wrap(slot, function.address) : Recording::kNo;
  const lbf_function target = recording == Recording::kYes ? loaded_recorder().wrappers[slot] : function.address;
  if (judgement.stays && function.scope == Scope::kGlobal) {
    Bindings{lbf_dispatch_targets, lbf_dispatch_recorded}.set(slot, target, recording);
  } else {
    caller.keep(slot, function.scope, target, recording);
  }
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
  Caller caller(recorded_caller.load(std::memory_order_relaxed));
  enum { kUntried, kThere, kMissing } state[kBindings] = {kThere};
  for (std::uint32_t slot = 0; slot < lbf_dispatch_slots; ++slot) {
    auto& binding = state[binding_of(lbf_dispatch_names[slot])];
    if (binding == kMissing) continue;
    const Function function = caller.find(slot);
    if (function.address != nullptr) {
      bind(slot, function, caller);
      binding = kThere;
    } else if (binding == kUntried) {
      binding = kMissing;
    }
  }
}

// Another thread that binds the slot just now may set its wrapper again after this: a longer way to the same.
void lead(std::uint32_t slot, lbf_function to) noexcept {
  Bindings{lbf_dispatch_targets, lbf_dispatch_recorded}.lead(slot, to);
  callers.lead(slot, to);
}

void forget_unloaded() noexcept {
  const unsigned long long unloaded = load_counts().unloaded;
  if (unloaded_before.exchange(unloaded, std::memory_order_relaxed) == unloaded) return;
  forget_unloaded_libraries();
  callers.forget_unloaded();
}

bool is_recorded(const char* name, lbf_function function) noexcept {
  const Judgement judgement = judge(name, function);
  return judgement.recording == Recording::kYes || !judgement.is_final;
}

lbf_function find_and_bind(std::uint32_t slot, const void* address) noexcept {
  forget_unloaded();
  Caller caller(address);
  Function function = caller.find(slot);
  if (function.address == nullptr) function = find_elsewhere(slot);
  if (function.address == nullptr) return nullptr;
  const lbf_function target = bind(slot, function, caller);
  if (target != function.address && recorded_caller.load(std::memory_order_relaxed) == nullptr)
    recorded_caller.store(address, std::memory_order_relaxed);
  if (function.scope != Scope::kGlobal) bypass_newcomers(is_recorded);
  return target;
}

}  // namespace

constinit lbf_dispatch_host host{.bind_all = bind_all,
                                 .lead = lead,
                                 .symbol = recorded_symbol,
                                 .release_library = release_recorded_library,
                                 .unlisted_library = nullptr,
                                 .accept_library = accept_recorded_library,
                                 .refuse_library = refuse_recorded_library,
                                 .load_cpu_ns = 0,
                                 .regions = &region_host,
                                 .devices = &device_host};

}  // namespace lbf::capture

extern "C" lbf_function lbf_dispatch_bind(std::uint32_t slot, const void* caller) {
  using namespace lbf::capture;
  const Function known = callers.find(slot, caller);
  if (known.address == nullptr) return find_and_bind(slot, caller);
  if (known.scope == Scope::kElsewhere) bypass_newcomers(is_recorded);  // whose calls would be taken for these
  return known.address;
}

extern "C" lbf_function lbf_dispatch_bind_anew(std::uint32_t slot, const void* caller) {
  using namespace lbf::capture;
  forget_unloaded();
  // Who is new calls this rather than who called it before.
  const bool is_new = callers.find(slot, caller).scope == Scope::kElsewhere && has_newcomers();
  return is_new ? find_and_bind(slot, caller) : lbf_dispatch_bind(slot, caller);
}
