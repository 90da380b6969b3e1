// The preload, and what it and a family's recorder say to each other.
//
// Place in the event's way: MPI call -> *preload* -> generated wrapper -> recorder. liblbf_capture.so exports
// every MPI function as a jump through a table (dispatch_entries.c, made by generate_dispatch.py) and needs
// libc alone: what inherits it does not notice. At the first MPI call that has an MPI library behind it, it
// asks that library who it is, and loads the recorder that was built for its family. Where capture is off, or
// the family is not known, the table leads to the next function of that name, and nothing is loaded. Where MPI
// came through dlopen that function depends on the caller. docs/capture.md, "Library families".
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A function of any type. Called as what it is.
typedef void (*lbf_function)(void);

// --- dispatch_entries.c; slots are numbered alike in the preload and in each recorder
extern const size_t lbf_dispatch_slots;
// What the slots are (a hash of their names): recorder and preload of different builds do not fit.
extern const uint64_t lbf_dispatch_layout;
extern const char* const lbf_dispatch_names[];
// Where each entry jumps to: at first into lbf_dispatch_bind. It stays there where the function depends on the caller.
extern lbf_function lbf_dispatch_targets[];
// Whether that is a wrapper.
extern unsigned char lbf_dispatch_recorded[];
// The same for some callers that have each their own. No memory is mapped for them while the program runs: an MPI
// library that is loaded again would get another place than without the preload.
#define LBF_DISPATCH_CALLERS 64
lbf_function* lbf_dispatch_caller_targets(size_t place);
unsigned char* lbf_dispatch_caller_recorded(size_t place);
// While no object has the function: how many objects there were when it was last looked for.
extern unsigned long long lbf_dispatch_missing[];

// The function that the slot's entry shall call when the code at `caller` calls it; null: this process has none (and no
// MPI library).
lbf_function lbf_dispatch_bind(uint32_t slot, const void* caller);
// The same of a function that programs call first (MPI_Init): the loader may have exchanged libraries since.
lbf_function lbf_dispatch_bind_anew(uint32_t slot, const void* caller);

// --- between the preload and a recorder
#ifdef __cplusplus
namespace lbf::capture {
struct DeviceHost;  // devices.h
struct RegionHost;  // regions.h
}  // namespace lbf::capture
#endif
struct lbf_dispatch_host {
  // Binds every slot that has a function behind it by now, so that no look-up happens on the MPI path later.
  void (*bind_all)(void);
  // The slot's entry leads to `to` from now on; nothing happens where no wrapper was bound to it.
  void (*lead)(uint32_t slot, lbf_function to);
  // What a name means to the MPI library that is recorded; null: nothing.
  void* (*symbol)(const char* name);
  // MPI is finalised: its library may be unloaded, and another one is none of the recorder's.
  void (*release_library)(void);
  // What the library says of itself, where its self-test has to tell whether it is of the recorder's family
  // (self_test.h); null: the recorder knows it. Until the recorder has said which, its wrappers get the calls of
  // MPI_Init alone: others may have handles of another width.
  const char* unlisted_library;
  void (*accept_library)(void);
  void (*refuse_library)(void);
  // Processor time that finding and loading the recorder took, in ns.
  uint64_t load_cpu_ns;
  // Parallel regions of OpenMP, and waits for devices.
#ifdef __cplusplus
  const lbf::capture::RegionHost* regions;
  const lbf::capture::DeviceHost* devices;
#else
  const void* regions;
  const void* devices;
#endif
};
struct lbf_recorder {
  uint64_t layout;
  // The wrapper of each slot; null: the family records nothing there.
  const lbf_function* wrappers;
  // The function that each wrapper forwards to: the preload sets it before it lets the wrapper be called.
  lbf_function* next;
};
// Each recorder library exports this function under this name.
#define LBF_RECORDER_ENTRY "lbf_capture_recorder"
typedef const struct lbf_recorder* (*lbf_recorder_entry)(const struct lbf_dispatch_host* host);

#ifdef __cplusplus
}
#endif
