// The C face of liblbf_procedures.so, which the capture loads (dlopen) when procedures are asked for.
//
// Place in the event's way: capture -> *this* -> procedures. The capture never links it: without
// --lbf-procedures no part of it, nor of the libraries that it needs (libdw, Zydis), comes into a program.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LBF_PROCEDURES_VERSION 5u

struct lbf_procedure_sums {
  uint32_t procedure;
  uint32_t processor_time;  // 1: what the thread was preempted or blocked is in no ticks; 0: it is in them
  uint64_t calls;
  uint64_t inclusive_ticks;  // TSC
  uint64_t self_ticks;
  uint64_t left_by_jump;
};

// What is to be said of procedures that were asked for. One line for people; `name`: as it was asked for, or as
// it is found.
enum lbf_procedure_remark_kind {
  LBF_PROCEDURE_REFUSED = 0,  // it is not measured
  LBF_PROCEDURE_NOTE = 1,     // it is, but: inlined places, aliases
};
struct lbf_procedure_remark {
  uint32_t kind;
  const char* name;
  const char* text;
};

// "auto": what the samples say is worth measuring (auto_selection.h). `callers`: what calls it most, and what calls
// that, each ended by a newline. `samples`: of `own` in the program's own procedures those that are in this one itself.
struct lbf_procedure_candidate {
  const char* name;
  const char* callers;
  uint64_t samples;
  uint64_t own;
};

// A procedure that is not measured, or no more: of `of` samples between MPI calls so many were in it (or in what it
// called), and in itself.
struct lbf_procedure_samples {
  const char* name;
  uint64_t inclusive;
  uint64_t exclusive;
  uint64_t of;
};

enum lbf_procedures_want {
  LBF_PROCEDURES_WANT_NOTHING = 0,
  LBF_PROCEDURES_WANT_CANDIDATES = 1,  // `end_sampling`: there are enough samples
  LBF_PROCEDURES_WANT_CHOICE = 2,      // `choose`: no list of all ranks came in time
};

struct lbf_procedures {
  uint32_t version;
  uint32_t max_procedures;  // room that `take` needs
  // At the end of MPI_Init: finds and patches. `list` as users write it, or "auto": then sampling begins. `limit`: see
  // Procedures::limit_cost. `quiet`: 0: what cannot be measured is said on stderr, too. Number of procedures that are
  // measured; 0: none, nothing was changed ("auto": none yet; `sampling`: but samples are counted).
  uint32_t (*start)(const char* list, double limit, int quiet);
  // "auto": what is to be done next (lbf_procedures_want). Cheap.
  int (*wants)(void);
  // Ends the sampling. How many candidates there are. Uses the heap, as all down to `follow`. From then on a list of
  // all ranks is waited for.
  uint32_t (*end_sampling)(void);
  uint32_t (*candidates)(void);
  struct lbf_procedure_candidate (*candidate)(uint32_t number);
  // Measures what this process takes for the best itself: the candidates, or what calls a procedure that was switched
  // off. How many are new.
  uint32_t (*choose)(void);
  // Measures the procedures of `names` (each ended by a newline) and no others; what is not here, or was switched off
  // by cost here, is left out. Number of procedures that are measured.
  uint32_t (*follow)(const char* names);
  uint32_t (*procedures)(void);  // ids are below it; those that are refused count. They become more with "auto"
  const char* (*name)(uint32_t procedure);  // nullptr: no such id
  uint32_t (*remarks)(void);
  struct lbf_procedure_remark (*remark)(uint32_t number);
  // The calling thread enters an MPI call at TSC `now`: what its procedures did since it left the last one.
  uint32_t (*take)(uint64_t now, struct lbf_procedure_sums* out, uint32_t room);
  void (*resume)(uint64_t now);  // it leaves the call
  // Calls in threads that do neither, of which `take` never tells; they become more every 4,096 calls of a thread.
  // Cheap.
  uint64_t (*calls_beside)(void);
  // 1 measured, 0 not, 2 switched off by cost
  int (*state)(uint32_t procedure);
  uint32_t (*switch_offs)(void);  // how often cost switched a procedure off. Cheap
  // Of one that was switched off by cost: so many calls in so many ticks before it.
  void (*off_rate)(uint32_t procedure, uint64_t* calls, uint64_t* ticks);
  // To be called when one was: it is sampled from now on. With "auto" another list is waited for, or, where none ever
  // came, `choose` is wanted at once.
  void (*after_switch_off)(void);
  // Procedures that samples stand in for: here, but refused, or switched off by cost.
  int (*sampling)(void);            // 1: samples are counted
  uint64_t (*samples_taken)(void);  // cheap
  uint64_t (*sample_ticks)(void);   // what taking them cost
  uint32_t (*sampled)(void);
  struct lbf_procedure_samples (*samples)(uint32_t number);  // REQUIRES: number < sampled(), asked for before
  int (*patch)(uint32_t procedure);                          // 0: done
  int (*unpatch)(uint32_t procedure);
  void (*stop)(void);          // for the rest of the run: no samples, nothing patched
  uint64_t (*missed)(void);    // calls that were not measured
  double (*call_ticks)(void);  // one call, measured by `start`
};

__attribute__((visibility("default"))) const struct lbf_procedures* lbf_procedures_library(void);

#ifdef __cplusplus
}
#endif
