// Which MPI library of the process is recorded, and by which recorder. A process may have several: a real one behind
// one plugin, a sequential stand-in behind another.
//
// Place in the event's way: inside *capture*, under the preload (dispatch.cpp). docs/capture.md, "Library families".
#pragma once

#include "spank_plugin/capture/caller_bindings.h"
#include "spank_plugin/capture/dispatch.h"
#include "spank_plugin/capture/loaded_object.h"

namespace lbf::capture {

// Of a function that a slot may lead to.
struct Judgement {
  Recording recording = Recording::kNo;
  bool stays = false;     // its object stays as long as the process
  bool is_final = false;  // no: the library that is asked who it is calls MPI, further down this thread's stack
};

// The first MPI library that a recorder knows is the one that is recorded. Calls of others pass by, and rank 0 is told
// why. `name`: by which it is called.
Judgement judge(const char* name, lbf_function function) noexcept;

// REQUIRES: a judgement was Recording::kYes.
const lbf_recorder& loaded_recorder() noexcept;

// What a name means to the library that is recorded; nullptr: nothing.
void* recorded_symbol(const char* name) noexcept;

// Nothing is recorded from here on: the library may be unloaded. Until then it stays.
void release_recorded_library() noexcept;

// Whether calls by this name, of the library that is recorded, pass by until its self-test is over: all but MPI_Init's.
bool waits_for_self_test(const char* name) noexcept;
// It passed: all calls are recorded from here on. It failed: none is.
void accept_recorded_library() noexcept;
void refuse_recorded_library() noexcept;

// Judgements of objects that may be gone.
void forget_unloaded_libraries() noexcept;

// What the recorder is told of the preload (dispatch.cpp).
extern constinit lbf_dispatch_host host;

}  // namespace lbf::capture
