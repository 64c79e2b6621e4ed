"""A fleet of the real programs over mutual TLS on the hosts of a Network, and what must hold of its
store, processes and locks whatever was done to it.

    with fleet(simulate="default:slow=1") as f:
        f.coordinator()                               # on host a
        f.agent("b1", "b", "rtx3090_gtx1080ti.json")
        f.up("b1")
        run = f.submit(MATRIX)
        f.finish(run)                                 # waits for its end and checks the invariants
"""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import netns
from assay_local import FIXTURES, local, wait_for

PORT = 7070  # of a namespace that is the coordinator's alone
TIMES = {"lease": 3, "lost": 4.5}  # in heartbeats; coordinator_state.h, WithHeartbeat
ENDED = ("ok", "mem_limit", "fail", "unsupported", "hung", "timeout", "lost", "cancelled")


@contextlib.contextmanager
def fleet(simulate="default:slow=1", hosts="abc", heartbeat=10, **env):
    with local(devices=None, **env) as t, netns.Network(t.dir, list(hosts)) as net:
        f = Fleet(t, net, heartbeat)
        f.simulate(simulate)
        try:
            yield f
        except Exception as error:
            raise AssertionError(f"{error!r}\n{t.logs()}") from error
        finally:
            f.spools.stop()
            f.kill_all()


class SpoolWatch:
    """Which reports have lain in a spool: once they have left it, they were acknowledged."""

    def __init__(self):
        self.folders = {}
        self.seen = set()
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def waiting(self):
        found = set()
        for folder in list(self.folders.values()):
            try:
                found |= {name[:-3] for name in os.listdir(folder()) if name.endswith(".pb")}
            except OSError:
                pass  # not made yet, or its agent is gone
        return found

    def _watch(self):
        while not self.ending.wait(0.02):
            self.seen |= self.waiting()

    def stop(self):
        self.ending.set()
        self.thread.join()


class Fleet:
    def __init__(self, t, net, heartbeat):
        self.t, self.net, self.heartbeat = t, net, heartbeat
        self.certs = t.dir / "certs"
        self.state = t.dir / "state-coordinator"
        self.children = {}
        self.host_of = {}
        self.restart = {}
        self.spools = SpoolWatch()
        t.env["ASSAY_SIMULATE_FILE"] = str(t.dir / "rules")
        # For agents of cards: to ask the training runner what it can do loads its framework.
        self.stacks = t.dir / "stacks"
        self.stacks.mkdir()
        (self.stacks / "simulate.json").write_text(json.dumps(
            {"name": "simulate", "program": str(t.bin / "assay-simulate")}))
        t.state.mkdir(mode=0o700)
        self.make("init")
        hosts = [word for host in net.hosts.values() if host.name == "a"
                 for word in ("--host", host.address, "--host", host.slow_address)]
        self.make("coordinator", *hosts)
        self.make("user", "ada", "--role", "admin")

    def simulate(self, rules):
        """For attempts that begin from now on."""
        fresh = self.t.dir / "rules.new"
        fresh.write_text(rules)
        fresh.rename(self.t.dir / "rules")

    # --- programs

    def make(self, *words):
        self.t.assay("certs", *words, "--dir", self.certs, check=0)

    def tls(self, stem):
        return ["--tls-ca", self.certs / "ca.crt", "--tls-cert", f"{self.certs / stem}.crt",
                "--tls-key", f"{self.certs / stem}.key"]

    def _start(self, name, host, words, env=None, tmpfs=None):
        """Starts it, and again with the same words by again(name)."""
        def begin():
            self.children[name] = self.net[host].start(
                [self.t.bin / words[0], *words[1:]], {**self.t.env, **(env or {})},
                self.t.state / f"{name}.log", tmpfs)
            return self.children[name]
        self.host_of[name] = host
        self.restart[name] = begin
        return begin()

    def coordinator(self):
        self._start("coordinator", "a", ["assay-coordinator", "--state", self.state, "--listen",
                                         f"0.0.0.0:{PORT}", "--heartbeat", str(self.heartbeat),
                                         *self.tls("coordinator")])
        wait_for(lambda: (self.state / "endpoint.json").exists(), 20, "the coordinator listens")

    def agent(self, name, host, devices, slow=False, env=None, disk=None):
        """`devices`: a file of tests/fixtures/nvml, or cpu. `disk`: size of its state directory."""
        self.make("agent", name)
        folder = self.t.dir / f"state-{name}"
        folder.mkdir(mode=0o700)
        address = self.net["a"].slow_address if slow else self.net["a"].address
        has = ["cpu"] if devices == "cpu" else [FIXTURES / "nvml" / devices, "--stacks", self.stacks]
        self._start(name, host, ["assay-agent", "--state", folder, "--node", name, "--coordinator",
                                 f"{address}:{PORT}", *self.tls(f"agents/{name}"), "--devices", *has],
                    env={"ASSAY_LOCK_DIR": str(self.t.dir / f"locks-{host}"), "OMP_NUM_THREADS": "1",
                         **(env or {})},
                    tmpfs=(folder, disk) if disk else None)
        self.spools.folders[name] = lambda: netns.disk_of(self.children[name].pid, folder) / "spool"

    def kill(self, name, number=signal.SIGKILL):
        self.children[name].send_signal(number)
        self.children[name].wait(30)

    def again(self, name):
        return self.restart[name]()

    def assay(self, *words, check=0, timeout=120, host="a", slow=False):
        address = self.net["a"].slow_address if slow else self.net["a"].address
        command = self.net[host].command([self.t.bin / "assay", *words, "--coordinator",
                                          f"{address}:{PORT}", *self.tls("users/ada")])
        done = subprocess.run(command, env=self.t.env, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL, cwd=self.t.dir)
        if check is not None and done.returncode != check:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    # --- what it says

    def states(self):
        listed = self.assay("agents", "--format", "json", check=None)
        if listed.returncode != 0:
            return {}
        return {a["node"]: a["state"] for a in json.loads(listed.stdout)["agents"]}

    def await_state(self, state, *names, seconds=60):
        def reached():
            states = self.states()
            return all(states.get(name) == state for name in names)
        wait_for(reached, seconds, f"{names} {state}")

    def up(self, *names, seconds=60):
        self.await_state("up", *names, seconds=seconds)

    def submit(self, matrix):
        return self.assay("run", self.t.matrix(matrix), "--detach").stdout.split()[1]

    def stored(self, table, where="1"):
        db = sqlite3.connect(f"file:{self.state}/results.db?mode=ro", uri=True, timeout=10)
        with contextlib.closing(db):
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(f"SELECT * FROM {table} WHERE {where}")]

    def running(self, *nodes):
        """Attempts that were started on these nodes and have not ended."""
        return [a for a in self.stored("attempts", "state = 'started'") if a["node"] in nodes]

    def await_running(self, *nodes, seconds=60):
        return wait_for(lambda: self.running(*nodes), seconds, f"a cell runs on {nodes}")

    def runners_on(self, host):
        pids = set(self.net[host].pids())
        return [pid for pid, _ in self.t.runners() if pid in pids]

    # --- what must hold

    def await_end(self, run, seconds=240):
        wait_for(lambda: self.stored("runs", f"id = '{run}' AND ended_at > 0"), seconds,
                 f"the end of {run}")

    def finish(self, run, outcomes=("ok",), seconds=240):
        """Waits for the end of the run and for every agent; checks; returns (records, attempts)."""
        self.await_end(run, seconds)
        self.up(*(name for name in self.children if name != "coordinator"))
        wait_for(lambda: not self.spools.waiting(), 30, "every report is acknowledged")
        wait_for(lambda: not self.t.runners(), 30, f"no runner is alive: {self.t.runners()}")
        for name, child in self.children.items():
            assert child.poll() is None, f"{name} has left with {child.poll()}"
        records = json.loads(self.assay("results", run, "--format", "json").stdout)
        attempts = self.stored("attempts", f"run = '{run}'")
        self.check_cells(run, records, attempts, outcomes)
        self.check_reports(attempts)
        self.check_locks()
        return records, attempts

    def check_cells(self, run, records, attempts, outcomes):
        """Each cell in exactly one terminal state, by one counted attempt; no other is alive."""
        cells = self.stored("cells", f"run = '{run}'")
        assert cells and [r["cell"] for r in records] == sorted(c["cell"] for c in cells), records
        assert all(a["state"] == "ended" for a in attempts), attempts
        for cell in cells:
            assert cell["outcome"] in ENDED, cell
            assert cell["outcome"] in outcomes, cell
            counted = [a for a in attempts if a["cell"] == cell["cell"] and a["counted"]]
            assert [a["id"] for a in counted] == [cell["counted_attempt"]], (cell, counted)
            assert counted[0]["outcome"] == cell["outcome"], (cell, counted)
            assert not counted[0]["late"], counted
        for record in records:
            cell = next(c for c in cells if c["cell"] == record["cell"])
            assert (record["outcome"], record["attempt"]) == (cell["outcome"],
                                                              cell["counted_attempt"]), record

    def check_reports(self, attempts):
        """What an agent was told is kept is there, once (the id is the table's key)."""
        stored = {a["id"]: a for a in attempts}
        assert self.spools.seen, "no report was seen in a spool"
        for attempt in self.spools.seen:
            assert attempt in stored, f"{attempt} was acknowledged and is not in the store"
            assert stored[attempt]["outcome"] in ENDED, stored[attempt]
            assert stored[attempt]["reported"] or stored[attempt]["late"], stored[attempt]

    def check_locks(self):
        for file in self.t.dir.glob("locks-*/*"):
            with open(file) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: held

    def stop(self):
        """Everybody leaves when asked to, and nothing of ours is left on any host."""
        for name in sorted(self.children, key=lambda name: name == "coordinator"):
            self.children[name].terminate()
            code = self.children[name].wait(30)
            assert code == 0, f"{name} left with {code}"
        assert not self.t.processes(), self.t.processes()
        for host in self.net.hosts.values():
            assert not host.pids(), f"{host.name}: {host.pids()}"

    def kill_all(self):
        for child in self.children.values():
            child.kill()
            child.wait()


def faketime_library():
    """libfaketime of `faketime`, or nothing."""
    found = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    return found[0] if found and shutil.which("faketime") else None


class SteppedClock:
    """A wall clock that a test steps while a program runs; the steady clocks are left alone."""

    def __init__(self, folder):
        self.file = pathlib.Path(folder) / "wall-clock"
        self.step("+0")
        self.env = {"LD_PRELOAD": str(faketime_library()), "FAKETIME_TIMESTAMP_FILE": str(self.file),
                    "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def step(self, offset):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{offset}\n")
        fresh.rename(self.file)
        self.at = time.monotonic()
