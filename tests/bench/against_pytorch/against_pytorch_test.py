#!/usr/bin/env python3
"""The comparison itself, with two stand-ins that say what each side measured."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH = pathlib.Path(__file__).resolve().parent / "against_pytorch.py"
# Each takes the next line of a file: a figure, or "-" for a process that fails.
SIDE = """#!/usr/bin/env python3
import json, pathlib, sys, time
if "--stack-info" in sys.argv:
    print('{"versions": {}}')
    sys.exit()
json.load(sys.stdin)
file = pathlib.Path(%r)
lines = file.read_text().split()
file.write_text("\\n".join(lines[1:]))
time.sleep(%r)
value = None if lines[0] == "-" else float(lines[0])
print(json.dumps({"throughput": value} if %r else
                 {"outcome": "ok" if value else "fail", "message": "no", "fields": {"throughput": value}}))
"""


class AgainstPytorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-pairs-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def sides(self, ours, theirs, seconds=0.0):
        for name, values, python in (("assay-train", ours, False), ("python", theirs, True)):
            (self.dir / (name + ".values")).write_text("\n".join(str(v) for v in values))
            program = self.dir / name
            program.write_text(SIDE % (str(self.dir / (name + ".values")), seconds, python))
            program.chmod(0o755)

    def compare(self, *arguments, output="o.json"):
        done = subprocess.run(
            [sys.executable, str(BENCH), "--bin", str(self.dir), "--python", str(self.dir / "python"),
             "--device", "cpu", "--mode", "train", "--batch", "256", "--lane", "eager",
             "--output", str(self.dir / output), *arguments], capture_output=True, text=True, timeout=60)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, lines, json.loads((self.dir / output).read_text())

    def test_a_side_that_fails_costs_its_pair_the_ratio_and_nothing_is_dropped(self):
        self.sides([110, "-", 90], [100, 100, 100])
        code, lines, result = self.compare("--pairs", "3")
        self.assertEqual((code, [p["ratio"] for p in lines]), (1, [1.1, None, 0.9]))
        row = result["summary"][0]
        self.assertEqual((row["pairs"], row["without_ratio"], row["met"]), (3, 1, False))
        self.assertEqual(row["median_ratio"], 1.0)

    def test_the_goal_is_the_median_and_the_lower_end(self):
        for ours, met in (([101, 100, 100, 99, 100], True), ([101, 100, 100, 97, 100], False),
                          ([99.9] * 5, False)):
            self.sides(ours, [100] * 5)
            code, _, result = self.compare("--require")
            self.assertEqual((result["summary"][0]["met"], code), (met, 0 if met else 1), ours)

    def test_rounds_for_which_there_is_no_time_are_said_and_made_up_for_later(self):
        self.sides([100, 120], [100, 100], seconds=0.5)
        code, lines, result = self.compare("--pairs", "5", "--limit", "1.2")
        self.assertEqual((code, len(lines)), (1, 1))
        self.assertEqual(result["rounds"], {"asked": 5, "made": 1, "earlier": 0})
        code, lines, result = self.compare("--pairs", "1", "--earlier", str(self.dir / "o.json"),
                                           output="both.json")
        self.assertEqual((code, len(lines)), (0, 1))
        self.assertEqual([(p["round"], p["ratio"]) for p in result["pairs"]], [(1, 1.0), (2, 1.2)])
        self.assertEqual(result["summary"][0]["pairs"], 2)
        # Of another model nothing is made up for.
        self.sides([100], [100])
        code, lines, result = self.compare("--pairs", "1", "--model", "swin_l", "--earlier",
                                           str(self.dir / "both.json"), output="other.json")
        self.assertEqual([(p["round"], p["model"]) for p in result["pairs"]], [(1, "swin_l")])


if __name__ == "__main__":
    unittest.main()
