/* Which ranks are on which of two nodes, for the measurements of lbf-calibrate that have several on each. */
#ifndef LBF_TOOLS_CALIBRATE_RANKS_H
#define LBF_TOOLS_CALIBRATE_RANKS_H

enum { kMostRanksOfNode = 64 };

struct Ranks {
  int rank;
  int number;                 /* among the ranks of its node */
  int first_node;             /* is it rank 0's? */
  int here[kMostRanksOfNode]; /* by number */
  int there[kMostRanksOfNode];
};

/* Ranks that share processors take turns only when a waiting one lets go of its own: asks for that where this
 * process may use fewer than `ranks` processors. Before MPI_Init. */
void yield_if_shared(int ranks);

/* As srun --distribution=cyclic puts `each` ranks on each of two nodes. Sends nothing. */
void guess_ranks(struct Ranks* ranks, int each);

/* Is it so? If not rank 0 says it on stderr. All ranks of MPI_COMM_WORLD. */
int are_as_guessed(const struct Ranks* ranks, int each);

#endif
