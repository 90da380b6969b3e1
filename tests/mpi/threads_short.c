/* Threads that come and go, each with one message: what they leave in memory does not grow with their number. Prints
 * the most files that there were in the capture's directory, where it has one. */
#include <dirent.h>
#include <pthread.h>
#include <time.h>

#include "counted.h"

enum { kThreads = 150, kTogether = 3 };

static int rank;

static void* talk(void* argument) {
  int x = 0, own;
  const int tag = *(int*)argument;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Sendrecv_replace(&x, 1, MPI_INT, 1 - rank, tag, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

static int files(void) {
  int n = 0;
  const char* const name = getenv("LBF_CAPTURE_DIR");
  DIR* const directory = name != NULL ? opendir(name) : NULL;
  if (directory == NULL) return 0;
  while (readdir(directory) != NULL) ++n;
  closedir(directory);
  return n - 2;
}

int main(int argc, char** argv) {
  int provided, most = 0;
  const struct timespec nap = {0, 20000000};
  CALL(MPI_Init_thread, &argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) return 77;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < kThreads; i += kTogether) {
    pthread_t threads[kTogether];
    int tags[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      tags[k] = k;
      REQUIRE(pthread_create(&threads[k], NULL, talk, &tags[k]) == 0);
    }
    for (int k = 0; k < kTogether; ++k) pthread_join(threads[k], NULL);
    nanosleep(&nap, NULL);
    if (files() > most) most = files();
  }
  printf("most files %d\n", most);
  printf("expect stats %d %d\n", rank, kThreads);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
