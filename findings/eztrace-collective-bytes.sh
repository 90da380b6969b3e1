#!/usr/bin/env bash
# EZTrace 2.0: the bytes that an OTF2 archive has of a collective are the two counts of the call, on every rank, whatever
# the rank sent and received.
#
# OTF2's record at the end of a collective has "size of the sent data" and "size of the received data" of that process,
# and an archive's reader adds them up, or divides them by the ranks to have the size of one message. EZTrace writes
# count x size of the datatype there, as the caller named them. So an alltoall of three ranks with 1,000 bytes each way
# has 1,000 where each rank sent 3,000; each rank of a broadcast has sent and received 1,000; and those of a gather that
# are not the root have received 1,000. Nothing in the record tells which reading holds: whoever divides an alltoall's
# bytes by the ranks, as is right for other tools' archives, has messages of a third.
#
# Debian 12 (bookworm), amd64: eztrace 2.0+repack-12, Open MPI 4.1.4-3+b1, otf2-tools 3.0.2-2; three ranks on one
# machine. Seen on 29 November 2026, of each of the three ranks:
#   ALLTOALL   sent 1000, received 1000
#   ALLGATHER  sent 1000, received 1000
#   BCAST      sent 1000, received 1000
#   GATHER     sent 1000, received 1000
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

command -v gcc >/dev/null || { echo "needs gcc"; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
mpi=4.1.4-3+b1
apt-get download -qq eztrace=2.0+repack-12 libeztrace0=2.0+repack-12 libopen-trace-format2-10=3.0.2-2 otf2-tools=3.0.2-2 \
  openmpi-bin=$mpi libopenmpi3=$mpi libopenmpi-dev=$mpi openmpi-common=4.1.4-3 libpmix2=4.2.2-1+deb12u1 \
  libmunge2=0.5.15-2+deb12u1 libhwloc15=2.9.0-1 libucx0=1.13.1-1 libnuma1=2.0.16-1 \
  libevent-core-2.1-7=2.1.12-stable-8+deb12u1 libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 2>/dev/null ||
  { echo "these packages are not to be had"; exit 2; }
for file in *.deb; do dpkg -x "$file" root; done

cat >collectives.c <<'C'
#include <mpi.h>

int main(int argc, char** argv) {
  static char out[3000], in[3000];
  MPI_Init(&argc, &argv);
  MPI_Alltoall(out, 1000, MPI_CHAR, in, 1000, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Allgather(out, 1000, MPI_CHAR, in, 1000, MPI_CHAR, MPI_COMM_WORLD);
  MPI_Bcast(out, 1000, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Gather(out, 1000, MPI_CHAR, in, 1000, MPI_CHAR, 0, MPI_COMM_WORLD);
  MPI_Finalize();
}
C
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries OPAL_PREFIX=$libraries/openmpi PATH=$folder/root/usr/bin:$PATH
export OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3 OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
gcc -I "$libraries/openmpi/include" collectives.c -o collectives "$libraries/libmpi.so.40" -Wl,--allow-shlib-undefined
# As the command eztrace does, which has the path of its libraries in it.
orterun -n 3 --oversubscribe env EZTRACE_TRACE=openmpi EZTRACE_TRACE_DIR="$folder/trace" \
  LD_PRELOAD="$libraries/libeztrace-lib.so:$libraries/libeztrace-openmpi.so" ./collectives >run.log 2>&1 ||
  { cat run.log; echo "the program did not run"; exit 2; }
otf2-print trace/collectives_trace/eztrace_log.otf2 2>/dev/null >printed || { echo "otf2-print failed"; exit 2; }

is_so=0
for operation in ALLTOALL ALLGATHER BCAST GATHER; do
  said=$(sed -n "s/^MPI_COLLECTIVE_END.*Operation: $operation,.*Sent: \([0-9]*\), Received: \([0-9]*\).*/sent \1, received \2/p" printed)
  printf '%-9s  %s\n' $operation "$(sort -u <<<"$said")"
  [ "$(sort <<<"$said" | uniq -c | tr -s ' ')" = " 3 sent 1000, received 1000" ] || is_so=1
done
exit $is_so
