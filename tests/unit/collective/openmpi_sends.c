/* Linked into collective_monitor under Open MPI: writes down every message that Open MPI sends for a case, as
 * lines "CASE PEER BYTES" in $LBF_SENDS.RANK. PEER is a rank of the world. What is sent before the first
 * case, for the communicators, belongs to none.
 *
 * Run with --mca pml_monitoring_enable 1: then Open MPI's monitoring component stands before what sends
 * messages, and tells the function below of each of them, which takes the place of the component's own (the
 * program exports it). That keeps sums for the whole run alone; its performance variables would tell more,
 * but Open MPI 4.1.4 has unregistered them by the end of MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int current_case = -1;
static FILE* output;

/* As in Open MPI's common_monitoring.h: `tag` is below 0 for the library's own messages. */
void mca_common_monitoring_record_pml(int world_rank, size_t bytes, int tag) {
  (void)tag;
  if (output != NULL && current_case >= 0) fprintf(output, "%d %d %zu\n", current_case, world_rank, bytes);
}

/* Called by collective_monitor before each case. The one before is over: when a collective operation is
 * complete on a rank, that rank has sent all that it sends for it. */
void collective_monitor_case(int number) {
  current_case = number;
}

int MPI_Init(int* argc, char*** argv) {
  const int status = PMPI_Init(argc, argv);
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* prefix = getenv("LBF_SENDS");
  if (prefix != NULL) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", prefix, rank);
    output = fopen(name, "w");
  }
  return status;
}

int MPI_Finalize(void) {
  current_case = -1;
  if (output != NULL) fclose(output);
  output = NULL;
  return PMPI_Finalize();
}
