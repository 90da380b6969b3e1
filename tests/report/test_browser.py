"""The page of lbf-report --html in a real browser, without network: Debian's chromium, headless.

usage: test_browser.py [--quick] [--keep DIR]    (--keep: the screenshots stay in DIR, to be looked at)
"""

import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from fake_lbfd import FakeLbfd, picture, step

CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"]
KEEP = None
# What stands in the wrapper's <pre> once the frame has the page: its width, the widest thing in it, its colors.
PROBE = """<script>
const frame = document.querySelector('iframe');
frame.onload = () => {
  const page = frame.contentDocument.documentElement;
  const body = frame.contentWindow.getComputedStyle(frame.contentDocument.body);
  const shown = [...frame.contentDocument.querySelectorAll('svg text')].filter(t => t.getBoundingClientRect().width > 0);
  const smallest = Math.min(...shown.map(t => t.getBoundingClientRect().height));
  document.querySelector('pre').textContent = 'width=' + page.scrollWidth + ' background=' + body.backgroundColor +
    ' text=' + smallest.toFixed(1) + ' height=' + page.scrollHeight + ';';
};
frame.srcdoc = document.querySelector('textarea').value;
</script>"""


def browse(*arguments, folder):
    done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={folder}/profile", *arguments], capture_output=True, text=True,
                          timeout=120, check=False)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console


@unittest.skipUnless(CHROMIUM, "chromium is not installed: apt-get install chromium")
class Browser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="lbf-browser-")
        with FakeLbfd(lambda path, _: (200, picture() if path.endswith("picture") else {"steps": [step()]})) as lbfd:
            done = lbfd.run("lbf-report", "-j", "123", "--html", "-")
            assert done.returncode == 0, done.stderr
            cls.page = done.stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def probe(self, width, *flags):
        file = os.path.join(self.folder, f"probe-{width}.html")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f"<!DOCTYPE html><meta charset='utf-8'><body><pre></pre><iframe width='{width}' height='800' "
                      f"style='border:0'></iframe><textarea>{html.escape(self.page)}</textarea>{PROBE}")
        dom, console = browse("--dump-dom", "--window-size=1400,1000", "--virtual-time-budget=3000", *flags, f"file://{file}",
                              folder=self.folder)
        self.assertEqual(console, [])
        found = re.search(r"width=(\d+) background=([^;]*?) text=([\d.]+) height=(\d+);", dom)
        self.assertIsNotNone(found, dom[:300])
        return int(found[1]), found[2], float(found[3])

    def screenshot(self, name, width, height, *flags):
        file = os.path.join(self.folder, "page.html")
        with open(file, "w", encoding="utf-8") as out:
            out.write(self.page)
        picture_file = os.path.join(KEEP or self.folder, name + ".png")
        _, console = browse(f"--screenshot={picture_file}", f"--window-size={width},{height}", *flags, f"file://{file}",
                            folder=self.folder)
        self.assertEqual(console, [])
        with open(picture_file, "rb") as data:
            return data.read()

    def test_quick_phone(self):
        width, _, text = self.probe(360)
        self.assertEqual(width, 360)  # nothing sticks out
        self.assertGreaterEqual(text, 9)  # letters in drawings can be read

    def test_desk_and_colors(self):
        width, light, text = self.probe(1280)
        self.assertEqual(width, 1280)
        self.assertGreaterEqual(text, 9)
        _, dark, _ = self.probe(360, "--blink-settings=preferredColorScheme=0")
        self.assertEqual(light, "rgb(252, 252, 250)")
        self.assertEqual(dark, "rgb(20, 23, 27)")

    def test_screenshots_differ(self):
        light = self.screenshot("desk-light", 1280, 3200)
        dark = self.screenshot("desk-dark", 1280, 3200, "--blink-settings=preferredColorScheme=0")
        self.assertGreater(len(light), 20000)
        self.assertNotEqual(light, dark)
        self.screenshot("narrow-light", 500, 4400)


if __name__ == "__main__":
    if "--keep" in sys.argv:
        KEEP = sys.argv[sys.argv.index("--keep") + 1]
        os.makedirs(KEEP, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + (["Browser.test_quick_phone"] if "--quick" in sys.argv else []))
