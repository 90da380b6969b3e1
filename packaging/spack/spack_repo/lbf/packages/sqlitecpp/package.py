from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Sqlitecpp(CMakePackage):
    """SQLite for C++. lbfd's store."""

    homepage = "https://srombauts.github.io/SQLiteCpp"
    url = "https://github.com/SRombauts/SQLiteCpp/archive/refs/tags/3.3.3.tar.gz"

    license("MIT")

    version("3.3.3", sha256="33bd4372d83bc43117928ee842be64d05e7807f511b5195f85d30015cad9cac6")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("sqlite+column_metadata")

    def cmake_args(self):
        return [
            self.define("SQLITECPP_INTERNAL_SQLITE", False),
            self.define("SQLITECPP_RUN_CPPLINT", False),
            self.define("CMAKE_POSITION_INDEPENDENT_CODE", True),
        ]
