/* Ping-pong between two ranks, for lbf-calibrate: half round trips by message size, and the eager limit.
 *
 * Its place: lbf-calibrate starts it through srun, once with the ranks on two nodes and once on one, and
 * makes a network file (docs/formats/network-v1.md) of what it prints on stdout:
 * - library TEXT / node RANK NAME / yield 0|1
 * - batch BYTES NS NS ...     half round trips in nanoseconds, in the order in which they were measured
 * - eager BYTES|all|unknown   the largest message that needs no receive to be sent; of all sizes asked for
 * - work BYTES NS NS          processor time of sending, and of receiving, one message
 * - long_work BYTES NS NS     the same of longer messages, in another way
 * - end
 *
 * Usage: lbf-calibrate-pingpong SECONDS MIN_SAMPLES RING BYTES [BYTES ...], the sizes ascending.
 * With `link`, `contact`, `turn` or `local` as the first argument it measures something else: calibrate_link.h,
 * calibrate_contact.h, calibrate_turn.h, calibrate_local.h.
 *
 * The sizes take turns in short batches, so that a disturbance of some seconds spoils no single size. Every
 * size gets an equal share of SECONDS, at least MIN_SAMPLES samples where that takes less than three times
 * its share, and kFewestSamples in any case.
 *
 * Messages leave from one ring of RING bytes and arrive in another, each behind the last one, so that their
 * data come from outside the caches that RING does not fit into, as in a program that has other things to do
 * between two messages. RING 0: all use the same buffer, as ping-pongs usually do.
 *
 * Processor work cannot be seen in a ping-pong: a waiting rank polls. So, between two nodes and for short messages
 * that are sent eagerly, a few are sent while the receiver sleeps, who takes them when they have long
 * arrived: neither side waits then, and the processor time of its calls is work. Longer messages need both sides'
 * calls to go on: both sleep between their polls, and the processor time of polls in vain is taken off.
 *
 * The eager limit: rank 1 posts its receive some milliseconds after it was told, and until then polls for another
 * message: Open MPI 4.1's eager sends in shared memory are back when the receiver's library has picked them up.
 * It cannot have posted it earlier, so a send that is back by then was eager, for certain. A send that is not may
 * have been held up by something else and is tried again. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/calibrate/calibrate_contact.h"
#include "tools/calibrate/calibrate_link.h"
#include "tools/calibrate/calibrate_local.h"
#include "tools/calibrate/calibrate_ring.h"
#include "tools/calibrate/calibrate_turn.h"

enum { kFewestSamples = 3, kLongestBatch = 64, kMostSamples = 4000, kWarmUps = 2, kTag = 1 };
enum { kSlowNs = 10000000 }; /* an exchange that takes longer needs no warm-up but the very first */
enum { kLargestBurstBytes = 32768, kLongestBurst = 16, kBursts = 24, kFewBursts = 6 };
enum { kNapNs = 20000, kVainPolls = 50 };
static const double kLongestWork_s = 0.05; /* half round trip of the longest messages whose work is measured */
enum { kSettleNs = 2000000, kLongSettleNs = 50000000 };
enum { kEagerSettleNs = 5000000, kEagerTries = 3, kEagerFirstBytes = 1024 };
static const double kLongSettle_s = 0.05;
static const double kEagerPatience_s = 4; /* for the whole search, which takes some 0.2 to 1 s */

/* One batch, as rank 0 announces it to rank 1: exchanges of the ping-pong, or a burst of messages that rank 1
 * takes `settle_ns` later. Neither: the end. */
struct Batch {
  int64_t bytes;
  int64_t exchanges;
  int64_t burst;
  int64_t settle_ns; /* 0: both sides sleep between their polls instead */
  int64_t warm_ups;  /* exchanges before those that count */
  int64_t polls;     /* meanwhile; else the receiver sleeps all of `settle_ns` */
};
enum { kBatchFields = 6 };

/* Where messages leave from, and arrive. */
struct Buffers {
  struct Ring outgoing, incoming;
  int64_t vain_poll_ns;
};

struct Size {
  int64_t bytes;
  int64_t samples;
  double spent_s;
  int64_t half_sum_ns;
};

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int64_t processor_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t parse_number(const char* text, int64_t least, int64_t most, const char* what) {
  char* end = NULL;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
    fprintf(stderr, "lbf-calibrate-pingpong: %s '%s' must be a number from %lld to %lld\n", what, text,
            (long long)least, (long long)most);
    exit(2);
  }
  return value;
}

static void send(struct Buffers* buffers, int64_t bytes, int to) {
  MPI_Send(take(&buffers->outgoing, bytes), (int)bytes, MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}

static void receive(struct Buffers* buffers, int64_t bytes, int from) {
  MPI_Recv(take(&buffers->incoming, bytes), (int)bytes, MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sleep_ns(int64_t ns) {
  const struct timespec time = {ns / 1000000000, ns % 1000000000};
  nanosleep(&time, NULL);
}

static void nap(void) {
  sleep_ns(kNapNs);
}

/* Lets the library see to what arrives, and receives nothing. */
static void poll_until(double end_s) {
  while (now_s() < end_s) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    nap();
  }
}

/* Processor time of one poll in vain with its sleep. REQUIRES: no message comes meanwhile. */
static int64_t vain_poll_ns(void) {
  MPI_Request never;
  char nothing = 0;
  int self = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &self);
  MPI_Irecv(&nothing, 1, MPI_CHAR, self, kTag + 1, MPI_COMM_WORLD, &never);
  const int64_t before_ns = processor_ns();
  for (int i = 0; i < kVainPolls; ++i) {
    int done = 0;
    MPI_Test(&never, &done, MPI_STATUS_IGNORE);
    nap();
  }
  const int64_t each_ns = (processor_ns() - before_ns) / kVainPolls;
  MPI_Cancel(&never);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  return each_ns;
}

/* Processor time of one message to or from `peer`, without the polls in vain. Both sides must do it. */
static int64_t work_asleep_ns(struct Buffers* buffers, int64_t bytes, int peer, int sends) {
  char* const data = take(sends ? &buffers->outgoing : &buffers->incoming, bytes);
  MPI_Request request;
  int64_t vain = 0;
  const int64_t before_ns = processor_ns();
  if (sends) {
    MPI_Isend(data, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
  } else {
    MPI_Irecv(data, (int)bytes, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, &request);
  }
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) break;
    ++vain;
    nap();
  }
  const int64_t work_ns = processor_ns() - before_ns - vain * buffers->vain_poll_ns;
  return work_ns > 0 ? work_ns : 0;
}

static void answer(struct Buffers* buffers) {
  for (;;) {
    struct Batch batch;
    MPI_Recv(&batch, kBatchFields, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (batch.exchanges == 0 && batch.burst == 0) return;
    if (batch.burst > 0 && batch.settle_ns == 0) {
      const int64_t work_ns = work_asleep_ns(buffers, batch.bytes, 0, 0);
      MPI_Send(&work_ns, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD);
      continue;
    }
    if (batch.burst > 0) {
      if (batch.polls) {
        poll_until(now_s() + 1e-9 * (double)batch.settle_ns);
      } else {
        sleep_ns(batch.settle_ns);
      }
      const int64_t before_ns = processor_ns();
      for (int64_t i = 0; i < batch.burst; ++i) {
        receive(buffers, batch.bytes, 0);
      }
      const int64_t work_ns = (processor_ns() - before_ns) / batch.burst;
      MPI_Send(&work_ns, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD);
      continue;
    }
    for (int64_t i = 0; i < batch.exchanges + batch.warm_ups; ++i) {
      receive(buffers, batch.bytes, 0);
      send(buffers, batch.bytes, 0);
    }
  }
}

static void measure(struct Size* size, int64_t exchanges, struct Buffers* buffers) {
  const int slow = size->samples > 0 && size->half_sum_ns / size->samples > kSlowNs;
  struct Batch batch = {size->bytes, exchanges, 0, 0, slow ? 0 : kWarmUps, 0};
  MPI_Send(&batch, kBatchFields, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD);
  const double start_s = now_s();
  int64_t half_ns[kLongestBatch];
  for (int64_t i = -batch.warm_ups; i < exchanges; ++i) {
    const double sent_s = now_s();
    send(buffers, size->bytes, 1);
    receive(buffers, size->bytes, 1);
    if (i >= 0) half_ns[i] = (int64_t)((now_s() - sent_s) * 0.5e9 + 0.5);
  }
  size->spent_s += now_s() - start_s;
  size->samples += exchanges;
  for (int64_t i = 0; i < exchanges; ++i) size->half_sum_ns += half_ns[i];
  printf("batch %lld", (long long)size->bytes);
  for (int64_t i = 0; i < exchanges; ++i) printf(" %lld", (long long)half_ns[i]);
  printf("\n");
  fflush(stdout);
}

static void measure_work(const struct Size* size, struct Buffers* buffers) {
  int64_t burst = size->bytes > 0 ? kLargestBurstBytes / size->bytes : kLongestBurst;
  if (burst > kLongestBurst) burst = kLongestBurst;
  /* Long enough for all of them to arrive, one after the other. */
  const int64_t settle_ns = kSettleNs + 4 * burst * (size->half_sum_ns / size->samples);
  struct Batch batch = {size->bytes, 0, burst, settle_ns, 0, 0};
  MPI_Send(&batch, kBatchFields, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD);
  /* The receiver must be asleep before the first message leaves. */
  sleep_ns(kSettleNs / 2);
  const int64_t before_ns = processor_ns();
  for (int64_t i = 0; i < burst; ++i) {
    send(buffers, size->bytes, 1);
  }
  const int64_t sending_ns = (processor_ns() - before_ns) / burst;
  sleep_ns(settle_ns); /* the polling of this rank shall not disturb the other one */
  int64_t receiving_ns = 0;
  MPI_Recv(&receiving_ns, 1, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("work %lld %lld %lld\n", (long long)size->bytes, (long long)sending_ns, (long long)receiving_ns);
  fflush(stdout);
}

static void measure_long_work(const struct Size* size, struct Buffers* buffers) {
  struct Batch batch = {size->bytes, 0, 1, 0, 0, 0};
  MPI_Send(&batch, kBatchFields, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD);
  const int64_t sending_ns = work_asleep_ns(buffers, size->bytes, 1, 1);
  int64_t receiving_ns = 0;
  MPI_Recv(&receiving_ns, 1, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  printf("long_work %lld %lld %lld\n", (long long)size->bytes, (long long)sending_ns, (long long)receiving_ns);
  fflush(stdout);
}

/* Half a round trip of the smallest measured size that has so many bytes, else of the largest. */
static double half_s_at(int64_t bytes, const struct Size* sizes, int count) {
  int i = 0;
  while (i + 1 < count && sizes[i].bytes < bytes) ++i;
  return 1e-9 * (double)sizes[i].half_sum_ns / (double)sizes[i].samples;
}

static int is_eager(int64_t bytes, int twice, double half_s, struct Buffers* buffers) {
  const double settle_s = 1e-9 * kEagerSettleNs + 2 * half_s; /* an eager send may wait for the link, too */
  /* Where the network is slow, so much time cannot be a disturbance. */
  const int tries = (settle_s > kLongSettle_s ? 1 : kEagerTries) * (twice ? 2 : 1);
  int eager = 0;
  for (int i = 0; i < tries && !eager; ++i) {
    struct Batch batch = {bytes, 0, 1, (int64_t)(settle_s * 1e9), 0, 1};
    const double told_s = now_s();
    MPI_Send(&batch, kBatchFields, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD);
    send(buffers, bytes, 1);
    eager = now_s() - told_s < settle_s;
    if (eager) sleep_ns((int64_t)(settle_s * 1e9)); /* as in measure_work */
    int64_t work_ns = 0;
    MPI_Recv(&work_ns, 1, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return eager;
}

enum { kAllEager = -1, kEagerUnknown = -2 };

/* Upwards in doubles to the first size that waits, so that long messages are not sent for nothing, then by
 * halves. That the size right above the limit waits is looked at once more in the end. */
static int64_t eager_limit(const struct Size* sizes, int count, struct Buffers* buffers) {
  const int64_t largest = sizes[count - 1].bytes;
  const double give_up_s = now_s() + kEagerPatience_s;
  int64_t low = 0; /* eager: a message of 0 bytes is, wherever any is */
  while (now_s() < give_up_s) {
    int64_t high = low;
    for (;;) {
      if (low == largest) return kAllEager;
      high = low < kEagerFirstBytes ? kEagerFirstBytes : 2 * low;
      if (high > largest) high = largest;
      if (!is_eager(high, 0, half_s_at(high, sizes, count), buffers)) break;
      low = high;
    }
    while (high - low > 1 && now_s() < give_up_s) {
      const int64_t middle = low + (high - low) / 2;
      if (is_eager(middle, 0, half_s_at(middle, sizes, count), buffers)) {
        low = middle;
      } else {
        high = middle;
      }
    }
    if (high - low > 1) break;
    if (!is_eager(high, 1, half_s_at(high, sizes, count), buffers)) return low;
    low = high; /* a disturbance made it look as if it waited */
  }
  return kEagerUnknown;
}

/* What this size still wants, as the length of its next batch; 0: it has enough. */
static int64_t next_batch(const struct Size* size, double share_s, int64_t min_samples) {
  if (size->samples == 0) return 1; /* tells how long one takes */
  const double each_s = 2e-9 * (double)size->half_sum_ns / (double)size->samples;
  const int has_minimum = size->samples >= min_samples;
  if (size->samples >= kMostSamples) return 0;
  if (size->samples >= kFewestSamples && size->spent_s >= (has_minimum ? share_s : 3 * share_s)) return 0;
  /* About a tenth of the share at once, so that the sizes alternate. */
  int64_t exchanges = each_s > 0 ? (int64_t)(0.1 * share_s / each_s) : kLongestBatch;
  if (exchanges < 1) exchanges = 1;
  return exchanges > kLongestBatch ? kLongestBatch : exchanges;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "link") == 0) return measure_link(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "contact") == 0) return measure_contact(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "turn") == 0) return measure_turn(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "local") == 0) return measure_local(argc - 1, argv + 1);
  if (argc < 5) {
    fprintf(stderr,
            "usage: lbf-calibrate-pingpong SECONDS MIN_SAMPLES RING BYTES [BYTES ...]\n"
            "       lbf-calibrate-pingpong link MILLISECONDS PAIRS BYTES\n"
            "       lbf-calibrate-pingpong contact PAIRS\n"
            "       lbf-calibrate-pingpong turn self|remote\n"
            "       lbf-calibrate-pingpong local RING BYTES [BYTES ...]\n");
    return 2;
  }
  const double seconds = (double)parse_number(argv[1], 1, 86400, "SECONDS");
  const int64_t min_samples = parse_number(argv[2], 1, kMostSamples, "MIN_SAMPLES");
  const int64_t ring_bytes = parse_number(argv[3], 0, 1 << 30, "RING");
  const int sizes_given = argc - 4;
  struct Size* sizes = calloc((size_t)sizes_given, sizeof *sizes);
  if (sizes == NULL) return 1;
  int64_t largest = 1;
  for (int i = 0; i < sizes_given; ++i) {
    sizes[i].bytes = parse_number(argv[4 + i], 0, 1 << 30, "BYTES");
    if (sizes[i].bytes > largest) largest = sizes[i].bytes;
  }

  /* Two ranks that share one processor take turns only when a waiting one lets go of it. */
  cpu_set_t allowed;
  const int yield = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 1;
  if (yield) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int processor = -1; /* the only one that this rank may use */
  for (int i = 0; yield && i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processor = i;
  }

  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank == 0) {
      fprintf(stderr,
              "lbf-calibrate-pingpong: %d rank(s) in MPI_COMM_WORLD, must be 2: does srun start MPI programs "
              "here "
              "(srun --mpi=pmix)?\n",
              ranks);
    }
    MPI_Finalize();
    return 1;
  }
  struct Buffers buffers;
  if (!make_ring(&buffers.outgoing, whole_lines(ring_bytes > largest ? ring_bytes : largest), ring_bytes > 0))
    MPI_Abort(MPI_COMM_WORLD, 1);
  buffers.incoming = buffers.outgoing;
  if (ring_bytes > 0 && !make_ring(&buffers.incoming, buffers.outgoing.bytes, 1)) MPI_Abort(MPI_COMM_WORLD, 1);

  char host[256] = "";
  gethostname(host, sizeof host - 1);
  buffers.vain_poll_ns = vain_poll_ns();
  if (rank == 1) {
    MPI_Send(host, sizeof host, MPI_CHAR, 0, kTag, MPI_COMM_WORLD);
    MPI_Send(&processor, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    answer(&buffers);
  } else {
    char other[256];
    MPI_Recv(other, sizeof other, MPI_CHAR, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int theirs = -1;
    MPI_Recv(&theirs, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Two ranks of one node with a processor of their own each do not take turns. */
    const int takes_turns = yield && (strcmp(host, other) != 0 || processor == theirs);
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    printf("library %s\nnode 0 %s\nnode 1 %s\nyield %d\n", library, host, other, takes_turns);
    const double share_s = seconds / sizes_given;
    for (int wanted = 1; wanted;) {
      wanted = 0;
      for (int i = 0; i < sizes_given; ++i) {
        const int64_t exchanges = next_batch(&sizes[i], share_s, min_samples);
        if (exchanges == 0) continue;
        measure(&sizes[i], exchanges, &buffers);
        wanted = 1;
      }
    }
    const int64_t limit = eager_limit(sizes, sizes_given, &buffers);
    if (limit >= 0) {
      printf("eager %lld\n", (long long)limit);
    } else {
      printf("eager %s\n", limit == kAllEager ? "all" : "unknown");
    }
    fflush(stdout);
    for (int round = 0; strcmp(host, other) != 0 && round < kBursts; ++round) {
      for (int i = 0; i < sizes_given; ++i) {
        const int is_long = sizes[i].bytes > kLargestBurstBytes || (limit >= 0 && sizes[i].bytes > limit);
        const int64_t half_ns = sizes[i].half_sum_ns / sizes[i].samples;
        if (is_long && 1e-9 * (double)half_ns > kLongestWork_s) break; /* the next ones are longer */
        const int slow = half_ns * (is_long ? 1 : kLongestBurst) > (is_long ? kLongSettleNs / 10 : kLongSettleNs);
        if (slow && round >= kFewBursts) continue;
        if (is_long) {
          measure_long_work(&sizes[i], &buffers);
        } else {
          measure_work(&sizes[i], &buffers);
        }
      }
    }
    const struct Batch end = {0, 0, 0, 0, 0, 0};
    MPI_Send(&end, kBatchFields, MPI_INT64_T, 1, kTag, MPI_COMM_WORLD);
    printf("end\n");
    fflush(stdout);
  }
  if (ring_bytes > 0) free(buffers.incoming.memory);
  free(buffers.outgoing.memory);
  free(sizes);
  MPI_Finalize();
  return 0;
}
