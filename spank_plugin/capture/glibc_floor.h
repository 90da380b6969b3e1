// The version of glibc's functions that the capture's libraries want: the first one, instead of the one that the build
// host's glibc gives by default. A container's program with an older glibc, too, gets the preload (LD_PRELOAD knows no
// containers), and would not start. Included before everything else (CMakeLists.txt); tests/structure checks the
// result.
#pragma once

#include <features.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define LBF_FIRST_VERSION "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define LBF_FIRST_VERSION "GLIBC_2.17"
#endif

#if defined(LBF_FIRST_VERSION)
#define LBF_USE_FIRST(function) __asm__(".symver " #function "," #function "@" LBF_FIRST_VERSION)
// 2.34 moved these into libc.so.6 with a new version.
LBF_USE_FIRST(dladdr);
LBF_USE_FIRST(dlclose);
LBF_USE_FIRST(dlerror);
LBF_USE_FIRST(dlopen);
#if !defined(LBF_DEFINES_DLSYM)
LBF_USE_FIRST(dlsym);
#endif
LBF_USE_FIRST(pthread_key_create);
LBF_USE_FIRST(pthread_setspecific);
LBF_USE_FIRST(pthread_sigmask);  // 2.32
#endif
