/* plugins WORD ...: a program that is linked to no MPI, and does what the words say, in their order:
 *   a=FILE   opens FILE into a local scope as plugin a
 *   a:FILE   the same, and its calls are bound when they are made
 *   A=FILE   opens FILE into the global scope as plugin A
 *   a.NAME   calls its function NAME, and says what it returns
 *   a-       closes it
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugins[128] = {0};
  for (int i = 1; i < argc; ++i) {
    const char* const word = argv[i];
    void** const plugin = &plugins[word[0] & 127];
    if (word[1] == '=' || word[1] == ':') {
      *plugin = dlopen(word + 2, (word[1] == '=' ? RTLD_NOW : RTLD_LAZY) | (word[0] <= 'Z' ? RTLD_GLOBAL : RTLD_LOCAL));
      if (*plugin == NULL) return fprintf(stderr, "plugins: %s\n", dlerror()), 1;
    } else if (word[1] == '.') {
      int (*const function)(void) = (int (*)(void))dlsym(*plugin, word + 2);
      if (function == NULL) return fprintf(stderr, "plugins: %s\n", dlerror()), 1;
      printf("%s %d\n", word, function());
    } else {
      dlclose(*plugin);
    }
    fflush(stdout);
  }
  return 0;
}
