#!/usr/bin/env python3
"""kill -9 of coordinator, agent, both or a runner at any moment, then the same command again.

What must hold whatever the schedule: the run goes on and ends; no finished cell is repeated; what
was committed before a kill stands with the same attempt; each cell ends in exactly one state with
one counted attempt; the same matrix never has two unfinished runs; no process is left.

usage: kill_test.py BIN_DIR FIRST_SEED COUNT [--jobs N] [--seconds LIMIT] [--json FILE] [--verbose]
A failing seed is printed; it gives the same schedule again (README.md).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, Local, programs  # noqa: E402

MATRIX = """
name: chaos
axes:
  model: [resnet50]
  precision: [fp32, amp-fp16]
  batch: [32, 64, 128]
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""
CELLS = 12
# By runners/simulate/behaviour.h. Each cell takes a moment of real time, so that a kill finds one
# running; two of them leave a process behind, and two end in another state than ok.
RULES = ("batch=32,precision=fp32:grandchild+slow=0.1;batch=128,precision=amp-fp16:oom;"
         "default:slow={slow}")
OUT_OF_MEMORY = 2
# A runner is gone by then when its agent was killed: the lifeline's silence, and some to notice.
# The kernel's signal at the parent's death and the closed pipe are much faster.
LIFELINE_SECONDS = 10
VICTIMS = {
    "coordinator": ["assay-coordinator"],
    "agent": ["assay-agent"],
    "both": ["assay-coordinator", "assay-agent"],
    "runner": ["assay-simulate"],
}


def stored(local):
    """Runs, cells and attempts as they are durable now; empty where there is no store yet."""
    path = local.state / "results.db"
    empty = {"runs": [], "cells": {}, "attempts": []}
    if not path.exists():
        return empty
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as db:
            db.row_factory = sqlite3.Row
            rows = lambda table: [dict(r) for r in db.execute(f"SELECT * FROM {table}")]  # noqa: E731
            db.execute("BEGIN")
            found = {"runs": rows("runs"), "attempts": rows("attempts"),
                     "cells": {(r["run"], r["cell"]): r for r in rows("cells")}}
        db.close()
        return found
    except sqlite3.OperationalError:
        return empty  # between its creation and its first tables


class Schedule:
    """One seed: what is killed, when, and what is checked."""

    def __init__(self, bin_dir, seed, verbose):
        self.rng = random.Random(seed)
        self.bin = bin_dir
        self.verbose = verbose
        self.kills = {name: 0 for name in VICTIMS}
        # A coordinator and an agent that nobody but this test starts: attempts outlive the former.
        self.apart = self.rng.random() < 0.3
        self.before = {}  # (run, cell) to what was stored of it before some kill

    def say(self, text):
        if self.verbose:
            print(f"  {time.monotonic() - self.begun:6.2f} s  {text}", flush=True)

    def run(self):
        self.begun = time.monotonic()
        rules = RULES.format(slow=self.rng.choice([0.02, 0.1, 0.2]))
        with Local(self.bin, devices=FIXTURES / "nvml" / "rtx3090.json", simulate=rules) as local:
            self.local = local
            self.matrix = local.matrix(MATRIX)
            self.command = None
            self.children = {}
            try:
                if self.apart:
                    self.start_apart()
                self.play()
            except Exception as error:
                raise AssertionError(f"{error!r}\n{local.logs()}") from error
            finally:
                self.stop_command()

    def play(self):
        for _ in range(self.rng.choice([1, 2, 2, 3])):
            self.strike()
        if self.command and self.rng.random() < 0.5:
            self.stop_command()
        last = None
        if not self.over():
            last = self.local.assay("run", self.matrix, timeout=120)
            self.say(f"the last command left with {last.returncode}")
        self.stop_command()
        self.check(last)
        # A local coordinator that is killed takes everything along.
        if not self.apart:
            self.local.kill("assay-coordinator")
            self.gone(["assay-agent", "assay-simulate"], "left after the coordinator was killed")
        self.say("checked")

    def start_apart(self):
        """Starts what of the two does not run."""
        local = self.local
        address = f"unix:{local.dir}/run/c.sock"
        local.env["ASSAY_COORDINATOR"] = address
        words = {
            "assay-coordinator": ["--state", local.state, "--listen", address],
            "assay-agent": ["--coordinator", address, "--state", local.dir / "agent"],
        }
        for program, rest in words.items():
            child = self.children.get(program)
            if child is not None and child.poll() is None:
                continue
            with open(local.state_log(program), "ab") as log:
                self.children[program] = subprocess.Popen(
                    [str(local.bin / program), *map(str, rest)], env=local.env, cwd=local.dir,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        quick_wait(lambda: answers(local.dir / "run" / "c.sock"), 10)

    def over(self):
        runs = stored(self.local)["runs"]
        return bool(runs) and all(r["ended_at"] > 0 for r in runs)

    def stop_command(self):
        if self.command:
            self.command.kill()
            self.command.communicate()
            self.command = None

    # --- killing

    def strike(self):
        if self.over():
            return
        if self.command and (self.command.poll() is not None or self.rng.random() < 0.3):
            self.stop_command()
        if self.command is None:
            self.command = self.local.start("run", self.matrix, "--quiet")
        what = self.rng.choice(["coordinator", "coordinator", "agent", "agent", "both", "runner"])
        self.await_moment(self.rng.choice(["any", "any", "submit", "commit"]), what)
        for key, row in stored(self.local)["cells"].items():
            if row["outcome"] is not None:
                self.before[key] = (row["outcome"], row["counted_attempt"])
        order = list(VICTIMS[what])
        self.rng.shuffle(order)
        agents = {pid for pid, _ in self.local.processes("assay-agent")}
        runners = {pid for pid, _ in self.local.processes("assay-simulate")
                   if parent_of(pid) in agents}
        struck = sum(self.local.kill(program) for program in order)
        if what == "runner" and not struck:  # between two cells
            quick_wait(lambda: self.local.processes("assay-simulate"), 1, 0.001)
            struck = self.local.kill("assay-simulate")
        if struck:
            self.kills[what] += 1
        self.say(f"killed {what}: {struck} processes, {len(self.before)} cells were stored")
        if self.apart:
            time.sleep(self.rng.uniform(0, 0.3))
            self.start_apart()
        if struck and what in ("agent", "both"):
            # A child that a runner forked lives until the next agent starts, which ends it.
            living = lambda: runners & {pid for pid, _ in self.local.processes("assay-simulate")}  # noqa: E731
            quick_wait(lambda: not living(), LIFELINE_SECONDS)
            assert not living(), f"runners of the killed agent live: {living()}"

    def await_moment(self, moment, what):
        if moment == "submit":  # while the coordinator starts or answers its first question
            quick_wait(lambda: self.local.processes("assay-coordinator"), 1)
            time.sleep(self.rng.uniform(0, 0.15))
        elif moment == "commit":  # just after the log of the store grew
            quick_wait(lambda: wal_size(self.local) > 0, 1)
            time.sleep(self.rng.uniform(0, 0.8))
            size = wal_size(self.local)
            quick_wait(lambda: wal_size(self.local) != size, 0.5, 0.0005)
        else:
            time.sleep(self.rng.uniform(0.05, 1.0))

    # --- checking

    def check(self, last):
        local = self.local
        now = stored(local)
        runs = sorted(now["runs"], key=lambda r: r["id"])
        assert runs, "no run at all"
        for earlier, later in zip(runs, runs[1:]):
            # Only a run that had ended lets the same matrix begin anew.
            assert 0 < earlier["ended_at"] <= later["submitted_at"], \
                f"two runs at once of one matrix: {earlier['id']} and {later['id']}"
        listed = json.loads(local.assay("ls", "--format", "json", check=0).stdout)["runs"]
        assert len(listed) == len(runs), f"ls shows {listed}"
        for run in runs:
            self.check_run(now, run)
        for key, (outcome, attempt) in self.before.items():
            row = now["cells"][key]
            assert (row["outcome"], row["counted_attempt"]) == (outcome, attempt), \
                f"cell {key} was {outcome} by {attempt} and is {row['outcome']} by " \
                f"{row['counted_attempt']}"
        rows = local.results(runs[-1]["id"])
        assert [r["cell"] for r in rows] == list(range(1, CELLS + 1)), "results lack a cell"
        for row in rows:
            cell = now["cells"][(runs[-1]["id"], row["cell"])]
            assert (row["outcome"], row["attempt"]) == (cell["outcome"], cell["counted_attempt"])
        if last is not None:
            failures = any(r["outcome"] not in ("ok", "mem_limit") for r in rows)
            assert last.returncode == (1 if failures else 0), \
                (last.returncode, last.stdout, last.stderr)
        self.gone(["assay-simulate"], "a runner or its child outlived the run")
        for program, most in (("assay-coordinator", 1), ("assay-agent", 1)):
            assert len(local.processes(program)) <= most, f"more than one {program}"

    def check_run(self, now, run):
        cells = [c for (of, _), c in now["cells"].items() if of == run["id"]]
        assert len(cells) == CELLS, f"run {run['id']} has {len(cells)} cells"
        attempts = [a for a in now["attempts"] if a["run"] == run["id"]]
        assert all(a["state"] == "ended" for a in attempts), "an attempt never ended"
        outcomes = {}
        for cell in cells:
            mine = sorted((a for a in attempts if a["cell"] == cell["cell"]),
                          key=lambda a: a["number"])
            counted = [a for a in mine if a["counted"]]
            assert len(counted) == 1 and counted[0]["id"] == cell["counted_attempt"], \
                f"cell {cell['cell']} counts {[a['id'] for a in counted]}"
            assert counted[0]["outcome"] == cell["outcome"]
            kept = [a for a in mine if not a["late"]]
            assert kept[-1]["id"] == cell["counted_attempt"], \
                f"cell {cell['cell']} was tried again after its result: {mine}"
            # What is not counted is what a kill cost, never a result.
            assert all(a["outcome"] == "lost" for a in kept[:-1]), mine
            if self.apart and not self.kills["agent"] + self.kills["both"]:
                assert len(kept) == 1, f"an attempt did not outlive its coordinator: {mine}"
            outcomes[cell["outcome"]] = outcomes.get(cell["outcome"], 0) + 1
        lost, failed = outcomes.pop("lost", 0), outcomes.pop("fail", 0)
        # Lost for good is only a cell that was hit three times; fail one whose runner was.
        ended_agents = self.kills["coordinator"] + self.kills["agent"] + self.kills["both"]
        assert lost == 0 or ended_agents >= 3, f"{lost} cells lost"
        assert failed <= self.kills["runner"], f"{failed} cells failed"
        assert set(outcomes) <= {"ok", "mem_limit"}, outcomes
        assert outcomes.get("mem_limit", 0) <= OUT_OF_MEMORY

    def gone(self, programs, what):
        left = lambda: [p for program in programs for p in self.local.processes(program)]  # noqa: E731
        quick_wait(lambda: not left(), LIFELINE_SECONDS, 0.05)
        assert not left(), f"{what}: {left()}"


def parent_of(pid):
    try:
        return int(pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def answers(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def wal_size(local):
    try:
        return os.stat(local.state / "results.db-wal").st_size
    except FileNotFoundError:
        return 0


def quick_wait(condition, seconds, pause=0.005):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(pause)


def play(bin_dir, seed, verbose, end):
    """The seed, its kills and what went wrong; no kills where there was no time left."""
    if time.monotonic() > end:
        return seed, None, ""
    if verbose:
        print(f"seed {seed}", flush=True)
    schedule = Schedule(bin_dir, seed, verbose)
    try:
        schedule.run()
    except Exception:  # the next seed is worth playing whatever this one met
        return seed, schedule.kills, traceback.format_exc()
    return seed, schedule.kills, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--json", help="file for the figures of this run")
    parser.add_argument("--jobs", type=int, default=1, help="schedules at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none after this time")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through the `with`s: nothing is left
    begun = time.monotonic()
    which = programs(args.bin_dir)
    failed, kills, done = [], {name: 0 for name in VICTIMS}, 0
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for seed, struck, wrong in pool.map(
                play, *zip(*((args.bin_dir, seed, args.verbose, begun + args.seconds)
                             for seed in range(args.first, args.first + args.count)))):
            if struck is None:
                continue
            done += 1
            for name, count in struck.items():
                kills[name] += count
            if wrong:
                failed.append(seed)
                print(f"seed {seed}: {wrong}", flush=True)
    seconds = time.monotonic() - begun
    print(f"{done} schedules from seed {args.first}, {sum(kills.values())} kills, {len(failed)} "
          f"failed{': ' + str(failed) if failed else ''}, {seconds:.0f} s")
    if args.json:
        command = ["tests/chaos/kill_test.py", "build/release/bin", *sys.argv[2:]]
        pathlib.Path(args.json).write_text(json.dumps(
            {"first_seed": args.first, "schedules": done, "kills": kills, "failed_seeds": failed,
             "seconds": round(seconds, 1), "command": " ".join(command), **which},
            indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
