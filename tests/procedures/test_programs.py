"""Programs of many kinds under liblbf_procedures.so: results unchanged, counts exact, or a line that says why not.

Each program is built here (LBF_PROCEDURES_LIBRARY: the library), run bare, and run with its procedures measured.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.environ["LBF_PROCEDURES_LIBRARY"]
CXX = os.environ.get("LBF_TEST_CXX", "g++")
CC = os.environ.get("LBF_TEST_CC", "gcc")
FORTRAN = os.environ.get("LBF_TEST_FORTRAN", "gfortran")

CALLS = ("leaf,large_result,floating,spin,recursive,even,odd,jumps_out,catches_jump,in_handler,yields,resumes,in_thread,"
         "exits_thread,forks")
# What calls.c does, case by case, without "storm".
EXACT = {"leaf": 1000, "large_result": 100, "floating": 100, "spin": 30, "recursive": 1000, "even": 15002, "odd": 15002,
         "jumps_out": 120, "catches_jump": 20, "in_handler": 100, "yields": 100, "resumes": 101, "in_thread": 400000,
         "exits_thread": 10, "forks": 1}
CASES = ("plain", "time", "recursion", "tail", "longjmp", "signals", "coroutines", "threads", "fork")


class Row:
    def __init__(self, fields):
        self.calls = int(fields[1])
        self.inclusive_s = float(fields[2])
        self.self_s = float(fields[3])
        self.left_by_jump = int(fields[4])
        self.state = fields[5]


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lbf-procedures-")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, output, *command):
        done = subprocess.run([*command, "-o", self.path(output)], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(output)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def lines(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read().splitlines()

    def bare(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def measured(self, procedures, *command, **environment):
        """(what the program printed, {procedure: Row}, missed calls, lines of lbf)"""
        report = self.path("report")
        if os.path.exists(report):
            os.remove(report)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LD_PRELOAD": LIBRARY, "LBF_PROCEDURES_ALONE": procedures,
                                   "LBF_PROCEDURES_REPORT": report, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, missed = {}, 0
        if os.path.exists(report):
            for line in self.lines("report"):
                fields = line.split("\t")
                if fields[0] == "# missed":
                    missed = int(fields[1])
                elif not line.startswith("#"):
                    rows[fields[0]] = Row(fields)
        return done, rows, missed, [line for line in done.stderr.splitlines() if line.startswith("lbf: ")]

    def check_calls(self, program):
        """Every case of calls.c: same results, exact counts."""
        found = {}
        for case in CASES:
            bare = self.bare(program, case)
            done, rows, missed, lines = self.measured(CALLS, program, case)
            self.assertEqual(done.stdout, bare.stdout, case)
            self.assertEqual([line for line in lines if "inlined" not in line and "same code" not in line], [], case)
            self.assertEqual(missed, 0, case)
            for name, row in rows.items():
                found[name] = found.get(name, 0) + row.calls
                self.assertGreaterEqual(row.inclusive_s, row.self_s * 0.999999, name)
        self.assertEqual(found, EXACT)

    def test_c_by_optimisation(self):
        for flags in (["-O0"], ["-O1"], ["-O2"], ["-O3", "-march=native"], ["-O2", "-flto"], ["-Os"], ["-O2", "-no-pie", "-fno-pie"],
                      ["-O2", "-fcf-protection=full"], ["-O2", "-fpatchable-function-entry=5"], ["-O2", "-pg", "-mfentry"],
                      ["-O2", "-fno-asynchronous-unwind-tables"]):
            with self.subTest(flags=flags):
                program = self.build("calls", CC, "-g", *flags, os.path.join(HERE, "calls.c"), "-pthread")
                self.check_calls(program)

    def test_clang(self):
        if not shutil.which("clang"):
            self.skipTest("no clang")
        self.check_calls(self.build("calls_clang", "clang", "-O2", "-g", os.path.join(HERE, "calls.c"), "-pthread"))

    def test_times_are_the_programs_own(self):
        program = self.build("calls_time", CC, "-O2", os.path.join(HERE, "calls.c"), "-pthread")
        done, rows, _, _ = self.measured("spin", program, "time")
        own_s = float(next(line for line in done.stderr.splitlines() if line.startswith("spin ")).split()[1])
        self.assertEqual(rows["spin"].calls, 10)
        self.assertLess(abs(rows["spin"].inclusive_s / own_s - 1), 0.05)

    def test_signals_at_any_moment(self):
        program = self.build("calls_storm", CC, "-O2", os.path.join(HERE, "calls.c"), "-pthread")
        bare = self.bare(program, "storm")
        done, rows, missed, _ = self.measured("leaf,in_handler", program, "storm")
        self.assertEqual(done.stdout, bare.stdout)
        # A handler's calls inside a hook are missed, and counted as such; the program's own never.
        self.assertEqual(rows["leaf"].calls, 3000000)
        self.assertGreater(rows["in_handler"].calls + missed, 0)

    def test_longjmp_ends_calls(self):
        program = self.build("calls_jump", CC, "-O2", os.path.join(HERE, "calls.c"), "-pthread")
        _, rows, _, _ = self.measured("jumps_out,spin", program, "longjmp")
        self.assertEqual(rows["jumps_out"].left_by_jump, 120)
        # spin comes right after the jump: its time is not the left calls'.
        self.assertLess(rows["jumps_out"].inclusive_s, rows["spin"].inclusive_s / 4)

    def test_stripped(self):
        program = self.build("calls_stripped", CC, "-O2", "-s", os.path.join(HERE, "calls.c"), "-pthread")
        bare = self.bare(program, "plain")
        done, rows, _, lines = self.measured("leaf", program, "plain")
        self.assertEqual(done.stdout, bare.stdout)
        self.assertEqual(rows, {})
        self.assertEqual(len(lines), 1)
        self.assertIn("calls_stripped is stripped", lines[0])
        # Exported names are still there.
        program = self.build("calls_exported", CC, "-O2", "-s", "-rdynamic", os.path.join(HERE, "calls.c"), "-pthread")
        _, rows, _, _ = self.measured("leaf", program, "plain")
        self.assertEqual(rows["leaf"].calls, 1000)

    def test_unknown_names_list_near_ones(self):
        program = self.build("calls_near", CC, "-O2", os.path.join(HERE, "calls.c"), "-pthread")
        _, _, _, lines = self.measured("laef,large_results,nothing_like_it,lbf_procedures_librar", program, "plain")
        self.assertIn("near: leaf", lines[0])
        self.assertIn("near: large_result", lines[1])
        self.assertNotIn("near:", lines[2])
        self.assertIn("'lbf_procedures_librar' is no procedure", lines[3])
        self.assertNotIn("near:", lines[3], "lbf's own are not the program's")

    def test_static(self):
        program = self.build("calls_static", CC, "-O2", "-static", os.path.join(HERE, "calls.c"), "-pthread")
        bare = self.bare(program, "plain")
        done, rows, _, _ = self.measured("leaf", program, "plain")
        self.assertEqual(done.stdout, bare.stdout)  # the library is not even loaded: the plugin's side has to say so
        self.assertEqual(rows, {})

    def test_shared_library(self):
        self.write("part.c",
            "volatile long seen;\n__attribute__((noinline)) static long hidden(long n) { seen++; return n; }\n"
            "long exported(long n) { seen++; return hidden(n) + 1; }\n")
        self.write("user.c",
            "#include <stdio.h>\nlong exported(long);\nint main(void) { long s = 0; for (long i = 0; i < 500; i++) s += exported(i);\n"
            "printf(\"%ld\\n\", s); }\n")
        self.build("libpart.so.1", CC, "-O2", "-fPIC", "-shared", "-Wl,-soname,libpart.so.1", self.path("part.c"))
        program = self.build("user", CC, "-O2", self.path("user.c"), "-L" + self.folder, "-l:libpart.so.1", "-Wl,-rpath," + self.folder)
        bare = self.bare(program)
        done, rows, _, lines = self.measured("libpart.so:exported,hidden", program)
        self.assertEqual(lines, [])
        self.assertEqual(done.stdout, bare.stdout)
        self.assertEqual({name: row.calls for name, row in rows.items()}, {"exported": 500, "hidden": 500})
        _, rows, _, lines = self.measured("libpard.so:exported", program)
        self.assertIn("no library of that name is loaded", lines[0])
        self.assertIn("near: libpart.so.1", lines[0])

    def test_cxx(self):
        for flags in (["-O0"], ["-O2"], ["-O3", "-flto"], ["-O2", "-no-pie"], ["-O2", "-static-libgcc", "-static-libstdc++"]):
            with self.subTest(flags=flags):
                program = self.build("objects", CXX, "-g", *flags, os.path.join(HERE, "objects.cpp"))
                bare = self.bare(program)
                done, rows, missed, _ = self.measured("grid::scale,grid::Solver::step,grid::throws,grid::catches,grid::rethrows", program)
                self.assertEqual(done.stdout, bare.stdout)
                self.assertEqual({name: row.calls for name, row in rows.items()}, {
                    "grid::scale<long>(long, int)": 50, "grid::scale<double>(double, int)": 50,
                    "grid::Solver::step(long)": 30, "grid::Solver::step(double)": 20,
                    # 40 * 11 below catches; rethrows: 10 * (4 + 2)
                    "grid::throws(int)": 500, "grid::catches(int)": 50, "grid::rethrows(int)": 10})
                self.assertEqual(rows["grid::throws(int)"].left_by_jump, 500)
                self.assertEqual(rows["grid::catches(int)"].left_by_jump, 0)
                self.assertEqual(rows["grid::rethrows(int)"].left_by_jump, 10)
                self.assertEqual(missed, 0)

    def test_stack_traces_pass_measured_procedures(self):
        program = self.build("objects_trace", CXX, "-O2", os.path.join(HERE, "objects.cpp"))
        frames = [int(run.stderr.split("frames ")[1]) for run in (self.bare(program), self.measured("grid::looks_back,grid::outer", program)[0])]
        # main, its caller, its caller's caller, _start are still found; each measured procedure adds a frame.
        self.assertEqual(frames[1], frames[0] + 2)

    def test_fortran(self):
        if not shutil.which(FORTRAN):
            self.skipTest("no Fortran compiler")
        for flags in (["-O0"], ["-O2", "-fno-inline"], ["-O3", "-fno-inline", "-flto"]):
            with self.subTest(flags=flags):
                program = self.build("modules", FORTRAN, "-g", *flags, os.path.join(HERE, "modules.f90"))
                bare = self.bare(program)
                done, rows, _, _ = self.measured("heat::relax,HEAT::TOTAL,outside", program)
                self.assertEqual(done.stdout, bare.stdout)
                self.assertEqual({name: row.calls for name, row in rows.items()}, {"heat::relax": 200, "heat::total": 200, "outside": 200})

    def test_inlined(self):
        self.write("inlined.c",
            "volatile long seen;\nstatic inline __attribute__((always_inline)) long small(long n) { return n + seen; }\n"
            "__attribute__((noinline)) long user(long n) { return small(n) + small(n + 1); }\n"
            "int main(void) { return (int)(user(1) & 0); }\n")
        program = self.build("inlined", CC, "-O2", "-g", self.path("inlined.c"))
        _, rows, _, lines = self.measured("small", program)
        self.assertEqual(rows, {})
        self.assertIn("is inlined at 2 places (in user)", lines[0])

    def test_of_several_names_each_is_told_its_own_places(self):
        self.write("several.c",
            "volatile long seen;\nstatic inline __attribute__((always_inline)) long one(long n) { return n + seen; }\n"
            "static inline __attribute__((always_inline)) long two(long n) { return one(n) * seen; }\n"
            "__attribute__((noinline)) long both(long n) { return one(n) + two(n); }\n"
            "__attribute__((noinline)) long three(long n) { return two(n) + two(n + 1) + two(n + 2); }\n"
            "int main(void) { return (int)((both(1) + three(1)) & 0); }\n")
        program = self.build("several", CC, "-O2", "-g", self.path("several.c"))
        _, rows, _, lines = self.measured("no_such_name,two,both,one", program)
        self.assertEqual(["both"], list(rows))
        told = {line.split("'")[1]: line for line in lines}
        self.assertNotIn("inlined", told["no_such_name"])
        self.assertRegex(told["two"], r"is inlined at 4 places \((in both, three|in three, both)\)")
        self.assertRegex(told["one"], r"is inlined at 5 places \((in both, three|in three, both)\)")

    def test_refused_by_name(self):
        self.write("odd.c",
            "#include <string.h>\n#include <setjmp.h>\n#include <stdlib.h>\n"
            "__asm__(\".text\\n.globl short_one\\n.type short_one,@function\\nshort_one: ret\\n.size short_one,.-short_one\\n\"\n"
            "\".globl behind\\n.type behind,@function\\nbehind: xor %eax,%eax\\n1: inc %eax\\ncmp $9,%eax\\njl 1b\\nret\\n.size behind,.-behind\\n\");\n"
            "int behind(void);\nvoid short_one(void);\njmp_buf b;\n"
            "__attribute__((noinline)) int twin_a(int n) { return n * 3 + 1; }\n"
            "int twin_b(int n) __attribute__((alias(\"twin_a\")));\n"
            "int main(int c, char** v) { (void)v; short_one(); setjmp(b); char x[64] = {0}; memset(x, c, (size_t)c);\n"
            "return behind() == 9 && twin_a(c) == 4 && twin_b(c) == 4 && x[0] == c ? 0 : 1; }\n")
        program = self.build("odd", CC, "-O1", "-fno-builtin", self.path("odd.c"))
        _, rows, _, lines = self.measured("short_one,behind,_setjmp,twin_b,memset", program)
        text = "\n".join(lines)
        self.assertIn("'short_one' (odd) cannot be measured: it is shorter than a jump", text)
        self.assertIn("'behind' (odd) cannot be measured: it jumps into its first instructions", text)
        self.assertIn("returns twice", text)
        self.assertIn("are the same code", text)
        self.assertIn("'memset' is chosen when the program is loaded (IFUNC)", text)
        self.assertEqual(next(row.calls for name, row in rows.items() if name.startswith("twin")), 2)

    def test_cost_limit(self):
        self.write("often.c",
            "#include <stdio.h>\nvolatile long seen;\n__attribute__((noinline)) long often(long n) { seen++; return n; }\n"
            "__attribute__((noinline)) long seldom(long n) { for (long i = 0; i < 100000; i++) seen++; return n; }\n"
            "int main(void) { long s = 0; for (long k = 0; k < 200; k++) { for (long i = 0; i < 100000; i++) s += often(i); s += seldom(k); }\n"
            "printf(\"%ld\\n\", s); }\n")
        program = self.build("often", CC, "-O2", self.path("often.c"))
        bare = self.bare(program)
        done, rows, _, _ = self.measured("often,seldom", program, LBF_PROCEDURES_LIMIT="0.02")
        self.assertEqual(done.stdout, bare.stdout)
        self.assertEqual(rows["often"].state, "off-by-cost")
        self.assertLess(rows["often"].calls, 1000000)
        self.assertEqual(rows["seldom"].state, "measured")
        self.assertEqual(rows["seldom"].calls, 200)

    def test_the_limit_holds_at_ten_million_calls_a_second(self):
        """Of the run's time, measured calls cost the limit at most, and one look (4,096 calls) more."""
        self.write("rate.c",
            "#include <stdio.h>\n#include <time.h>\nvolatile unsigned long seen;\n"
            "__attribute__((noinline)) unsigned long often(unsigned long n) {\n"
            "  for (int i = 0; i < 70; i++) n = n * 6364136223846793005u + 1442695040888963407u;\n  return seen = n; }\n"
            "static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }\n"
            "int main(void) { unsigned long s = 0; double from = now(); for (long i = 0; i < 4000000; i++) s = often(s);\n"
            "  fprintf(stderr, \"took %.9f\\n\", now() - from); printf(\"%lu\\n\", s); }\n")
        program = self.build("rate", CC, "-O2", self.path("rate.c"))
        bare = self.bare(program)
        for limit in (0.02, 0.002):
            done, rows, missed, _ = self.measured("often", program, LBF_PROCEDURES_LIMIT=str(limit))
            self.assertEqual(done.stdout, bare.stdout)
            took_s = float(next(line for line in done.stderr.splitlines() if line.startswith("took ")).split()[1])
            call_s = 1e-9 * next(float(line.split("\t")[1]) for line in self.lines("report") if line.startswith("# call_ns"))
            self.assertEqual((rows["often"].state, missed), ("off-by-cost", 0), f"{4e6 / took_s:.3g} calls a second")
            self.assertLessEqual(rows["often"].calls * call_s, limit * took_s + 4096 * call_s)

    def test_samples(self):
        program = self.build("calls_samples", CC, "-O2", os.path.join(HERE, "calls.c"), "-pthread")
        samples = self.path("samples")
        self.measured("", program, "time", LBF_PROCEDURES_SAMPLES=samples)
        rows = [line.split("\t") for line in self.lines("samples") if not line.startswith("#")]
        shares = {row[0]: float(row[1]) for row in rows}
        self.assertGreater(shares["spin"], 0.8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
