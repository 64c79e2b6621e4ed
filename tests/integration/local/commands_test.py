#!/usr/bin/env python3
"""The commands around a run, driven as users and scripts drive them: rerun, show, agents, watch,
formats, full disks, closed pipes, large matrices, and two commands at the same time. Case 47.

usage: commands_test.py BIN_DIR [unittest arguments]
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import SMALL, local, main, wait_for  # noqa: E402


LONG = SMALL.replace("min_seconds: 0.05, max_seconds: 0.2", "min_seconds: 20, max_seconds: 30")


class Commands(unittest.TestCase):
    def test_rerun_failed_measures_what_failed_once_the_cause_is_gone(self):
        with local() as t:
            rules = t.dir / "rules"
            rules.write_text("batch=64:crash")
            t.env["ASSAY_SIMULATE_FILE"] = str(rules)
            t.assay("run", t.matrix(SMALL), check=1)
            rules.write_text("")
            done = t.assay("rerun", "last", "--failed", check=0)
            self.assertRegex(done.stdout.splitlines()[0], r"^run [0-9A-HJKMNP-TV-Z]{26}$")
            rows = t.results()
            self.assertEqual([r["outcome"] for r in rows], ["ok"] * 4)
            self.assertEqual(len(json.loads(t.assay("ls", "--format", "json", check=0).stdout)
                                 ["runs"]), 1)
            # A figure that is not believed is no result either.
            rules.write_text("batch=64,repeat=1:wrong_device_steps")
            t.assay("run", t.matrix(SMALL), check=1)
            self.assertEqual([r["verdict"] for r in t.results()].count("invalid"), 1)
            before = {r["cell"]: r["attempt"] for r in t.results() if r["verdict"] == "valid"}
            rules.write_text("")
            t.assay("rerun", "last", "--failed", check=0)
            rows = t.results()
            self.assertEqual({r["verdict"] for r in rows}, {"valid"})
            self.assertEqual({r["cell"]: r["attempt"] for r in rows if r["cell"] in before}, before)
            # Nothing is left that failed.
            again = t.assay("rerun", "last", "--failed", check=2)
            self.assertIn("has no failed or invalid cell to run again", again.stderr)
            self.assertEqual([r["attempt"] for r in t.results()], [r["attempt"] for r in rows])

    def test_labels_are_stored_with_the_run_and_travel_with_its_file(self):
        with local() as t, local() as other:
            t.assay("run", t.matrix(SMALL), "--label", "team=cnn", "--label", "why=new driver",
                    check=0)
            t.kill("assay-coordinator")
            labels = {"team": "cnn", "why": "new driver"}
            runs = json.loads(t.assay("ls", "--format", "json", check=0).stdout)["runs"]
            self.assertEqual([run["labels"] for run in runs], [labels])
            self.assertIn("team=cnn", t.assay("ls", check=0).stdout)
            t.assay("export", "last", "-o", "f.assay", check=0)
            other.assay("merge", t.dir / "f.assay", check=0)
            runs = json.loads(other.assay("ls", "--label", "why=new driver", "--format", "json",
                                          check=0).stdout)["runs"]
            self.assertEqual([run["labels"] for run in runs], [labels])
            for bad in ("A=1", "a", "a=", "a=\x1b[2J"):
                done = t.assay("run", t.matrix(SMALL), "--label", bad)
                self.assertEqual((done.returncode, done.stdout), (2, ""), bad)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_show_of_a_run_and_of_a_cell(self):
        with local("batch=64:crash") as t:
            t.assay("run", t.matrix(SMALL), check=1)
            run = t.assay("show", "last", check=0).stdout
            self.assertIn("4 of 4 cells done: 2 ok, 2 fail", run)
            self.assertEqual(run.count("SIGSEGV"), 2, run)
            bad = next(r for r in t.results() if r["outcome"] == "fail")
            cell = t.assay("show", "last", bad["cell"], check=0).stdout
            for part in ("fail, crash", "SIGSEGV", "attempt 1 on", "GPU-30900000"):
                self.assertIn(part, cell)
            for words in (("show", "last", "99"), ("show", "last", "0"), ("show", "last", "x")):
                done = t.assay(*words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_agents_as_table_and_json(self):
        with local() as t:
            self.assertIn("RTX 3090", t.assay("agents", check=0).stdout)
            agents = json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"]
            self.assertEqual([a["state"] for a in agents], ["up"])
            self.assertEqual([d["card"] for d in agents[0]["devices"]], ["RTX 3090"])
            self.assertTrue(all(d["simulated"] for d in agents[0]["devices"]))

    def test_watch_of_an_ended_run_prints_it_at_once_with_its_exit_code(self):
        with local("batch=64:crash") as t:
            first = t.assay("run", t.matrix(SMALL), check=1)
            began = time.monotonic()
            again = t.assay("watch", "last", check=1)
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(again.stdout.splitlines(), first.stdout.splitlines()[1:])

    def test_documents_on_standard_output_are_documents(self):
        for form, read in (("json", json.loads), ("csv", lambda text: text.splitlines())):
            with self.subTest(form), local() as t:
                done = t.assay("run", t.matrix(SMALL), "--format", form, check=0)
                self.assertGreaterEqual(len(read(done.stdout)), 4)
                self.assertEqual(done.stdout, t.assay("results", "last", "--format", form).stdout)
                self.assertRegex(done.stderr, r"(?m)^run [0-9A-HJKMNP-TV-Z]{26}$")

    def test_full_disk_is_told_and_is_no_success(self):
        with local() as t:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            for words in (("results", "last"), ("results", "last", "--format", "json"), ("ls",),
                          ("show", "last"), ("plan", "m.yaml"), ("version",)):
                with self.subTest(words), open("/dev/full", "w") as full:
                    done = t.assay(*words, stdout=full)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("No space left", done.stderr)
                    self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_head_ends_the_reading_without_a_word(self):
        with local() as t:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            for words in ("results last --format json", "show last 1", "plan m.yaml"):
                done = subprocess.run(
                    ["bash", "-c", f"set -o pipefail; '{t.bin}/assay' {words} | head -n 1"],
                    capture_output=True, text=True, cwd=t.dir, env=t.env, timeout=30)
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
                self.assertEqual(len(done.stdout.splitlines()), 1)


class Signals(unittest.TestCase):
    def test_second_ctrl_c_leaves_at_once_and_the_run_is_cancelled_all_the_same(self):
        # A runner that ignores SIGTERM keeps the first one waiting for the kill grace.
        with local("default:hang_ignore_term") as t:
            child = t.start("run", t.matrix(LONG))
            wait_for(t.runners, 20, "a runner")
            time.sleep(0.3)  # its handlers are in place
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
            self.assertIsNone(child.poll())
            began = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=10)
            self.assertLess(time.monotonic() - began, 1)
            self.assertEqual(child.returncode, 130, err)
            self.assertIn("assay watch", err)
            self.assertEqual(t.assay("watch", "last").returncode, 130)
            self.assertEqual({r["outcome"] for r in t.results()}, {"cancelled"})
            self.assertEqual(t.processes("assay-simulate"), [])

    def test_ctrl_c_of_a_run_that_waits_for_a_card(self):
        with local() as t:
            matrix = t.matrix(SMALL + "select: {cards: [RTX 4090], wait: 600s}\n")
            child = t.start("run", matrix)
            wait_for(lambda: json.loads(t.assay("ls", "--format", "json").stdout)["runs"], 20, "run")
            time.sleep(0.5)
            self.assertIsNone(child.poll())
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
            self.assertEqual(child.returncode, 130, (out, err))

    def test_coordinator_killed_while_run_follows(self):
        with local("default:slow=0.3") as t:
            child = t.start("run", t.matrix(SMALL.replace("repeat: 2", "repeat: 8")))
            # Not by a look at the processes: each lives for a moment only.
            wait_for(lambda: any(run["ok"] for run in json.loads(
                t.assay("ls", "--format", "json").stdout)["runs"]), 30, "a cell is ok")
            self.assertIsNone(child.poll(), t.logs())
            time.sleep(1)
            self.assertEqual(t.kill("assay-coordinator"), 1)
            out, err = child.communicate(timeout=120)
            self.assertEqual(child.returncode, 0, (out, err, t.logs()))
            self.assertIn("connecting again", err)
            self.assertEqual([r["outcome"] for r in t.results()], ["ok"] * 16)
            self.assertEqual(len(t.processes("assay-coordinator")), 1)

    def test_two_commands_start_the_coordinator_at_the_same_time(self):
        for _ in range(5):
            with local() as t:
                children = [t.start("agents", "--format", "json") for _ in range(4)]
                for child in children:
                    out, err = child.communicate(timeout=60)
                    self.assertEqual((child.returncode, err), (0, ""), t.logs())
                    self.assertEqual(len(json.loads(out)["agents"]), 1)
                self.assertEqual(len(t.processes("assay-coordinator")), 1)
                self.assertEqual(len(t.processes("assay-agent")), 1)


class Large(unittest.TestCase):
    MATRIX = """
name: large
axes:
  model: [resnet50]
  precision: [amp-fp16]
  batch: {from: 1, to: 4000, step: 1}
repeat: 5
stop: {confidence: 0.05, min_seconds: 0.01, max_seconds: 0.1}
"""

    def test_20_000_cells_need_a_yes_and_are_cancelled_in_seconds(self):
        # Case 47: everything about them goes through gRPC in several messages.
        with local() as t:
            matrix = t.matrix(self.MATRIX)
            done = t.assay("run", matrix)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("--yes", done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            began = time.monotonic()
            run = t.assay("run", matrix, "--yes", "--detach", check=0).stdout.split()[1]
            submitted = time.monotonic()
            self.assertLess(submitted - began, 30)
            wait_for(lambda: json.loads(t.assay("ls", "--format", "json").stdout)["runs"][0]["ok"],
                     30, "a cell is ok")
            cancelling = time.monotonic()
            t.assay("cancel", run, check=0)
            cancelled = time.monotonic()
            self.assertLess(cancelled - cancelling, 30)
            rows = t.results(run)
            self.assertEqual(len(rows), 20000)
            # The largest batches do not fit, and may have had their turn.
            self.assertEqual({r["outcome"] for r in rows} - {"mem_limit"}, {"ok", "cancelled"})
            print(f"submit {submitted - began:.1f} s, cancel {cancelled - cancelling:.1f} s, results "
                  f"{time.monotonic() - cancelled:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
