#!/usr/bin/env python3
"""2,000 agents of one coordinator over loopback, each with a connection of its own (many_agents.cc):
the coordinator's memory, what it costs while nothing runs, and how long all take to come back after a
kill -9, at once and after an outage.

usage: many_agents.py BIN_DIR MANY_AGENTS [--agents N] [--idle SECONDS] [--outage SECONDS]
                      [--bounds] [--output FILE.json]
--bounds: exit 1 where one does not hold (a bench of the machine, so not in CI).
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import (Local, cpu_seconds, hold_port, programs, resident_bytes,  # noqa: E402
                         wait_for)
from thousand_cells import machine  # noqa: E402

MOST_BYTES = 400 << 20
MOST_IDLE_CORES = 0.1
MOST_RETURN_SECONDS = 15


class Agents:
    """The process of the agents; `up` is how many have a session now."""

    def __init__(self, program, address, agents):
        self.up = 0
        self.child = subprocess.Popen([program, "--coordinator", address, "--agents", str(agents)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.up = int(line.split()[1])

    def stop(self):
        self.child.kill()
        self.child.wait()


def usual_limit():
    """Of descriptors, as a service or a login has it: the coordinator has to do with it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))


class Bench:
    def __init__(self, local, args):
        self.local, self.args = local, args
        port, self.held_port = hold_port()
        self.address = f"127.0.0.1:{port}"  # the same after a restart

    def start(self):
        with open(self.local.state_log("coordinator"), "ab") as log:
            self.coordinator = subprocess.Popen(
                [str(self.local.bin / "assay-coordinator"), "--state", str(self.local.state),
                 "--listen", self.address], env=self.local.env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=usual_limit)

    def all_up(self, seconds=180):
        try:
            wait_for(lambda: self.agents.up == self.args.agents, seconds, "all sessions")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.agents.up} of {self.args.agents}\n"
                                 f"{self.local.logs()}") from None

    def restart(self, outage):
        """Seconds from the start of the new one until all have a session."""
        self.coordinator.kill()
        self.coordinator.wait()
        wait_for(lambda: self.agents.up == 0, 60, "every session has ended")
        time.sleep(outage)
        begun = time.monotonic()
        self.start()
        self.all_up()
        return time.monotonic() - begun

    def run(self):
        args = self.args
        load = os.getloadavg()[0]
        self.start()
        self.agents = Agents(args.many_agents, self.address, args.agents)
        begun = time.monotonic()
        try:
            self.all_up()
            first = time.monotonic() - begun
            time.sleep(args.settle)
            pid = self.coordinator.pid
            before, begun = cpu_seconds(pid), time.monotonic()
            time.sleep(args.idle)
            idle = (cpu_seconds(pid) - before) / (time.monotonic() - begun)
            resident = resident_bytes(pid)
            at_once = self.restart(0)
            again = resident_bytes(self.coordinator.pid)
            after_outage = self.restart(args.outage)
            listed = json.loads(self.local.assay(
                "agents", "--format", "json", "--coordinator", self.address, check=0).stdout)
            assert len([a for a in listed["agents"] if a["state"] == "up"]) == args.agents
            peak = max(resident, again, resident_bytes(self.coordinator.pid))
        finally:
            self.agents.stop()
            self.coordinator.kill()
            self.coordinator.wait()
        return {"command": f"tests/bench/many_agents.py BIN_DIR MANY_AGENTS --agents {args.agents} "
                           f"--idle {args.idle:g} --outage {args.outage:g}",
                "machine": machine(load), "agents": args.agents, "first_seconds": round(first, 2),
                "resident_bytes": peak, "idle_cores": round(idle, 4), "idle_seconds": args.idle,
                "return_seconds": round(at_once, 2), "outage_seconds": args.outage,
                "return_after_outage_seconds": round(after_outage, 2), **programs(args.bin_dir)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("many_agents")
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--settle", type=float, default=5)
    parser.add_argument("--idle", type=float, default=60)
    parser.add_argument("--outage", type=float, default=60)
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--output")
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, args.agents + 500)), hard))
    with Local(args.bin_dir) as local:
        result = Bench(local, args).run()
    text = json.dumps(result, indent=2)
    print(text)
    if args.output:
        pathlib.Path(args.output).write_text(text + "\n")
    held = (result["resident_bytes"] < MOST_BYTES and result["idle_cores"] < MOST_IDLE_CORES and
            max(result["return_seconds"], result["return_after_outage_seconds"])
            < MOST_RETURN_SECONDS)
    return 0 if held or not args.bounds else 1


if __name__ == "__main__":
    sys.exit(main())
