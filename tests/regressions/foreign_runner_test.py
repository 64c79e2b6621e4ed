#!/usr/bin/env python3
"""What a foreign runner may claim, and what a changed file may carry: no wrong figure passes as good.

usage: foreign_runner_test.py BIN_DIR [unittest arguments]
"""
import copy
import hashlib
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, Local, wait_for  # noqa: E402

BIN = None

RUNNER = """#!{python}
import json, os, sys
if "--stack-info" in sys.argv:
    print(json.dumps({{
        "runner": "foreign", "protocol": 1, "versions": {{"runner": "1"}}, "models": ["resnet50"],
        "modes": ["train"], "precisions": ["fp32"], "lanes": ["eager"],
        "layouts": ["channels-last"], "arch_list": [], "device_kinds": ["cpu"],
        "max_world_size": 1, "simulated": False}}))
    sys.exit()
uuid = json.load(open(sys.argv[sys.argv.index("--cell") + 1]))["device"]["uuid"]
hello = {{"record": "hello", "protocol": 1, "runner": "foreign", "uuid": uuid}}
joined = {{"record": "joined"}}
result = {{"record": "result", "outcome": "ok", "fields": {{
    "throughput": 320.0, "unit": "img/s", "steps": 10, "device_steps": 10, "samples": 320,
    "seconds": 1.0, "host_seconds": 1.0, "stop_reason": "confidence", "world_size": 1,
    "method_version": 1}}}}
fields, records = result["fields"], [hello, joined, result]
exec(os.environ["BEHAVIOUR"])
# At once: all of it lies in the pipe before any signal arrives.
os.write(3, b"".join(json.dumps(record).encode() + b"\\n" for record in records))
"""

# Name, what it does instead of the sound thing, outcome, verdict.
BEHAVIOURS = (
    ("sound", "pass", "ok", "valid"),
    ("no-hello", "del records[0]", "fail", None),
    ("no-joined", "del records[1]", "fail", None),
    ("other-device", "hello['uuid'] = 'GPU-9'", "fail", None),
    ("other-protocol", "hello['protocol'] = 2", "fail", None),
    ("ten-times", "fields['throughput'] *= 10", "ok", "invalid"),
    ("too-many-samples", "fields['samples'] *= 10; fields['throughput'] *= 10", "ok", "invalid"),
    ("no-time", "fields['seconds'] = fields['host_seconds'] = 0.0", "ok", "invalid"),
    ("zero", "fields['throughput'] = 0.0", "ok", "invalid"),
    ("busy-seven", "fields['gpu_busy_ratio'] = 7.0", "ok", "invalid"),
    ("negative-memory", "fields['allocated_peak_bytes'] = -1", "ok", "valid"),  # dropped
    ("more-than-reserved", "fields.update(allocated_peak_bytes=2, reserved_peak_bytes=1)", "ok",
     "invalid"),
    ("more-than-there-is", "fields['reserved_peak_bytes'] = 1 << 60", "ok", "invalid"),
    # Case 47: an error text of 100 kB.
    ("long-message", "result.update(outcome='fail', reason='runner_error', message='e' * 100000)",
     "fail", None),
    ("long-unit", "fields['unit'] = 'u' * 60000", "ok", "valid"),
)

MATRIX = """
name: foreign
axes: {{model: resnet50, precision: fp32, batch: 32, stack: [{stacks}]}}
repeat: 1
stop: {{confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}}
limits: {{cell_seconds: 30, no_step_seconds: 10}}
"""


class ForeignRunners(unittest.TestCase):
    def test_what_does_not_add_up_is_no_result_or_an_invalid_one(self):
        with Local(BIN, devices="cpu") as t:
            folder = t.own_stacks(RUNNER.format(python=sys.executable))
            for name, behaviour, _, _ in BEHAVIOURS:
                (folder / f"{name}.json").write_text(json.dumps(
                    {"name": name, "program": "runner", "env": {"BEHAVIOUR": behaviour}}))
            stacks = ", ".join(name for name, *_ in BEHAVIOURS)
            t.assay("run", t.matrix(MATRIX.format(stacks=stacks)), "--quiet", check=1)
            rows = {row["stack"]: row for row in t.results()}
            for name, _, outcome, verdict in BEHAVIOURS:
                with self.subTest(name):
                    row = rows[name]
                    self.assertEqual((row["outcome"], row["verdict"]), (outcome, verdict), row)
                    if outcome == "fail":
                        own = name == "long-message"
                        self.assertEqual(row["reason"], "runner_error" if own else "bad_output")
                        self.assertLessEqual(len(row["message"]), 4096)
                        self.assertIn("eee" if own else "", row["message"])
                        self.assertIsNone(row["throughput"])
            self.assertIsNone(rows["zero"]["throughput"])
            self.assertIsNone(rows["long-unit"]["unit"])
            self.assertLess(len(t.assay("results", "last", check=0).stdout), 10_000)


class ChangedFiles(unittest.TestCase):
    def test_a_spec_that_no_matrix_can_ask_for_is_not_merged(self):
        with Local(BIN, devices=FIXTURES / "nvml" / "rtx3090.json") as t, Local(BIN) as u:
            t.assay("run", t.matrix("""
axes: {model: resnet50, precision: amp-fp16, batch: 32}
repeat: 1
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""), "--quiet", check=0)
            good = t.dir / "good.assay"
            t.assay("export", "last", "-o", good, check=0)
            rows = [json.loads(line) for line in good.read_text().splitlines()]
            bad = t.dir / "bad.assay"
            for key, value in (("gpus", -1), ("nodes", 2**62), ("batch", 64), ("accumulate", 0),
                               ("key", "x"), ("stop", {"max_seconds": -1}),
                               ("limits", {"cell_seconds": 1e300})):
                with self.subTest(key):
                    changed = copy.deepcopy(rows)
                    next(r for r in changed if r.get("kind") == "spec")["row"][key] = value
                    body = "".join(json.dumps(row) + "\n" for row in changed[:-1])
                    changed[-1]["sha256"] = hashlib.sha256(body.encode()).hexdigest()
                    bad.write_text(body + json.dumps(changed[-1]) + "\n")
                    done = u.assay("merge", bad, check=2)
                    self.assertIn("line 3: ", done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            u.assay("merge", good, check=0)


    def test_a_cell_must_be_what_its_counted_attempt_came_to(self):
        # A failed attempt gave a figure to a cell that was said to be ok.
        def rows_of(rows, kind):
            return [row["row"] for row in rows if row.get("kind") == kind]

        def twice(rows, kind, **other):
            place = next(i for i, row in enumerate(rows) if row.get("kind") == kind)
            rows.insert(place + 1, copy.deepcopy(rows[place]))
            rows[place + 1]["row"].update(other)

        cases = {
            "failed attempt": lambda rows: rows_of(rows, "attempt")[0].update(
                outcome="fail", reason="crash"),
            "failed cell": lambda rows: rows_of(rows, "cell")[0].update(outcome="fail", reason="crash"),
            "open cell": lambda rows: rows_of(rows, "cell")[0].update(outcome=None),
            "late attempt": lambda rows: rows_of(rows, "attempt")[0].update(late=True),
            "attempt of no cell": lambda rows: rows_of(rows, "attempt")[0].update(cell=99),
            "attempt of another cell": lambda rows: rows_of(rows, "attempt")[0].update(cell=2),
            "attempt that is not here": lambda rows: rows.pop(
                next(i for i, row in enumerate(rows) if row.get("kind") == "attempt")),
            "ok by nothing": lambda rows: rows_of(rows, "cell")[0].update(counted_attempt=""),
            "cell twice": lambda rows: twice(rows, "cell"),
            "repeat 0": lambda rows: rows_of(rows, "cell")[0].update(repeat=0),
        }
        with Local(BIN, devices=FIXTURES / "nvml" / "rtx3090.json") as t, Local(BIN) as u:
            t.assay("run", t.matrix("""
axes: {model: resnet50, precision: amp-fp16, batch: [32, 64]}
repeat: 1
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""), "--quiet", check=0)
            good, bad = t.dir / "good.assay", t.dir / "bad.assay"
            t.assay("export", "last", "-o", good, check=0)
            rows = [json.loads(line) for line in good.read_text().splitlines()]

            def write(changed):
                for kind in ("spec", "cell", "attempt"):
                    changed[-1][kind + "s"] = len(rows_of(changed, kind))
                body = "".join(json.dumps(row) + "\n" for row in changed[:-1])
                changed[-1]["sha256"] = hashlib.sha256(body.encode()).hexdigest()
                bad.write_text(body + json.dumps(changed[-1]) + "\n")

            for name, change in cases.items():
                with self.subTest(name):
                    changed = copy.deepcopy(rows)
                    change(changed)
                    write(changed)
                    done = u.assay("merge", bad, check=2)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            # A second attempt that claims to count is one that does not.
            changed = copy.deepcopy(rows)
            twice(changed, "attempt", id="01ARZ3NDEKTSV4RRFFQ69G5FAV", number=2)
            write(changed)
            u.assay("merge", bad, check=0)
            self.assertIn("not counted", u.assay("show", "last", "1", check=0).stdout)
            u.assay("merge", good, check=0)


class Pipes(unittest.TestCase):
    def test_a_pipe_where_a_file_belongs_makes_nobody_wait(self):
        with Local(BIN, devices="cpu") as t:
            pipe = t.dir / "pipe"
            os.mkfifo(pipe)
            self.assertIn("empty", t.assay("merge", pipe, check=2, timeout=20).stderr)
            t.kill("assay-coordinator", 15)
            wait_for(lambda: not t.processes(), 30, "no process left")
            (t.state / "coordinator.log").unlink()
            os.mkfifo(t.state / "coordinator.log")
            self.assertIn("coordinator.log", t.assay("ls", check=2, timeout=20).stderr)


    def test_a_pipe_or_a_device_among_the_manifests_is_left_out(self):
        # The agent waited for its writer and never connected.
        with Local(BIN, devices="cpu") as t:
            folder = t.own_stacks(RUNNER.format(python=sys.executable))
            (folder / "sound.json").write_text(json.dumps(
                {"name": "sound", "program": "runner", "env": {"BEHAVIOUR": "pass"}}))
            os.mkfifo(folder / "pipe.json")
            (folder / "zero.json").symlink_to("/dev/zero")
            t.assay("run", t.matrix(MATRIX.format(stacks="sound")), "--quiet", check=0, timeout=40)
            listed = t.assay("agents", check=0)
            for name in ("pipe.json", "zero.json"):
                self.assertIn(name, listed.stdout + listed.stderr)


if __name__ == "__main__":
    BIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
