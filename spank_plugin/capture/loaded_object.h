// Objects that are loaded (the program, shared libraries): which one an address lies in, and what a name means in an
// object's own scope. MPI that came through dlopen is in no other.
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace lbf::capture {

// A part of the memory.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t size = 0;

  bool holds(std::uintptr_t address) const noexcept { return address - begin < size; }
  bool operator==(const Range&) const = default;
};

struct LoadedObject {
  Range range;                  // from its first segment to the end of the last one
  std::uintptr_t base = 0;      // what the file's addresses count from
  std::uintptr_t dynamic = 0;   // its dynamic section
  Range writable;               // from its first segment that may be written to the end of the last one
  Range read_only_after_start;  // PT_GNU_RELRO
  std::size_t index = 0;        // in the order of loading; 0: the program
  char path[4096] = {};         // as the loader knows it; the program has none
};

// false: no object has it (code that was made at run time).
bool find_object(const void* address, LoadedObject& object) noexcept;

// Whether the object that had this range and path still has it.
bool is_loaded(const Range& range, const char* path) noexcept;

// Tells the object from one that takes its place when it is gone (a hash of its range and path).
std::uint64_t identity(const LoadedObject& object) noexcept;
// Of the object that has ADDRESS; 0: none has.
std::uint64_t identity_at(const void* address) noexcept;

// What of `read_only` the loader protects: from the page in which it begins to the last one that it fills. Pages may be
// larger than the linker thought; then other data follows in its last page.
constexpr Range protected_pages(const Range& read_only, std::uintptr_t page_bytes) noexcept {
  const std::uintptr_t begin = read_only.begin / page_bytes * page_bytes;
  const std::uintptr_t end = (read_only.begin + read_only.size) / page_bytes * page_bytes;
  return {begin, end - begin};
}

// false: there are no more.
bool object_at(std::size_t index, LoadedObject& object) noexcept;

// How many objects the loader brought and took away so far.
struct LoadCounts {
  unsigned long long loaded = 0;
  unsigned long long unloaded = 0;
};
LoadCounts load_counts() noexcept;

// The objects that stay as long as the process: those that it was started with. 0: its constructors have not come so
// far.
std::size_t startup_objects() noexcept;

// An object's own scope: itself, what it was linked to, and what that was linked to. The preload is in none but the
// program's, which is not looked at: it is the global one.
class ObjectScope {
 public:
  // `path` is read when the first name is looked up.
  explicit ObjectScope(const char* path) noexcept : path_(path) {}
  ~ObjectScope();
  ObjectScope(const ObjectScope&) = delete;
  ObjectScope& operator=(const ObjectScope&) = delete;
  // Whether the object is loaded. It stays as long as this lives.
  bool is_loaded() noexcept;
  // nullptr: it has no such name.
  void* symbol(const char* name) noexcept;
  // The reference that keeps the object loaded, for dlclose; nullptr: there is none.
  void* release_handle() noexcept;

 private:
  const char* path_;  // nullptr: it was opened
  void* handle_ = nullptr;
};

// What the name is in the global scope; nullptr: nothing. (RTLD_DEFAULT would bind the object that has it to the
// preload, for good: it would stay when the program closes it.)
void* global_symbol(const char* name) noexcept;

// What the name is in the own scope of the first object that came after the start and has it there; nullptr: none has.
void* symbol_of_any_object(const char* name) noexcept;

// Whether a function is the preload's own.
bool is_own_function(const void* function) noexcept;

}  // namespace lbf::capture
