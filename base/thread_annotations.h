// Which lock guards what, in a form that clang checks (-Wthread-safety, tests/structure/thread_safety). Empty for other
// compilers.
//
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html has the meaning of each attribute.
#pragma once

#if defined(__clang__)
#define LBF_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define LBF_THREAD_ATTRIBUTE(x)
#endif

// A class whose objects are locks; a class whose objects hold one while they live.
#define CAPABILITY(name) LBF_THREAD_ATTRIBUTE(capability(name))
#define SCOPED_CAPABILITY LBF_THREAD_ATTRIBUTE(scoped_lockable)

// Members: read and written with the lock held; of a pointer, what it points to.
#define GUARDED_BY(lock) LBF_THREAD_ATTRIBUTE(guarded_by(lock))
#define PT_GUARDED_BY(lock) LBF_THREAD_ATTRIBUTE(pt_guarded_by(lock))

// Functions: the caller holds the lock, or does not.
#define REQUIRES(...) LBF_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) LBF_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

// Functions that take or release the lock.
#define ACQUIRE(...) LBF_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) LBF_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) LBF_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))

// A function that is right although it breaks the rules. A comment says why.
#define NO_THREAD_SAFETY_ANALYSIS LBF_THREAD_ATTRIBUTE(no_thread_safety_analysis)
