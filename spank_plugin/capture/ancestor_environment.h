// The environment of the processes that this one comes from.
//
// Place in the event's way: beside it, at the start (process.cpp). A launcher may give its ranks on every node the
// environment that it has itself (MPICH's Hydra does): what the step told them on their own node is then known to the
// launcher's daemon there, their parent or an ancestor.
#pragma once

#include <cstddef>

namespace lbf::capture {

// The value of NAME in the nearest ancestor where ACCEPTS(value), into `value`; false: none has it, or nobody may read
// it. No heap; a value longer than `size` - 1 is not taken.
bool ancestor_environment(const char* name, bool (*accepts)(const char*), char* value, std::size_t size) noexcept;

}  // namespace lbf::capture
