/* What a rank does by itself inside a collective, for lbf-calibrate: copies and reductions.
 *
 * lbf-calibrate starts it through srun with one rank. Copies are the library's own, an allgather on
 * MPI_COMM_SELF, from one ring of RING bytes into another (calibrate_ring.h); reductions are sums of doubles
 * by MPI_Reduce_local, of a buffer that stays the same, as a message that has just come is in the cache, into
 * one of the ring. Printed on stdout:
 * - node 0 NAME
 * - copy BYTES NS, reduce BYTES NS     wall time of one of them: the mean of a few in a row
 * - end
 *
 * Usage: lbf-calibrate-pingpong local RING BYTES [BYTES ...]. Reductions of sizes that are no whole doubles
 * are left out. */
#ifndef LBF_TOOLS_CALIBRATE_LOCAL_H
#define LBF_TOOLS_CALIBRATE_LOCAL_H

/* argv[0] is "local". Returns the exit status. Starts and ends MPI itself. */
int measure_local(int argc, char** argv);

#endif
