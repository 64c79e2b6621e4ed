#!/usr/bin/env python3
"""What spoils a measurement without a word, done to real processes: each is caught, and the sound cell
beside it is not.

usage: misdeeds_test.py BIN_DIR Outside|Slowed|Simulated|Real [bent_clock.so]

Outside: a runner of its own (not simulated, so that every rule holds) whose device is a thread with a queue.
Real: assay-train, and a library that bends its clock.
"""
import contextlib
import json
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import Local, bin_dir, local, main, wait_for  # noqa: E402

RUNNER = r'''#!{python}
import hashlib, json, os, queue, sys, threading, time
if "--stack-info" in sys.argv:
    print(json.dumps({{
        "runner": "outside", "protocol": 1, "versions": {{"runner": "1"}}, "models": ["resnet50"],
        "modes": ["train"], "precisions": ["fp32"], "lanes": ["eager"],
        "layouts": ["channels-last"], "arch_list": [], "device_kinds": ["cpu"],
        "max_world_size": 1, "simulated": False}}))
    sys.exit()
cell = json.load(open(sys.argv[sys.argv.index("--cell") + 1]))
batch, length = cell["spec"]["batch"], cell["spec"]["stop"]["min_seconds"]
deed = os.environ["DEED"]

def say(record, **more):
    os.write(3, json.dumps({{"record": record, **more}}).encode() + b"\n")

class Device(threading.Thread):
    """Does steps of some milliseconds in order; counts what is done and from when to when."""
    def __init__(self):
        super().__init__(daemon=True)
        self.queue, self.steps, self.first, self.last = queue.Queue(), 0, None, None
        self.start()
    def run(self):
        while True:
            self.queue.get()
            self.first = self.first or time.monotonic()
            digest = b"x" * 65536
            for _ in range(40):
                digest = hashlib.sha256(digest).digest() * 2048
            self.steps += 1
            self.last = time.monotonic()
            self.queue.task_done()

say("hello", protocol=1, runner="outside", uuid=cell["device"]["uuid"])
say("joined")
say("phase", phase="warmup")
warm = Device()
began = time.monotonic()
for _ in range(20):
    warm.queue.put(None)
warm.queue.join()
step = (time.monotonic() - began) / 20
device = Device()
say("phase", phase="measure")
began, steps, told = time.monotonic(), 0, 0
while True:
    device.queue.put(None)
    steps += 1
    if deed in ("early-clock", "no-sync"):
        if steps * step >= length:
            break
    else:
        if steps % 4 == 0:
            device.queue.join()
        if time.monotonic() - began >= length:
            break
    if time.monotonic() - told > 0.3:
        told = time.monotonic()
        say("progress", step=steps)
host = time.monotonic() - began
if deed != "no-sync":
    device.queue.join()
if deed != "early-clock":
    host = time.monotonic() - began
counted, seconds = device.steps, (device.last or began) - (device.first or began)
if deed == "no-sync":
    seconds = host
say("phase", phase="finish")
if deed == "timer":
    host, seconds = host * 0.9, seconds * 0.9
if deed == "device-timer":
    seconds *= 0.9
if deed == "clock-jumps":
    host, seconds = host + 3, seconds + 3
if deed == "host-clock-jumps":
    host += 3
first, last = (6.9, 6.9) if deed == "constant-loss" else (6.9, 6.5)
seen = 1 if deed == "constant-input" else 8
say("result", outcome="ok", fields={{
    "throughput": steps * batch / seconds, "unit": "img/s", "steps": steps, "device_steps": counted,
    "samples": steps * batch, "seconds": seconds, "host_seconds": host, "stop_reason": "confidence",
    "world_size": 1, "method_version": 1, "loss_first": first, "loss_last": last, "data_batches": 8,
    "input_batches_seen": seen}})
'''

# Name, and what the sentence of `assay show` must say; None: it is valid.
DEEDS = {
    "sound": None,
    "timer": "by the agent's",
    "device-timer": "by the host's clock",
    "early-clock": "by the host's clock",
    "no-sync": "counted on the device",
    "clock-jumps": "by the agent's",
    "host-clock-jumps": "by the host's clock",
    "constant-loss": "the loss did not change",
    "constant-input": "different input batches",
}

MATRIX = """
name: misdeeds
axes: {{model: resnet50, precision: fp32, batch: 32, stack: [{stacks}]}}
repeat: 1
stop: {{confidence: 0.01, min_seconds: {seconds}, max_seconds: {seconds}}}
limits: {{cell_seconds: 120, no_step_seconds: 30}}
"""


@contextlib.contextmanager
def outside(deeds, seconds):
    with Local(bin_dir(), devices="cpu") as t:
        folder = t.own_stacks(RUNNER.format(python=sys.executable))
        for deed in deeds:
            (folder / f"{deed}.json").write_text(json.dumps(
                {"name": deed, "program": "runner", "env": {"DEED": deed}}))
        yield t, t.matrix(MATRIX.format(stacks=", ".join(deeds), seconds=seconds))


class Outside(unittest.TestCase):
    def test_each_misdeed_is_invalid_with_its_reason_and_the_sound_cell_is_valid(self):
        with outside(DEEDS, 4) as (t, matrix):
            # The sound cell is measured, the others are named as what went wrong.
            done = t.assay("run", matrix, "--quiet", check=1, timeout=300)
            self.assertRegex(done.stderr.splitlines()[-1], r"cell \d+ \(.*\): invalid: ")
            rows = {row["stack"]: row for row in t.results()}
            for deed, reason in DEEDS.items():
                with self.subTest(deed):
                    row = rows[deed]
                    self.assertEqual(row["outcome"], "ok", row)
                    said = t.assay("show", "last", row["cell"], check=0).stdout
                    if reason is None:
                        self.assertEqual(row["verdict"], "valid", said)
                    else:
                        self.assertEqual(row["verdict"], "invalid", said)
                        self.assertIn(reason, said)
            # What is invalid is in no mean.
            table = t.assay("results", "last", check=0).stdout
            self.assertIn("invalid", table)


class Stopper(threading.Thread):
    """Stops every runner of a cell for half of the time."""
    def __init__(self, t):
        super().__init__(daemon=True)
        self.t, self.stopping = t, threading.Event()

    def run(self):
        runners = []
        while not self.stopping.is_set():
            runners = runners or [pid for pid, _ in self.t.runners()]
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in runners:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                time.sleep(0.1)


class Slowed(unittest.TestCase):
    def throughput(self, t, matrix):
        t.assay("run", matrix, "--new", "--quiet", check=0, timeout=120)
        row, = t.results()
        self.assertEqual((row["outcome"], row["verdict"]), ("ok", "valid"), row)
        return row["throughput"], row

    def test_a_process_that_is_stopped_half_of_the_time_shows_it_in_its_figure(self):
        # A clock that stands still with the process would hide it.
        with outside(["sound"], 4) as (t, matrix):
            before, _ = self.throughput(t, matrix)
            stopper = Stopper(t)
            stopper.start()
            try:
                slowed, _ = self.throughput(t, matrix)
            finally:
                stopper.stopping.set()
                stopper.join()
            after, _ = self.throughput(t, matrix)
            self.assertLess(slowed, 0.75 * max(before, after), (before, slowed, after))

    def test_a_throttled_control_group_lowers_the_figure_and_marks_the_cell(self):
        group = pathlib.Path("/sys/fs/cgroup/cpu" if os.path.isdir("/sys/fs/cgroup/cpu")
                             else "/sys/fs/cgroup", f"assay-test-{os.getpid()}")
        try:
            group.mkdir()
            if (group / "cpu.cfs_quota_us").exists():
                (group / "cpu.cfs_period_us").write_text("20000")
                (group / "cpu.cfs_quota_us").write_text("3000")
            else:
                (group / "cpu.max").write_text("3000 20000")
        except OSError as error:
            with contextlib.suppress(OSError):
                group.rmdir()
            self.skipTest(f"this machine grants no control group for processors: {error}")
        try:
            with outside(["sound"], 4) as (t, matrix):
                free, row = self.throughput(t, matrix)
                self.assertNotIn("throttled", row["marks"])
                # The agent and its ranks, as where a container has a quota.
                for pid, _ in t.processes("assay-agent"):
                    (group / "cgroup.procs").write_text(str(pid))
                held, row = self.throughput(t, matrix)
                self.assertLess(held, 0.6 * free, row)
                self.assertIn("throttled", row["marks"], row)
                self.assertGreater(row["cpu_throttled_periods"], 10)
                self.assertAlmostEqual(row["cpu_quota_cores"], 0.15)
                said = t.assay("show", "last", row["cell"], check=0).stdout
                self.assertIn("its control group kept it from the processors", said)
        finally:
            wait_for(lambda: not (group / "cgroup.procs").read_text().strip(), 20, "an empty group")
            group.rmdir()


class Simulated(unittest.TestCase):
    def test_the_simulators_misdeeds_are_caught(self):
        deeds = {"timer": "by the host's clock", "early_clock": "by the host's clock",
                 "constant_inputs": "the loss did not change",
                 "wrong_device_steps": "counted on the device"}
        for deed, reason in deeds.items():
            with self.subTest(deed), local(f"batch=64:{deed}") as t:
                t.assay("run", t.matrix("""
axes: {model: resnet50, precision: amp-fp16, batch: [32, 64]}
repeat: 1
stop: {confidence: 0.01, min_seconds: 5, max_seconds: 10}
"""), "--quiet", check=1)
                sound, bad = t.results()
                self.assertEqual((sound["verdict"], bad["verdict"]), ("valid", "invalid"), bad)
                self.assertIn(reason, t.assay("show", "last", bad["cell"], check=0).stdout)


class Real(unittest.TestCase):
    def run_with(self, environment, code, seconds=4):
        with Local(bin_dir(), devices="cpu", extra_env={"OMP_NUM_THREADS": "1"}) as t:
            folder = t.own_stacks()
            (folder / "train.json").write_text(json.dumps(
                {"name": "train", "program": str(bin_dir() / "assay-train"), "env": environment}))
            t.assay("run", t.matrix(
                "axes: {model: resnet50, image: 32, batch: [2]}\nrepeat: 1\n"
                f"stop: {{confidence: 0.0001, min_seconds: {seconds}, max_seconds: {seconds}}}\n"),
                "--quiet", check=code, timeout=300)
            row, = t.results()
            self.assertEqual(row["outcome"], "ok", row)
            return row, t.assay("show", "last", row["cell"], check=0).stdout

    def test_a_clock_that_runs_a_tenth_too_slowly_is_seen_by_the_agents(self):
        row, said = self.run_with({}, 0)
        self.assertEqual(row["verdict"], "valid", said)
        self.assertAlmostEqual(row["window_seconds"] / row["host_seconds"], 1, delta=0.05)
        row, said = self.run_with({"LD_PRELOAD": BENT_CLOCK, "BENT_CLOCK_RATIO": "0.9"}, 3)
        self.assertEqual(row["verdict"], "invalid", said)
        self.assertIn("by the agent's", said)


if __name__ == "__main__":
    BENT_CLOCK = sys.argv.pop() if sys.argv[-1].endswith(".so") else ""
    main()
