/* Fork and join of OpenMP teams, without an OpenMP runtime in lbf: the runtimes of the node are loaded, each in a
 * process of its own, and entered where compiled programs enter them (GOMP_parallel, which LLVM's has as well). */
#ifndef LBF_TOOLS_CALIBRATE_TEAM_H
#define LBF_TOOLS_CALIBRATE_TEAM_H

#include "tools/calibrate/calibrate_cores.h"

/* Prints "team LIBRARY THREADS NS" for each library that the node has and 1, 2 ... as many threads as this process has
 * processors: means of some hundred empty regions that follow each other. A library that is missing prints nothing.
 * Returns the exit status. */
int measure_teams(int processors);

#endif
