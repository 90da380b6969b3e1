// FT, a 3-D fast Fourier transform, after the NAS kernel of that name: the heat equation on a periodic box. A
// random field is transformed once; each step damps every wave as time does, transforms back, and adds up
// some of the field.
//
// A rank has a slab of z-planes, layout [z][y][x], for the transforms along x and y, and after the transpose
// (one MPI_Alltoall) a slab of x-planes, layout [x][y][z], for those along z. Ranks: a power of two, at
// most 32.
//
// Check: the last inverse transform, of the undamped waves, gives the field of the beginning; the sum of all
// steps equals the one that is written down here, whatever the number of ranks.
//
// usage: ft S|W|A [REPEATS]
#include "accuracy.h"

struct complex {
  double re, im;
};

static const double kPi = 3.14159265358979323846;

// --- one row: iterative radix 2, twiddles[k] = exp(-2 pi i k / longest)

struct twiddles {
  int longest;
  struct complex* factor;
};

static void transform_row(const struct twiddles* twiddles, struct complex* row, int n, int inverse) {
  for (int i = 1, reversed = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; reversed & bit; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) {
      const struct complex swapped = row[i];
      row[i] = row[reversed];
      row[reversed] = swapped;
    }
  }
  for (int half = 1; half < n; half *= 2) {
    const int stride = twiddles->longest / (2 * half);
    for (int start = 0; start < n; start += 2 * half) {
      for (int k = 0; k < half; ++k) {
        const struct complex factor = twiddles->factor[k * stride];
        const double wi = inverse ? -factor.im : factor.im;
        struct complex *low = &row[start + k], *high = low + half;
        const double re = high->re * factor.re - high->im * wi, im = high->re * wi + high->im * factor.re;
        high->re = low->re - re;
        high->im = low->im - im;
        low->re += re;
        low->im += im;
      }
    }
  }
}

// --- the box

struct box {
  const struct accuracy_run* run;
  int nx, ny, nz;
  int my_nx, my_nz;  // planes of this rank
  size_t points;     // of this rank
  struct twiddles twiddles;
  struct complex *row, *outgoing, *incoming;
};

static void along_x_and_y(struct box* box, struct complex* field, int inverse) {
  for (int z = 0; z < box->my_nz; ++z) {
    struct complex* plane = field + (size_t)z * box->ny * box->nx;
    for (int y = 0; y < box->ny; ++y) transform_row(&box->twiddles, plane + (size_t)y * box->nx, box->nx, inverse);
    for (int x = 0; x < box->nx; ++x) {
      for (int y = 0; y < box->ny; ++y) box->row[y] = plane[(size_t)y * box->nx + x];
      transform_row(&box->twiddles, box->row, box->ny, inverse);
      for (int y = 0; y < box->ny; ++y) plane[(size_t)y * box->nx + x] = box->row[y];
    }
  }
}

static void along_z(struct box* box, struct complex* field, int inverse) {
  for (int row = 0; row < box->my_nx * box->ny; ++row) {
    transform_row(&box->twiddles, field + (size_t)row * box->nz, box->nz, inverse);
  }
}

// The block for (or from) rank r is [x of r's planes][y][z of mine] on the way to x-planes; the same block
// the other way round on the way back.
static void exchange_blocks(const struct box* box) {
  const int doubles = (int)(2 * box->points / box->run->ranks);
  MPI_Alltoall(box->outgoing, doubles, MPI_DOUBLE, box->incoming, doubles, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void to_x_planes(struct box* box, const struct complex* z_planes, struct complex* x_planes) {
  struct complex* block = box->outgoing;
  for (int x = 0; x < box->nx; ++x) {  // my_nx of them for each rank, in order of ranks
    for (int y = 0; y < box->ny; ++y) {
      for (int z = 0; z < box->my_nz; ++z) *block++ = z_planes[((size_t)z * box->ny + y) * box->nx + x];
    }
  }
  exchange_blocks(box);
  block = box->incoming;
  for (int from = 0; from < box->run->ranks; ++from) {
    for (int row = 0; row < box->my_nx * box->ny; ++row) {
      struct complex* target = x_planes + (size_t)row * box->nz + (size_t)from * box->my_nz;
      for (int z = 0; z < box->my_nz; ++z) target[z] = *block++;
    }
  }
}

static void to_z_planes(struct box* box, const struct complex* x_planes, struct complex* z_planes) {
  struct complex* block = box->outgoing;
  for (int to = 0; to < box->run->ranks; ++to) {
    for (int row = 0; row < box->my_nx * box->ny; ++row) {
      const struct complex* source = x_planes + (size_t)row * box->nz + (size_t)to * box->my_nz;
      for (int z = 0; z < box->my_nz; ++z) *block++ = source[z];
    }
  }
  exchange_blocks(box);
  block = box->incoming;
  for (int x = 0; x < box->nx; ++x) {
    for (int y = 0; y < box->ny; ++y) {
      for (int z = 0; z < box->my_nz; ++z) z_planes[((size_t)z * box->ny + y) * box->nx + x] = *block++;
    }
  }
}

static void forward(struct box* box, struct complex* field, struct complex* waves) {
  along_x_and_y(box, field, 0);
  to_x_planes(box, field, waves);
  along_z(box, waves, 0);
}

// Destroys `waves`.
static void backward(struct box* box, struct complex* waves, struct complex* field) {
  along_z(box, waves, 1);
  to_z_planes(box, waves, field);
  along_x_and_y(box, field, 1);
  const double scale = 1.0 / ((double)box->nx * box->ny * box->nz);
  for (size_t i = 0; i < box->points; ++i) {
    field[i].re *= scale;
    field[i].im *= scale;
  }
}

// --- the physics

static void fill_randomly(const struct box* box, struct complex* field) {
  uint64_t state = lcg_jump(314159265, 2 * box->points * (uint64_t)box->run->rank);
  for (size_t i = 0; i < box->points; ++i) {
    field[i].re = lcg_uniform(state = lcg_step(state));
    field[i].im = lcg_uniform(state = lcg_step(state));
  }
}

// What time t leaves of a wave, along one axis.
static void damping_of_axis(int n, double t, double* damping) {
  for (int k = 0; k < n; ++k) {
    const int wave = k < n / 2 ? k : k - n;
    damping[k] = exp(-4 * kPi * kPi * 1e-6 * t * wave * wave);
  }
}

static void damp(const struct box* box, const struct complex* waves, double t, struct complex* damped) {
  double along_x[256], along_y[256], along_z[256];
  damping_of_axis(box->nx, t, along_x);
  damping_of_axis(box->ny, t, along_y);
  damping_of_axis(box->nz, t, along_z);
  size_t i = 0;
  for (int x = 0; x < box->my_nx; ++x) {
    for (int y = 0; y < box->ny; ++y) {
      const double factor = along_x[box->run->rank * box->my_nx + x] * along_y[y];
      for (int z = 0; z < box->nz; ++z, ++i) {
        damped[i].re = waves[i].re * factor * along_z[z];
        damped[i].im = waves[i].im * factor * along_z[z];
      }
    }
  }
}

static struct complex sum_of_some(const struct box* box, const struct complex* field) {
  struct complex mine = {0, 0}, all;
  for (int j = 1; j <= 1024; ++j) {
    const int x = j % box->nx, y = 3 * j % box->ny, z = 5 * j % box->nz - box->run->rank * box->my_nz;
    if (z < 0 || z >= box->my_nz) continue;
    const struct complex value = field[((size_t)z * box->ny + y) * box->nx + x];
    mine.re += value.re;
    mine.im += value.im;
  }
  MPI_Allreduce(&mine, &all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static double largest_difference(const struct box* box, const struct complex* a, const struct complex* b) {
  double largest = 0;
  for (size_t i = 0; i < box->points; ++i) {
    largest = fmax(largest, fmax(fabs(a[i].re - b[i].re), fabs(a[i].im - b[i].im)));
  }
  return largest;
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "ft", " [REPEATS]");
  struct box box = {.run = &run, .nx = 32, .ny = 32, .nz = 32};
  if (run.size != 'S') box.nx = box.ny = 64;
  if (run.size == 'A') box.nz = 64;
  const int steps = (int)accuracy_by_size(&run, 20, 80, 60);
  // What all steps' sums add up to, with any number of ranks.
  const struct complex expected = {accuracy_by_size(&run, 1.3195673513e4, 4.1470491760e4, 3.0402353691e4),
                                   accuracy_by_size(&run, 8.7389873524e3, 4.2516110046e4, 3.1279807175e4)};
  if (run.ranks > 32 || (run.ranks & (run.ranks - 1)) != 0) accuracy_fail(&run, "FT needs 1, 2, 4 ... 32 ranks");

  box.my_nx = box.nx / run.ranks;
  box.my_nz = box.nz / run.ranks;
  box.points = (size_t)box.my_nz * box.ny * box.nx;
  box.twiddles.longest = box.nx;  // the longest side
  box.twiddles.factor = accuracy_alloc(&run, box.nx / 2, sizeof(struct complex));
  for (int k = 0; k < box.nx / 2; ++k) {
    box.twiddles.factor[k] = (struct complex){cos(2 * kPi * k / box.nx), -sin(2 * kPi * k / box.nx)};
  }
  box.row = accuracy_alloc(&run, box.ny, sizeof(struct complex));
  box.outgoing = accuracy_alloc(&run, box.points, sizeof(struct complex));
  box.incoming = accuracy_alloc(&run, box.points, sizeof(struct complex));
  struct complex* field = accuracy_alloc(&run, box.points, sizeof *field);
  struct complex* waves = accuracy_alloc(&run, box.points, sizeof *waves);
  struct complex* damped = accuracy_alloc(&run, box.points, sizeof *damped);

  int right = 1;
  struct complex sum = {0, 0};
  for (int repeat = accuracy_repeats(argc, argv); repeat > 0; --repeat) {
    fill_randomly(&box, field);
    forward(&box, field, waves);
    sum = (struct complex){0, 0};
    for (int step = 1; step <= steps; ++step) {
      damp(&box, waves, step, damped);
      backward(&box, damped, field);
      const struct complex some = sum_of_some(&box, field);
      sum.re += some.re;
      sum.im += some.im;
    }
    backward(&box, waves, field);
    fill_randomly(&box, damped);
    right = right && largest_difference(&box, field, damped) < 1e-12 && accuracy_close(sum.re, expected.re, 1e-9) &&
            accuracy_close(sum.im, expected.im, 1e-9);
  }
  return accuracy_end(&run, right, "%.10e,%.10e", sum.re, sum.im);
}
