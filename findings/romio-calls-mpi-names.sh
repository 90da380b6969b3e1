#!/usr/bin/env bash
# ROMIO inside Open MPI 4.1 calls some functions of MPI by their MPI_ names: a tool sees calls that the program does not
# make, and with the other two implementations of MPI-IO it does not.
#
# A tool that puts functions of its own before MPI_... and calls PMPI_... expects to see the program's calls alone: the
# library uses PMPI_ names inside. Of MPI-IO there are two components in Open MPI, OMPIO (the default, but not on Lustre)
# and ROMIO, which is also what MPICH has. ROMIO in Open MPI's build uses PMPI_ names, too, but for a few, MPI_Type_size_x
# among them: a plain collective write calls it four times. So a tool's counts of calls depend on the file system that a
# file is on.
#
# Debian 12 (bookworm), amd64: libopenmpi3 4.1.4-3+b1, libmpich12 4.0.2-3+b1; one process without a launcher writes 1,000
# bytes with MPI_File_write_at_all. Seen on 29 November 2026, calls of MPI_Type_size_x that a preloaded library saw:
#   Open MPI, OMPIO  MPI_Type_size_x 0
#   Open MPI, ROMIO  MPI_Type_size_x 4
#   MPICH            MPI_Type_size_x 0
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

cat >write.c <<'C'
#include <mpi.h>

int main(int argc, char** argv) {
  static char bytes[1000];
  MPI_File file;
  MPI_Init(&argc, &argv);
  int failed = MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  if (!failed) failed = MPI_File_write_at_all(file, 0, bytes, 1000, MPI_CHAR, MPI_STATUS_IGNORE);
  if (!failed) failed = MPI_File_close(&file);
  MPI_Finalize();
  return failed != 0;
}
C
cat >tool.c <<'C'
#include <mpi.h>
#include <stdio.h>

static int sizes;

int MPI_Type_size_x(MPI_Datatype type, MPI_Count* size) {
  ++sizes;
  return PMPI_Type_size_x(type, size);
}

int MPI_Finalize(void) {
  printf("MPI_Type_size_x %d\n", sizes);
  return PMPI_Finalize();
}
C
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries OPAL_PREFIX=$libraries/openmpi
# One process without a launcher.
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1
export OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3
openmpi=(-I "$libraries/openmpi/include")
mpich=(-I "$libraries/mpich/include" -I "$folder/root/usr/include/x86_64-linux-gnu/mpich")
gcc "${openmpi[@]}" write.c -o on_openmpi "$libraries/libmpi.so.40" -Wl,--allow-shlib-undefined
gcc "${openmpi[@]}" -shared -fPIC tool.c -o tool_openmpi.so
gcc "${mpich[@]}" write.c -o on_mpich "$libraries/libmpich.so.12" -Wl,--allow-shlib-undefined
gcc "${mpich[@]}" -shared -fPIC tool.c -o tool_mpich.so
try() { LD_PRELOAD=$folder/tool_$1.so "$folder/on_$1" "$folder/file" 2>&1 || { echo "failed"; }; }
ompio=$(OMPI_MCA_io=ompio try openmpi)
romio=$(OMPI_MCA_io=romio321 try openmpi)
mpich=$(try mpich)
echo "Open MPI, OMPIO  $ompio"
echo "Open MPI, ROMIO  $romio"
echo "MPICH            $mpich"
case $ompio$romio$mpich in *failed*) exit 2 ;; esac
none="MPI_Type_size_x 0"
[ "$ompio" = "$none" ] && [ "$mpich" = "$none" ] && [ "$romio" = "MPI_Type_size_x 4" ]
