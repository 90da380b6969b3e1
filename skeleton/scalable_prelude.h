// The fixed parts of a scalable skeleton: C99 and MPI 3.0, nothing else but POSIX nanosleep. Behind the
// constants K, COMMS, GRID, GRID_FIXED and kWorkPrelude of the generated part.
#pragma once

namespace lbf::skeleton {

inline constexpr const char* kScalablePrelude = R"(
/* Formulas of rank and ranks. */
static int inside(int peer) { return peer >= 0 && peer < ranks ? peer : -1; }
static inline int other(int peer) { return peer == rank ? -1 : inside(peer); }
static inline int offset(int value) { return inside(rank + value); }
static inline int shift(int value) { return ((rank + value) % ranks + ranks) % ranks; }
static inline int doublings(void) {
  int steps = 0;
  while ((1L << steps) < ranks) ++steps;
  return steps;
}
/* The square (2) or cube root (3) of ranks, by Newton's method. */
static inline double root(int degree) {
  double x = ranks;
  int i;
  for (i = 0; i < 100; ++i) x = ((degree - 1) * x + ranks / (degree == 2 ? x : x * x)) / degree;
  return x;
}
static inline int transposed(void) {
  return shape[0] != shape[1] ? -1 : other(rank % shape[1] * shape[1] + rank / shape[1]);
}

static inline int moved(int periodic, int x, int y, int z) {
  int place[3], move[3], i;
  place[0] = rank / (shape[1] * shape[2]);
  place[1] = rank / shape[2] % shape[1];
  place[2] = rank % shape[2];
  move[0] = x;
  move[1] = y;
  move[2] = z;
  for (i = 0; i < 3; ++i) {
    place[i] += move[i];
    if (periodic) place[i] = (place[i] + shape[i]) % shape[i];
    if (place[i] < 0 || place[i] >= shape[i]) return -1;
  }
  return (place[0] * shape[1] + place[1]) * shape[2] + place[2];
}
static inline int neighbour(int x, int y, int z) { return moved(0, x, y, z); }
static inline int around(int x, int y, int z) { return moved(1, x, y, z); }

/* Which part of the grid this rank is in, by the dimensions that are not `kept` (bits). */
static inline int outside(int kept) {
  int place[3], i, color = 0;
  place[0] = rank / (shape[1] * shape[2]);
  place[1] = rank / shape[2] % shape[1];
  place[2] = rank % shape[2];
  for (i = 0; i < 3; ++i) {
    if ((kept & 1 << i) == 0) color = color * shape[i] + place[i];
  }
  return color;
}

/* The factors of ranks that are the most alike, the largest first. */
static void make_shape(void) {
  int a, b, i;
  if (GRID == NO_GRID) return;
  shape[0] = ranks;
  for (a = 1; a <= ranks / a; ++a) {
    if (ranks % a != 0) continue;
    if (DIMS == 2) {
      shape[0] = ranks / a;
      shape[1] = a;
      continue;
    }
    for (b = a; b <= ranks / a / b; ++b) {
      if (ranks / a % b != 0) continue;
      if (ranks / a / b < shape[0] || (ranks / a / b == shape[0] && b < shape[1])) {
        shape[0] = ranks / a / b;
        shape[1] = b;
        shape[2] = a;
      }
    }
  }
  if (GRID == SHORTEST_FIRST) {
    i = shape[0];
    shape[0] = shape[DIMS - 1];
    shape[DIMS - 1] = i;
  } else if (GRID == COLUMNS) {
    shape[0] = ranks / FIXED;
    shape[1] = FIXED;
  } else if (GRID == ROWS) {
    shape[0] = FIXED;
    shape[1] = ranks / FIXED;
  }
}

/* The operations. Where `counting` is set they only count messages: what each rank sends, to whom, must be what the
   others receive. */
static int counting;
static unsigned long long *sent, *received; /* by peer: sums of messages, each as a number for its tag */

static unsigned long long message(int tag, int number) {
  unsigned long long x = (unsigned long long)tag * 64u + (unsigned)number + 1u;
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ull;
  return (x ^ (x >> 29)) | 1u;
}

static inline void computed(double microseconds, double k) {
  if (!counting) compute(microseconds, k);
}
static inline void idled(double microseconds, double k) {
  if (!counting) idle(microseconds, k);
}

static int bytes_of(double bytes, double k) {
  int all;
  if (!(bytes < 2147483000.0)) {
    fprintf(stderr, "skeleton: rank %d: a message of %.0f bytes with %d ranks\n", rank, bytes, ranks);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  all = bytes > 0 ? (int)(bytes + 0.5) : 0;
  return k > 1 ? (int)(all / k) : all;
}

/* Room for at least so many bytes; what is sent and received has no meaning. */
static char *room_of(char **memory, size_t *size, double bytes) {
  if (*memory == NULL || *size < (size_t)bytes + 8) {
    free(*memory);
    *size = (size_t)bytes + 8;
    *memory = room(*size);
  }
  return *memory;
}
static char *out_memory, *in_memory;
static size_t out_size, in_size;
static char *out_of(double bytes) {
  /* The old one stays where it is: a buffered send may be under way from it. */
  if (out_size < (size_t)bytes + 8) out_memory = NULL;
  return room_of(&out_memory, &out_size, bytes);
}
static char *in_of(double bytes) { return room_of(&in_memory, &in_size, bytes); }

/* Requests under way: which term started them, and what they receive. Slots are never fewer than before. */
struct slot {
  MPI_Request request;
  int term; /* -1: free */
  char *memory;
  size_t size;
};
static struct slot *slots;
static int slot_count;
static struct slot *start(int term) {
  int i;
  for (i = 0; i < slot_count; ++i) {
    if (slots[i].term < 0) break;
  }
  if (i == slot_count) {
    struct slot *more = realloc(slots, (size_t)(slot_count + 1) * sizeof *slots);
    if (more == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    slots = more;
    slots[i].memory = NULL;
    slots[i].size = 0;
    ++slot_count;
  }
  slots[i].term = term;
  slots[i].request = MPI_REQUEST_NULL;
  return &slots[i];
}

/* Sizes on the two sides of a message may be rounded differently. */
static double largest(double bytes) {
  const double most = 2147482999.0, more = 2 * bytes + 64;
  return more < most ? more : bytes < most ? most : bytes;
}
static int in_comm(int number, int peer) { return number == 0 ? peer : rank_of[number][peer]; }

static inline int counted_send(int number, int peer, int tag) {
  if (counting) sent[peer] += message(tag, number);
  return counting;
}
static inline int counted_receive(int number, int peer, int tag) {
  if (counting) received[peer] += message(tag, number);
  return counting;
}

static inline void send_to(int peer, double bytes, int tag, int number, int sync, double k) {
  const int n = bytes_of(bytes, k);
  if (counted_send(number, peer, tag)) return;
  if (sync) {
    MPI_Ssend(out_of(n), n, MPI_BYTE, in_comm(number, peer), tag, comm[number]);
  } else {
    MPI_Send(out_of(n), n, MPI_BYTE, in_comm(number, peer), tag, comm[number]);
  }
}
/* A buffered send never waits for its receive. */
static inline void buffered_send_to(int peer, double bytes, int tag, int number, double k) {
  const int n = bytes_of(bytes, k);
  MPI_Request request;
  if (counted_send(number, peer, tag)) return;
  MPI_Isend(out_of(n), n, MPI_BYTE, in_comm(number, peer), tag, comm[number], &request);
  MPI_Request_free(&request);
}
static inline void start_send(int term, int peer, double bytes, int tag, int number, int sync, double k) {
  const int n = bytes_of(bytes, k);
  struct slot *slot;
  if (counted_send(number, peer, tag)) return;
  slot = start(term);
  room_of(&slot->memory, &slot->size, n);
  if (sync) {
    MPI_Issend(slot->memory, n, MPI_BYTE, in_comm(number, peer), tag, comm[number], &slot->request);
  } else {
    MPI_Isend(slot->memory, n, MPI_BYTE, in_comm(number, peer), tag, comm[number], &slot->request);
  }
}
static inline void receive_from(int peer, double bytes, int tag, int number) {
  const double n = largest(bytes);
  if (counted_receive(number, peer, tag)) return;
  MPI_Recv(in_of(n), bytes_of(n, 1), MPI_BYTE, in_comm(number, peer), tag, comm[number], MPI_STATUS_IGNORE);
}
static inline void start_receive(int term, int peer, double bytes, int tag, int number) {
  const double n = largest(bytes);
  struct slot *slot;
  if (counted_receive(number, peer, tag)) return;
  slot = start(term);
  room_of(&slot->memory, &slot->size, n);
  MPI_Irecv(slot->memory, bytes_of(n, 1), MPI_BYTE, in_comm(number, peer), tag, comm[number], &slot->request);
}
static inline void probe_from(int peer, int tag, int number) {
  if (!counting) MPI_Probe(in_comm(number, peer), tag, comm[number], MPI_STATUS_IGNORE);
}
/* Ends the requests that these terms started. */
static inline void wait_for(const int *terms, int n) {
  static MPI_Request *some;
  static int room_for;
  int i, j, ending = 0;
  if (counting) return;
  if (slot_count > room_for) {
    free(some);
    room_for = slot_count;
    some = malloc((size_t)room_for * sizeof *some);
    if (some == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (i = 0; i < slot_count; ++i) {
    for (j = 0; j < n; ++j) {
      if (slots[i].term != terms[j]) continue;
      some[ending++] = slots[i].request;
      slots[i].term = -1;
      break;
    }
  }
  if (ending == 1) MPI_Wait(&some[0], MPI_STATUS_IGNORE);
  if (ending > 1) MPI_Waitall(ending, some, MPI_STATUSES_IGNORE);
}

/* Vectors of numbers are added; what is no whole number of them is combined as bits. */
static inline int items(int bytes) { return bytes % 8 == 0 ? bytes / 8 : bytes; }
static inline MPI_Datatype item(int bytes) { return bytes % 8 == 0 ? MPI_DOUBLE : MPI_BYTE; }
static inline MPI_Op operation(int bytes) { return bytes % 8 == 0 ? MPI_SUM : MPI_BOR; }
/* The same size for each of n peers, and where they lie: two arrays, offsets behind sizes. */
static inline int *each_of(int bytes, int n) {
  static int *all;
  static int room_for;
  int i;
  if ((double)bytes * n > 2147483647.0) {
    fprintf(stderr, "skeleton: rank %d: %d blocks of %d bytes are more than 2 GiB\n", rank, n, bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (n > room_for) {
    free(all);
    room_for = n;
    all = malloc((size_t)n * 2 * sizeof *all);
    if (all == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (i = 0; i < n; ++i) {
    all[i] = bytes;
    all[n + i] = i * bytes;
  }
  return all;
}
)";

inline constexpr const char* kScalableMain = R"(
static void refuse(const char *why) {
  if (rank == 0) fprintf(stderr, "skeleton: started with %d ranks: %s\n", ranks, why);
  MPI_Finalize();
  exit(1);
}

static void make_comm(int number, int color) {
  MPI_Group all, own;
  int i, *list, size;
  MPI_Comm_split(MPI_COMM_WORLD, color, rank, &comm[number]);
  MPI_Comm_rank(comm[number], &rank_in[number]);
  MPI_Comm_size(comm[number], &size_of[number]);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_group(comm[number], &own);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  list = malloc((size_t)size * sizeof *list);
  rank_of[number] = malloc((size_t)size * sizeof *list);
  if (list == NULL || rank_of[number] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (i = 0; i < size; ++i) list[i] = i;
  MPI_Group_translate_ranks(all, size, list, own, rank_of[number]);
  free(list);
  MPI_Group_free(&all);
  MPI_Group_free(&own);
}

/* Whether every message of every phase has both its ends with so many ranks; nothing is sent for it but one sum for
   each pair of ranks and phase. */
static void check_messages(void) {
  unsigned long long *wanted;
  int phase, i, wrong = 0;
  sent = room((size_t)ranks * sizeof *sent);
  received = room((size_t)ranks * sizeof *received);
  wanted = room((size_t)ranks * sizeof *wanted);
  counting = 1;
  for (phase = 0; phase < PHASES; ++phase) {
    for (i = 0; i < ranks; ++i) sent[i] = received[i] = 0;
    run_phase(phase);
    MPI_Alltoall(sent, 1, MPI_UNSIGNED_LONG_LONG, wanted, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    for (i = 0; i < ranks; ++i) {
      if (wanted[i] != received[i] && wrong++ == 0) {
        fprintf(stderr, "skeleton: started with %d ranks: what rank %d sends is not what rank %d receives, phase %d\n",
                ranks, i, rank, phase + 1);
      }
    }
  }
  counting = 0;
  free(sent);
  free(received);
  free(wanted);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (wrong > 0) refuse("the formulas, which hold for the recorded rank counts, do not hold for this one");
}

int main(int argc, char **argv) {
  const char *known_rate = getenv("LBF_SKELETON_RATE");
  double begin, seconds, longest = 0, slowest = 0;
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  make_shape();
  if (why_not() != NULL) refuse(why_not());
  comm[0] = MPI_COMM_WORLD;
  rank_in[0] = rank;
  size_of[0] = ranks;
  make_comms();
  check_messages();
  rate = known_rate != NULL && atof(known_rate) > 0 ? atof(known_rate) : calibrated();
  MPI_Barrier(MPI_COMM_WORLD);
  begin = MPI_Wtime();
  run();
  seconds = MPI_Wtime() - begin;
  MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&rate, &slowest, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("skeleton_s=%.6f factor=%d application_s=%.6f rate=%.0f\n", longest, K, longest * K, slowest);
    printf("skeleton: %d ranks, %.3f s; times %d, as the application was scaled: %.3f s\n", ranks, longest, K, longest * K);
  }
  for (i = 0; i < slot_count; ++i) free(slots[i].memory);
  free(slots);
  free(out_memory);
  free(in_memory);
  MPI_Finalize();
  return 0;
}
)";

}  // namespace lbf::skeleton
