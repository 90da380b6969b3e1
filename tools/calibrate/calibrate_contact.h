/* What first contacts cost, for lbf-calibrate: connections are made when they are first used.
 *
 * lbf-calibrate starts it several times through srun, with PAIRS ranks on each of two nodes. Right after
 * MPI_Init each rank of the first node sends to one of the second, where nobody has a connection yet; then
 * every rank to all others of the other node, one pair after the other; then rank 0 to ranks of its own node.
 * Printed on stdout, in nanoseconds, what the first message took longer than later ones:
 * - peer NS            the first of all, from when both ranks were there
 * - first remote NS    between two ranks on two nodes that had sent to other ranks before
 * - first self NS      between two ranks on one node
 * - end
 *
 * Usage: lbf-calibrate-pingpong contact PAIRS */
#ifndef LBF_TOOLS_CALIBRATE_CONTACT_H
#define LBF_TOOLS_CALIBRATE_CONTACT_H

/* argv[0] is "contact". Returns the exit status. Starts and ends MPI itself. */
int measure_contact(int argc, char** argv);

#endif
