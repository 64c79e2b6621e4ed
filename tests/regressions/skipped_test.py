#!/usr/bin/env python3
"""What ./test says of skipped tests: each with its reason, also inside a program that passed."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent.parent / "cmake" / "skipped_tests.py"
FILE = """<?xml version="1.0"?>
<testsuite>
 <testcase name="sound" status="run"><system-out>[       OK ] A.B (1 ms)</system-out></testcase>
 <testcase name="gpu" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/><system-out>
[ RUN      ] G.One
../../gpu.h:20: Skipped
no GPU here
[  SKIPPED ] G.One (0 ms)</system-out></testcase>
 <testcase name="script" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>
test_x (__main__.X.test_x) ... skipped 'no clock to bend'</system-out></testcase>
 <testcase name="silent" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
 <testcase name="many" status="run"><system-out>
[ RUN      ] M.First
../../m.cc:7: Skipped
a minute too long
[  SKIPPED ] M.First (0 ms)
[ RUN      ] M.Second
[       OK ] M.Second (0 ms)</system-out></testcase>
</testsuite>
"""


class Skipped(unittest.TestCase):
    def said(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(text)
            file.flush()
            return subprocess.run([sys.executable, SCRIPT, file.name], capture_output=True, text=True)

    def test_each_is_named_with_its_reason(self):
        self.assertEqual(self.said(FILE).stdout.splitlines(), [
            "skipped, 4 tests:", "  gpu: no GPU here", "  script: no clock to bend",
            "  silent: it gives no reason", "  many: M.First: a minute too long", ""])

    def test_what_cannot_be_read_is_a_failure(self):
        self.assertNotEqual(self.said("<testsuite>").returncode, 0)


if __name__ == "__main__":
    unittest.main()
