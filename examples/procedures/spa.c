// SPA, the synthetic parallel application of CS-TR-4375 Sec. 3.2: one server, the bottleneck, and three clients.
// servBusy1 is the service for the first client, servBusy2 that for the others. The two modifications move one of
// them from the server to the clients: the client does it itself while it waits for the (then trivial) answer.
#include <stddef.h>

#include "program.h"

enum { kRounds = 24, kRequest = 1, kAnswer = 2 };
enum { kServ1 = 8, kServ2 = 12, kClient = 6, kRest = 1 };  // units
enum { kMoved1 = 1, kMoved2 = 2 };
static const char* const kModifications[] = {"servBusy1", "servBusy2", NULL};

PROCEDURE static uint64_t servBusy1(uint64_t number) {
  PROCEDURE_ENTER();
  number = work(number, kServ1);
  PROCEDURE_LEAVE();
  return number;
}
PROCEDURE static uint64_t servBusy2(uint64_t number) {
  PROCEDURE_ENTER();
  number = work(number, kServ2);
  PROCEDURE_LEAVE();
  return number;
}
static uint64_t service(int client, uint64_t number) {
  return client == 1 ? servBusy1(number) : servBusy2(number);
}
static int is_moved(const struct program* run, int client) {
  return run->moved == (client == 1 ? kMoved1 : kMoved2);
}

static void serve(const struct program* run) {
  for (int i = 0; i < kRounds * (run->ranks - 1); ++i) {
    const int client = 1 + i % (run->ranks - 1);
    uint64_t number;
    MPI_Recv(&number, 1, MPI_UINT64_T, client, kRequest, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(0, kRest);
    if (!is_moved(run, client)) number = service(client, number);
    MPI_Send(&number, 1, MPI_UINT64_T, client, kAnswer, MPI_COMM_WORLD);
  }
}

static uint64_t ask(const struct program* run, uint64_t number) {
  for (int round = 0; round < kRounds; ++round) {
    number = work(number, kClient);
    MPI_Send(&number, 1, MPI_UINT64_T, 0, kRequest, MPI_COMM_WORLD);
    uint64_t served = 0;
    if (is_moved(run, run->rank)) served = service(run->rank, number);
    MPI_Recv(&number, 1, MPI_UINT64_T, 0, kAnswer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is_moved(run, run->rank)) number = served;
  }
  return number;
}

int main(int argc, char** argv) {
  const struct program run = program_begin(&argc, &argv, 2, kModifications);
  if (run.rank == 0) {
    serve(&run);
    return program_end(&run, 0, 0);
  }
  const uint64_t first = (uint64_t)run.rank;
  const int units = kRounds * (kClient + (run.rank == 1 ? kServ1 : kServ2));
  return program_end(&run, ask(&run, first), stepped(first, units));
}
