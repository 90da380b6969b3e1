#!/usr/bin/env bash
# LLVM's OpenMP runtime, called by code of g++: a task with if(0) whose firstprivate variable has a copy constructor gets
# no copy, and reads something else than its variable.
#
# libomp has GNU's entry points, so that programs of gcc run on it. For a firstprivate variable with a copy constructor
# g++ passes GOMP_task a copy function: the data are references to the originals until it has run. libgomp calls it for
# an undeferred task, too. libomp calls it for deferred tasks alone; an undeferred one (if(0), final) gets the references
# themselves as its variables. So a program that is right with libgomp, and with libomp while the condition holds, takes
# the bytes of an address for a number once the condition is false, with exit status 0. One would expect a program to
# work or to be refused.
#
# Debian 12 (bookworm), amd64: g++ 12.2.0-14+deb12u1 of the system; libgomp1 12.2.0-14+deb12u1, libomp5-14 1:14.0.6-12,
# libomp5-19 1:19.1.7-3~deb12u1. Seen on 27 November 2026:
#   libgomp      deferred 42, copies 1; undeferred 42, copies 1
#   libomp5-14   deferred 42, copies 1; undeferred another number, copies 0
#   libomp5-19   deferred 42, copies 1; undeferred another number, copies 0
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

command -v g++ >/dev/null || { echo "needs g++"; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
for package in libgomp1=12.2.0-14+deb12u1 libomp5-14=1:14.0.6-12 libomp5-19=1:19.1.7-3~deb12u1; do
  apt-get download -qq "$package" 2>/dev/null || { echo "$package is not to be had"; exit 2; }
  dpkg -x "${package%%=*}"_*.deb "${package%%=*}"
done

cat >task.cpp <<'CPP'
#include <cstdio>

static int copies;
struct Value {
  long number;
  explicit Value(long n) : number(n) {}
  Value(const Value& other) : number(other.number) { ++copies; }
};

static void say(const char* how, bool deferred) {
  long seen = 0;
  copies = 0;
  Value value(42);
#pragma omp parallel num_threads(1)
  {
#pragma omp task if (deferred) firstprivate(value) shared(seen)
    seen = value.number;
#pragma omp taskwait
  }
  if (seen == 42) {
    std::printf("%s 42, copies %d", how, copies);
  } else {
    std::printf("%s another number, copies %d", how, copies);
  }
}

int main() {
  say("deferred", true);
  std::printf("; ");
  say("undeferred", false);
  std::printf("\n");
}
CPP
g++ -O1 -fopenmp -c task.cpp
g++ task.o -o on_gnu "$folder"/libgomp1/usr/lib/x86_64-linux-gnu/libgomp.so.1
g++ task.o -o on_llvm "$folder"/libomp5-14/usr/lib/llvm-14/lib/libomp.so.5
gnu=$(LD_LIBRARY_PATH=$folder/libgomp1/usr/lib/x86_64-linux-gnu ./on_gnu)
llvm14=$(LD_LIBRARY_PATH=$folder/libomp5-14/usr/lib/llvm-14/lib ./on_llvm)
llvm19=$(LD_LIBRARY_PATH=$folder/libomp5-19/usr/lib/llvm-19/lib ./on_llvm)
echo "libgomp      $gnu"
echo "libomp5-14   $llvm14"
echo "libomp5-19   $llvm19"
right="deferred 42, copies 1; undeferred 42, copies 1"
wrong="deferred 42, copies 1; undeferred another number, copies 0"
[ "$gnu" = "$right" ] && [ "$llvm14" = "$wrong" ] && [ "$llvm19" = "$wrong" ]
