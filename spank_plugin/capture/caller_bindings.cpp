// See caller_bindings.h.
#include "spank_plugin/capture/caller_bindings.h"

#include <string.h>

namespace lbf::capture {

void CallerBindings::keep(std::uint32_t slot, const LoadedObject& object, Scope scope, lbf_function target,
                          Recording recording) noexcept {
  Caller* const caller = callers_.add(object, [&](Caller& added, std::size_t place) {
    strcpy(added.path, object.path);
    added.scope = scope;
    added.bindings = {lbf_dispatch_caller_targets(place), lbf_dispatch_caller_recorded(place)};
    added.bindings.clear();
  });
  if (caller != nullptr) caller->bindings.set(slot, target, recording);
}

void CallerBindings::lead(std::uint32_t slot, lbf_function to) noexcept {
  callers_.keep_if([&](const Range&, Caller& caller) { return caller.bindings.lead(slot, to), true; });
}

void CallerBindings::forget_unloaded() noexcept {
  callers_.keep_if([](const Range& range, Caller& caller) {
    caller.bindings.clear();
    return is_loaded(range, caller.path);
  });
}

}  // namespace lbf::capture
