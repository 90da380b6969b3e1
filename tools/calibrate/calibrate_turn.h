/* What a waiting rank costs others on its processor, for lbf-calibrate.
 *
 * lbf-calibrate starts it through srun with 4 ranks, on one node or two on each of two. All ranks of a node
 * go to one processor and yield when they wait. Two of them play ping-pong, by turns while the other two
 * sleep and while they wait for a message. Printed on stdout, of each round:
 * - turn NS     the difference of the median half round trips, for each waiting rank beside one that plays
 * - end
 *
 * Usage: lbf-calibrate-pingpong turn self|remote */
#ifndef LBF_TOOLS_CALIBRATE_TURN_H
#define LBF_TOOLS_CALIBRATE_TURN_H

/* argv[0] is "turn". Returns the exit status. Starts and ends MPI itself. */
int measure_turn(int argc, char** argv);

#endif
