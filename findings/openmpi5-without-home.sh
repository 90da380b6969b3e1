#!/usr/bin/env bash
# Open MPI 5.0: MPI_Init fails where HOME is not set, though a HOME that does not exist will do.
#
# Batch systems, cron and service managers start programs without HOME, and Slurm's `--export=NONE` or a root user's
# `env -i` do. Open MPI reads a file of parameters in the user's home directory if there is one; one expects that it goes
# without where there is no home. Open MPI 4.1 does. Open MPI 5.0 does so only while HOME has a value, whatever it is:
# without one it does not ask the password file, and MPI_Init ends the program with "opal_init failed", of which
# "mca_base_var_init failed" and a line above it are all that tells the cause.
#
# Open MPI 5.0.7-1 with PMIx 5.0.7-1 and glibc 2.41-12+deb13u5 of Debian 13 (trixie), and 4.1.4-3+b1 of Debian 12
# (bookworm), amd64; one process without a launcher. Seen on 29 November 2026:
#   4.1.4  HOME=/nonexistent: MPI_Init 0; no HOME: MPI_Init 0
#   5.0.7  HOME=/nonexistent: MPI_Init 0; no HOME: Unable to get the user home directory
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

for program in gcc curl; do command -v $program >/dev/null || { echo "needs $program"; exit 2; }; done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# The mirror that this machine has its own packages from also has those of Debian 13.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages' 2>/dev/null | head -1)
curl_of_pool() { curl -sSfO "${mirror%/}/pool/main/$1" 2>/dev/null; }
mkdir four five
( cd four && apt-get download -qq libopenmpi3=4.1.4-3+b1 libopenmpi-dev=4.1.4-3+b1 openmpi-common=4.1.4-3 \
  libhwloc15=2.9.0-1 libucx0=1.13.1-1 libnuma1=2.0.16-1 libevent-core-2.1-7=2.1.12-stable-8+deb12u1 \
  libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 2>/dev/null ) || { echo "4.1's packages are not to be had"; exit 2; }
for file in o/openmpi/lib{openmpi40,openmpi-dev}_5.0.7-1_amd64.deb o/openmpi/openmpi-common_5.0.7-1_all.deb \
  p/pmix/libpmix2t64_5.0.7-1_amd64.deb g/glibc/libc6_2.41-12+deb13u5_amd64.deb h/hwloc/libhwloc15_2.12.0-4_amd64.deb \
  libe/libevent/libevent-{core,pthreads}-2.1-7t64_2.1.13-stable-1~deb13u1_amd64.deb u/ucx/libucx0_1.18.1+ds-2+b1_amd64.deb \
  libf/libfabric/libfabric1_2.1.0-1.1_amd64.deb libp/libpsm2/libpsm2-2_11.2.185-2.1_amd64.deb \
  r/rdma-core/{librdmacm1t64,libibverbs1,ibverbs-providers}_56.1-1_amd64.deb libn/libnl3/libnl-{3,route-3}-200_3.7.0-2_amd64.deb \
  n/numactl/libnuma1_2.0.19-1_amd64.deb m/munge/libmunge2_0.5.16-1.1~deb13u1_amd64.deb \
  g/gcc-14/libgcc-s1_14.2.0-19_amd64.deb; do
  ( cd five && curl_of_pool "$file" ) || { echo "$file is not to be had"; exit 2; }
done
for file in {four,five}/*.deb; do dpkg -x "$file" "${file%/*}"; done

cat >start.c <<'C'
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  printf("MPI_Init %d\n", MPI_Init(&argc, &argv));
  MPI_Finalize();
}
C

# start ROOT SETTING...: what the program says, or Open MPI's line of it.
start() {
  local root=$folder/$1 libraries loader said
  shift
  libraries=$root/usr/lib/x86_64-linux-gnu
  loader=$libraries/ld-linux-x86-64.so.2
  [ -e "$loader" ] || loader=/lib64/ld-linux-x86-64.so.2
  gcc -I "$libraries/openmpi/include" start.c -o "$root/start" "$libraries/libmpi.so.40" -Wl,--allow-shlib-undefined
  said=$(env -i PATH=/usr/bin OPAL_PREFIX="$libraries/openmpi" PMIX_PREFIX="$libraries/pmix2" OMPI_MCA_pml=ob1 \
    OMPI_MCA_btl=self OMPI_MCA_ess_singleton_isolated=1 \
    OMPI_MCA_mca_base_component_path="$libraries/openmpi/lib/openmpi3" "$@" \
    "$loader" --library-path "$libraries:$libraries/openmpi/lib" "$root/start" 2>&1) || true
  grep -o -m 1 'MPI_Init 0\|Unable to get the user home directory' <<<"$said" || { echo "$said" >&2; echo "something else"; }
}
four="HOME=/nonexistent: $(start four HOME=/nonexistent); no HOME: $(start four)"
five="HOME=/nonexistent: $(start five HOME=/nonexistent); no HOME: $(start five)"
echo "4.1.4  $four"
echo "5.0.7  $five"
[[ $four$five != *"HOME=/nonexistent: something else"* ]] || exit 2
[ "$four" = "HOME=/nonexistent: MPI_Init 0; no HOME: MPI_Init 0" ] &&
  [ "$five" = "HOME=/nonexistent: MPI_Init 0; no HOME: Unable to get the user home directory" ]
