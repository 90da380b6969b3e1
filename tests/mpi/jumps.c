/* An MPI program whose error handler leaves the MPI call by longjmp; then coroutines that call MPI on stacks
 * of their own. */
#include <setjmp.h>
#include <ucontext.h>

#include "counted.h"

static jmp_buf back;
#define LEAVE() longjmp(back, 1)
#define TRY(statement)               \
  do {                               \
    if (setjmp(back) == 0) {         \
      statement;                     \
      REQUIRE(!"the call was left"); \
    }                                \
  } while (0)
#include "jumps_body.inc"

/* Two stacks that take turns, outside of MPI calls: nobody leaves a call, everything is recorded. */
static ucontext_t main_context, coroutine_context;
static void coroutine(void) {
  for (;;) {
    a_good_call();
    swapcontext(&coroutine_context, &main_context);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  scenarios();
  static char stack[1 << 16];
  getcontext(&coroutine_context);
  coroutine_context.uc_stack.ss_sp = stack;
  coroutine_context.uc_stack.ss_size = sizeof(stack);
  makecontext(&coroutine_context, coroutine, 0);
  for (int i = 0; i < 100; ++i) {
    a_good_call();
    swapcontext(&main_context, &coroutine_context);
  }
  lbf_print_expectations(0);
  MPI_Finalize();
  return 0;
}
