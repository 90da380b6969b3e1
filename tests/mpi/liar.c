/* Preloaded behind the capture: PMPI_ functions of a library that is laid out differently, as LIE says. The program's
 * own calls go by their MPI_ names, and get the truth. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int lies(const char* about) {
  const char* const lie = getenv("LIE");
  return lie != 0 && strcmp(lie, about) == 0;
}
#define TRUTH(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int PMPI_Comm_get_parent(MPI_Comm* parent) {
  const int result = TRUTH(PMPI_Comm_get_parent)(parent);
  if (lies("handle")) memset(parent, 0, sizeof(*parent));
  if (lies("width")) memset(parent, 0x11, 2 * sizeof(*parent));
  return result;
}
int PMPI_Comm_size(MPI_Comm comm, int* size) {
  const int result = TRUTH(PMPI_Comm_size)(comm, size);
  if (lies("world")) *size = 0;
  return result;
}
int PMPI_Type_size(MPI_Datatype type, int* size) {
  const int result = TRUTH(PMPI_Type_size)(type, size);
  if (lies("types")) ++*size;
  return result;
}
int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const int result = TRUTH(PMPI_Test)(request, flag, status);
  if (*flag == 0 || status == MPI_STATUS_IGNORE) return result;
  if (lies("order")) {
    const int source = status->MPI_SOURCE;
    status->MPI_SOURCE = status->MPI_TAG;
    status->MPI_TAG = source;
  }
  if (lies("length")) memset((char*)status + sizeof(*status), 0, 8);
  int cancelled = 0;
  TRUTH(PMPI_Test_cancelled)(status, &cancelled);
  if (lies("cancelled") && cancelled) TRUTH(PMPI_Status_set_cancelled)(status, 0);
  if (lies("bytes") && status->MPI_SOURCE >= 0) TRUTH(PMPI_Status_set_elements)(status, MPI_BYTE, 4);
  return result;
}
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const int known = lies("nobody") && source == MPI_PROC_NULL ? MPI_ANY_SOURCE : source;
  return TRUTH(PMPI_Iprobe)(known, tag, comm, flag, status);
}
