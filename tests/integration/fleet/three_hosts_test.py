#!/usr/bin/env python3
"""Three hosts, mutual TLS, five kinds of card and training on two processors: one run to its table, and
what cables, disks, clocks and killed programs may do to it. What must hold stands in
tests/cluster/fleet.py, Fleet.finish.

usage: three_hosts_test.py BIN_DIR [unittest arguments]
"""
import errno
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
import netns  # noqa: E402
from assay_local import bin_dir, main, wait_for  # noqa: E402
from fleet import TIMES, SteppedClock, faketime_library, fleet  # noqa: E402

CARDS = {"H200", "GTX 1080 Ti", "RTX 3090", "V100", "RTX 2070"}
AGENTS = {  # name: (host, devices)
    "a1": ("a", "h200.json"),
    "b1": ("b", "rtx3090_gtx1080ti.json"),
    "b2": ("b", "cpu"),
    "c1": ("c", "v100.json"),
    "c2": ("c", "geforce_no_power.json"),
    "c3": ("c", "cpu"),
}
MATRIX = """
name: three-hosts
baseline: RTX 3090
axes: {model: resnet50, image: 32, batch: [2, 4]}
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.1, max_seconds: 0.3}
"""
# Seconds between heartbeats where a lease has to end; a busy machine must not miss three of them.
QUICK = 2
# One spec of one card takes long: it is under way whatever happens to its host.
LONG = "card=GTX 1080 Ti,batch=2,repeat=1:slow={long};default:slow=0.5"


def trains():
    """Whether the real training runner was built."""
    return (bin_dir() / "assay-train").exists()


def begin(f, slow=(), **options):
    """Coordinator and agents, all up; those on the hosts `slow` come over the router."""
    f.coordinator()
    names = [name for name, (_, devices) in AGENTS.items() if devices != "cpu" or trains()]
    for name in names:
        host, devices = AGENTS[name]
        f.agent(name, host, devices, slow=host in slow, **options.get(name, {}))
    f.up(*names)
    return names


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = netns.refusal()
        if reason:
            raise unittest.SkipTest(reason)

    def lost(self, attempts, *nodes):
        return [a for a in attempts if a["node"] in nodes and (a["outcome"] == "lost" or a["late"])]

    def await_long_cell(self, f):
        def runs():
            long = {(c["run"], c["cell"]) for c in f.stored("cells", "target = 'GTX 1080 Ti' AND "
                                                            "spec_index = 0 AND repeat = 1")}
            return [a for a in f.running("b1") if (a["run"], a["cell"]) in long]
        return wait_for(runs, 60, "the long cell runs")

    def none_was_lost(self, attempts):
        self.assertEqual([a for a in attempts if not a["counted"]], [])


class WholeRun(Hosts):
    def test_one_run_over_all_hosts_ends_with_one_table(self):
        with fleet("default:slow=0.2") as f:
            begin(f)
            done = f.assay("run", f.t.matrix(MATRIX), timeout=300)
            run = done.stdout.split()[1]
            records, attempts = f.finish(run)
            self.none_was_lost(attempts)
            targets = {row["target"] for row in records}
            cards = {card for card in CARDS if any(card in target for target in targets)}
            self.assertEqual(cards, CARDS, targets)
            for card in CARDS:
                self.assertRegex(done.stdout, card)
            nodes = {row["node"] for row in records}
            self.assertEqual(nodes, {name for name in f.children if name != "coordinator"})
            trained = [row for row in records if row["simulated"] is False]
            self.assertEqual({row["node"] for row in trained}, {"b2", "c3"} if trains() else set())
            for row in records:
                self.assertGreater(row["throughput"], 0)
            if not trains():
                self.skipTest("built without the training runner: the cards were all that ran")
            f.stop()


class Cables(Hosts):
    def test_cut_without_a_fin_and_healed(self):
        with fleet(LONG.format(long=30), heartbeat=QUICK) as f:
            begin(f)
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            f.net.cut("b")
            cut = time.monotonic()
            # An agent that cannot be heard ends its own runners by then; nobody else could.
            limit = (TIMES["lost"] + 1) * f.heartbeat
            wait_for(lambda: not f.runners_on("b"), limit + 5, "the runners behind the cut leave")
            f.await_state("lost", "b1", seconds=limit + 15)
            self.assertGreater(time.monotonic() - cut, (TIMES["lease"] - 1) * f.heartbeat)
            f.net.heal("b")
            f.simulate("default:slow=0.5")
            _, attempts = f.finish(run)
            self.assertTrue(self.lost(attempts, "b1"))
            self.assertFalse(self.lost(attempts, "a1", "c1", "c2", "c3"))
            f.stop()

    def test_nothing_from_an_agent_arrives(self):
        self.one_way("b", "a")

    def test_nothing_arrives_at_an_agent(self):
        self.one_way("a", "b")

    def one_way(self, sender, receiver):
        with fleet(LONG.format(long=20), heartbeat=QUICK) as f:
            begin(f)
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            f.net.deafen(sender, receiver)
            limit = (TIMES["lost"] + 1) * f.heartbeat
            wait_for(lambda: not f.runners_on("b"), limit + 5, "the runners behind the cut leave")
            f.await_state("lost", "b1", seconds=limit + 20)
            f.net.hear(sender, receiver)
            f.simulate("default:slow=0.5")
            _, attempts = f.finish(run)
            self.assertTrue(self.lost(attempts, "b1"))
            self.assertFalse(self.lost(attempts, "a1", "c1", "c2", "c3"))
            f.stop()

    def test_a_short_cut_costs_no_attempt(self):
        with fleet(LONG.format(long=8), heartbeat=4) as f:
            begin(f)
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            f.net.cut("b")
            time.sleep(4)  # under two heartbeats
            f.net.heal("b")
            _, attempts = f.finish(run)
            self.none_was_lost(attempts)
            f.stop()


class SlowLink(Hosts):
    def test_200_ms_and_5_percent_loss_cost_no_attempt(self):
        with fleet("default:slow=0.5") as f:
            f.net.slow(0.2, 0.05)
            begin(f, slow="bc")
            for _ in range(2):  # a user over it, too
                f.assay("agents", host="c", slow=True)
            run = f.submit(MATRIX)
            _, attempts = f.finish(run)
            self.none_was_lost(attempts)
            counts = f.net.counts()
            self.assertGreater(counts["lost"], counts["passed"] * 0.02, counts)
            f.stop()


class Killed(Hosts):
    def test_agent(self):
        with fleet(LONG.format(long=3)) as f:
            begin(f)
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            f.kill("b1")
            time.sleep(1)
            f.again("b1")
            _, attempts = f.finish(run)
            self.assertEqual(len(self.lost(attempts, "b1")), 1)
            self.assertEqual(len([a for a in attempts if not a["counted"]]), 1)
            f.stop()

    def test_coordinator_and_no_attempt_is_lost(self):
        with fleet(LONG.format(long=6), heartbeat=4) as f:
            begin(f)
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            f.kill("coordinator")
            time.sleep(1.5)
            f.again("coordinator")
            _, attempts = f.finish(run)
            self.none_was_lost(attempts)
            f.stop()


class LateAgent(Hosts):
    def test_joins_a_run_that_takes_late_ones(self):
        with fleet("default:slow=1") as f:
            f.coordinator()
            f.agent("b1", "b", "rtx3090_gtx1080ti.json")
            f.up("b1")
            run = f.submit("select: {cards: all, late: include}\n" + MATRIX)
            f.await_running("b1")
            f.agent("c1", "c", "v100.json")
            records, attempts = f.finish(run)
            self.none_was_lost(attempts)
            self.assertEqual({row["node"] for row in records}, {"b1", "c1"})
            # Three cards, two specs, two repeats.
            self.assertEqual(len(records), 12)
            f.stop()

    def test_stays_out_of_a_run_that_does_not(self):
        with fleet("default:slow=1") as f:
            f.coordinator()
            f.agent("b1", "b", "rtx3090_gtx1080ti.json")
            f.up("b1")
            run = f.submit("select: {cards: all, wait: 0s, late: ignore}\n" + MATRIX)
            f.await_running("b1")
            f.agent("c1", "c", "v100.json")
            records, _ = f.finish(run)
            self.assertEqual({row["node"] for row in records}, {"b1"})
            f.stop()


class ClockSteps(Hosts):
    @unittest.skipUnless(faketime_library(), "faketime is not installed")
    def test_case_55_steps_of_a_wall_clock_change_nothing(self):
        with fleet(LONG.format(long=6)) as f:
            clock = SteppedClock(f.t.dir)
            begin(f, b1={"env": clock.env})
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            for offset in ("+3600", "-3600", "+0"):
                clock.step(offset)
                time.sleep(1.5)
            clock.step("+3600")  # to the end
            records, attempts = f.finish(run)
            self.none_was_lost(attempts)
            mine = [row for row in records if row["node"] == "b1"]
            self.assertEqual(len(mine), 8)
            for row in mine:
                self.assertTrue(row["started_at"].endswith("Z"), row)
            for attempt in attempts:
                self.assertTrue(0 < attempt["seconds"] < 60, attempt)
            # The steps were seen by the agent: some of its cells began an hour from now.
            started = [a["started_at"] / 1000 for a in attempts if a["node"] == "b1"]
            self.assertTrue(any(t > time.time() + 1800 for t in started), started)
            f.stop()


class DiskFull(Hosts):
    def test_of_an_agent_refuses_cells_and_loses_no_report(self):
        with fleet(LONG.format(long=3)) as f:
            begin(f, b1={"disk": "96m"})
            run = f.submit(MATRIX)
            self.await_long_cell(f)
            big = netns.disk_of(f.children["b1"].pid, f.t.dir / "state-b1") / "big"
            fill(big)
            # The report of the cell under way cannot be spooled; it is kept in memory and sent.
            wait_for(lambda: not f.running("b1"), 30, "the long cell ends")
            wait_for(lambda: "disk_full" in (f.t.state / "b1.log").read_text(), 20, "the refusal is told")
            self.assertFalse(f.running("b1"))
            big.unlink()
            _, attempts = f.finish(run)
            self.none_was_lost(attempts)
            f.stop()


def fill(path):
    with open(path, "wb") as file:
        try:
            while True:
                os.write(file.fileno(), b"\0" * 65536)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


if __name__ == "__main__":
    main()
