#!/usr/bin/python3
"""The sources obey the table of docs/architecture.md, and the test that says so notices when they do not."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import includes  # noqa: E402  (the module beside this file)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


class Sources(unittest.TestCase):
    def test_sources_obey_the_table(self):
        complaints, files, seen = includes.check_tree(ROOT)
        self.assertEqual([], complaints, "\n" + "\n".join(complaints))
        # A walk that finds next to nothing proves nothing.
        self.assertGreater(files, 10)
        self.assertGreater(seen, 30)


class Table(unittest.TestCase):
    def rules(self):
        with open(os.path.join(ROOT, "docs/architecture.md"), encoding="utf-8") as file:
            return includes.read_rules(file.read())

    def test_rules_are_those_that_the_table_states(self):
        rules = self.rules()
        self.assertEqual(set(), rules["base"].folders)
        self.assertEqual({"base"}, rules["event"].folders)
        self.assertIn("spank_plugin/capture/ring.h", rules["spank_plugin/relay"].files)
        self.assertNotIn("spank_plugin/capture", rules["spank_plugin/relay"].folders)
        self.assertIn("mpi.h", rules["spank_plugin/capture"].system_headers)
        self.assertIn("predictor/engine/replay", rules["predictor/engine/metric"].folders)
        self.assertTrue(rules["tools"].everything)

    def test_every_folder_and_file_of_the_table_exists(self):
        for folder in self.rules():
            self.assertTrue(os.path.exists(os.path.join(ROOT, folder)), f"docs/architecture.md names {folder}")

    def test_folders_with_rules_of_their_own_are_rows_of_the_table(self):
        self.assertLessEqual({*includes.CORE, *includes.FORBIDDEN_SYSTEM_HEADERS}, set(self.rules()))

    def test_words_without_a_meaning_are_refused(self):
        with self.assertRaises(includes.RuleError):
            includes.read_rules("## who may include whom\n| `base/` | x | whatever is handy |\n")
        with self.assertRaises(includes.RuleError):
            includes.read_rules("# no such table\n")


class BadExamples(unittest.TestCase):
    """Trees that break one rule each, judged by the project's own table."""

    def complaints(self, path, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "docs"))
            with open(os.path.join(ROOT, "docs/architecture.md"), encoding="utf-8") as table:
                with open(os.path.join(root, "docs/architecture.md"), "w", encoding="utf-8") as copy:
                    copy.write(table.read())
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as source:
                source.write(text)
            return includes.check_tree(root)[0]

    def assert_refused(self, path, text, line=1):
        complaints = self.complaints(path, text)
        self.assertEqual(1, len(complaints), complaints)
        self.assertTrue(complaints[0].startswith(f"{path}:{line}: "), complaints[0])

    def assert_fine(self, path, text):
        self.assertEqual([], self.complaints(path, text))

    def test_base_includes_nothing_of_the_project(self):
        self.assert_refused("base/a.h", '#pragma once\n#include "event/event.h"\n', line=2)
        self.assert_fine("base/a.h", '#include "base/units.h"\n#include <vector>\n')

    def test_the_relay_sees_the_ring_and_no_more_of_the_capture(self):
        self.assert_fine("spank_plugin/relay/a.cpp", '#include "spank_plugin/capture/ring.h"\n')
        self.assert_refused("spank_plugin/relay/a.cpp", '#include "spank_plugin/capture/recorder.h"\n')

    def test_the_plugin_does_not_see_the_relay(self):
        self.assert_refused("spank_plugin/plugin/a.cpp", '#include "spank_plugin/relay/relay.h"\n')

    def test_mpi_is_for_the_capture_and_the_tools_alone(self):
        self.assert_fine("spank_plugin/capture/a.cpp", "#include <mpi.h>\n")
        self.assert_refused("predictor/engine/match/a.cpp", "#include <mpi.h>\n")
        self.assert_refused("db/a.cpp", "#include <mpi.h>\n")

    def test_the_capture_has_no_curl(self):
        self.assert_refused("spank_plugin/capture/a.cpp", "#include <curl/curl.h>\n")

    def test_the_core_has_no_clock_thread_or_store(self):
        for header in ("<chrono>", "<thread>", "<sqlite3.h>", "<sys/socket.h>", '"db/step_store.h"', '"predictor/daemon/steps/server.h"'):
            self.assert_refused("predictor/engine/replay/a.cpp", f"#include {header}\n")

    def test_the_database_does_not_know_the_predictor(self):
        self.assert_refused("db/a.cpp", '#include "predictor/engine/metric/predictor.h"\n')

    def test_lbfd_is_wiring_under_the_rule_of_serve(self):
        self.assert_fine("predictor/daemon/lbfd.cpp", '#include "predictor/daemon/steps/server.h"\n#include "db/store.h"\n#include "base/result.h"\n')
        self.assert_refused("predictor/daemon/lbfd.cpp", '#include "spank_plugin/relay/relay.h"\n')

    def test_ways_around_by_a_relative_path_are_refused(self):
        self.assert_refused("base/a.h", '#include "../event/event.h"\n')

    def test_a_folder_without_a_row_is_refused(self):
        self.assertIn("says nothing", self.complaints("newfolder/a.cpp", "int a;\n")[0])

    def test_comments_are_no_includes(self):
        self.assert_fine("base/a.h", '// #include "event/event.h"\n/*\n#include "db/a.h"\n*/\n')


if __name__ == "__main__":
    unittest.main()
