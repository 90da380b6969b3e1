# lbf for Spack: builds the checkout that this file belongs to. docs/install.md, "Spack and EasyBuild".
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Lbf(CMakePackage):
    """What-if predictions for MPI jobs, inside Slurm: how long a job would have taken on other node counts, placements and
    networks."""

    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))

    license("Apache-2.0")

    version("0.2.0", branch="main")

    variant("otf2", default=True, description="lbf-trace reads and writes OTF2 archives")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    conflicts("%gcc@:11", msg="lbf is built with GCC 12 or later")

    generator("ninja")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("py-pyyaml", type="build")

    # The plugin fits the release (major.minor) of Slurm that it is built against: the site's own, as an external package.
    depends_on("slurm@22-05:")
    depends_on("munge")
    # A DAG has one MPI: the recorder for MPICH's own ABI is not built.
    depends_on("openmpi@4.1:")

    depends_on("boost@1.74:")
    depends_on("cli11")
    depends_on("curl")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("openssl")
    depends_on("scotch~mpi")
    depends_on("spdlog")
    depends_on("sqlitecpp@3.2:")
    depends_on("tomlplusplus")
    depends_on("yaml-cpp")
    depends_on("zstd")
    depends_on("otf2", when="+otf2")
    # Procedure times.
    depends_on("elfutils", when="target=x86_64:")
    depends_on("zydis@4:", when="target=x86_64:")

    def cmake_args(self):
        return [
            self.define("LBF_BUILD_TESTS", False),
            self.define("LBF_BUILD_BENCH", False),
            self.define("LBF_WERROR", False),
        ]
