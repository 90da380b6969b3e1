#!/usr/bin/python3
"""Pages, sections, links, manual pages and folders that the tree names exist, and the test notices when they do not."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import references  # noqa: E402  (the module beside this file)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))


class Tree(unittest.TestCase):
    def test_what_is_referred_to_exists(self):
        complaints, files = references.check_references(ROOT)
        self.assertEqual([], complaints, "\n" + "\n".join(complaints))
        self.assertGreater(files, 500)  # a walk that finds next to nothing proves nothing

    def test_folders_of_cmake_exist_and_are_reached(self):
        complaints = references.check_folders(ROOT)
        self.assertEqual([], complaints, "\n" + "\n".join(complaints))


class BadExamples(unittest.TestCase):
    def complaints(self, name, text):
        with tempfile.TemporaryDirectory() as root:
            for path, content in (("docs/page.md", "# Page\n\n## One section\n\n**Bold words.** More.\n"),
                                  ("docs/formats/wire-v1.md", "## Streams\n"), ("docs/man/lbfd.8", "")):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(content)

            def titles_of(page):
                markdown = references.text_of(os.path.join(root, page))
                return references.headings(markdown), references.anchors(markdown)

            return references.complaints_of(root, name, text, titles_of)

    def test_sound_references(self):
        for name, text in (("a.cpp", '// See docs/page.md, "One section".'), ("a.cpp", '// (docs/page.md ("Bold words"))'),
                           ("a.cpp", '// page.md,\n// "One section" and "Bold words"'), ("a.cpp", '// wire-v1 "Streams"'),
                           ("docs/other.md", "[words](page.md#one-section), [again](formats/wire-v1.md)"), ("a.cpp", "// lbfd(8)")):
            self.assertEqual([], self.complaints(name, text), text)

    def test_broken_references(self):
        for name, text in (("a.cpp", "// docs/gone.md"), ("a.cpp", '// docs/page.md, "Gone"'), ("a.cpp", '// docs/page.md, "One section" and "Gone"'),
                           ("a.cpp", '// docs/page.md,\n// "Gone"'), ("a.cpp", '// wire-v1 "Gone"'), ("docs/other.md", "[words](page.md#gone)"),
                           ("docs/other.md", "[words](gone.svg)"), ("a.cpp", "// lbf-gone(1)")):
            self.assertEqual(1, len(self.complaints(name, text)), text)


if __name__ == "__main__":
    unittest.main()
