// An MPI program whose error handler throws through the MPI library.
#define OMPI_SKIP_MPICXX 1
extern "C" {
#include "counted.h"
}
#include <stdexcept>

#define LEAVE() throw std::runtime_error("left")
#define TRY(statement)                    \
  do {                                    \
    bool left = false;                    \
    try {                                 \
      statement;                          \
    } catch (const std::runtime_error&) { \
      left = true;                        \
    }                                     \
    REQUIRE(left);                        \
  } while (0)
#include "jumps_body.inc"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  scenarios();
  lbf_print_expectations(0);
  MPI_Finalize();
  return 0;
}
