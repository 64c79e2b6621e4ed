#!/usr/bin/env python3
"""What an operator does with a fleet: drain, undrain, the list of agents.

usage: fleet_test.py BIN_DIR [unittest arguments]
"""
import json
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import SMALL, local, main, wait_for  # noqa: E402

# Four cells of some seconds each.
SLOW = SMALL.replace("min_seconds: 0.05, max_seconds: 0.2", "min_seconds: 2, max_seconds: 3")


def agent(t):
    return json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"][0]


class Drain(unittest.TestCase):
    def test_a_drain_lets_the_cell_end_and_outlasts_coordinator_and_agent(self):
        with local("default:slow=2") as t:
            node = agent(t)["node"]
            run = t.assay("run", t.matrix(SLOW), "--detach", check=0).stdout.split()[1]
            wait_for(t.runners, 20, "a runner")
            said = t.assay("drain", node, check=0).stdout
            self.assertRegex(said, rf"^{node} is draining; still there: run {run} cell \d, resnet50 ")
            self.assertEqual(agent(t)["state"], "draining")
            waited = t.assay("drain", node, "--wait", check=0)
            self.assertEqual(waited.stdout, f"{node} is drained: nothing runs there\n")
            self.assertIn("waiting for run", waited.stderr)
            self.assertEqual(agent(t)["state"], "drained")
            ended = [r["outcome"] for r in t.results()]
            self.assertEqual(sorted(ended, key=str), [None] * 3 + ["ok"], ended)
            for program in ("assay-agent", "assay-coordinator"):
                with self.subTest(program):
                    self.assertEqual(t.kill(program), 1)
                    wait_for(lambda: agent(t)["state"] == "drained", 40, "drained again")
                    self.assertTrue(agent(t)["draining"])
                    self.assertEqual(t.runners(), [])
            self.assertEqual(t.assay("undrain", node, check=0).stdout, f"{node} takes cells again\n")
            t.assay("watch", "last", check=0)
            self.assertEqual([r["outcome"] for r in t.results()], ["ok"] * 4)
            self.assertEqual(agent(t)["state"], "up")
            log = (t.state / "coordinator.log").read_text()
            self.assertRegex(log, rf"action=drain node={node} user=local role=admin \S+ result=ok")
            self.assertIn(f"action=undrain node={node} ", log)

    def test_an_unknown_node_is_one_sentence_with_the_nearest_name(self):
        with local() as t:
            node = agent(t)["node"]
            done = t.assay("drain", node + "x")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"assay: there is no node {node}x (did you mean '{node}'?); "
                                          "`assay agents` lists them\n")

    def test_the_first_command_of_a_state_directory_may_be_a_drain(self):
        with local(ASSAY_NODE="node7") as t:
            t.assay("drain", "node7", check=0)
            self.assertEqual(agent(t)["state"], "drained")


class Watch(unittest.TestCase):
    def test_watch_tells_what_runs_and_ends_with_ctrl_c(self):
        with local("default:slow=2") as t:
            node = agent(t)["node"]
            child = t.start("agents", "--watch")
            t.assay("run", t.matrix(SLOW), "--detach", check=0)
            wait_for(t.runners, 20, "a runner")
            t.assay("cancel", "last", check=0)
            wait_for(lambda: not agent(t)["held"], 20, "nothing runs")
            time.sleep(2.5)  # two looks of the watcher
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
            self.assertEqual((child.returncode, err), (0, ""))
            lines = [line.split(" ", 1)[1] for line in out.splitlines()]
            self.assertRegex(lines[0], rf"^{node} up: 1 x RTX 3090 .*, stacks ")
            self.assertTrue(any("; runs run " in line for line in lines), out)
            self.assertNotIn("; runs run ", lines[-1])


if __name__ == "__main__":
    main()
