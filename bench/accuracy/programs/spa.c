// SPA, the papers' synthetic parallel application (CS-TR-4375 Sec. 3.2; TSE Fig. 7): one server, the
// bottleneck, answers the requests of the other ranks. It knows two classes of requests: servBusy1 for the
// first client, servBusy2 for all others. Between two requests a client works on its own.
//
// A request is a number. The service is to step a random generator from there many times; the client waits,
// then goes on stepping from the answer. So each client's numbers are one chain of steps, whose end can be
// found in O(log n): that is the check. The more clients, the less work a request: the server's stays the
// same.
//
// usage: spa S|W|A [arrival]. By default the server takes the clients in turn. `arrival`: whoever comes first
// (MPI_ANY_SOURCE): then the order, not the work, may differ from run to run and from configuration to
// configuration.
#include "accuracy.h"

enum { kRequest = 1, kAnswer = 2 };

static uint64_t busy(uint64_t state, uint64_t steps) {
  for (uint64_t i = 0; i < steps; ++i) state = lcg_step(state);
  return state;
}
// Two procedures, not one, because they are what procedure LBF can move.
__attribute__((noinline)) static uint64_t servBusy1(uint64_t request, uint64_t unit) {
  return busy(request, 2 * unit);
}
__attribute__((noinline)) static uint64_t servBusy2(uint64_t request, uint64_t unit) {
  return busy(request, unit);
}
__attribute__((noinline)) static uint64_t clientBusy(uint64_t answer, uint64_t unit) {
  return busy(answer, 2 * unit);
}

static void serve(const struct accuracy_run* run, int rounds, uint64_t unit, int by_arrival) {
  for (int request = 0; request < rounds * (run->ranks - 1); ++request) {
    const int next = by_arrival ? MPI_ANY_SOURCE : 1 + request % (run->ranks - 1);
    uint64_t number;
    MPI_Status status;
    MPI_Recv(&number, 1, MPI_UINT64_T, next, kRequest, MPI_COMM_WORLD, &status);
    number = status.MPI_SOURCE == 1 ? servBusy1(number, unit) : servBusy2(number, unit);
    MPI_Send(&number, 1, MPI_UINT64_T, status.MPI_SOURCE, kAnswer, MPI_COMM_WORLD);
  }
}

static uint64_t ask(int rounds, uint64_t unit, uint64_t number) {
  for (int round = 0; round < rounds; ++round) {
    number = clientBusy(number, unit);
    MPI_Send(&number, 1, MPI_UINT64_T, 0, kRequest, MPI_COMM_WORLD);
    MPI_Recv(&number, 1, MPI_UINT64_T, 0, kAnswer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return number;
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "spa", " [arrival] [REPEATS]");
  if (run.ranks < 2) accuracy_fail(&run, "SPA needs a server and at least one client: 2 ranks");
  // With 3 clients in 9 rounds 54 messages: the papers had 56 (TSE Fig. 8).
  const int rounds = 9 * accuracy_repeats(argc, argv);
  const uint64_t unit = (uint64_t)accuracy_by_size(&run, 4e6, 100e6, 300e6) / (uint64_t)(run.ranks - 1);
  const int by_arrival = argc > 2 && strcmp(argv[2], "arrival") == 0;

  int right = 1;
  uint64_t number = 0;
  if (run.rank == 0) {
    serve(&run, rounds, unit, by_arrival);
  } else {
    const uint64_t first = lcg_jump(12345, (uint64_t)run.rank);
    number = ask(rounds, unit, first);
    const uint64_t steps_of_round = (run.rank == 1 ? 4 : 3) * unit;
    right = number == lcg_jump(first, (uint64_t)rounds * steps_of_round);
  }
  uint64_t sum;
  MPI_Reduce(&number, &sum, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  return accuracy_end(&run, right, "%016llx", (unsigned long long)sum);
}
