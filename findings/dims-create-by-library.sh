#!/usr/bin/env bash
# MPI_Dims_create: Open MPI and MPICH cut the same number of ranks into different grids, first at 72.
#
# The standard wants dimensions "as close to each other as possible", so one expects the grid of a program that leaves it
# to MPI_Dims_create to be a matter of the ranks alone. It is a matter of the library too. For 72 ranks in two dimensions
# Open MPI has 12 x 6 where 9 x 8 is there to be had, and so on for 149 of the 12,288 pairs of 1 to 4,096 ranks and 2, 3
# or 4 dimensions; MPICH's grids have the smallest difference between the longest and the shortest side in all of them.
# The neighbours of a halo exchange and its message sizes follow the grid: a trace from a program on one library says
# nothing of those ranks on the other, though both have the same ranks and the same input. (The MPI Forum discusses
# whether the standard means it as a duty: mpi-issues 683. Open MPI 5.0.7 and 6.0.0rc2 of Debian have the same grids as
# 4.1.4.)
#
# Debian 12 (bookworm), amd64: Open MPI 4.1.4-3+b1, MPICH 4.0.2-3+b1; one process. Seen on 29 November 2026:
#   Open MPI  72 ranks: 12 x 6, 675 ranks: 45 x 15, 149 of 12288 grids could be closer
#   MPICH     72 ranks: 9 x 8, 675 ranks: 27 x 25, 0 of 12288 grids could be closer
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

command -v gcc >/dev/null || { echo "needs gcc"; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
# What the two libraries load beside glibc, libudev and zlib, which every system has.
apt-get download -qq libopenmpi3=4.1.4-3+b1 libopenmpi-dev=4.1.4-3+b1 openmpi-common=4.1.4-3 libmpich12=4.0.2-3+b1 \
  libmpich-dev=4.0.2-3+b1 libhwloc15=2.9.0-1 libucx0=1.13.1-1 libnuma1=2.0.16-1 \
  libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 2>/dev/null ||
  { echo "these packages are not to be had"; exit 2; }
for file in *.deb; do dpkg -x "$file" root; done

cat >grids.c <<'C'
#include <mpi.h>
#include <stdio.h>

/* The smallest difference between the longest and the shortest of `sides` factors of `ranks`, none below `least`. */
static int closest(int ranks, int sides, int least, int shortest) {
  int best = -1;
  if (sides == 1) return ranks >= least ? ranks - shortest : -1;
  for (int side = least; side <= ranks; ++side) {
    if (ranks % side != 0) continue;
    int rest = closest(ranks / side, sides - 1, side, shortest == 0 ? side : shortest);
    if (rest >= 0 && (best < 0 || rest < best)) best = rest;
  }
  return best;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int shown[] = {72, 675};
  for (int i = 0; i < 2; ++i) {
    int grid[2] = {0, 0};
    MPI_Dims_create(shown[i], 2, grid);
    printf("%d ranks: %d x %d, ", shown[i], grid[0], grid[1]);
  }
  int grids = 0, worse = 0;
  for (int sides = 2; sides <= 4; ++sides) {
    for (int ranks = 1; ranks <= 4096; ++ranks, ++grids) {
      int grid[4] = {0, 0, 0, 0};
      MPI_Dims_create(ranks, sides, grid); /* in descending order */
      if (grid[0] - grid[sides - 1] > closest(ranks, sides, 1, 0)) ++worse;
    }
  }
  printf("%d of %d grids could be closer\n", worse, grids);
  MPI_Finalize();
}
C
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries OPAL_PREFIX=$libraries/openmpi
# One process without a launcher.
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1
export OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3
gcc -O2 -I "$libraries/openmpi/include" grids.c -o on_openmpi "$libraries/libmpi.so.40" -Wl,--allow-shlib-undefined
gcc -O2 -I "$libraries/mpich/include" -I "$folder/root/usr/include/x86_64-linux-gnu/mpich" grids.c -o on_mpich \
  "$libraries/libmpich.so.12" -Wl,--allow-shlib-undefined
openmpi=$(./on_openmpi 2>&1) || { echo "Open MPI: $openmpi"; exit 2; }
mpich=$(./on_mpich 2>&1) || { echo "MPICH: $mpich"; exit 2; }
echo "Open MPI  $openmpi"
echo "MPICH     $mpich"
[ "$openmpi" = "72 ranks: 12 x 6, 675 ranks: 45 x 15, 149 of 12288 grids could be closer" ] &&
  [ "$mpich" = "72 ranks: 9 x 8, 675 ranks: 27 x 25, 0 of 12288 grids could be closer" ]
