// Symbols of libraries that are loaded already but that the search order need not reach: MPI that came through
// dlopen into a local scope (mpi4py).
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp) and library.cpp.
#pragma once

namespace lbf::capture {

// A loaded library whose file name begins with `prefix`, if there is one. It is looked for once, at the first question,
// and stays loaded as long as this lives.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* prefix) noexcept : prefix_(prefix) {}
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;
  // nullptr: no such library, or it has no such symbol.
  void* symbol(const char* name) noexcept;

 private:
  const char* prefix_;  // nullptr: it was looked for
  void* handle_ = nullptr;
};

}  // namespace lbf::capture
