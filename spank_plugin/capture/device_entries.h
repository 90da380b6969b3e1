// What dlsym's entry (symbol_entry.cpp) asks of the entries of CUDA and HIP (device_entries.cpp).
//
// Place in the event's way: inside *capture*, under the preload.
#pragma once

namespace lbf::capture {

using FindSymbol = void*(void* handle, const char* name);

// Whether NAME may be of CUDA or HIP.
inline bool is_device_name(const char* name) noexcept {
  if (name == nullptr) return false;
  if (name[0] == 'c') return name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
  return name[0] == 'h' && name[1] == 'i' && name[2] == 'p';
}

// What `next`(HANDLE, NAME), libc's dlsym, says to the code at CALLER: where that is a function that waits for a
// device, or looks such ones up, an entry in front of it. REQUIRES: the calling code is left to dlsym by a jump.
void* device_symbol(FindSymbol* next, void* handle, const char* name, const void* caller) noexcept;

}  // namespace lbf::capture
