// Symbols of libraries that are loaded already but that the search order need not reach: MPI that came through
// dlopen into a local scope (mpi4py).
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp) and library.cpp.
#pragma once

namespace lbf::capture {

// `name` in a loaded library whose file name begins with `prefix`; nullptr: no such library, or not there.
void* symbol_of_loaded(const char* prefix, const char* name) noexcept;

}  // namespace lbf::capture
