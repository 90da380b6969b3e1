/* An MPI library of no family that the capture knows, as far as unknown_program.c uses it. What it says of itself is in
 * UNKNOWN_MPI_VERSION. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int PMPI_Init(int* argc, char*** argv) {
  return (void)argc, (void)argv, 0;
}
int PMPI_Finalize(void) {
  return 0;
}
int PMPI_Send(const void* buffer, int count, long type, int dest, int tag, long comm) {
  return buffer == 0 ? -1 : count + (int)type + dest + tag + (int)comm;
}
int PMPI_Get_library_version(char* version, int* length) {
  const char* const says = getenv("UNKNOWN_MPI_VERSION");
  snprintf(version, 256, "%s", says != 0 ? says : "");
  *length = (int)strlen(version);
  return 0;
}
int MPI_Init(int* argc, char*** argv) __attribute__((weak, alias("PMPI_Init")));
int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));
int MPI_Send(const void*, int, long, int, int, long) __attribute__((weak, alias("PMPI_Send")));
