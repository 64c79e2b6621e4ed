#!/usr/bin/env python3
"""The whole path with real programs and simulated cards: outcomes, exit codes, cancel, rerun, export
and merge, reproduce. Cases 2, 22, 45 and 46 of what goes wrong for real users.

usage: simulated_test.py BIN_DIR [unittest arguments]
"""
import csv
import io
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, SMALL, local, main, wait_for  # noqa: E402


class MainPath(unittest.TestCase):
    def test_run_prints_id_first_then_a_table_and_leaves_nothing_running(self):
        with local() as t:
            done = t.assay("run", t.matrix(SMALL), check=0)
            self.assertRegex(done.stdout.splitlines()[0], r"^run [0-9A-HJKMNP-TV-Z]{26}")
            self.assertIn("img/s", done.stdout)
            rows = t.results()
            self.assertEqual(len(rows), 4)
            self.assertTrue(all(r["outcome"] == "ok" and r["simulated"] is True for r in rows))
            self.assertTrue(all("simulated" in r["marks"] for r in rows))
            self.assertEqual(t.processes("assay-simulate"), [])

    def test_ratios_are_to_the_baseline_of_the_matrix(self):
        # The first row is the 3090's; each card is set against the 1080 Ti at its own batch.
        with local(devices=FIXTURES / "nvml" / "rtx3090_gtx1080ti.json") as t:
            text = t.assay("run", t.matrix(SMALL + "baseline: GTX 1080 Ti\n"), check=0).stdout
            self.assertIn("\nratios to GTX 1080 Ti, same axes and stack\n", text)
            of = {}
            for row in t.results():
                of.setdefault((row["card"], row["batch"]), []).append(row["throughput"])
            mean = {key: statistics.geometric_mean(rates) for key, rates in of.items()}
            for batch in (32, 64):
                ratio = mean[("RTX 3090", batch)] / mean[("GTX 1080 Ti", batch)]
                self.assertGreater(ratio, 1.1)
                self.assertRegex(text, rf"(?m)^ *{batch} +RTX 3090 .* {ratio:.2f} ")
                self.assertRegex(text, rf"(?m)^ *{batch} +GTX 1080 Ti .* 1\.00 ")
            self.assertIn("no ratios: baseline V100 has no valid row",
                          t.assay("run", t.matrix(SMALL + "baseline: V100\n"), check=0).stdout)

    def test_csv_and_json_say_the_same(self):
        with local() as t:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            rows = t.results()
            table = list(csv.DictReader(io.StringIO(
                t.assay("results", "last", "--format", "csv", check=0).stdout)))
            self.assertEqual(list(table[0]), list(rows[0]))
            for left, right in zip(rows, table):
                for name, value in left.items():
                    if value is None:
                        self.assertEqual(right[name], "", name)
                    elif isinstance(value, float):
                        self.assertEqual(float(right[name]), value, name)

    def test_detach_then_watch_ends_with_the_run(self):
        with local("default:realtime=1") as t:
            done = t.assay("run", t.matrix(SMALL), "--detach", check=0)
            run = done.stdout.split()[1]
            t.assay("watch", run, check=0)
            self.assertEqual({r["outcome"] for r in t.results(run)}, {"ok"})

    def test_plan_needs_no_server(self):
        with local() as t:
            rows = json.loads(t.assay("plan", t.matrix(SMALL), "--format", "json", check=0).stdout)
            self.assertEqual([r["batch"] for r in rows], [32, 64])
            self.assertIsNone(rows[0]["card"])
            self.assertFalse(t.state.exists())


class Outcomes(unittest.TestCase):
    def outcome(self, behaviour, matrix=SMALL, code=1, **options):
        with local(f"batch=64:{behaviour}", **options) as t:
            done = t.assay("run", t.matrix(matrix), timeout=180)
            rows = {(r["batch"], r["repeat"]): r for r in t.results()}
            self.assertEqual(rows[(32, 1)]["outcome"], "ok", (done.stdout, done.stderr, t.logs()))
            self.assertEqual(done.returncode, code, (done.stdout, done.stderr, t.logs()))
            wait_for(lambda: not t.processes("assay-simulate"), 15, "no runner alive")
            return rows[(64, 1)], done

    def test_crash_is_fail_with_the_signal_named(self):
        row, done = self.outcome("crash")
        self.assertEqual((row["outcome"], row["reason"]), ("fail", "crash"))
        self.assertIsNone(row["throughput"])
        self.assertIn("SIG", row["message"])

    def test_exit_zero_without_a_result_is_bad_output(self):
        row, _ = self.outcome("no_result")
        self.assertEqual((row["outcome"], row["reason"]), ("fail", "bad_output"))

    def test_garbage_is_bad_output(self):
        row, _ = self.outcome("garbage")
        self.assertEqual((row["outcome"], row["reason"]), ("fail", "bad_output"))

    def test_out_of_memory_is_mem_limit_and_no_failure(self):
        row, done = self.outcome("oom", code=0)
        self.assertEqual(row["outcome"], "mem_limit")
        self.assertIn("mem_limit", done.stdout)

    def test_hang_that_ignores_term_is_hung_and_killed(self):
        matrix = SMALL + "limits: {cell_seconds: 60, no_step_seconds: 2}\n"
        row, _ = self.outcome("hang_ignore_term", matrix=matrix)
        self.assertEqual((row["outcome"], row["reason"]), ("hung", "no_progress"))

    def test_cell_limit_is_timeout_though_steps_go_on(self):
        # Case 46: it makes progress, so that only the cell's own limit ends it.
        began = time.monotonic()
        row, _ = self.outcome("slow=60", matrix=SMALL + "limits: {cell_seconds: 3}\n")
        # Two cells with two attempts each, ended by the agent: the coordinator alone adds 5 s to each.
        self.assertLess(time.monotonic() - began, 4 * (3 + 5))
        self.assertEqual((row["outcome"], row["reason"]), ("timeout", "cell_limit"))

    def test_run_limit_ends_the_run_its_processes_and_what_waits(self):
        # Case 46, for the whole run: the first cell is measured, the second would take for ever.
        rules = "batch=32,repeat=1:slow=0.1;default:slow=120"
        with local(rules) as t:
            began = time.monotonic()
            done = t.assay("run", t.matrix(SMALL + "run_limit: 6s\nseed: 1\n"))
            self.assertLess(time.monotonic() - began, 40)
            self.assertIn(done.returncode, (1, 3), (done.stdout, done.stderr))
            self.assertIn("run_limit", done.stdout + done.stderr)
            self.assertEqual(t.runners(), [])
            ended = {(r["outcome"], r["reason"]) for r in t.results() if r["outcome"] != "ok"}
            self.assertEqual(ended, {("timeout", "run_limit")})

    def test_every_cell_failed_is_exit_3(self):
        with local("default:crash") as t:
            done = t.assay("run", t.matrix(SMALL))
            self.assertEqual(done.returncode, 3, (done.stdout, done.stderr))


class Users(unittest.TestCase):
    def test_ctrl_c_cancels_waits_for_the_process_trees_and_prints_what_was_measured(self):
        with local("default:realtime=1") as t:
            matrix = t.matrix(SMALL.replace("max_seconds: 0.2", "max_seconds: 20").replace(
                "min_seconds: 0.05", "min_seconds: 20"))
            child = t.start("run", matrix)
            wait_for(t.runners, 20, "a runner")
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 130, (out, err))
            self.assertEqual(t.processes("assay-simulate"), [])
            self.assertEqual({r["outcome"] for r in t.results()}, {"cancelled"})

    def test_cancel_from_another_terminal(self):
        with local("default:realtime=1") as t:
            matrix = t.matrix(SMALL.replace("max_seconds: 0.2", "max_seconds: 20").replace(
                "min_seconds: 0.05", "min_seconds: 20"))
            run = t.assay("run", matrix, "--detach", check=0).stdout.split()[1]
            wait_for(t.runners, 20, "a runner")
            t.assay("cancel", run, check=0)
            self.assertEqual(t.assay("watch", run).returncode, 130)
            wait_for(lambda: not t.processes("assay-simulate"), 20, "no runner alive")

    def test_rerun_failed_tries_only_the_failed_cells_again(self):
        with local("batch=64:crash") as t:
            t.assay("run", t.matrix(SMALL), check=1)
            before = {r["cell"]: r["attempt"] for r in t.results() if r["outcome"] == "ok"}
            again = t.assay("rerun", "last", "--failed")
            self.assertEqual(again.returncode, 1, (again.stdout, again.stderr))
            after = {r["cell"]: r["attempt"] for r in t.results() if r["outcome"] == "ok"}
            self.assertEqual(before, after)

    def test_export_and_merge_into_another_state_is_idempotent(self):
        with local() as t, local() as u:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            file = t.dir / "f.assay"
            t.assay("export", "last", "-o", file, check=0)
            u.assay("merge", file, check=0)
            first = u.results()
            u.assay("merge", file, check=0)
            self.assertEqual(first, u.results())
            self.assertEqual(first, t.results())
            cut = u.dir / "cut.assay"
            cut.write_bytes(file.read_bytes()[:-200])
            refused = u.assay("merge", cut)
            self.assertEqual(refused.returncode, 2, (refused.stdout, refused.stderr))
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1)

    def test_show_and_reproduce_give_the_command_by_hand(self):
        with local("batch=64:crash") as t:
            t.assay("run", t.matrix(SMALL))
            bad = next(r for r in t.results() if r["outcome"] == "fail")
            good = next(r for r in t.results() if r["outcome"] == "ok")
            shown = t.assay("show", "last", bad["cell"], check=0).stdout
            self.assertIn("crash", shown)
            said = t.assay("reproduce", "last", good["cell"], check=0).stdout
            done = subprocess.run(["bash", "-c", said], capture_output=True, text=True, cwd=t.dir,
                                  timeout=60)
            self.assertIn('"record":"result"', done.stdout.replace(" ", ""), (said, done))

    def test_unknown_run_and_bad_matrix_are_exit_2(self):
        with local() as t:
            self.assertEqual(t.assay("show", "nothing").returncode, 2)
            bad = t.assay("run", t.matrix("axes:\n  model: [resnet51]\n"))
            self.assertEqual(bad.returncode, 2)
            self.assertIn("resnet50", bad.stderr)
            self.assertEqual(t.assay("run", "no-such-file.yaml").returncode, 2)

    def test_two_users_never_meet(self):
        with local() as t, local() as u:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            self.assertEqual(json.loads(u.assay("ls", "--format", "json", check=0).stdout)["runs"], [])

    def test_local_coordinator_leaves_when_idle(self):
        with local(ASSAY_IDLE_EXIT="1") as t:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0)
            wait_for(lambda: not t.processes(), 30, f"coordinator and agent left: {t.processes()}")


class Rows(unittest.TestCase):
    def test_one_valid_process_of_a_row_is_indicative_in_table_json_and_csv(self):
        # Of batch 64 one of two processes is invalid: the run is not all well, and says which.
        with local("batch=64,repeat=1:wrong_device_steps") as t:
            done = t.assay("run", t.matrix(SMALL), check=1)
            self.assertRegex(done.stderr.splitlines()[-1], r"cell \d+ \(.* b64 .*\): invalid: ")
            marks = {(r["batch"], r["repeat"]): r["marks"] for r in t.results()}
            self.assertEqual([key for key, all in marks.items() if "indicative" in all], [(64, 2)])
            rows = {line.split()[0]: line for line in done.stdout.splitlines() if "ok" in line}
            self.assertNotIn("indicative", rows["32"])
            self.assertIn("indicative", rows["64"])
            table = t.assay("results", "last", "--format", "csv", check=0).stdout
            self.assertEqual([(r["batch"], r["repeat"]) for r in csv.DictReader(io.StringIO(table))
                              if "indicative" in r["marks"].split(";")], [("64", "2")])
            cell = next(r["cell"] for r in t.results() if (r["batch"], r["repeat"]) == (64, 2))
            self.assertRegex(t.assay("show", "last", cell, check=0).stdout, "marks +indicative")

    def test_run_of_which_every_figure_is_invalid_measured_nothing(self):
        with local("default:wrong_device_steps") as t:
            done = t.assay("run", t.matrix(SMALL), check=3)
            self.assertIn("nothing was measured: no figure is valid", done.stderr.splitlines()[-1])


class LongCells(unittest.TestCase):
    def test_cell_of_200_000_steps_is_a_result_like_any_other(self):
        # Case 47. In the simulator's own time, which passes at once.
        matrix = """
name: long
axes: {model: [resnet50], precision: [amp-fp16], batch: [1]}
repeat: 1
stop: {confidence: 0.000001, min_seconds: 3000, max_seconds: 3000}
limits: {cell_seconds: 3600}
"""
        with local() as t:
            t.assay("run", t.matrix(matrix), check=0)
            row = t.results()[0]
            self.assertGreater(row["samples"], 200_000, row)
            self.assertLess(row["step_p50_ms"], row["step_p99_ms"])


class Gangs(unittest.TestCase):
    def test_two_ranks_on_one_node_run_as_one_gang(self):
        with local(devices=FIXTURES / "nvml" / "rtx3090_x2.json") as t:
            t.assay("run", t.matrix(SMALL.replace("batch: [32, 64]", "batch: [32]\n  gpus: [2]")),
                    check=0)
            rows = t.results()
            self.assertEqual({len(r["gpu_uuids"]) for r in rows}, {2})
            self.assertEqual({r["world_size"] for r in rows}, {2})

    def test_colocate_all_is_the_same_cell_on_every_gpu_and_their_sum(self):
        with local(devices=FIXTURES / "nvml" / "rtx3090_x2.json") as t:
            one = SMALL.replace("batch: [32, 64]", "batch: [32]").replace("repeat: 2", "repeat: 1")
            t.assay("run", t.matrix(one), check=0)
            alone, = t.results()
            t.assay("run", t.matrix(one + "colocate: all\n"), check=0)
            both, = t.results()
            self.assertEqual((both["outcome"], both["verdict"]), ("ok", "valid"), both)
            self.assertEqual((len(both["gpu_uuids"]), both["gpus"], both["world_size"]), (2, 1, 1))
            self.assertAlmostEqual(both["throughput"] / alone["throughput"], 2, delta=0.1)
            self.assertEqual(both["samples"], 32 * both["steps"])
            self.assertIsNotNone(both["colocate_overlap_ratio"])

    def test_stopped_rank_ends_its_attempt_and_the_cells_go_on(self):
        # Case 22: no watchdog of half an hour, and nobody is left behind stopped.
        matrix = (SMALL.replace("batch: [32, 64]", "batch: [32]\n  gpus: [2]") +
                  "limits: {cell_seconds: 60, no_step_seconds: 3}\n")
        with local("repeat=1:slow=2;default:slow=0.1",
                   devices=FIXTURES / "nvml" / "rtx3090_x2.json") as t:
            run = t.assay("run", t.matrix(matrix), "--detach", check=0).stdout.split()[1]
            wait_for(lambda: len(t.runners()) == 2, 30, "both ranks of a cell")
            began = time.monotonic()
            os.kill(t.runners()[0][0], signal.SIGSTOP)
            t.assay("watch", run, timeout=90)
            self.assertLess(time.monotonic() - began, 60)
            self.assertEqual([r["outcome"] for r in t.results(run)], ["ok", "ok"], t.logs())
            said = "".join(t.assay("show", run, str(cell), check=0).stdout for cell in (1, 2))
            self.assertRegex(said, r"attempt 1 on \S+: hung, no_progress \(not counted\)")
            self.assertIn("attempt 2 on", said)
            self.assertEqual(t.processes("assay-simulate"), [])

    def test_one_rank_out_of_memory_ends_the_gang_in_seconds(self):
        # Case 2: the other rank would wait for ever.
        with local("rank=1:oom;default:realtime=1", devices=FIXTURES / "nvml" / "rtx3090_x2.json") as t:
            began = time.monotonic()
            t.assay("run", t.matrix(SMALL.replace("batch: [32, 64]", "batch: [32]\n  gpus: [2]")
                                    .replace("repeat: 2", "repeat: 1")))
            row = t.results()[0]
            self.assertEqual(row["outcome"], "mem_limit", row)
            self.assertIn("rank 1", row["message"])
            self.assertLess(time.monotonic() - began, 30)
            self.assertEqual(t.processes("assay-simulate"), [])


if __name__ == "__main__":
    main()
