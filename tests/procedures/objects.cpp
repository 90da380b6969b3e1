// C++: templates, overloads, methods, and exceptions that leave measured procedures.
#include <execinfo.h>

#include <cstdio>
#include <stdexcept>
#include <string>

volatile long sink;

namespace grid {

template <class T>
[[gnu::noinline]] T scale(T value, int times) {
  sink = sink + 1;
  return value * static_cast<T>(times);
}

struct Solver {
  [[gnu::noinline]] long step(long n) {
    sink = sink + 1;
    return n + offset;
  }
  [[gnu::noinline]] long step(double n) {
    sink = sink + 1;
    return static_cast<long>(n) + offset;
  }
  long offset = 3;
};

struct Counted {
  static int destroyed;
  ~Counted() { ++destroyed; }
};
int Counted::destroyed = 0;

[[gnu::noinline]] long throws(int depth) {
  Counted counted;
  sink = sink + 1;
  if (depth == 0) throw std::runtime_error("from below");
  return throws(depth - 1) + 1;
}

[[gnu::noinline]] int catches(int depth) {
  try {
    return static_cast<int>(throws(depth));
  } catch (const std::runtime_error& error) {
    return std::string(error.what()) == "from below" ? 1 : 0;
  }
}

[[gnu::noinline]] int rethrows(int depth) {
  try {
    return catches(depth) + static_cast<int>(throws(1));
  } catch (...) {
    throw;
  }
}

[[gnu::noinline]] int looks_back() {
  void* frames[32];
  const int count = backtrace(frames, 32);
  sink = sink + count;
  return count;
}
[[gnu::noinline]] int outer() {
  const int count = looks_back();
  sink = sink + 1;
  return count;
}

}  // namespace grid

int main() {
  long sum = 0;
  for (int i = 0; i < 50; ++i) sum += grid::scale<long>(i, 2) + static_cast<long>(grid::scale<double>(i, 3));
  grid::Solver solver;
  for (int i = 0; i < 30; ++i) sum += solver.step(static_cast<long>(i));
  for (int i = 0; i < 20; ++i) sum += solver.step(0.5 + i);
  int caught = 0;
  for (int i = 0; i < 40; ++i) caught += grid::catches(10);
  int again = 0;
  for (int i = 0; i < 10; ++i) {
    try {
      again += grid::rethrows(3);
    } catch (const std::runtime_error&) {
      ++again;
    }
  }
  std::printf("objects %ld %d %d %d\n", sum, caught, again, grid::Counted::destroyed);
  std::fprintf(stderr, "frames %d\n", grid::outer());
}
