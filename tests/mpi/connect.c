/* connect: 2 ranks of one world meet once more, through a port whose name is published, and through a socket
 * (MPI_Comm_join). All of it is unmodelled, what is said on such a communicator too; the world's messages are as ever.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "counted.h"

static int rank;

/* A TCP connection between the two ranks over the loopback. */
static int connected_socket(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof(address);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;
  REQUIRE(fd >= 0);
  if (rank == 0) {
    REQUIRE(bind(fd, (struct sockaddr*)&address, length) == 0 && listen(fd, 1) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
    port = address.sin_port;
    CALL(MPI_Send, &port, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    EVENTS("send", 1);
    const int peer = accept(fd, NULL, NULL);
    REQUIRE(peer >= 0);
    close(fd);
    return peer;
  }
  CALL(MPI_Recv, &port, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EVENTS("recv", 1);
  address.sin_port = (in_port_t)port;
  REQUIRE(connect(fd, (struct sockaddr*)&address, length) == 0);
  return fd;
}

/* Both say their number to the other one, and part. */
static void talk(MPI_Comm* other) {
  int theirs = -1, size = 0;
  CALL(MPI_Comm_remote_size, *other, &size);
  REQUIRE(size == 1);
  CALL(MPI_Sendrecv, &rank, 1, MPI_INT, 0, 7, &theirs, 1, MPI_INT, 0, 7, *other, MPI_STATUS_IGNORE);
  REQUIRE(theirs == 1 - rank);
  CALL(MPI_Comm_disconnect, other);
  EVENTS("unmodelled", 2);
}

int main(int argc, char** argv) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  CALL(MPI_Init, &argc, &argv);
  CALL(MPI_Comm_rank, MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    CALL(MPI_Open_port, MPI_INFO_NULL, port);
    CALL(MPI_Publish_name, "lbf-connect", MPI_INFO_NULL, port);
    EVENTS("unmodelled", 2);
  }
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  if (rank == 0) {
    CALL(MPI_Comm_accept, port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
  } else {
    CALL(MPI_Lookup_name, "lbf-connect", MPI_INFO_NULL, port);
    CALL(MPI_Comm_connect, port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    EVENTS("unmodelled", 1);
  }
  EVENTS("unmodelled", 1);
  talk(&other);
  if (rank == 0) {
    CALL(MPI_Unpublish_name, "lbf-connect", MPI_INFO_NULL, port);
    CALL(MPI_Close_port, port);
    EVENTS("unmodelled", 2);
  }
  const int fd = connected_socket();
  CALL(MPI_Comm_join, fd, &other);
  EVENTS("unmodelled", 1);
  talk(&other);
  close(fd);
  CALL(MPI_Barrier, MPI_COMM_WORLD);
  EVENTS("coll", 1);
  EVENTS("exit", 1);
  lbf_print_expectations(rank);
  MPI_Finalize();
  return 0;
}
