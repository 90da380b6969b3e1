// EP, embarrassingly parallel, after the NAS kernel of that name: pairs of Gaussian random numbers by the
// polar method, counted by the square ring into which they fall. The ranks share the pairs in blocks, and
// speak only at the end.
//
// Check: counts, and sums of the numbers, equal those of a run on one rank, which are written down here. Each
// block begins at its own place of one random stream, and its sums are added as fixed-point numbers, so that
// they do not depend on the order, nor on the number of ranks.
//
// usage: ep S|W|A [REPEATS]
#include "accuracy.h"

enum { kRings = 10, kBlockPairs = 1 << 16 };

struct tally {
  int64_t in_ring[kRings];
  int64_t sum_x, sum_y;  // in units of 2^-24
};

static void do_block(uint64_t block, struct tally* tally) {
  uint64_t state = lcg_jump(271828183, block * 2 * kBlockPairs);
  double sum_x = 0, sum_y = 0;
  for (int i = 0; i < kBlockPairs; ++i) {
    const double u = 2 * lcg_uniform(state = lcg_step(state)) - 1;
    const double v = 2 * lcg_uniform(state = lcg_step(state)) - 1;
    const double square = u * u + v * v;
    if (square > 1 || square == 0) continue;
    const double stretch = sqrt(-2 * log(square) / square);
    const double x = u * stretch, y = v * stretch;
    const int ring = (int)fmax(fabs(x), fabs(y));
    if (ring < kRings) ++tally->in_ring[ring];
    sum_x += x;
    sum_y += y;
  }
  tally->sum_x += llround(sum_x * 0x1p24);
  tally->sum_y += llround(sum_y * 0x1p24);
}

// What a run on one rank gives.
static struct {
  char size;
  int64_t pairs;
  double sum_x, sum_y;
} const kExpected[] = {{'S', 3293573, -3.421097373e+02, 2.226684390e+03},
                       {'W', 105413107, -5.681891786e+03, -1.304182343e+04},
                       {'A', 421639701, -1.941580258e+04, -1.707942006e+04}};

// The tallies of all ranks' blocks.
static struct tally do_all_blocks(const struct accuracy_run* run) {
  const uint64_t blocks = (uint64_t)accuracy_by_size(run, 64, 2048, 8192);
  struct tally mine = {0}, all = {0};
  for (uint64_t block = (uint64_t)run->rank; block < blocks; block += (uint64_t)run->ranks) do_block(block, &mine);
  MPI_Allreduce(&mine, &all, sizeof mine / sizeof(int64_t), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "ep", " [REPEATS]");
  int right = 1;
  int64_t pairs = 0;
  double sum_x = 0, sum_y = 0;
  for (int repeat = accuracy_repeats(argc, argv); repeat > 0; --repeat) {
    const struct tally all = do_all_blocks(&run);
    pairs = 0;
    for (int ring = 0; ring < kRings; ++ring) pairs += all.in_ring[ring];
    sum_x = (double)all.sum_x * 0x1p-24;
    sum_y = (double)all.sum_y * 0x1p-24;
    for (size_t i = 0; i < sizeof kExpected / sizeof kExpected[0]; ++i) {
      if (kExpected[i].size != run.size) continue;
      right = right && pairs == kExpected[i].pairs && accuracy_close(sum_x, kExpected[i].sum_x, 1e-9) &&
              accuracy_close(sum_y, kExpected[i].sum_y, 1e-9);
    }
  }
  return accuracy_end(&run, right, "%lld,%.9e,%.9e", (long long)pairs, sum_x, sum_y);
}
