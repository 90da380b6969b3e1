// The C face of liblbf_procedures.so, which the capture loads (dlopen) when procedures are asked for.
//
// Place in the event's way: capture -> *this* -> procedures. The capture never links it: without
// --lbf-procedures no part of it, nor of the libraries that it needs (libdw, Zydis), comes into a program.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LBF_PROCEDURES_VERSION 1u

struct lbf_procedure_sums {
  uint32_t procedure;
  uint32_t reserved;
  uint64_t calls;
  uint64_t inclusive_ticks;  // TSC
  uint64_t self_ticks;
  uint64_t left_by_jump;
};

struct lbf_procedures {
  uint32_t version;
  uint32_t max_procedures;  // room that `take` needs
  // At the end of MPI_Init: finds, patches, says on stderr what cannot be measured. `limit`: see
  // Procedures::limit_cost. Number of procedures that are measured; 0: none, nothing was changed.
  uint32_t (*start)(const char* list, double limit);
  const char* (*name)(uint32_t procedure);
  // The calling thread enters an MPI call at TSC `now`: what its procedures did since it left the last one.
  uint32_t (*take)(uint64_t now, struct lbf_procedure_sums* out, uint32_t room);
  void (*resume)(uint64_t now);  // it leaves the call
  // 1 measured, 0 not, 2 switched off by cost
  int (*state)(uint32_t procedure);
  int (*patch)(uint32_t procedure);  // 0: done
  int (*unpatch)(uint32_t procedure);
  uint64_t (*missed)(void);    // calls that were not measured
  double (*call_ticks)(void);  // one call, measured by `start`
};

__attribute__((visibility("default"))) const struct lbf_procedures* lbf_procedures_library(void);

#ifdef __cplusplus
}
#endif
