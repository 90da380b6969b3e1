#!/usr/bin/python3
"""The files for Spack and EasyBuild against the build that they are for: the same version, all libraries that CMake looks
for, options that it has. They run here as Python, without Spack and EasyBuild."""

import glob
import os
import re
import runpy
import sys
import types
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
SPACK = f"{ROOT}/packaging/spack/spack_repo/lbf"
# What CMake looks for: (Spack's name, EasyBuild's name).
NEEDED = {
    "Boost": ("boost", "Boost"), "CLI11": ("cli11", "CLI11"), "CURL": ("curl", "cURL"), "LIBDW": ("elfutils", "elfutils"),
    "LIBZSTD": ("zstd", "zstd"), "MPI": ("openmpi", "gompi"), "MUNGE": ("munge", "munge-devel"), "OMPI": ("openmpi", "gompi"),
    "OTF2": ("otf2", "OTF2"), "OpenSSL": ("openssl", "OpenSSL"), "PkgConfig": ("pkgconfig", "pkgconf"),
    "Python3": ("python", "Python"), "SCOTCH": ("scotch", "SCOTCH"), "SLURM": ("slurm", "slurm-devel"),
    "SQLiteCpp": ("sqlitecpp", "SQLiteCpp"), "fmt": ("fmt", "fmt"), "nlohmann_json": ("nlohmann-json", "nlohmann_json"),
    "spdlog": ("spdlog", "spdlog"), "tomlplusplus": ("tomlplusplus", "tomlplusplus"), "yaml-cpp": ("yaml-cpp", "yaml-cpp"),
    "zydis": ("zydis", "zydis"),
}
# The compiler has it; and one build has one MPI.
NOT_NEEDED = {"Threads", "MPICH"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def looked_for():
    """Names of packages and libraries in the CMakeLists.txt of what is installed."""
    found = set()
    for path in glob.glob(f"{ROOT}/**/CMakeLists.txt", recursive=True):
        if path.startswith(tuple(f"{ROOT}/{folder}/" for folder in ("build", "tests", "bench", "examples"))):
            continue
        text = read(path)
        found |= set(re.findall(r"(?:find_package|pkg_check_modules)\(([\w-]+)", text))
        found |= {name.removesuffix("ERR") for name in re.findall(r"find_(?:path|library)\((\w+?)_(?:INCLUDE|LIBRARY)", text)}
    return found


def spack_package(path):
    """(the class, {directive: [its first arguments]}), with names of Spack that only note what they are called with."""
    called = {}
    spack, cmake = types.ModuleType("spack.package"), types.ModuleType("spack_repo.builtin.build_systems.cmake")
    for name in ("conflicts", "depends_on", "license", "variant", "version", "generator"):
        setattr(spack, name, lambda first, name=name, **_: called.setdefault(name, []).append(first))
    cmake.generator = spack.generator
    cmake.CMakePackage = type("CMakePackage", (), {"define": staticmethod(lambda option, value: option)})
    replaced = {module.__name__: module for module in (spack, cmake)}
    sys.modules.update(replaced)
    try:
        package = next(value for value in runpy.run_path(path).values()
                       if isinstance(value, type) and issubclass(value, cmake.CMakePackage) and value is not cmake.CMakePackage)
    finally:
        for name in replaced:
            del sys.modules[name]
    return package, called


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.version = re.search(r"project\(lbf VERSION ([\d.]+)", read(f"{ROOT}/CMakeLists.txt"))[1]
        cls.spack, cls.spack_calls = spack_package(f"{SPACK}/packages/lbf/package.py")
        cls.easyconfigs = glob.glob(f"{ROOT}/packaging/easybuild/*.eb")
        # Names that EasyBuild gives to easyconfigs.
        cls.easyconfig = runpy.run_path(cls.easyconfigs[0], {"SYSTEM": {"name": "system", "version": "system"}})

    def assert_options_exist(self, options):
        declared = set(re.findall(r"(?:option|set)\((LBF_\w+)", read(f"{ROOT}/cmake/LbfBuild.cmake")))
        self.assertGreaterEqual(len(options), 3, options)
        self.assertEqual(set(), set(options) - declared)

    def test_the_list_is_what_cmake_looks_for(self):
        self.assertEqual(set(NEEDED) | NOT_NEEDED, looked_for())

    def test_spack(self):
        self.assertEqual([self.version], self.spack_calls["version"])
        needs = {re.match(r"[\w-]+", spec)[0] for spec in self.spack_calls["depends_on"]}
        self.assertEqual(set(), {name for name, _ in NEEDED.values()} - needs)
        self.assertEqual(f"file://{ROOT}", self.spack.git)
        self.assert_options_exist(self.spack().cmake_args())
        self.assertIn("namespace: lbf\n", read(f"{SPACK}/repo.yaml"))
        sqlitecpp, calls = spack_package(f"{SPACK}/packages/sqlitecpp/package.py")
        self.assertTrue(sqlitecpp.url.endswith(f"/{calls['version'][0]}.tar.gz"))

    def test_easybuild(self):
        config = self.easyconfig
        toolchain = config["toolchain"]
        self.assertEqual([f"lbf-{self.version}-{toolchain['name']}-{toolchain['version']}.eb"],
                         [os.path.basename(path) for path in self.easyconfigs])
        self.assertEqual(self.version, config["version"])
        components = {name: options for name, _, options in config["components"]}
        needs = {toolchain["name"], *components, *(pair[0] for pair in config["osdependencies"]),
                 *(need[0] for need in config["builddependencies"] + config["dependencies"])}
        self.assertEqual(set(), {name for _, name in NEEDED.values()} - needs)
        self.assert_options_exist(re.findall(r"-D(LBF_\w+)=", components["lbf"]["configopts"]))
        for name, options in components.items():
            if name != "lbf":  # its archive is made of the checkout
                self.assertRegex(options["checksums"][0], "^[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
