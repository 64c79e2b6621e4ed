#!/usr/bin/env python3
"""A coordinator and four agents under seeded faults: programs killed and stopped, wires cut both ways or
one, connections reset, runners killed, an agent that comes late.

A seed is one run with some faults in it. Seeds are played one after the other on the same fleet (a
world), since starting one takes longer than a schedule. What must hold whatever happens: the run
ends; each cell in exactly one state with one counted attempt; what was stored before a fault stands;
a report that an agent let go of is in the store once; afterwards no runner is alive and every device
lock is free; nobody left by himself.

usage: fleet_test.py BIN_DIR FIRST_SEED COUNT [--jobs N] [--json FILE] [--verbose]
--jobs: worlds at once. A failing seed ends its world; the next one begins a new one.
"""
import argparse
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, Local, hold_port, programs  # noqa: E402
from kill_test import quick_wait, stored  # noqa: E402
from wire import Wire  # noqa: E402

HEARTBEAT = 0.5
# An agent that was silent for so long has lost what it held (WithHeartbeat: lease, grace, lifeline).
LOST = 4.5 * HEARTBEAT
CARDS = {"n1": "rtx3090.json", "n2": "rtx3090.json", "n3": "v100.json", "late": "h200.json"}
MATRIX = """
name: fleet-{seed}
select: {{cards: all, late: include}}
axes: {{model: [resnet50], batch: [32, 64], nodes: [1, 2]}}
repeat: 1
seed: {seed}
stop: {{confidence: 0.01, min_seconds: 0.02, max_seconds: 0.1}}
"""
FAULTS = ["agent", "agent", "coordinator", "both", "runner", "stop", "stop_coordinator", "cut", "to",
          "from", "reset", "late"]


class World:
    def __init__(self, local):
        self.local = local
        local.env["ASSAY_SIMULATE_FILE"] = str(local.dir / "rules")
        self.port, self.held_port = hold_port()
        local.env["ASSAY_COORDINATOR"] = f"127.0.0.1:{self.port}"
        # Alone: to ask the training runner what it can do takes longer than a schedule.
        (local.dir / "stacks").mkdir()
        (local.dir / "stacks" / "simulate.json").write_text(json.dumps(
            {"name": "simulate", "program": str(local.bin / "assay-simulate")}))
        local.env["ASSAY_STACKS"] = str(local.dir / "stacks")
        self.children, self.wires, self.killed, self.said = {}, {}, set(), {}
        for number, (name, fixture) in enumerate(CARDS.items()):
            # Cards of their own: one GPU cannot be in two machines.
            text = (FIXTURES / "nvml" / fixture).read_text().replace('"GPU-', f'"GPU-{number}')
            (local.dir / f"{name}.json").write_text(text)
            self.wires[name] = Wire(self.port)
        self.start("coordinator")
        for name in CARDS:
            if name != "late":
                self.start(name)

    def start(self, name):
        if self.alive(name):
            return
        local = self.local
        if name == "coordinator":
            words = ["assay-coordinator", "--state", local.state, "--listen",
                     f"127.0.0.1:{self.port}", "--heartbeat", HEARTBEAT]
        else:
            words = ["assay-agent", "--state", local.dir / f"agent-{name}", "--node", name,
                     "--devices", local.dir / f"{name}.json", "--coordinator",
                     f"127.0.0.1:{self.wires[name].port}"]
        with open(local.state_log(name), "ab") as log:
            self.said[name] = log.tell()
            self.children[name] = subprocess.Popen(
                [str(local.bin / words[0]), *map(str, words[1:])], env=local.env, cwd=local.dir,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.killed.discard(name)

    def alive(self, name):
        child = self.children.get(name)
        return child is not None and child.poll() is None

    def kill(self, name):
        if self.alive(name):
            self.killed.add(name)
            self.children[name].kill()
            self.children[name].wait()

    def signal(self, name, number):
        if self.alive(name):
            self.children[name].send_signal(number)

    def end_late_agent(self):
        """So that the next schedule may have it come late again."""
        if self.alive("late"):
            self.children["late"].terminate()
            code = self.children["late"].wait(20)
            # Ended before it could take a signal, it has not said a word.
            silent = self.local.state_log("late").stat().st_size == self.said["late"]
            assert code == 0 or (code == -signal.SIGTERM and silent), f"the late agent left with {code}"
        self.children.pop("late", None)

    def await_agents(self):
        """Everybody is back, whatever was done to him before."""
        def up():
            listed = self.local.assay("agents", "--format", "json")
            if listed.returncode != 0:
                return False
            found = {a["node"]: a["state"] for a in json.loads(listed.stdout)["agents"]}
            return all(found.get(name) == "up" for name in ("n1", "n2", "n3"))
        quick_wait(up, 30, 0.05)
        assert up(), "an agent is not back\n" + self.local.assay("agents").stdout

    def spooled(self):
        return {path.stem for path in self.local.dir.glob("agent-*/spool/*.pb")}

    def close(self):
        for wire in self.wires.values():
            wire.close()
        for child in self.children.values():
            child.kill()
            child.wait()


class Schedule:
    """One seed: a run, its faults, and what is checked."""

    def __init__(self, world, seed, verbose):
        self.world, self.local, self.seed, self.verbose = world, world.local, seed, verbose
        self.rng = random.Random(seed)
        self.faults = {name: 0 for name in FAULTS}
        self.before, self.reports = {}, set()
        self.began = time.monotonic()

    def say(self, text):
        if self.verbose:
            print(f"  {time.monotonic() - self.began:6.2f} s  {text}", flush=True)

    def play(self):
        rng, world = self.rng, self.world
        rules = f"default:slow={rng.choice([0.05, 0.1, 0.25])}"
        pathlib.Path(self.local.env["ASSAY_SIMULATE_FILE"]).write_text(rules)
        matrix = self.local.matrix(MATRIX.format(seed=self.seed))
        world.await_agents()
        self.say("all agents are up")
        self.submit(matrix)
        for _ in range(rng.choice([2, 3, 3, 4])):
            self.wait(rng.uniform(0.02, 0.4))
            self.strike(rng.choice(FAULTS))
        for wire in world.wires.values():
            wire.heal()
        for name in ("coordinator", *(n for n in CARDS if n != "late")):
            world.start(name)
        self.await_end()
        self.check()
        world.end_late_agent()

    def submit(self, matrix):
        """As a user would: again, until it is taken."""
        if self.rng.random() < 0.1:
            child = self.local.start("run", matrix, "--detach", "--quiet")
            time.sleep(self.rng.uniform(0, 0.1))
            self.strike("coordinator")
            child.communicate(timeout=60)
        quick_wait(lambda: self.local.assay("run", matrix, "--detach", "--quiet").returncode == 0, 30,
                   0.05)
        runs = [r for r in stored(self.local)["runs"] if r["name"] == f"fleet-{self.seed}"]
        assert len(runs) == 1, f"submitted once, there are {len(runs)} runs"
        self.run = runs[0]["id"]
        self.say(f"submitted {self.run}")

    def look(self):
        """Remembers what is durable and what lies in a spool."""
        self.reports |= self.world.spooled()
        for (run, cell), row in stored(self.local)["cells"].items():
            if run == self.run and row["outcome"] is not None:
                self.before.setdefault(cell, (row["outcome"], row["counted_attempt"]))

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.reports |= self.world.spooled()
            time.sleep(0.02)

    def strike(self, fault):
        rng, world = self.rng, self.world
        name = rng.choice(["n1", "n2", "n3"])
        # Mostly a moment; now and then past the lease.
        pause = rng.uniform(0.02, 0.4) if rng.random() < 0.85 else rng.uniform(LOST, LOST + 0.5)
        if hasattr(self, "run"):
            self.look()
        self.faults[fault] += 1
        self.say(f"{fault} {name} {pause:.2f}")
        if fault in ("agent", "coordinator", "both"):
            victims = {"agent": [name], "coordinator": ["coordinator"],
                       "both": ["coordinator", name]}[fault]
            for victim in victims:
                world.kill(victim)
            self.wait(min(pause, 0.4))
            for victim in victims:
                world.start(victim)
        elif fault == "runner":
            self.local.kill("assay-simulate")
        elif fault in ("stop", "stop_coordinator"):
            victim = name if fault == "stop" else "coordinator"
            world.signal(victim, signal.SIGSTOP)
            self.wait(pause)
            world.signal(victim, signal.SIGCONT)
        elif fault in ("cut", "to", "from"):
            world.wires[name].cut(*(["to", "from"] if fault == "cut" else [fault]))
            self.wait(pause)
            world.wires[name].heal()
        elif fault == "reset":
            world.wires[name].reset()
        elif fault == "late":
            world.start("late")

    def await_end(self):
        def over():
            self.reports |= self.world.spooled()
            return any(r["id"] == self.run and r["ended_at"] > 0 for r in stored(self.local)["runs"])
        quick_wait(over, 90, 0.03)
        assert over(), "the run does not end\n" + self.local.assay("show", self.run).stdout
        self.say("the run has ended")
        quick_wait(lambda: not self.world.spooled(), 20, 0.02)
        assert not self.world.spooled(), f"never acknowledged: {self.world.spooled()}"

    # --- checking

    def check(self):
        now = stored(self.local)
        cells = [c for (run, _), c in now["cells"].items() if run == self.run]
        attempts = {a["id"]: a for a in now["attempts"] if a["run"] == self.run}
        # Of the cards that were there: after a restart at its submission perhaps not all yet.
        assert len(cells) in (4, 8, 12), f"{len(cells)} cells"
        assert all(a["state"] == "ended" for a in attempts.values()), "an attempt never ended"
        for cell in cells:
            self.check_cell(cell, [a for a in attempts.values() if a["cell"] == cell["cell"]])
        failed = [c for c in cells if c["outcome"] == "fail"]
        assert len(failed) <= self.faults["runner"] * len(CARDS), \
            (failed, [a for a in attempts.values() if a["cell"] == failed[0]["cell"]])
        for cell, (outcome, attempt) in self.before.items():
            row = next(c for c in cells if c["cell"] == cell)
            assert (row["outcome"], row["counted_attempt"]) == (outcome, attempt), \
                f"cell {cell} was {outcome} by {attempt} and is {row}"
        everything = {a["id"] for a in now["attempts"]}
        lost = self.reports - everything
        assert not lost, f"acknowledged and not in the store: {lost}"
        for attempt in self.reports & attempts.keys():
            row = attempts[attempt]
            # Of a gang over two nodes one may have reported and the other been lost.
            whole = row["reported"] or row["late"] or len(json.loads(row["members"])) > 1
            assert whole, f"its report was acknowledged: {row}"
        self.check_quiet()

    def check_cell(self, cell, attempts):
        counted = [a["id"] for a in attempts if a["counted"]]
        if cell["outcome"] == "unsupported":
            assert not counted and not attempts, (cell, attempts)
            return
        assert cell["outcome"] in ("ok", "lost", "fail"), cell
        assert counted == [cell["counted_attempt"]], (cell, attempts)
        winner = next(a for a in attempts if a["counted"])
        assert winner["outcome"] == cell["outcome"] and not winner["late"], (cell, winner)
        # Tried three times; what was lost may have been heard of since, too late.
        if cell["outcome"] == "lost":
            assert len(attempts) >= 3, attempts

    def locked(self):
        held = []
        for file in (self.local.dir / "locks").glob("*"):
            with open(file) as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    held.append(file.name)
        return held

    def check_quiet(self):
        living = lambda: self.local.runners()  # noqa: E731
        quick_wait(lambda: not living(), 10, 0.02)
        assert not living(), f"runners outlived the run: {living()}"
        # An agent lets go of a device when it has seen the last process of the attempt end.
        quick_wait(lambda: not self.locked(), 10, 0.02)
        assert not self.locked(), f"still locked: {self.locked()}"
        for name, child in self.world.children.items():
            assert child.poll() is None, f"{name} has left with {child.returncode}"


def play_block(bin_dir, seeds, verbose):
    """Seeds on one world: [(seed, faults, what went wrong)]."""
    played = []
    while len(played) < len(seeds):
        with Local(bin_dir) as local:
            world = World(local)
            try:
                for seed in seeds[len(played):]:
                    if verbose:
                        print(f"seed {seed}", flush=True)
                    schedule = Schedule(world, seed, verbose)
                    try:
                        schedule.play()
                        played.append((seed, schedule.faults, ""))
                    except Exception:  # the next seed is worth playing, on a world of its own
                        played.append((seed, schedule.faults,
                                       traceback.format_exc() + "\n" + local.logs()))
                        break
            finally:
                world.close()
    return played


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--json", help="file for the figures of this run")
    parser.add_argument("--jobs", type=int, default=2, help="worlds at once")
    parser.add_argument("--block", type=int, default=25, help="seeds on one world")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun = time.monotonic()
    seeds = list(range(args.first, args.first + args.count))
    blocks = [seeds[i:i + args.block] for i in range(0, len(seeds), args.block)]
    faults, failed, done = {name: 0 for name in FAULTS}, [], 0
    which = programs(args.bin_dir)
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        # As they end, so that one slow world does not hide how far the others are.
        for block in concurrent.futures.as_completed(
                [pool.submit(play_block, args.bin_dir, seeds, args.verbose) for seeds in blocks]):
            played = block.result()
            for seed, struck, wrong in played:
                for name, count in struck.items():
                    faults[name] += count
                if wrong:
                    failed.append(seed)
                    print(f"seed {seed}: {wrong}", flush=True)
            done += len(played)
            print(f"{done} of {len(seeds)} played, {len(failed)} failed, "
                  f"{time.monotonic() - begun:.0f} s", flush=True)
    assert which == programs(args.bin_dir), "the programs were built anew during the run"
    seconds = time.monotonic() - begun
    print(f"{args.count} schedules from seed {args.first}, {sum(faults.values())} faults, "
          f"{len(failed)} failed{': ' + str(failed) if failed else ''}, {seconds:.0f} s")
    if args.json:
        command = ["tests/chaos/fleet_test.py build/release/bin", str(args.first), str(args.count),
                   f"--jobs {args.jobs} --block {args.block}"]
        pathlib.Path(args.json).write_text(json.dumps(
            {"first_seed": args.first, "schedules": args.count, "faults": faults,
             "failed_seeds": sorted(failed), "seconds": round(seconds, 1), "cores": os.cpu_count(),
             "command": " ".join(command), **which}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
