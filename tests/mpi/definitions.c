/* definitions [FILE]: communicators whose definitions find the ring full. The ring is emptied only from when
 * rank 0 makes FILE, and FILE.drained appears when that is done; then what was begun on the communicators
 * ends, and they are used again. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REQUIRE(condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (0)

static void make(const char* file) {
  const int fd = open(file, O_CREAT | O_WRONLY, 0600);
  REQUIRE(fd >= 0);
  close(fd);
}

static void wait_for(const char* file) {
  const struct timespec nap = {0, 2000000};
  for (int i = 0; i < 10000 && access(file, F_OK) != 0; ++i) nanosleep(&nap, NULL);
  REQUIRE(access(file, F_OK) == 0);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  int x = rank, from_irecv = -1, from_recv_init = -1, from_mrecv = -1;
  for (int i = 0; i < 200; ++i) MPI_Barrier(MPI_COMM_SELF); /* more than a ring of 4096 bytes holds */

  MPI_Comm late, persistent, probed, unused;
  MPI_Comm_dup(MPI_COMM_WORLD, &late);
  MPI_Comm_dup(MPI_COMM_WORLD, &persistent);
  MPI_Comm_dup(MPI_COMM_WORLD, &probed);
  MPI_Comm_dup(MPI_COMM_WORLD, &unused);
  MPI_Request irecv, recv_init, sends[3];
  MPI_Irecv(&from_irecv, 1, MPI_INT, other, 1, late, &irecv);
  MPI_Recv_init(&from_recv_init, 1, MPI_INT, other, 2, persistent, &recv_init);
  MPI_Isend(&x, 1, MPI_INT, other, 1, late, &sends[0]);
  MPI_Isend(&x, 1, MPI_INT, other, 2, persistent, &sends[1]);
  MPI_Isend(&x, 1, MPI_INT, other, 3, probed, &sends[2]);
  MPI_Message message;
  MPI_Mprobe(other, 3, probed, &message, MPI_STATUS_IGNORE);

  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) {
    char drained[4096];
    snprintf(drained, sizeof(drained), "%s.drained", argv[1]);
    if (rank == 0) make(argv[1]);
    wait_for(drained);
  }

  /* Each is the first record on its communicator that finds room. */
  MPI_Wait(&irecv, MPI_STATUS_IGNORE);
  MPI_Start(&recv_init);
  MPI_Mrecv(&from_mrecv, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&recv_init, MPI_STATUS_IGNORE);
  MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
  REQUIRE(from_irecv == other && from_recv_init == other && from_mrecv == other);
  MPI_Request_free(&recv_init);
  MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, late);
  REQUIRE(x == 1);
  MPI_Comm_free(&late);
  MPI_Comm_free(&persistent);
  MPI_Comm_free(&probed);
  MPI_Comm_free(&unused);
  MPI_Finalize();
  return 0;
}
