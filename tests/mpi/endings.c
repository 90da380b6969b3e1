/* endings HOW: ways for a program to end, or to go on, without what MPI asks for; run_case says what has to come out.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;

static void messages(int n) {
  int x = 0;
  for (int i = 0; i < n; ++i) {
    if (rank == 0) MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void leave_with_exit(int number) {
  (void)number;
  exit(7);
}

static void leave_at_once(int number) {
  (void)number;
  _exit(8);
}

static void* abort_all(void* unused) {
  MPI_Abort(MPI_COMM_WORLD, 9);
  return unused;
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "";
  int provided = 0, x = 0;
  if (strcmp(how, "continued") == 0) { /* what exec left: another program, without MPI_Init */
    printf("continued\n");
    return 0;
  }
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  messages(100);
  MPI_Barrier(MPI_COMM_WORLD);
  /* Whoever leaves this one knows that both ranks are back from the first: a rank that ends is the other one's end,
   * too. */
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "quick_exit") == 0) quick_exit(0);
  if (strcmp(how, "return") == 0 && rank == 1) return 0;
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "sigterm") == 0) { /* the handler interrupts a wrapper: nobody sends */
    signal(SIGALRM, leave_with_exit);
    alarm(1);
    MPI_Recv(&x, 1, MPI_INT, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(how, "handler_exit") == 0) {
    signal(SIGALRM, leave_at_once);
    alarm(1);
    MPI_Recv(&x, 1, MPI_INT, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(how, "thread_abort") == 0) {
    if (rank != 0)
      MPI_Recv(&x, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* nobody sends: one rank aborts both */
    pthread_t thread;
    pthread_create(&thread, NULL, abort_all, NULL);
    pthread_join(thread, NULL);
  }
  if (strcmp(how, "exec") == 0) {
    execl("/proc/self/exe", argv[0], "continued", (char*)NULL);
    return 1;
  }
  if (strcmp(how, "fork") == 0) { /* the child calls MPI and leaves through exit, the parent goes on */
    const pid_t child = fork();
    if (child == 0) {
      int size = 0, type_size = 0;
      for (int i = 0; i < 100; ++i) MPI_Comm_size(MPI_COMM_WORLD, &size);
      MPI_Type_size(MPI_INT, &type_size);
      _exit(size == 2 && type_size == 4 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
    messages(10);
    MPI_Finalize();
  }
  return 0;
}
