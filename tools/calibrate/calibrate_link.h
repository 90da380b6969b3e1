/* What the link of a node carries, for lbf-calibrate: streams between two nodes, by one pair of ranks and by
 * several.
 *
 * lbf-calibrate starts it through srun with PAIRS ranks on each of two nodes. Every rank of the first node
 * has a partner on the second one. In rounds that take turns, first one pair, then all of them send messages
 * as fast as they can; what arrives per second is printed on stdout:
 * - library TEXT / node RANK NAME / yield 0|1, as in the ping-pong
 * - stream PAIRS BYTES_PER_SECOND     of one round, all pairs together
 * - end
 *
 * Usage: lbf-calibrate-pingpong link MILLISECONDS PAIRS BYTES: length of a round, pairs, length of a message.
 */
#ifndef LBF_TOOLS_CALIBRATE_LINK_H
#define LBF_TOOLS_CALIBRATE_LINK_H

/* argv[0] is "link". Returns the exit status. Starts and ends MPI itself. */
int measure_link(int argc, char** argv);

#endif
