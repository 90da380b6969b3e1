#!/usr/bin/env bash
# Open MPI 4.1: MPI_Init makes a library that was opened with RTLD_LOCAL visible to the whole process.
#
# A plugin that brings MPI is opened with RTLD_LOCAL, and its libmpi comes in with it. One expects that nothing outside
# of the plugin finds MPI_Send then, before MPI_Init and after it. That is so with MPICH 4.0.2. With Open MPI 4.1.4 the
# first MPI_Init opens libmpi once more for its components, this time with RTLD_GLOBAL, and the names stay in the
# global scope, also after MPI_Finalize. Whoever asks the global scope "is there an MPI?" gets another answer before
# and after MPI_Init; a second library that has MPI_ names of its own, opened later and bound lazily, may be bound to
# Open MPI's.
#
# Debian 12 (bookworm), amd64: libopenmpi3 4.1.4-3+b1, libmpich12 4.0.2-3+b1, python3 of the system. Seen on 27 November
# 2026:
#   libmpi.so.40    hidden, MPI_Init 0, visible, MPI_Finalize 0, visible
#   libmpich.so.12  hidden, MPI_Init 0, hidden, MPI_Finalize 0, hidden
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
# What the two libraries load beside glibc, libudev and zlib, which every system has.
apt-get download -qq libopenmpi3=4.1.4-3+b1 openmpi-common=4.1.4-3 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 \
  libucx0=1.13.1-1 libnuma1=2.0.16-1 libevent-core-2.1-7=2.1.12-stable-8+deb12u1 \
  libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 2>/dev/null || { echo "these packages are not to be had"; exit 2; }
for file in *.deb; do dpkg -x "$file" root; done

cat >ask.py <<'PY'
import ctypes, os, sys

def seen():
    try:
        ctypes.CDLL(None).MPI_Send
        return "visible"
    except AttributeError:
        return "hidden"

mpi = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_NOW)
said = [seen()]
said += [f"MPI_Init {mpi.MPI_Init(None, None)}", seen()]
said += [f"MPI_Finalize {mpi.MPI_Finalize()}", seen()]
print(", ".join(said))
PY
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib OPAL_PREFIX=$libraries/openmpi
# One process without a launcher.
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1 OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3
openmpi=$(python3 ask.py libmpi.so.40 2>&1) || { echo "Open MPI: $openmpi"; exit 2; }
mpich=$(python3 ask.py libmpich.so.12 2>&1) || { echo "MPICH: $mpich"; exit 2; }
echo "libmpi.so.40    $openmpi"
echo "libmpich.so.12  $mpich"
[ "$openmpi" = "hidden, MPI_Init 0, visible, MPI_Finalize 0, visible" ] &&
  [ "$mpich" = "hidden, MPI_Init 0, hidden, MPI_Finalize 0, hidden" ]
