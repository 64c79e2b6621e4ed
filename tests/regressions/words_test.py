#!/usr/bin/env python3
"""What stands on a command line: no word of it may be taken for another, or for none.

usage: words_test.py BIN_DIR [unittest arguments]
"""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import TWO_CELLS, local, main  # noqa: E402


class Words(unittest.TestCase):
    def refused(self, done, *parts):
        """Exit code 2 and one line that holds each of `parts`."""
        self.assertEqual(done.returncode, 2, (done.args, done.stdout, done.stderr))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_an_empty_value_is_not_taken_for_none(self):
        # `--slice "$PART"` with PART not set ran the whole matrix, `--devices ""` offered every GPU,
        # `reproduce RUN ""` printed cell 1.
        with local() as t:
            matrix = t.matrix(TWO_CELLS)
            for words in (("run", matrix, "--slice", ""), ("run", matrix, "--slice", "1/1", "--slice-id", ""),
                          ("run", ""), ("plan", ""), ("plan", matrix, "--cards", ""),
                          ("reproduce", "last", ""), ("show", "last", ""), ("show", ""),
                          ("doctor", "--node", ""), ("doctor", "--runner", ""), ("drain", ""), ("export", "last", "-o", ""),
                          ("merge", ""), ("certs", "list", "--dir", ""), ("ls", "--label", ""),
                          ("ls", "--state", ""), ("ls", "--coordinator", ""), ("ls", "--config", ""),
                          ("agents", "--tls-ca", ""), ("agents", "--tls-key=",)):
                with self.subTest(words=words):
                    self.refused(t.assay(*words), "")
            for words in (("assay-agent", "--coordinator", "unix:/x", "--devices", ""),
                          ("assay-agent", "--coordinator", "unix:/x", "--node", ""),
                          ("assay-coordinator", "--local", "--state", ""),
                          ("assay-coordinator", "--local", "--listen", "")):
                with self.subTest(words=words):
                    done = subprocess.run([t.bin / words[0], *words[1:]], env=t.env, text=True,
                                          capture_output=True, timeout=30, cwd=t.dir)
                    self.refused(done, words[-2], "empty")
            self.assertEqual(t.processes(), [])

    def test_no_days_are_not_a_year(self):
        # A certificate for 0 days was one for the default of 365.
        with local() as t:
            t.assay("certs", "init", "--dir", t.dir / "certs", check=0)
            for days in ("0", "00", "-1", "36501", "99999999999", "1.5", "x"):
                with self.subTest(days=days):
                    self.refused(t.assay("certs", "agent", "n1", "--dir", t.dir / "certs", "--days", days),
                                 "--days", "36500")
            t.assay("certs", "agent", "n1", "--dir", t.dir / "certs", "--days", "1", check=0)

    def test_a_name_that_is_not_utf8_is_no_name(self):
        # It was exit code 3 and a line of the protocol library.
        with local() as t:
            for words in (("watch",), ("show",), ("results",), ("cancel",), ("rerun", "--failed"),
                          ("export", "-o", "x"), ("drain",), ("undrain",), ("doctor", "--node")):
                with self.subTest(words=words):
                    done = subprocess.run([str(t.bin / "assay").encode(), *(w.encode() for w in words),
                                           b"\xff\xfe"], env=t.env, text=True, capture_output=True,
                                          timeout=30, cwd=t.dir)
                    self.refused(done, "not UTF-8")


if __name__ == "__main__":
    main()
