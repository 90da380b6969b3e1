/* MPI 4.0's sessions, with the calls and events that are to be recorded. `sessions alone`: without MPI_Init; `sessions
 * first`: the same after a session that was closed before any communicator was made in one; `sessions unused`: that one
 * alone; `sessions again`: with another session after the last one was closed; `sessions threads`: opened by four
 * threads at once (the number of calls that open one in the run is not known); `sessions world`: inside MPI_Init and
 * MPI_Finalize; `sessions MODE abort`: MPI_Abort in the end. */
#include <pthread.h>

#include "counted.h"

enum { kThreads = 4, kRounds = 50 };

static int rank, size;

static MPI_Session opened(void) {
  MPI_Session session;
  CALL(MPI_Session_init, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  return session;
}

static MPI_Group everybody(MPI_Session session) {
  MPI_Group group;
  REQUIRE(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
  return group;
}

static MPI_Comm communicator(MPI_Group group, const char* tag) {
  MPI_Comm comm;
  CALL(MPI_Comm_create_from_group, group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  return comm;
}

static void freed(MPI_Comm comm) {
  CALL(MPI_Comm_free, &comm);
  EVENTS("commFree", 1);
}

/* To the next one of the communicator, from the one before. */
static void ring(MPI_Comm comm) {
  int me, all, x = -1;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &all);
  CALL(MPI_Sendrecv, &me, 1, MPI_INT, (me + 1) % all, 3, &x, 1, MPI_INT, (me + all - 1) % all, 3, comm,
       MPI_STATUS_IGNORE);
  REQUIRE(x == (me + all - 1) % all);
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);
}

/* What a program without MPI_COMM_WORLD does. */
static void work(MPI_Session session) {
  MPI_Group group = everybody(session);
  MPI_Comm comm = communicator(group, "lbf://all");
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < kRounds; ++i) {
    int one = 1, sum = 0;
    ring(comm);
    CALL(MPI_Allreduce, &one, &sum, 1, MPI_INT, MPI_SUM, comm);
    REQUIRE(sum == size);
    EVENTS("coll", 1);
  }

  /* The same members, twice with one name, and in the other order; those of even and of odd rank. */
  MPI_Comm twice[2] = {communicator(group, "twice"), communicator(group, "twice")};
  for (int i = 0; i < 2; ++i) ring(twice[i]);
  int reversed[64], halves[2][32], members[2] = {0, 0};
  REQUIRE(size <= 64);
  for (int i = 0; i < size; ++i) {
    reversed[i] = size - 1 - i;
    halves[i % 2][members[i % 2]++] = i;
  }
  MPI_Group other, half[2];
  MPI_Group_incl(group, size, reversed, &other);
  for (int i = 0; i < 2; ++i) MPI_Group_incl(group, members[i], halves[i], &half[i]);
  MPI_Comm backwards = communicator(other, "backwards");
  ring(backwards);
  MPI_Comm mine = communicator(half[rank % 2], "half"), copy, inter;
  ring(mine);
  CALL(MPI_Comm_dup, mine, &copy);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  ring(copy);
  CALL(MPI_Intercomm_create_from_groups, half[rank % 2], 0, half[1 - rank % 2], 0, "between", MPI_INFO_NULL,
       MPI_ERRORS_ARE_FATAL, &inter);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  int x = rank, y = -1;
  CALL(MPI_Sendrecv, &x, 1, MPI_INT, rank / 2, 6, &y, 1, MPI_INT, rank / 2, 6, inter, MPI_STATUS_IGNORE);
  REQUIRE(y == (rank ^ 1));
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);

  /* A second session for a while, which knows the same processes. */
  MPI_Session second = opened();
  EVENTS("unmodelled", 1);
  MPI_Group again = everybody(second);
  MPI_Comm there = communicator(again, "lbf://all");
  ring(there);
  freed(there);
  MPI_Group_free(&again);
  CALL(MPI_Session_finalize, &second);
  EVENTS("unmodelled", 1);
  ring(comm);

  freed(inter);
  freed(copy);
  freed(mine);
  freed(backwards);
  for (int i = 0; i < 2; ++i) freed(twice[i]);
  for (int i = 0; i < 2; ++i) MPI_Group_free(&half[i]);
  MPI_Group_free(&other);
  MPI_Group_free(&group);
  freed(comm);
}

static MPI_Session of_thread[kThreads];
static pthread_barrier_t start;

static void* open_one(void* number) {
  pthread_barrier_wait(&start);
  REQUIRE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, (MPI_Session*)number) == MPI_SUCCESS);
  return NULL;
}

static void open_in_threads(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&start, NULL, kThreads);
  for (int i = 0; i < kThreads; ++i) REQUIRE(pthread_create(&threads[i], NULL, open_one, &of_thread[i]) == 0);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  const int aborts = argc > 2 && strcmp(argv[2], "abort") == 0;
  if (strcmp(mode, "world") == 0) {
    CALL(MPI_Init, &argc, &argv);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    EVENTS("coll", 1);
    EVENTS("unmodelled", 2); /* the session is opened and closed inside the run */
  }
  if (strcmp(mode, "first") == 0) {
    MPI_Session first = opened();
    CALL(MPI_Session_finalize, &first);
    EVENTS("unmodelled", 2); /* of the two sessions the run begins with the first one */
  }
  if (strcmp(mode, "unused") == 0) {
    MPI_Session unused = opened();
    MPI_Session_finalize(&unused);
    return 0;
  }
  if (strcmp(mode, "threads") == 0) open_in_threads();
  MPI_Session session = strcmp(mode, "threads") == 0 ? of_thread[0] : opened();
  work(session);
  if (strcmp(mode, "threads") == 0) {
    for (int i = 1; i < kThreads; ++i) REQUIRE(MPI_Session_finalize(&of_thread[i]) == MPI_SUCCESS);
  }
  if (strcmp(mode, "world") == 0) {
    CALL(MPI_Session_finalize, &session);
    CALL(MPI_Barrier, MPI_COMM_WORLD);
    EVENTS("coll", 1);
  }
  if (strcmp(mode, "world") != 0) lbf_add(0, "MPI_Session_finalize", 1); /* the last one, below */
  EVENTS("exit", 1);
  if (strcmp(mode, "threads") != 0) lbf_print_expectations(rank);
  if (aborts) MPI_Abort(communicator(everybody(session), "lbf://abort"), 3);
  if (strcmp(mode, "world") == 0) {
    MPI_Finalize();
    return 0;
  }
  REQUIRE(MPI_Session_finalize(&session) == MPI_SUCCESS);
  if (strcmp(mode, "again") == 0) {
    REQUIRE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
    MPI_Group group = everybody(session);
    MPI_Comm comm;
    REQUIRE(MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm) == MPI_SUCCESS);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    REQUIRE(MPI_Session_finalize(&session) == MPI_SUCCESS);
  }
  return 0;
}
