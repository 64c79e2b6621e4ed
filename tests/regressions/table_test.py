#!/usr/bin/env python3
"""What the table of a run may say: no mean of unlike things, and nothing left out where it is read by
another program.

usage: table_test.py BIN_DIR [unittest arguments]
"""
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from assay_local import Local, bin_dir, main  # noqa: E402
from foreign_runner_test import MATRIX, RUNNER  # noqa: E402

# By the number of the repeat; the rates are those of the sound runner times 1, 1.02 and 3.
BEHAVIOUR = """
cell = json.load(open(sys.argv[sys.argv.index("--cell") + 1]))
third = cell["repeat"] == 3
times = {1: 1.0, 2: 1.02, 3: 3.0}[cell["repeat"]]
fields["throughput"] *= times
fields["seconds"] /= times
fields["host_seconds"] /= times
"""


RESULTS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "results"


class Committed(unittest.TestCase):
    def test_tables_that_are_shown_are_what_the_programs_print_of_their_files(self):
        """And README and the page on the method name the rules by which they were printed."""
        with Local(bin_dir(), devices="cpu") as t:
            files = sorted(RESULTS.glob("*/*.assay"))
            self.assertGreaterEqual(len(files), 3)
            for path in files:
                with self.subTest(path.name):
                    run = json.loads(path.read_text(encoding="utf-8").split("\n", 1)[0])["run"]
                    t.assay("merge", path, check=0)
                    table = t.assay("results", run, check=0).stdout
                    self.assertEqual(table, path.with_suffix(".txt").read_text(encoding="utf-8"))
            shown = (RESULTS / "h200" / "lanes.txt").read_text(encoding="utf-8")
            self.assertIn(shown, (RESULTS.parent.parent / "README.md").read_text(encoding="utf-8"))
            rules = re.search(r"rules (\d+)", t.assay("version", check=0).stdout).group(1)
            self.assertIn(f"rule set version {rules}.",
                          (RESULTS.parent / "method.md").read_text(encoding="utf-8"))


class Tables(unittest.TestCase):
    def table(self, behaviour, code=0):
        """Lines of the table of three repeats with one stack."""
        with Local(bin_dir(), devices="cpu") as t:
            folder = t.own_stacks(RUNNER.format(python=sys.executable))
            (folder / "s.json").write_text(json.dumps(
                {"name": "s", "program": "runner", "env": {"BEHAVIOUR": BEHAVIOUR + behaviour}}))
            matrix = t.matrix(MATRIX.format(stacks="s").replace("repeat: 1", "repeat: 3"))
            t.assay("run", matrix, "--quiet", check=code)
            return t.assay("results", "last", check=0).stdout

    def test_processes_that_report_other_units_are_not_averaged(self):
        text = self.table("fields['unit'] = 'sequences/s' if third else 'img/s'")
        self.assertIn("323.2", text)
        self.assertIn("960.0", text)
        self.assertIn("unit sequences/s", text)
        self.assertNotIn("535.", text)

    def test_an_invalid_process_beside_valid_ones_is_counted(self):
        text = self.table("fields['samples'] *= 10 if third else 1", code=1)
        self.assertIn("323.2", text)
        self.assertIn("ok (1 invalid)", text)

    def test_a_pipe_has_every_column(self):
        # It was as narrow as a terminal, and neither csv nor json has ratio and interval.
        with Local(bin_dir()) as t:
            t.env["ASSAY_DEVICES"] = str(pathlib.Path(__file__).parent.parent / "fixtures" / "nvml" /
                                         "rtx3090.json")
            t.assay("run", t.matrix("""
axes:
  model: [resnet50, gpt2_medium]
  mode: [train, infer]
  precision: [fp32, amp-fp16]
  batch: [8, 16]
  accumulate: [1, 2]
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.1}
"""), "--quiet")
            text = t.assay("results", "last").stdout
            for title in ("ratio", "±95 %", "mem ", "acc", "outcome"):
                self.assertIn(title, text)
            self.assertNotIn("no room", text)
            self.assertNotIn("…", text)


if __name__ == "__main__":
    main()
