// The fixed parts of a generated skeleton: C99 and MPI 3.0, nothing else but POSIX nanosleep.
#pragma once

namespace lbf::skeleton {

// Behind the constants RANKS, K, COMMS, SLOTS, BUFFER_BYTES and the table slot_bytes of the generated part.
inline constexpr const char* kCPrelude = R"(
static int rank;                       /* in MPI_COMM_WORLD */
static MPI_Comm comm[COMMS];           /* comm[0]: MPI_COMM_WORLD; the others: this rank's own one */
static int rank_in[COMMS];             /* this rank in them */
static int size_of[COMMS];
static MPI_Request request[SLOTS];     /* of the operations under way, by slot */
static char *arriving[SLOTS];          /* what they receive */
static char *out, *in;                 /* what is sent, what blocking calls receive */
static double rate;                    /* units of work per second of processor time */

static void *room(size_t bytes) {
  void *memory = calloc(bytes + 8, 1);
  if (memory == NULL) {
    fprintf(stderr, "skeleton: rank %d has no memory for %lu bytes\n", rank, (unsigned long)bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

/* Work that no compiler takes away: a chain of dependent floating-point operations. */
static void work(double units) {
  static volatile double sink;
  double x = 1.0 + sink * 1e-300;
  while (units >= 1) {
    long i, n = units < 1e9 ? (long)units : 1000000000L;
    for (i = 0; i < n; ++i) x = x * 0.999999 + 1e-6;
    units -= (double)n;
  }
  sink = x;
}

/* By processor time, so that other processes on this node do not change how much work a second is. */
static double calibrated(void) {
  double best = 0;
  int tries;
  for (tries = 0; tries < 5; ++tries) {
    double units = 1e5, seconds = 0;
    while (seconds < 0.01) {
      clock_t start = clock();
      units *= 2;
      work(units);
      seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    }
    if (units / seconds > best) best = units / seconds;
  }
  return best;
}

static inline void compute(double microseconds, double k) { work(microseconds * 1e-6 / k * rate); }

/* The eighths of a distribution in turn, each once in eight draws. */
static inline double draw(const double *shape, unsigned *turn) {
  *turn = (*turn + 5) % 8;
  return shape[*turn];
}

/* Time off the processor, and in MPI calls that the skeleton does not make. */
static inline void idle(double microseconds, double k) {
  struct timespec time;
  const double seconds = microseconds * 1e-6 / k;
  time.tv_sec = (time_t)seconds;
  time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
  nanosleep(&time, NULL);
}

static inline int shrink(int bytes, double k) { return k > 1 ? (int)(bytes / k) : bytes; }

/* Sizes for each peer of a v-collective, and where they lie. */
static inline void layout(const int *sizes, int n, double k, int *counts, int *offsets) {
  int i, at = 0;
  for (i = 0; i < n; ++i) {
    counts[i] = shrink(sizes[i], k);
    offsets[i] = at;
    at += counts[i];
  }
}

/* Vectors of numbers are added; what is no whole number of them is combined as bits. */
static inline int items(int bytes) { return bytes % 8 == 0 ? bytes / 8 : bytes; }
static inline MPI_Datatype item(int bytes) { return bytes % 8 == 0 ? MPI_DOUBLE : MPI_BYTE; }
static inline MPI_Op operation(int bytes) { return bytes % 8 == 0 ? MPI_SUM : MPI_BOR; }

static inline void wait_for(int n, const int *slots) {
  MPI_Request some[SLOTS];
  int i;
  for (i = 0; i < n; ++i) some[i] = request[slots[i]];
  MPI_Waitall(n, some, MPI_STATUSES_IGNORE);
  for (i = 0; i < n; ++i) request[slots[i]] = MPI_REQUEST_NULL;
}

static void make_comm(int number, int color, int key) {
  MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, key, &comm[number]);
  if (comm[number] != MPI_COMM_NULL) {
    MPI_Comm_rank(comm[number], &rank_in[number]);
    MPI_Comm_size(comm[number], &size_of[number]);
  }
}

static void run(void);
static void make_comms(void);

int main(int argc, char **argv) {
  const char *known_rate = getenv("LBF_SKELETON_RATE");
  double start, seconds, longest = 0, slowest = 0;
  int size, i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != RANKS) {
    if (rank == 0) fprintf(stderr, "skeleton: made for %d ranks, started with %d\n", RANKS, size);
    MPI_Finalize();
    return 1;
  }
  comm[0] = MPI_COMM_WORLD;
  rank_in[0] = rank;
  size_of[0] = size;
  make_comms();
  out = room(BUFFER_BYTES);
  in = room(BUFFER_BYTES);
  for (i = 0; i < SLOTS; ++i) {
    request[i] = MPI_REQUEST_NULL;
    arriving[i] = room((size_t)slot_bytes[i]);
  }
  rate = known_rate != NULL && atof(known_rate) > 0 ? atof(known_rate) : calibrated();
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  run();
  seconds = MPI_Wtime() - start;
  MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&rate, &slowest, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("skeleton_s=%.6f factor=%d application_s=%.6f rate=%.0f\n", longest, K, longest * K, slowest);
    printf("skeleton: %.3f s; times %d, as the application was scaled: %.3f s\n", longest, K, longest * K);
  }
  for (i = 0; i < SLOTS; ++i) free(arriving[i]);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
)";

}  // namespace lbf::skeleton
