/* files FOLDER: MPI-IO on 2 ranks, blocking, collective and non-blocking. Each call is one `io` event, and so is the
 * completion of a non-blocking one. */
#include "counted.h"

int main(int argc, char** argv) {
  int rank;
  char path[4096];
  MPI_File file;
  MPI_Status status;
  MPI_Request requests[2];
  static double out[512], in[512];
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof(path), "%s/data", argv[1]);
  for (int i = 0; i < 512; ++i) out[i] = 1000 * rank + i;
  CALL(MPI_File_open, MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  CALL(MPI_File_set_view, file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
  CALL(MPI_File_write_at_all, file, rank * 512, out, 512, MPI_DOUBLE, &status);
  CALL(MPI_File_read_at, file, rank * 512, in, 512, MPI_DOUBLE, MPI_STATUS_IGNORE);
  for (int i = 0; i < 512; ++i) REQUIRE(in[i] == out[i]);
  EVENTS("io", 4);
  CALL(MPI_File_iwrite_at, file, 1024 + rank * 256, out, 256, MPI_DOUBLE, &requests[0]);
  CALL(MPI_File_iread_at, file, rank * 512, in, 256, MPI_DOUBLE, &requests[1]);
  CALL(MPI_Wait, &requests[0], &status);
  CALL(MPI_Waitall, 2, requests, MPI_STATUSES_IGNORE);
  EVENTS("io", 4);
  CALL(MPI_File_close, &file);
  EVENTS("io", 1);
  EVENTS("unmodelled", 0);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
