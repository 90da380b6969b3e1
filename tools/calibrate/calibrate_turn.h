/* What a waiting rank costs others on its processor, and what it costs to have the processor back, for
 * lbf-calibrate.
 *
 * lbf-calibrate starts it through srun with 4 ranks, on one node or two on each of two. All ranks of a node
 * go to one processor and yield when they wait. Two of them play ping-pong, by turns while the other two
 * sleep and while they wait for a message; then two of one node, while no other one of it is awake, with one
 * message and with several for each answer. Printed on stdout, of each round:
 * - turn NS     the difference of the median half round trips, for each waiting rank beside one that plays
 * - switch NS   what of a half round trip inside the node is not the message's, which several messages have
 * once: from the vain poll of the rank that waits to the other one's having the processor
 * - end
 *
 * Usage: lbf-calibrate-pingpong turn self|remote */
#ifndef LBF_TOOLS_CALIBRATE_TURN_H
#define LBF_TOOLS_CALIBRATE_TURN_H

/* argv[0] is "turn". Returns the exit status. Starts and ends MPI itself. */
int measure_turn(int argc, char** argv);

#endif
