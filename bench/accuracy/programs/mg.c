// MG, multigrid, after the NAS kernel of that name: V-cycles for the Poisson equation -div grad u = f on a
// periodic cube, f a few charges of +1 and -1. Several problems one after the other, each with a fixed number
// of cycles.
//
// The cube is cut into blocks in all three dimensions, with a layer of cells around for the neighbours'
// values, which are exchanged dimension by dimension (MPI_Irecv, MPI_Isend, MPI_Waitall); the norm of the
// residual is an MPI_Allreduce after each cycle. The smoother (damped Jacobi) takes all cells from the sweep
// before, so the result does not depend on how the cube is cut. The coarsest grid has 4 cells a side: ranks
// are a power of two, at most 64.
//
// Check: in each problem the residual falls below a bound, and the norm of all solutions is the one that is
// written down here.
//
// usage: mg S|W|A [REPEATS]
#include "accuracy.h"

enum { kCoarsest = 4, kMaxLevels = 8, kCycles = 8, kSweeps = 2, kCoarsestSweeps = 8, kCharges = 10 };
static const double kDamping = 6.0 / 7.0;
static const double kResidualBound = 1e-3;  // of the right side's norm, after kCycles

struct grid {
  int cells;          // of the whole cube, along one side
  int mine[3];        // this rank's, along x, y, z
  size_t step[3];     // from a cell to its neighbour, in elements
  size_t size;        // elements of an array, with the layer around
  double h2;          // side of a cell, squared
  double *u, *f, *r;  // solution, right side, residual (and the next sweep's solution)
};

struct solver {
  const struct accuracy_run* run;
  int blocks[3], place[3];  // ranks along each dimension, and where this one is
  int below[3], above[3];   // neighbours
  int levels;               // grid[0] is the coarsest
  struct grid grid[kMaxLevels];
  double *out_low, *out_high, *in_low, *in_high;
};

// Calls `body` with `at` for every own cell.
#define FOR_EACH_CELL(grid, at, body)                                              \
  for (int z_ = 1; z_ <= (grid)->mine[2]; ++z_) {                                  \
    for (int y_ = 1; y_ <= (grid)->mine[1]; ++y_) {                                \
      size_t at = (size_t)z_ * (grid)->step[2] + (size_t)y_ * (grid)->step[1] + 1; \
      for (int x_ = 1; x_ <= (grid)->mine[0]; ++x_, ++at) body                     \
    }                                                                              \
  }

// --- the layer around a block

// Copies the plane `index` across dimension d, with the layers of the other dimensions, to or from a buffer.
static void copy_plane(const struct grid* grid, double* array, int d, int index, double* buffer, int to_buffer) {
  const int e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
  size_t place = 0;
  for (int j = 0; j < grid->mine[f] + 2; ++j) {
    for (int i = 0; i < grid->mine[e] + 2; ++i, ++place) {
      double* cell = array + (size_t)index * grid->step[d] + (size_t)i * grid->step[e] + (size_t)j * grid->step[f];
      if (to_buffer) {
        buffer[place] = *cell;
      } else {
        *cell = buffer[place];
      }
    }
  }
}

static void exchange(struct solver* solver, const struct grid* grid, double* array) {
  for (int d = 0; d < 3; ++d) {
    const int last = grid->mine[d];
    const int count = (grid->mine[d == 0 ? 1 : 0] + 2) * (grid->mine[d == 2 ? 1 : 2] + 2);
    copy_plane(grid, array, d, 1, solver->out_low, 1);
    copy_plane(grid, array, d, last, solver->out_high, 1);
    double *from_below = solver->out_high, *from_above = solver->out_low;  // the cube is periodic
    if (solver->blocks[d] > 1) {
      const int downwards = 2 * d, upwards = 2 * d + 1;
      MPI_Request requests[4];
      MPI_Irecv(solver->in_low, count, MPI_DOUBLE, solver->below[d], upwards, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(solver->in_high, count, MPI_DOUBLE, solver->above[d], downwards, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(solver->out_low, count, MPI_DOUBLE, solver->below[d], downwards, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(solver->out_high, count, MPI_DOUBLE, solver->above[d], upwards, MPI_COMM_WORLD, &requests[3]);
      MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      from_below = solver->in_low;
      from_above = solver->in_high;
    }
    copy_plane(grid, array, d, 0, from_below, 0);
    copy_plane(grid, array, d, last + 1, from_above, 0);
  }
}

// --- the parts of a V-cycle

static inline double neighbours(const struct grid* grid, const double* u, size_t at) {
  return u[at - 1] + u[at + 1] + u[at - grid->step[1]] + u[at + grid->step[1]] + u[at - grid->step[2]] +
         u[at + grid->step[2]];
}

static void smooth(struct solver* solver, struct grid* grid, int sweeps) {
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    exchange(solver, grid, grid->u);
    const double *u = grid->u, *f = grid->f;
    double* next = grid->r;
    FOR_EACH_CELL(grid, at,
                  { next[at] = u[at] + kDamping * ((grid->h2 * f[at] + neighbours(grid, u, at)) / 6 - u[at]); })
    grid->r = grid->u;
    grid->u = next;
  }
}

static void compute_residual(struct solver* solver, struct grid* grid) {
  exchange(solver, grid, grid->u);
  const double *u = grid->u, *f = grid->f;
  double* r = grid->r;
  FOR_EACH_CELL(grid, at, { r[at] = f[at] - (6 * u[at] - neighbours(grid, u, at)) / grid->h2; })
}

// The coarse cell that holds a fine one: cells 1, 2 -> 1, and 3, 4 -> 2.
static size_t coarse_of(const struct grid* coarse, int x, int y, int z) {
  return (size_t)((z + 1) / 2) * coarse->step[2] + (size_t)((y + 1) / 2) * coarse->step[1] + (size_t)((x + 1) / 2);
}

// The coarse right side is the mean of the fine residual; the coarse solution begins at zero.
static void restrict_residual(const struct grid* fine, struct grid* coarse) {
  memset(coarse->f, 0, coarse->size * sizeof(double));
  memset(coarse->u, 0, coarse->size * sizeof(double));
  FOR_EACH_CELL(fine, at, { coarse->f[coarse_of(coarse, x_, y_, z_)] += fine->r[at] / 8; })
}

// Adds the coarse solution, interpolated linearly in each dimension between the two nearest coarse cells.
static void prolong(struct solver* solver, const struct grid* coarse, struct grid* fine) {
  exchange(solver, coarse, coarse->u);
  FOR_EACH_CELL(fine, at, {
    const double* near = coarse->u + coarse_of(coarse, x_, y_, z_);
    const ptrdiff_t dx = x_ % 2 == 1 ? -1 : 1;
    const ptrdiff_t dy = (y_ % 2 == 1 ? -1 : 1) * (ptrdiff_t)coarse->step[1];
    const ptrdiff_t dz = (z_ % 2 == 1 ? -1 : 1) * (ptrdiff_t)coarse->step[2];
    fine->u[at] += (27 * near[0] + 9 * (near[dx] + near[dy] + near[dz]) +
                    3 * (near[dx + dy] + near[dx + dz] + near[dy + dz]) + near[dx + dy + dz]) /
                   64;
  })
}

static void v_cycle(struct solver* solver, int level) {
  struct grid* grid = &solver->grid[level];
  if (level == 0) {
    smooth(solver, grid, kCoarsestSweeps);
    return;
  }
  smooth(solver, grid, kSweeps);
  compute_residual(solver, grid);
  restrict_residual(grid, &solver->grid[level - 1]);
  v_cycle(solver, level - 1);
  prolong(solver, &solver->grid[level - 1], grid);
  smooth(solver, grid, kSweeps);
}

// --- problems

static double norm_of(const struct grid* grid, const double* array) {
  double mine = 0, all;
  FOR_EACH_CELL(grid, at, { mine += array[at] * array[at]; })
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(all / ((double)grid->cells * grid->cells * grid->cells));
}

static void set_up(struct solver* solver, int cells) {
  const struct accuracy_run* run = solver->run;
  int rest = run->ranks;
  for (int d = 0; d < 3; ++d) solver->blocks[d] = 1;
  for (int d = 2; rest > 1; d = (d + 2) % 3, rest /= 2) solver->blocks[d] *= 2;  // z, y, x, z ...
  solver->place[0] = run->rank % solver->blocks[0];
  solver->place[1] = run->rank / solver->blocks[0] % solver->blocks[1];
  solver->place[2] = run->rank / (solver->blocks[0] * solver->blocks[1]);
  int stride = 1;
  for (int d = 0; d < 3; ++d) {
    const int here = solver->place[d], blocks = solver->blocks[d];
    solver->below[d] = run->rank + ((here + blocks - 1) % blocks - here) * stride;
    solver->above[d] = run->rank + ((here + 1) % blocks - here) * stride;
    stride *= blocks;
  }
  for (int side = kCoarsest; side <= cells; side *= 2) {
    struct grid* grid = &solver->grid[solver->levels++];
    grid->cells = side;
    grid->h2 = 1.0 / ((double)side * side);
    grid->size = 1;
    for (int d = 0; d < 3; ++d) {
      grid->mine[d] = side / solver->blocks[d];
      grid->step[d] = grid->size;
      grid->size *= (size_t)grid->mine[d] + 2;
    }
    grid->u = accuracy_alloc(run, grid->size, sizeof(double));
    grid->f = accuracy_alloc(run, grid->size, sizeof(double));
    grid->r = accuracy_alloc(run, grid->size, sizeof(double));
  }
  const size_t plane = (size_t)(cells + 2) * (cells + 2);
  solver->out_low = accuracy_alloc(run, plane, sizeof(double));
  solver->out_high = accuracy_alloc(run, plane, sizeof(double));
  solver->in_low = accuracy_alloc(run, plane, sizeof(double));
  solver->in_high = accuracy_alloc(run, plane, sizeof(double));
}

static void place_charges(const struct solver* solver, struct grid* grid, int problem) {
  memset(grid->u, 0, grid->size * sizeof(double));
  memset(grid->f, 0, grid->size * sizeof(double));
  uint64_t state = lcg_jump(141421356, (uint64_t)problem * 6 * kCharges);
  for (int charge = 0; charge < 2 * kCharges; ++charge) {
    size_t at = 0;
    int is_mine = 1;
    for (int d = 0; d < 3; ++d) {
      state = lcg_step(state);
      const int cell = (int)(lcg_uniform(state) * grid->cells) - solver->place[d] * grid->mine[d];
      is_mine = is_mine && cell >= 0 && cell < grid->mine[d];
      if (is_mine) at += (size_t)(cell + 1) * grid->step[d];
    }
    if (is_mine) grid->f[at] += charge % 2 == 0 ? 1 : -1;
  }
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "mg", " [REPEATS]");
  if (run.ranks > 64 || (run.ranks & (run.ranks - 1)) != 0) accuracy_fail(&run, "MG needs 1, 2, 4 ... 64 ranks");
  const int problems = (int)accuracy_by_size(&run, 3, 16, 10);
  const double expected = accuracy_by_size(&run, 4.4234727610e-5, 2.6610499373e-5, 2.0764084955e-6);

  struct solver solver = {.run = &run};
  set_up(&solver, (int)accuracy_by_size(&run, 32, 64, 128));
  struct grid* finest = &solver.grid[solver.levels - 1];
  int right = 1;
  double sum = 0;
  for (int repeat = accuracy_repeats(argc, argv); repeat > 0; --repeat) {
    sum = 0;
    for (int problem = 0; problem < problems; ++problem) {
      place_charges(&solver, finest, problem);
      const double first = norm_of(finest, finest->f);
      double residual = first;
      for (int cycle = 0; cycle < kCycles; ++cycle) {
        v_cycle(&solver, solver.levels - 1);
        compute_residual(&solver, finest);
        residual = norm_of(finest, finest->r);
      }
      right = right && residual < kResidualBound * first;
      sum += norm_of(finest, finest->u);
    }
    right = right && accuracy_close(sum, expected, 1e-9);
  }
  return accuracy_end(&run, right, "%.10e", sum);
}
