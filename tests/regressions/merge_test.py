#!/usr/bin/env python3
"""Exports of one run that were made at different times, merged in any order.

usage: merge_test.py BIN_DIR [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import TWO_CELLS, local, main, wait_for  # noqa: E402


class Reruns(unittest.TestCase):
    def test_an_export_after_a_rerun_completes_one_from_before(self):
        # The failure that was merged first stood for ever: no later file could mend it.
        with local("batch=64:crash") as t:
            before, after = t.dir / "before.assay", t.dir / "after.assay"
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=1)
            t.assay("export", "last", "-o", before, check=0)
            t.kill("assay-coordinator", 15)
            wait_for(lambda: not t.processes(), 30, "no process left")
            del t.env["ASSAY_SIMULATE"]
            t.assay("rerun", "last", "--failed", "--quiet", check=0)
            t.assay("export", "last", "-o", after, check=0)
            for files in ((before, after), (after, before), (after, before, after)):
                with self.subTest(files=[file.name for file in files]), local() as u:
                    for file in files:
                        u.assay("merge", file, check=0)
                    self.assertEqual(u.results(), t.results())
                    again = u.dir / "again.assay"
                    u.assay("export", "last", "-o", again, check=0)
                    with local() as v:
                        v.assay("merge", again, check=0)
                        self.assertEqual(v.results(), t.results())


if __name__ == "__main__":
    main()
