#!/usr/bin/env python3
"""What an operator does with a fleet: drain, undrain, the list of agents.

usage: fleet_test.py BIN_DIR [unittest arguments]
"""
import json
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, SMALL, hold_port, local, main, wait_for  # noqa: E402

# Four cells of some seconds each.
SLOW = SMALL.replace("min_seconds: 0.05, max_seconds: 0.2", "min_seconds: 2, max_seconds: 3")


def agent(t):
    return json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"][0]


class Cards(unittest.TestCase):
    def test_cases_5_and_39_one_card_of_two_sizes_and_a_node_with_a_sick_driver(self):
        """Two drivers leave different memory of one card: it stays one card. A third node's driver has
        failed: it says so, and the others go on."""
        nodes = {"big": "rtx3090.json", "small": "rtx3090_24265.json", "sick": "driver_mismatch.json"}
        with local() as t:
            port, held = hold_port()
            address = f"127.0.0.1:{port}"
            t.env["ASSAY_COORDINATOR"] = address
            commands = [["assay-coordinator", "--listen", address]]
            for name, fixture in nodes.items():
                text = (FIXTURES / "nvml" / fixture).read_text().replace('"GPU-', f'"GPU-{name}')
                (t.dir / f"{name}.json").write_text(text)
                commands.append(["assay-agent", "--state", t.dir / name, "--node", name, "--devices",
                                 t.dir / f"{name}.json"])
            for number, words in enumerate(commands):
                with open(t.state_log(f"p{number}"), "ab") as log:
                    subprocess.Popen([str(t.bin / words[0]), *map(str, words[1:])], stdout=log,
                                     stderr=log, stdin=subprocess.DEVNULL, env=t.env, cwd=t.dir)

            def listed():
                found = t.assay("agents", "--format", "json")
                agents = json.loads(found.stdout)["agents"] if found.returncode == 0 else []
                return {a["node"]: a for a in agents} if len(agents) == len(nodes) else None
            agents = wait_for(listed, 40, "three agents")
            t.assay("run", t.matrix(SMALL), check=0)
            rows = t.results()
            self.assertEqual({r["card"] for r in rows}, {"RTX 3090"})
            self.assertEqual({r["node"] for r in rows}, {"big", "small"})
            self.assertEqual([r["outcome"] for r in rows], ["ok"] * 4)
            memory = {agents[n]["devices"][0]["memory_total_bytes"] for n in ("big", "small")}
            self.assertEqual(memory, {24265 << 20, 24576 << 20})
            self.assertEqual(agents["sick"]["state"], "up")
            self.assertFalse([d for d in agents["sick"]["devices"] if d["usable"]])
            self.assertIn("sick: ", said := t.assay("agents").stderr)
            self.assertRegex(said, r"(?i)driver.*mismatch|mismatch.*driver")
            held.close()


    def test_an_agent_holds_no_cuda_context(self):
        """One of its own would take hundreds of MiB of a card from what is measured, so agents never
        load what could make it. On a node with GPUs this looks at the real driver."""
        with local(devices=None) as t:
            node = agent(t)["node"]
            self.assertTrue(node)
            pid = t.processes("assay-agent")[0][0]
            maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
            self.assertIn("libc.so", maps)
            for library in ("libcuda.so", "libcudart", "libcublas", "libnccl", "libtorch", "libc10"):
                self.assertNotIn(library, maps)
            files = set()
            for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                try:
                    files.add(str(link.readlink()))
                except FileNotFoundError:
                    pass  # closed meanwhile
            self.assertNotIn("/dev/nvidia-uvm", files)


class Drain(unittest.TestCase):
    def test_a_drain_lets_the_cell_end_and_outlasts_coordinator_and_agent(self):
        with local("default:slow=2") as t:
            node = agent(t)["node"]
            # Long enough that three commands end before it on a busy machine, under a sanitizer.
            long = SLOW.replace("min_seconds: 2, max_seconds: 3", "min_seconds: 20, max_seconds: 21")
            run = t.assay("run", t.matrix(long), "--detach", check=0).stdout.split()[1]
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
            time.sleep(2.5)  # two looks of the watcher
            t.assay("cancel", "last", check=0)
            wait_for(lambda: not agent(t)["held"], 20, "nothing runs")
            time.sleep(2.5)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
            self.assertEqual((child.returncode, err), (0, ""))
            lines = [line.split(" ", 1)[1] for line in out.splitlines()]
            self.assertRegex(lines[0], rf"^{node} up: 1 x RTX 3090 .*, stacks ")
            self.assertTrue(any("; runs run " in line for line in lines), out)
            self.assertNotIn("; runs run ", lines[-1])


MATRIX = """
name: slices
axes:
  model: [resnet50]
  precision: [amp-fp16, fp32]
  batch: [32, 64, 128]
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""


class Slices(unittest.TestCase):
    def test_slices_without_a_network_merge_into_the_run_of_the_whole_matrix(self):
        with local() as one, local() as two, local() as whole, local() as joined:
            files = []
            for number, t in enumerate((one, two), 1):
                t.env["SLURM_ARRAY_JOB_ID"] = "4711"
                t.assay("run", t.matrix(MATRIX), "--slice", f"{number}/2", check=0)
                t.assay("export", "last", "-o", "f.assay", check=0)
                files.append(t.dir / "f.assay")
            first = joined.assay("merge", files[1], check=0).stdout
            self.assertRegex(first, r"\nrun \w{26} has slices 2 of 2; merge the others")
            second = joined.assay("merge", *files, check=0).stdout
            self.assertRegex(second, r"\nrun \w{26} has all of its slices: 1, 2 of 2\n")
            runs = json.loads(joined.assay("ls", "--format", "json", check=0).stdout)["runs"]
            self.assertEqual([(r["cells"], r["ok"], r["slices"]) for r in runs],
                             [(12, 12, {"of": 2, "here": [1, 2]})])
            whole.assay("run", whole.matrix(MATRIX), check=0)
            cell = lambda row: (row["key"], row["index"], row["repeat"], row["card"], row["outcome"])
            self.assertEqual(sorted(map(cell, joined.results())), sorted(map(cell, whole.results())))
            attempts = [row["attempt"] for row in joined.results()]
            self.assertEqual(sorted(attempts),
                             sorted(row["attempt"] for t in (one, two) for row in t.results()))
            # The table groups the repeats of the whole run.
            self.assertIn("12 cells: 12 ok", joined.assay("results", "last", check=0).stdout)

    def test_what_failed_in_a_slice_is_run_again_where_it_was_merged(self):
        with local("batch=64:crash") as one, local() as joined:
            # Both specs of this slice have that batch: no cell is ok.
            one.assay("run", one.matrix(MATRIX), "--slice", "2/3", check=3)
            one.assay("export", "last", "-o", "f.assay", check=0)
            joined.assay("merge", one.dir / "f.assay", check=0)
            self.assertEqual({r["outcome"] for r in joined.results()}, {"fail"})
            joined.assay("rerun", "last", "--failed", check=0)
            self.assertEqual([r["outcome"] for r in joined.results()], ["ok"] * 4)

    def test_a_slice_that_cannot_be_told_apart_is_refused(self):
        with local() as t:
            matrix = t.matrix(MATRIX)
            t.assay("run", matrix, "--slice", "1/2", check=0)
            for words in (("--slice", "1/2"), ("--slice", "2/2"), ("--slice", "7/7"),
                          ("--slice", "3/2"), ("--slice", "0/2"), ("--slice-id", "x")):
                done = t.assay("run", matrix, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), (words, done.stderr))
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            t.assay("run", matrix, "--slice", "1/2", "--slice-id", "again", check=0)
            self.assertEqual(len(json.loads(t.assay("ls", "--format", "json").stdout)["runs"]), 2)


class Resume(unittest.TestCase):
    def test_resume_opens_what_failed_and_repeats_nothing(self):
        with local() as t:
            rules = t.dir / "rules"
            rules.write_text("batch=64:crash")
            t.env["ASSAY_SIMULATE_FILE"] = str(rules)
            matrix = t.matrix(SMALL)
            none = t.assay("run", matrix, "--resume")
            self.assertEqual((none.returncode, none.stdout), (2, ""))
            self.assertIn("`assay run` without --resume starts one", none.stderr)
            t.assay("run", matrix, check=1)
            ok = {r["attempt"] for r in t.results() if r["outcome"] == "ok"}
            rules.write_text("")
            done = t.assay("run", matrix, "--resume", check=0)
            self.assertIn("the run goes on; what is done is not measured again", done.stderr)
            self.assertEqual([r["outcome"] for r in t.results()], ["ok"] * 4)
            self.assertLessEqual(ok, {r["attempt"] for r in t.results()})
            self.assertEqual(len(json.loads(t.assay("ls", "--format", "json").stdout)["runs"]), 1)
            again = t.assay("run", matrix, "--resume")
            self.assertEqual((again.returncode, again.stdout), (2, ""))

    def test_resume_goes_on_with_an_unfinished_and_with_a_cancelled_run(self):
        with local("default:slow=2") as t:
            matrix = t.matrix(SLOW)
            run = t.assay("run", matrix, "--detach", check=0).stdout
            wait_for(t.runners, 20, "a runner")
            self.assertEqual(t.assay("run", matrix, "--resume", "--detach", check=0).stdout, run)
            t.assay("cancel", "last", check=0)
            self.assertEqual(t.assay("run", matrix, "--resume", check=0).stdout.splitlines()[0],
                             run.strip())
            self.assertEqual([r["outcome"] for r in t.results()], ["ok"] * 4)

    def test_resume_takes_the_newest_that_has_something_left(self):
        with local() as t:
            rules = t.dir / "rules"
            t.env["ASSAY_SIMULATE_FILE"] = str(rules)
            matrix = t.matrix(SMALL)
            runs = []
            for rule in ("batch=32:crash", "batch=64:crash", ""):
                rules.write_text(rule)
                runs.append(t.assay("run", matrix, "--new").stdout.split()[1])
            done = t.assay("run", matrix, "--resume", check=0)
            self.assertEqual(done.stdout.split()[1], runs[1])


if __name__ == "__main__":
    main()
