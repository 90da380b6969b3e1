#!/usr/bin/env bash
# MPICH 4.0: a non-blocking receive from MPI_PROC_NULL has source 0 and tag 0 in its status.
#
# A receive from MPI_PROC_NULL ends at once, with source MPI_PROC_NULL, tag MPI_ANY_TAG and a count of 0 in its status
# (MPI 3.1, Sec. 3.11). MPI_Recv of MPICH 4.0.2 does so. The status of MPI_Irecv is that of a message from
# rank 0 with tag 0, whichever of MPI_Wait and MPI_Test ends it. Whoever tells a neighbour that is there from one that is
# not by the source of the status, as a tool or a halo exchange with MPI_Waitall does, takes the edge of the domain for
# rank 0. Open MPI 4.1.4 has -2 and -1, its MPI_PROC_NULL and MPI_ANY_TAG, in all of them.
#
# Debian 12 (bookworm), amd64: libmpich12 4.0.2-3+b1, libopenmpi3 4.1.4-3+b1, python3 of the system. Seen on 28 November
# 2026 (source, tag):
#   libmpich.so.12  Recv -1 -1, Irecv and Wait 0 0, Irecv and Test 0 0
#   libmpi.so.40    Recv -2 -1, Irecv and Wait -2 -1, Irecv and Test -2 -1
# Exit status 0: still so; 1: not any more; 2: could not be tried.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 "$folder"
apt-get download -qq libopenmpi3=4.1.4-3+b1 openmpi-common=4.1.4-3 libmpich12=4.0.2-3+b1 libhwloc15=2.9.0-1 \
  libucx0=1.13.1-1 libnuma1=2.0.16-1 libevent-core-2.1-7=2.1.12-stable-8+deb12u1 \
  libevent-pthreads-2.1-7=2.1.12-stable-8+deb12u1 2>/dev/null || { echo "these packages are not to be had"; exit 2; }
for file in *.deb; do dpkg -x "$file" root; done

cat >ask.py <<'PY'
import ctypes, sys

mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
if "mpich" in sys.argv[1]:  # handles are numbers
    world, byte, nobody, at = ctypes.c_int(0x44000000), ctypes.c_int(0x4C00010D), -1, 2
    Request = ctypes.c_int
else:  # ... or addresses
    world, byte = (ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name))) for name in ("ompi_mpi_comm_world", "ompi_mpi_byte"))
    nobody, at = -2, 0
    Request = ctypes.c_void_p
buffer = ctypes.create_string_buffer(8)

def seen(how):
    status, request, flag = (ctypes.c_int * 16)(*[77] * 16), Request(), ctypes.c_int(0)
    if how == "Recv":
        mpi.MPI_Recv(buffer, 0, byte, nobody, 5, world, status)
    else:
        mpi.MPI_Irecv(buffer, 0, byte, nobody, 5, world, ctypes.byref(request))
        if how.endswith("Wait"):
            mpi.MPI_Wait(ctypes.byref(request), status)
        while how.endswith("Test") and not flag.value:
            mpi.MPI_Test(ctypes.byref(request), ctypes.byref(flag), status)
    return f"{how} {status[at]} {status[at + 1]}"

mpi.MPI_Init(None, None)
print(", ".join(seen(how) for how in ("Recv", "Irecv and Wait", "Irecv and Test")))
mpi.MPI_Finalize()
PY
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries:$libraries/openmpi/lib OPAL_PREFIX=$libraries/openmpi
# One process without a launcher.
export OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_btl=self OMPI_MCA_pml=ob1 OMPI_MCA_mca_base_component_path=$libraries/openmpi/lib/openmpi3
mpich=$(python3 ask.py libmpich.so.12 2>&1) || { echo "MPICH: $mpich"; exit 2; }
openmpi=$(python3 ask.py libmpi.so.40 2>&1) || { echo "Open MPI: $openmpi"; exit 2; }
echo "libmpich.so.12  $mpich"
echo "libmpi.so.40    $openmpi"
[ "$mpich" = "Recv -1 -1, Irecv and Wait 0 0, Irecv and Test 0 0" ] &&
  [ "$openmpi" = "Recv -2 -1, Irecv and Wait -2 -1, Irecv and Test -2 -1" ]
