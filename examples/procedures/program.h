// What the examples for procedure LBF share (docs/procedures.md): work of a known length, a checked result, and,
// without any capture, a trace of themselves.
//
// Work is `units` of UNIT_MS milliseconds. PROGRAM_BUSY=spin (the default) computes that long by the process's own CPU
// time, so that a processor is needed for each rank; PROGRAM_BUSY=sleep sleeps instead: then many ranks run on few
// processors as if each had its own, but a capture of the processor's time does not see the work as such.
// PROGRAM_BUSY=compute: a unit is UNIT_STEPS steps of a generator, however long they take, and the result is where they
// end: what a run computes is then the same in all versions and on every machine.
//
// Own trace: with PROGRAM_TRACE=FILE each rank notes its MPI calls and the procedures between PROCEDURE_ENTER and
// PROCEDURE_LEAVE by its own clock (wall time between MPI calls; with spin: CPU time), and rank 0 writes all as a text
// trace at the end. It needs neither Slurm nor a capture, and is what bench/procedure_lbf uses where no patching is
// there; without PROGRAM_TRACE the marks do nothing. Its own MPI_Send and MPI_Recv hide those calls from a capture:
// built with -DPROGRAM_UNMARKED (NAME_unmarked) the program has neither, nor marks: that is what `--captured` runs.
#pragma once

#include <mpi.h>
#include <stdint.h>

struct program {
  int rank, ranks;
  int moved;      // which of the program's modifications this run makes: 0 none, 1 the first ...
  double init_s;  // when MPI_Init returned
  double started_s;
};

// usage: NAME [original | MODIFICATION ...]; `modifications` ends with NULL. Ends the program where the argument is
// wrong or the ranks are fewer than `least_ranks`.
struct program program_begin(int* argc, char*** argv, int least_ranks, const char* const* modifications);
// Prints "time_s T job_s J result R ok|wrong" on rank 0; returns the exit status. T: from a barrier after the start to
// the end of the slowest rank; J: from the return of MPI_Init, which is what lbf predicts.
int program_end(const struct program* run, uint64_t result, uint64_t expected);

// Works `units`, and returns what becomes of `state`: one step of a generator per unit, with compute all of them.
uint64_t work(uint64_t state, int units);
// The same without the time: for the expected result.
uint64_t stepped(uint64_t state, int units);

#ifdef PROGRAM_UNMARKED
#define PROCEDURE_ENTER() ((void)0)
#define PROCEDURE_LEAVE() ((void)0)
#else
void procedure_enter(const char* name);
void procedure_leave(const char* name);
#define PROCEDURE_ENTER() procedure_enter(__func__)
#define PROCEDURE_LEAVE() procedure_leave(__func__)
#endif
#define PROCEDURE __attribute__((noinline))
