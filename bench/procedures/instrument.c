// Hooks for -finstrument-functions. With SUMS: the least that times a procedure: two reads of the time-stamp counter, a
// stack of entries, a sum, in a thread's own memory. Without: empty.
#include <stdint.h>
#include <x86intrin.h>

#define PLAIN __attribute__((no_instrument_function))

#if SUMS
static _Thread_local struct { uint64_t top, entered[1024], calls, ticks; } own;
PLAIN void __cyg_profile_func_enter(void* function, void* caller) {
  (void)function, (void)caller;
  own.entered[own.top++ & 1023] = __rdtsc();
  own.calls++;
}
PLAIN void __cyg_profile_func_exit(void* function, void* caller) {
  (void)function, (void)caller;
  own.ticks += __rdtsc() - own.entered[--own.top & 1023];
}
#else
PLAIN void __cyg_profile_func_enter(void* function, void* caller) {
  (void)function, (void)caller;
}
PLAIN void __cyg_profile_func_exit(void* function, void* caller) {
  (void)function, (void)caller;
}
#endif
