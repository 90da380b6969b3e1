/* system_calls: counts the system calls that a rank makes while it is in loops of MPI calls, by number. For the test
 * that the capture adds none but readings of the processor clock and of schedstat, and those only every 100 us or where
 * a call took that long (docs/capture.md, "Process time").
 *
 * Every system call of this thread traps (syscall user dispatch, Linux 5.11); the handler counts it and makes it.
 * Prints, for each loop, "LOOP calls=N us=N" (how long it took) and "LOOP number=NR count=N". Exit status 77: this
 * machine has no such dispatch. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#if !defined(PR_SET_SYSCALL_USER_DISPATCH) || !defined(__x86_64__)
int main(void) {
  return 77;
}
#else

/* Between the two marks system calls do not trap: the return from the handler, and the handler's own. */
long untrapped_call(long number, long a, long b, long c, long d, long e, long f);
void untrapped_return(void);
extern char untrapped_begin[], untrapped_end[];
__asm__(
    ".text\n"
    "untrapped_begin:\n"
    "untrapped_return: mov $15, %eax\n syscall\n"
    "untrapped_call: mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n mov %r8, %r10\n mov %r9, %r8\n"
    " mov 8(%rsp), %r9\n syscall\n ret\n"
    "untrapped_end:\n");

enum { kNumbers = 1024, kRounds = 5000 };
static volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile long counts[kNumbers];

static void count(int signal, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const long number = info->si_syscall;
  (void)signal;
  if (number >= 0 && number < kNumbers) ++counts[number];
  registers[REG_RAX] = untrapped_call(number, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                      registers[REG_R10], registers[REG_R8], registers[REG_R9]);
}

/* What sigaction(2) takes: glibc's wrapper would put its own return there. */
struct kernel_sigaction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)(void);
  unsigned long mask;
};

static int trap_calls(void) {
  struct kernel_sigaction action = {count, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, untrapped_return, 0};
  if (syscall(SYS_rt_sigaction, SIGSYS, &action, NULL, sizeof action.mask) != 0) return -1;
  return prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, untrapped_begin, untrapped_end - untrapped_begin,
               &selector);
}

static int rank;

static void to_self(void) {
  MPI_Request request;
  int in = 0, out = rank;
  MPI_Isend(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
  MPI_Recv(&in, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void polling(void) {
  MPI_Request request;
  int in = 0, out = rank, done = 0;
  MPI_Irecv(&in, 1, MPI_INT, 0, 8, MPI_COMM_SELF, &request);
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  MPI_Iprobe(0, 9, MPI_COMM_SELF, &done, MPI_STATUS_IGNORE);
  MPI_Send(&out, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void collectives(void) {
  int in = rank, out = 0;
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  MPI_Bcast(&out, 1, MPI_INT, 0, MPI_COMM_SELF);
}

static void ping_pong(void) {
  int value = rank;
  if (rank == 0) {
    MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
  }
}

static void loop(const char* name, int calls_a_round, void (*round)(void)) {
  for (int i = 0; i < 100; ++i) round(); /* the library connects, the capture knows the communicator */
  for (int i = 0; i < kNumbers; ++i) counts[i] = 0;
  const double begin_s = MPI_Wtime();
  selector = SYSCALL_DISPATCH_FILTER_BLOCK;
  for (int i = 0; i < kRounds; ++i) round();
  selector = SYSCALL_DISPATCH_FILTER_ALLOW;
  printf("%s calls=%d us=%.0f\n", name, kRounds * calls_a_round, (MPI_Wtime() - begin_s) * 1e6);
  for (int i = 0; i < kNumbers; ++i) {
    if (counts[i] > 0) printf("%s number=%d count=%ld\n", name, i, counts[i]);
  }
}

int main(int argc, char** argv) {
  int size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int here = trap_calls() == 0, everywhere = 0;
  MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (everywhere) {
    /* That it does count: one of its own. */
    counts[SYS_getppid] = 0;
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    const pid_t trapped = getppid();
    selector = SYSCALL_DISPATCH_FILTER_ALLOW;
    if (counts[SYS_getppid] != 1 || trapped != getppid()) {
      printf("the dispatch does not count\n");
      return 1;
    }
    loop("to_self", 3, to_self);
    loop("polling", 5, polling);
    loop("collectives", 3, collectives);
    if (size > 1) loop("ping_pong", 2, ping_pong);
  }
  MPI_Finalize();
  return everywhere ? 0 : 77;
}
#endif
