// The C face of liblbf_procedures.so, which the capture loads (dlopen) when procedures are asked for.
//
// Place in the event's way: capture -> *this* -> procedures. The capture never links it: without
// --lbf-procedures no part of it, nor of the libraries that it needs (libdw, Zydis), comes into a program.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LBF_PROCEDURES_VERSION 3u

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

struct lbf_procedures {
  uint32_t version;
  uint32_t max_procedures;  // room that `take` needs
  // At the end of MPI_Init: finds and patches. `list` as users write it, or "auto": then sampling begins, and
  // `select` ends it. `limit`: see Procedures::limit_cost. `quiet`: 0: what cannot be measured is said on stderr,
  // too. Number of procedures that are measured; 0: none, nothing was changed ("auto": none yet).
  uint32_t (*start)(const char* list, double limit, int quiet);
  // Whether `select` is wanted: with "auto", once there are enough samples. Cheap.
  int (*wants_select)(void);
  // Ends the sampling, chooses and patches. Uses the heap. Number of procedures that are measured.
  uint32_t (*select)(void);
  uint32_t (*procedures)(void);              // ids are below it; those that are refused count
  const char* (*name)(uint32_t procedure);   // nullptr: no such id
  uint32_t (*remarks)(void);
  struct lbf_procedure_remark (*remark)(uint32_t number);
  // The calling thread enters an MPI call at TSC `now`: what its procedures did since it left the last one.
  uint32_t (*take)(uint64_t now, struct lbf_procedure_sums* out, uint32_t room);
  void (*resume)(uint64_t now);  // it leaves the call
  // 1 measured, 0 not, 2 switched off by cost
  int (*state)(uint32_t procedure);
  uint32_t (*switch_offs)(void);  // how often cost switched a procedure off. Cheap
  // "auto": measures what calls the procedures that are switched off in their place. Uses the heap. How many are new:
  // they have names from now on.
  uint32_t (*refine)(void);
  int (*patch)(uint32_t procedure);  // 0: done
  int (*unpatch)(uint32_t procedure);
  void (*stop)(void);       // for the rest of the run: no samples, nothing patched
  uint64_t (*missed)(void);    // calls that were not measured
  double (*call_ticks)(void);  // one call, measured by `start`
};

__attribute__((visibility("default"))) const struct lbf_procedures* lbf_procedures_library(void);

#ifdef __cplusplus
}
#endif
