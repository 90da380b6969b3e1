// Entries of CUDA and HIP in the preload: the functions in which a thread waits for its device, each in front of the
// library's own, and the ways by which programs that are not linked to it find them: dlsym and cuGetProcAddress.
//
// Place in the event's way: program -> *entry* -> devices.h. docs/adr/0013-devices.md. Arguments are words, as in
// generate_dispatch.py. The result is the library's own.
//
// CUDA's runtime, shared or static (nvcc's default), opens the driver, asks dlsym for cuGetProcAddress and that for all
// else; before 11.3 it asks dlsym for all. dlsym's entry is a jump into libc's dlsym, but for names of these functions.
#include "spank_plugin/capture/device_entries.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <utility>

#include "spank_plugin/capture/device_functions.h"
#include "spank_plugin/capture/devices.h"
#include "spank_plugin/capture/loaded_object.h"

namespace lbf::capture {
namespace {

using Word = std::uintptr_t;

// Where no library has the function: "not initialised", alike in both.
constexpr int kNotInitialised = 3;
constexpr int kDeviceSuccess = 0;

lbf_function next_of(DeviceFunction which, const void* caller) noexcept {
  const lbf_function found = __atomic_load_n(&device_functions[static_cast<std::uint32_t>(which)], __ATOMIC_RELAXED);
  return found != nullptr ? found : find_device_function(which, caller);
}

template <class... Words>
[[gnu::noinline]] int wait_for_device(DeviceFunction which, int (*next)(Words...), Words... words) {
  const DeviceWait wait(which);
  return next(words...);
}

template <class... Words>
[[gnu::always_inline]] inline int pass_on(DeviceFunction which, lbf_function target, Words... words) {
  const auto next = reinterpret_cast<int (*)(Words...)>(target);
  if (next == nullptr) return kNotInitialised;
  if (!measures_device_waits()) return next(words...);
  return wait_for_device(which, next, words...);
}

lbf_function interposed(DeviceFunction function, void* real) noexcept;

// cuGetProcAddress of either version; the first has no STATUS.
int look_up(lbf_function target, const char* symbol, void** found, Word version, Word flags, Word status) {
  const auto next = reinterpret_cast<int (*)(const char*, void**, Word, Word, Word)>(target);
  if (next == nullptr) return kNotInitialised;
  const int result = next(symbol, found, version, flags, status);
  if (result != kDeviceSuccess || symbol == nullptr || found == nullptr || *found == nullptr) return result;
  const DeviceFunction function = driver_function_named(symbol);
  if (function != DeviceFunction::kCount) *found = reinterpret_cast<void*>(interposed(function, *found));
  return result;
}

// --- functions that a look-up found: one name has several of them, by version and by default stream. Another version
// may have more arguments: each has at least those that go in registers.

constexpr std::size_t kMostFound = 6;  // of one name
constexpr std::size_t kLeastWords = 6;
constinit lbf_function found_functions[kDeviceFunctions][kMostFound] = {};

template <DeviceFunction kFunction, std::size_t kPlace>
lbf_function found_function() noexcept {
  return __atomic_load_n(&found_functions[static_cast<std::uint32_t>(kFunction)][kPlace], __ATOMIC_RELAXED);
}

template <std::size_t>
using WordAt = Word;

template <DeviceFunction kFunction, std::size_t kPlace, class Words>
struct Found;
template <DeviceFunction kFunction, std::size_t kPlace, std::size_t... kAt>
struct Found<kFunction, kPlace, std::index_sequence<kAt...>> {
  static int call(WordAt<kAt>... words) { return pass_on(kFunction, found_function<kFunction, kPlace>(), words...); }
};
template <DeviceFunction kFunction, std::size_t kPlace>
int found_look_up(const char* symbol, void** found, Word version, Word flags, Word status) {
  return look_up(found_function<kFunction, kPlace>(), symbol, found, version, flags, status);
}

template <DeviceFunction kFunction, std::size_t kWords, std::size_t kPlace>
lbf_function entry_of_found() noexcept {
  if constexpr (kFunction == DeviceFunction::k_cuGetProcAddress || kFunction == DeviceFunction::k_cuGetProcAddress_v2) {
    return reinterpret_cast<lbf_function>(found_look_up<kFunction, kPlace>);
  } else {
    return reinterpret_cast<lbf_function>(
        Found<kFunction, kPlace, std::make_index_sequence<(kWords > kLeastWords ? kWords : kLeastWords)>>::call);
  }
}

template <DeviceFunction kFunction, std::size_t kWords>
lbf_function entry_at(std::size_t place) noexcept {
  static_assert(kMostFound == 6);
  switch (place) {
    case 0:
      return entry_of_found<kFunction, kWords, 0>();
    case 1:
      return entry_of_found<kFunction, kWords, 1>();
    case 2:
      return entry_of_found<kFunction, kWords, 2>();
    case 3:
      return entry_of_found<kFunction, kWords, 3>();
    case 4:
      return entry_of_found<kFunction, kWords, 4>();
    default:
      return entry_of_found<kFunction, kWords, 5>();
  }
}

using EntryAt = lbf_function (*)(std::size_t) noexcept;
constexpr EntryAt kEntryAt[kDeviceFunctions] = {
#define LBF_DEVICE_FUNCTION(name, words) entry_at<DeviceFunction::k_##name, words>,
    LBF_DEVICE_FUNCTIONS(LBF_DEVICE_FUNCTION)
#undef LBF_DEVICE_FUNCTION
};

// An entry in front of REAL; REAL itself where it is one, or there is no room.
lbf_function interposed(DeviceFunction function, void* real) noexcept {
  const auto target = reinterpret_cast<lbf_function>(real);
  if (is_own_function(real)) return target;
  lbf_function(&known)[kMostFound] = found_functions[static_cast<std::uint32_t>(function)];
  for (std::size_t place = 0; place < kMostFound; ++place) {
    lbf_function before = nullptr;
    if (__atomic_compare_exchange_n(&known[place], &before, target, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
        before == target)
      return kEntryAt[static_cast<std::uint32_t>(function)](place);
  }
  return target;
}

bool is_device_capture_wanted() noexcept {
  const char* const directory = getenv("LBF_CAPTURE_DIR");
  return directory != nullptr && *directory != '\0';
}

}  // namespace

// What dlsym says to a name of a library behind the preload, in the scope of the process, and dlerror after it. By the
// preload itself, not by who calls: to that one the preload's entries are there.
[[gnu::noinline]] static void* symbol_behind(FindSymbol* next, const char* name) noexcept {
  void* const symbol = next(RTLD_NEXT, name);
  asm volatile("" : : : "memory");  // no jump
  return symbol;
}

// A program that asks whether a function is there is told as it would be without the preload.
void* device_symbol(FindSymbol* next, void* handle, const char* name, const void* caller) noexcept {
  if (is_own_function(caller) || !is_device_capture_wanted()) return next(handle, name);
  const DeviceFunction function = device_function_named(name);
  if (function == DeviceFunction::kCount || handle == RTLD_NEXT) return next(handle, name);
  void* const found = next(handle, name);  // by default in the scope of the process, which is every caller's first
  if (found == nullptr) return nullptr;
  if (!is_own_function(found))
    return handle == RTLD_DEFAULT ? found : reinterpret_cast<void*>(interposed(function, found));
  if (symbol_behind(next, name) != nullptr) return found;
  LoadedObject object;
  void* const own =
      handle == RTLD_DEFAULT && find_object(caller, object) ? ObjectScope(object.path).symbol(name) : nullptr;
  if (own != nullptr) return reinterpret_cast<void*>(interposed(function, own));
  return symbol_behind(next, name);  // once more, for dlerror
}

}  // namespace lbf::capture

using namespace lbf::capture;

#define LBF_WORDS_0
#define LBF_WORDS_1 Word a0
#define LBF_WORDS_3 LBF_WORDS_1, Word a1, Word a2
#define LBF_WORDS_4 LBF_WORDS_3, Word a3
#define LBF_WORDS_5 LBF_WORDS_4, Word a4
#define LBF_WORDS_6 LBF_WORDS_5, Word a5
#define LBF_WORDS_7 LBF_WORDS_6, Word a6
#define LBF_WORDS_8 LBF_WORDS_7, Word a7
#define LBF_GIVEN_0
#define LBF_GIVEN_1 , a0
#define LBF_GIVEN_3 LBF_GIVEN_1, a1, a2
#define LBF_GIVEN_4 LBF_GIVEN_3, a3
#define LBF_GIVEN_5 LBF_GIVEN_4, a4
#define LBF_GIVEN_6 LBF_GIVEN_5, a5
#define LBF_GIVEN_7 LBF_GIVEN_6, a6
#define LBF_GIVEN_8 LBF_GIVEN_7, a7

#define LBF_DEVICE_ENTRY(name, words)                                                             \
  extern "C" __attribute__((visibility("default"))) int name(LBF_WORDS_##words) {                 \
    constexpr DeviceFunction kFunction = DeviceFunction::k_##name;                                \
    return pass_on(kFunction, next_of(kFunction, __builtin_return_address(0)) LBF_GIVEN_##words); \
  }
LBF_DEVICE_WAITS(LBF_DEVICE_ENTRY)

#define LBF_LOOKUP_ENTRY(name, words)                                                                             \
  extern "C" __attribute__((visibility("default"))) int name(const char* symbol, void** found, Word version,      \
                                                             Word flags, Word status) {                           \
    return look_up(next_of(DeviceFunction::k_##name, __builtin_return_address(0)), symbol, found, version, flags, \
                   status);                                                                                       \
  }
LBF_DEVICE_LOOKUPS(LBF_LOOKUP_ENTRY)
