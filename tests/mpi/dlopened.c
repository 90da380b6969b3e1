/* dlopened LIBRARY ARGUMENTS: a program that is linked to no MPI; MPI comes with LIBRARY, through dlopen into a local
 * scope, as with mpi4py. Runs LIBRARY's program_main. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "dlopened: %s\n", dlerror());
    return 1;
  }
  int (*const program)(int, char**) = (int (*)(int, char**))dlsym(library, "program_main");
  return program == NULL ? 1 : program(argc - 1, argv + 1);
}
