/* One-sided communication in all its epochs on 4 ranks, with checked results; prints what the events have to be. */
#include "counted.h"

enum { kInts = 64 };
static int rank, size;

/* A window of kInts ints over MPI_COMM_WORLD. */
static MPI_Win make_window(int** memory) {
  MPI_Win win;
  CALL(MPI_Win_allocate, kInts * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
  for (int i = 0; i < kInts; ++i) (*memory)[i] = 1000 * rank + i;
  CALL(MPI_Barrier, MPI_COMM_WORLD); /* nobody looks before it is filled */
  EVENTS("coll", 2);
  EVENTS("commCreate", 1);
  return win;
}

static void free_window(MPI_Win* win) {
  CALL(MPI_Win_free, win);
  EVENTS("oneSidedSync", 1);
  EVENTS("coll", 1);
  EVENTS("commFree", 1);
}

static void fence(int assertions, MPI_Win win) {
  CALL(MPI_Win_fence, assertions, win);
  EVENTS("oneSidedSync", 1);
  EVENTS("coll", 1);
}

static void fences(void) {
  int* memory;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out[4] = {rank, rank + 1, rank + 2, rank + 3}, in[4] = {-1, -1, -1, -1};
  MPI_Win win = make_window(&memory);
  fence(MPI_MODE_NOPRECEDE, win);
  CALL(MPI_Put, out, 4, MPI_INT, right, 8, 4, MPI_INT, win);
  CALL(MPI_Put, out, 4, MPI_INT, MPI_PROC_NULL, 8, 4, MPI_INT, win);
  EVENTS("oneSided", 1);
  fence(0, win);
  for (int i = 0; i < 4; ++i) REQUIRE(memory[8 + i] == left + i);
  CALL(MPI_Get, in, 4, MPI_INT, right, 0, 4, MPI_INT, win);
  EVENTS("oneSided", 1);
  fence(0, win);
  for (int i = 0; i < 4; ++i) REQUIRE(in[i] == 1000 * right + i);
  CALL(MPI_Accumulate, out, 1, MPI_INT, 0, 20, 1, MPI_INT, MPI_SUM, win);
  EVENTS("oneSided", 1);
  fence(MPI_MODE_NOSUCCEED, win);
  if (rank == 0) REQUIRE(memory[20] == 20 + 0 + 1 + 2 + 3);
  MPI_Datatype every_other;
  CALL(MPI_Type_vector, 2, 1, 2, MPI_INT, &every_other);
  CALL(MPI_Type_commit, &every_other);
  fence(0, win);
  CALL(MPI_Put, out, 1, every_other, right, 30, 2, MPI_INT, win); /* 8 bytes */
  EVENTS("oneSided", 1);
  fence(0, win);
  REQUIRE(memory[30] == left && memory[31] == left + 2);
  CALL(MPI_Type_free, &every_other);
  free_window(&win);
}

static void locks(void) {
  int* memory;
  MPI_Win win = make_window(&memory);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  int value = 7 + rank, old = -1, compare = 1000 * 0 + 5;
  if (rank != 0) {
    CALL(MPI_Win_lock, MPI_LOCK_EXCLUSIVE, 0, 0, win);
    CALL(MPI_Put, &value, 1, MPI_INT, 0, rank, 1, MPI_INT, win);
    CALL(MPI_Win_flush_local, 0, win);
    CALL(MPI_Win_flush, 0, win);
    CALL(MPI_Win_unlock, 0, win);
    EVENTS("oneSided", 2); /* the lock too */
    EVENTS("oneSidedSync", 3);
  }
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  if (rank == 0) {
    CALL(MPI_Win_lock, MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
    for (int i = 1; i < size; ++i) REQUIRE(memory[i] == 7 + i);
    CALL(MPI_Win_unlock, 0, win);
    EVENTS("oneSidedSync", 1);
  }
  CALL(MPI_Win_lock_all, 0, win);
  value = 1;
  CALL(MPI_Fetch_and_op, &value, &old, MPI_INT, 0, 40, MPI_SUM, win);
  CALL(MPI_Win_flush_all, win);
  REQUIRE(old >= 40 && old < 40 + size);
  CALL(MPI_Compare_and_swap, &value, &compare, &old, MPI_INT, 0, 5, win);
  CALL(MPI_Win_flush_local_all, win);
  int got[2] = {-1, -1}, add[2] = {1, 1};
  CALL(MPI_Get_accumulate, add, 2, MPI_INT, got, 2, MPI_INT, (rank + 1) % size, 50, 2, MPI_INT, MPI_SUM, win);
  CALL(MPI_Win_sync, win);
  CALL(MPI_Win_unlock_all, win);
  REQUIRE(got[0] == 1000 * ((rank + 1) % size) + 50);
  EVENTS("oneSided", 3);
  EVENTS("oneSidedSync", 4);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  if (rank == 0) REQUIRE(memory[40] == 40 + size);
  free_window(&win);
}

static void requests(void) {
  int* memory;
  MPI_Win win = make_window(&memory);
  MPI_Request request[4];
  const int right = (rank + 1) % size;
  int out = rank, in = -1, both = -1, add = 1;
  CALL(MPI_Win_lock_all, MPI_MODE_NOCHECK, win);
  CALL(MPI_Rput, &out, 1, MPI_INT, right, 0, 1, MPI_INT, win, &request[0]);
  CALL(MPI_Rget, &in, 1, MPI_INT, right, 9, 1, MPI_INT, win, &request[1]);
  CALL(MPI_Raccumulate, &add, 1, MPI_INT, right, 10, 1, MPI_INT, MPI_SUM, win, &request[2]);
  CALL(MPI_Rget_accumulate, &add, 1, MPI_INT, &both, 1, MPI_INT, right, 11, 1, MPI_INT, MPI_SUM, win, &request[3]);
  CALL(MPI_Wait, &request[1], MPI_STATUS_IGNORE);
  CALL(MPI_Waitall, 4, request, MPI_STATUSES_IGNORE);
  REQUIRE(in == 1000 * right + 9 && both == 1000 * right + 11);
  CALL(MPI_Rput, &out, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &request[0]);
  CALL(MPI_Wait, &request[0], MPI_STATUS_IGNORE);
  CALL(MPI_Win_unlock_all, win);
  EVENTS("oneSided", 4);
  EVENTS("wait", 4);
  EVENTS("oneSidedSync", 2);
  free_window(&win);
}

static void post_and_start(void) {
  int* memory;
  MPI_Win win = make_window(&memory);
  MPI_Group world, left_group, right_group;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out = rank, flag = 0;
  CALL(MPI_Comm_group, MPI_COMM_WORLD, &world);
  CALL(MPI_Group_incl, world, 1, &left, &left_group);
  CALL(MPI_Group_incl, world, 1, &right, &right_group);
  for (int i = 0; i < 2; ++i) {
    CALL(MPI_Win_post, left_group, 0, win);
    CALL(MPI_Win_start, right_group, 0, win);
    CALL(MPI_Put, &out, 1, MPI_INT, right, i, 1, MPI_INT, win);
    CALL(MPI_Win_complete, win);
    if (i == 0) {
      CALL(MPI_Win_wait, win);
    } else {
      for (flag = 0; !flag;) CALL(MPI_Win_test, win, &flag);
    }
    REQUIRE(memory[i] == left);
    EVENTS("send", 2);
    EVENTS("recv", 2);
    EVENTS("oneSided", 1);
    EVENTS("oneSidedSync", 1);
  }
  CALL(MPI_Group_free, &left_group);
  CALL(MPI_Group_free, &right_group);
  CALL(MPI_Group_free, &world);
  free_window(&win);
}

static void kinds_of_windows(void) {
  MPI_Win win;
  MPI_Comm node;
  static int memory[kInts];
  int* shared;
  MPI_Aint where, theirs;
  const int right = (rank + 1) % size;
  int out = rank + 1;
  CALL(MPI_Win_create_dynamic, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  CALL(MPI_Win_attach, win, memory, sizeof(memory));
  MPI_Get_address(memory, &where);
  CALL(MPI_Sendrecv, &where, 1, MPI_AINT, (rank + size - 1) % size, 0, &theirs, 1, MPI_AINT, right, 0, MPI_COMM_WORLD,
       MPI_STATUS_IGNORE);
  fence(0, win);
  CALL(MPI_Put, &out, 1, MPI_INT, right, theirs, 1, MPI_INT, win);
  fence(0, win);
  REQUIRE(memory[0] == (rank + size - 1) % size + 1);
  CALL(MPI_Win_detach, win, memory);
  free_window(&win);
  EVENTS("coll", 1);
  EVENTS("commCreate", 1);
  EVENTS("startRecv", 1);
  EVENTS("send", 1);
  EVENTS("endRecv", 1);
  EVENTS("oneSided", 1);

  /* of a communicator with fewer members, in another order */
  CALL(MPI_Comm_split, MPI_COMM_WORLD, rank % 2, -rank, &node);
  CALL(MPI_Win_create, memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, node, &win);
  fence(0, win);
  CALL(MPI_Put, &out, 1, MPI_INT, 0, 5, 1, MPI_INT, win); /* world rank 2 or 3 */
  fence(0, win);
  free_window(&win);
  CALL(MPI_Win_allocate_shared, sizeof(int), sizeof(int), MPI_INFO_NULL, node, &shared, &win);
  fence(0, win);
  *shared = rank;
  fence(0, win);
  free_window(&win);
  CALL(MPI_Comm_free, &node);
  EVENTS("coll", 3);
  EVENTS("commCreate", 3);
  EVENTS("commFree", 1);
  EVENTS("oneSided", 1);
}

int main(int argc, char** argv) {
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  CALL(MPI_Comm_size, MPI_COMM_WORLD, &size);
  REQUIRE(size == 4);
  fences();
  locks();
  requests();
  post_and_start();
  kinds_of_windows();
  EVENTS("unmodelled", 0);
  EVENTS("gap", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
