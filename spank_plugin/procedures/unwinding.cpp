// The personality routine of lbf_procedures_return (call_hooks.S): the program's unwinder calls it when an
// exception (or pthread_exit) is about to leave a measured procedure, whose time ends there. It changes
// nothing about the unwinding.
#include <dlfcn.h>
#include <unwind.h>

#include <atomic>
#include <cstdint>

extern "C" void lbf_procedures_left(std::uintptr_t slot) noexcept;

extern "C" _Unwind_Reason_Code lbf_procedures_personality(int, _Unwind_Action actions, _Unwind_Exception_Class,
                                                          _Unwind_Exception*, _Unwind_Context* context) {
  if ((actions & _UA_CLEANUP_PHASE) == 0) return _URC_CONTINUE_UNWIND;
  // The program's unwinder's own function, not one that was linked into this library: the context is its. A
  // program that has a private copy of the unwinder may give a context of another version: then the frame is
  // not one of ours, and the end of the call is seen at the next call of a measured procedure instead.
  using GetCfa = _Unwind_Word (*)(_Unwind_Context*);
  static std::atomic<GetCfa> get_cfa{nullptr};
  GetCfa function = get_cfa.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<GetCfa>(dlsym(RTLD_DEFAULT, "_Unwind_GetCFA"));
    if (function == nullptr) {
      if (void* unwinder = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL))
        function = reinterpret_cast<GetCfa>(dlsym(unwinder, "_Unwind_GetCFA"));
    }
    get_cfa.store(function, std::memory_order_relaxed);
  }
  if (function != nullptr) lbf_procedures_left(function(context) - sizeof(std::uintptr_t));
  return _URC_CONTINUE_UNWIND;
}
