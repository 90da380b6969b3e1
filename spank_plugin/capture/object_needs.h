// What a loaded object needs of others, and which of theirs it got. The System V ABI's dynamic section and relocations.
//
// Place in the event's way: inside *capture*, under the preload (bypass.cpp, next_functions.h).
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "spank_plugin/capture/loaded_object.h"

namespace lbf::capture {

#if defined(__aarch64__)
inline constexpr ElfW(Xword) kCalled = R_AARCH64_JUMP_SLOT, kReferred = R_AARCH64_GLOB_DAT, kStored = R_AARCH64_ABS64;
#else
inline constexpr ElfW(Xword) kCalled = R_X86_64_JUMP_SLOT, kReferred = R_X86_64_GLOB_DAT, kStored = R_X86_64_64;
#endif

// A place in an object that the loader fills with what a name means.
struct Place {
  const char* name;
  void** at;
  void* leads_to;
  bool is_bound;  // else the loader fills it at the first call: so far it leads back into the object
};

// What an object wants of others, as its dynamic section tells it.
class Needs {
 public:
  // REQUIRES: the object stays loaded as long as this lives.
  explicit Needs(const LoadedObject& object) noexcept : object_(object) {
    const ElfW(Rela)* calls = nullptr, *others = nullptr;
    std::size_t call_bytes = 0, other_bytes = 0, own_addresses = 0;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dynamic);
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = at<ElfW(Sym)>(*entry);
          break;
        case DT_STRTAB:
          names_ = at<char>(*entry);
          break;
        case DT_JMPREL:
          calls = at<ElfW(Rela)>(*entry);
          break;
        case DT_PLTRELSZ:
          call_bytes = entry->d_un.d_val;
          break;
        case DT_RELA:
          others = at<ElfW(Rela)>(*entry);
          break;
        case DT_RELASZ:
          other_bytes = entry->d_un.d_val;
          break;
        case DT_RELACOUNT:  // of the object's own addresses, which come first
          own_addresses = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
    if (symbols_ == nullptr || names_ == nullptr) return;
    if (calls != nullptr) relocations_[0] = {calls, call_bytes / sizeof(ElfW(Rela))};
    if (others == nullptr || own_addresses > other_bytes / sizeof(ElfW(Rela))) return;
    relocations_[1] = std::span(others, other_bytes / sizeof(ElfW(Rela))).subspan(own_addresses);
  }
  // use(Place) for each place of a name.
  template <class Use>
  void for_each(Use use) const noexcept {
    for (const std::span<const ElfW(Rela)>& relocations : relocations_) {
      for (const ElfW(Rela) & relocation : relocations) {
        const auto type = ELF64_R_TYPE(relocation.r_info);
        if (type != kCalled && type != kReferred && type != kStored) continue;
        const char* const name = names_ + symbols_[ELF64_R_SYM(relocation.r_info)].st_name;
        const std::uintptr_t address = object_.base + relocation.r_offset;
        if (address % sizeof(void*) != 0) continue;  // it could not be written at once
        auto* const place = reinterpret_cast<void**>(address);
        void* const leads_to = __atomic_load_n(place, __ATOMIC_RELAXED);
        const bool is_bound = type != kCalled || !object_.range.holds(reinterpret_cast<std::uintptr_t>(leads_to));
        use(Place{name, place, leads_to, is_bound});
      }
    }
  }
  // Where the object itself has the name; nullptr: it has not.
  void* defined(const char* name) const noexcept {
    // The names follow the symbols, whose number is told nowhere.
    const auto* const end = reinterpret_cast<const ElfW(Sym)*>(names_);
    for (const ElfW(Sym)* symbol = symbols_; symbol != nullptr && symbol + 1 <= end; ++symbol) {
      if (symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 && is_same(names_ + symbol->st_name, name))
        return reinterpret_cast<void*>(object_.base + symbol->st_value);
    }
    return nullptr;
  }

 private:
  // strcmp may be a sanitizer's, which is not ready yet.
  static bool is_same(const char* a, const char* b) noexcept {
    for (; *a == *b; ++a, ++b) {
      if (*a == '\0') return true;
    }
    return false;
  }
  // glibc has made addresses of the section's offsets.
  template <class T>
  const T* at(const ElfW(Dyn) & entry) const noexcept {
    const std::uintptr_t value = entry.d_un.d_ptr;
    return reinterpret_cast<const T*>(value < object_.base ? object_.base + value : value);
  }

  const LoadedObject& object_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  std::span<const ElfW(Rela)> relocations_[2];
};

}  // namespace lbf::capture
