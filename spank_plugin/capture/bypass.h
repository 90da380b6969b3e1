// Leads calls past the preload: those of plugins whose MPI library is not the one that is recorded. They call their own
// library as if there were no preload.
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp). The loader has written the preload's
// entries into each object's table of the functions that it calls; this writes what stands there without the preload.
// The return address tells who calls, but not where a function's last call is a jump. Then it tells whose caller calls.
#pragma once

#include "spank_plugin/capture/dispatch.h"

namespace lbf::capture {

// Whether calls of this function are recorded. `name`: by which it is called.
using IsRecorded = bool (*)(const char* name, lbf_function function);

// Whether objects came or went since bypass_newcomers() looked at them.
bool has_newcomers() noexcept;
// Looks at the objects that came after the start, if there are newcomers.
void bypass_newcomers(IsRecorded is_recorded) noexcept;

// What the name is to the last object that still calls it by our entry; nullptr: no object does.
lbf_function function_of_last_caller(const char* name) noexcept;

}  // namespace lbf::capture
