#!/usr/bin/python3
"""A container's program gets the preload as well, and its glibc may be older than the build host's: what a library of the
capture needs that this glibc does not have ends every program of the step, /bin/echo too. Run by ctest with LBF_BUILD_DIR
set to a folder in which the capture is built."""

import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD_DIR = os.path.abspath(os.environ.get("LBF_BUILD_DIR", os.path.join(ROOT, "build/release")))
FLOOR = (2, 17)  # of 2012; the first one for 64-bit ARM
# Parts of glibc. Since 2.34 all but the first one are empty, and there all the same.
PARTS = {"libc.so.6", "libdl.so.2", "libpthread.so.0"}


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


class GlibcFloor(unittest.TestCase):
    def libraries(self):
        found = glob.glob(os.path.join(BUILD_DIR, "lib/liblbf_capture*.so"))
        # MPICH's recorder is not everywhere.
        for name in ("", "_abi", "_ompi"):
            self.assertIn(os.path.join(BUILD_DIR, f"lib/liblbf_capture{name}.so"), found)
        return found

    def test_no_newer_version_is_needed(self):
        for path in self.libraries():
            versions = re.findall(r"Name: (\w+)_([\d.]+)", readelf("--version-info", path))
            self.assertTrue(versions, path)
            for name, number in versions:
                self.assertEqual(name, "GLIBC", path)
                self.assertLessEqual(tuple(map(int, number.split("."))), FLOOR, f"{path}: {name}_{number}")

    def test_each_part_of_an_older_glibc_is_named(self):
        for path in self.libraries():
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("--dynamic", path)))
            self.assertEqual(needed - PARTS, set(), path)
            self.assertIn("libdl.so.2", needed, path)
            uses_threads = re.search(r"UND pthread_(key_create|setspecific|sigmask)@", readelf("--dyn-syms", path))
            self.assertEqual("libpthread.so.0" in needed, uses_threads is not None, path)


if __name__ == "__main__":
    unittest.main()
