#!/usr/bin/env python3
"""The machine interface as promised: field names, formats, schemas, exit codes, where settings come
from.

usage: interface_test.py BIN_DIR [unittest arguments]
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, ONE_CARD, ROOT, TWO_CELLS, local, main, wait_for  # noqa: E402


PLAN = ("key index card stack model mode precision batch lane layout accumulate scaling image gpus "
        "nodes repeat feasible reason").split()
RESULTS = PLAN + """cell target outcome message verdict marks throughput unit ci95_ratio step_p50_ms
    step_p95_ms step_p99_ms cv_ratio samples seconds warmup_seconds stop_reason skipped_steps
    loss_first loss_last allocated_peak_bytes reserved_peak_bytes device_used_bytes
    device_total_bytes power_mean_watts energy_joules energy_per_sample_joules sm_clock_mean_hertz
    temperature_max_celsius throttle_ratio gpu_busy_ratio transport exclusive thermal colocate node
    gpu_uuids cpu_model simulated started_at attempt driver_version libtorch_version cuda_version
    cudnn_version nccl_version""".split()


class Fields(unittest.TestCase):
    def test_plan_has_exactly_its_fields_in_order(self):
        with local() as t:
            matrix = t.matrix(TWO_CELLS)
            for more in ((), ("--cards", "RTX 3090,RTX 2080 Ti")):
                rows = json.loads(
                    t.assay("plan", matrix, "--format", "json", *more, check=0).stdout)
                self.assertEqual(len(rows), 4 if more else 2)
                table = list(csv.reader(io.StringIO(
                    t.assay("plan", matrix, "--format", "csv", *more, check=0).stdout)))
                self.assertEqual(table[0], PLAN)
                for row in rows:
                    self.assertEqual(list(row), PLAN)
                    self.assertEqual(row["feasible"], True if more else None)

    def test_results_hold_every_promised_field_and_the_schema_describes_them(self):
        schema = json.loads((ROOT / "docs" / "results.schema.json").read_text())
        properties = schema["items"]["properties"]
        with local() as t:
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            rows = t.results()
            self.assertEqual(list(rows[0])[:len(PLAN)], PLAN)
            self.assertEqual([name for name in RESULTS if name not in rows[0]], [])
            self.assertEqual(list(properties), list(rows[0]))
            listed = json.loads(t.assay("ls", "--format", "json", check=0).stdout)
            self.assertEqual(list(listed), ["runs"])
            # What came later stands behind.
            self.assertEqual(list(listed["runs"][0]),
                             ["id", "name", "state", "cells", "ok", "failed", "started_at",
                              "labels", "slices"])

    def test_memory_is_three_columns(self):
        # Case 3, as far as it needs no GPU: not known is null, never a figure of another kind.
        with local() as t:
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            for row in t.results():
                self.assertLessEqual(row["allocated_peak_bytes"] or 0,
                                     row["reserved_peak_bytes"] or 1 << 62)
                self.assertIsNotNone(row["reserved_peak_bytes"])
                # Of a simulated card there is no device that anybody could look at.
                self.assertIsNone(row["device_used_bytes"])

    def test_output_is_the_same_in_any_locale_and_zone(self):
        # Case 55 and CSV.
        with local() as t:
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            for words in (("results", "last", "--format", "csv"), ("ls",), ("show", "last", "1")):
                usual = t.assay(*words, check=0).stdout
                for other in ({"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8"},
                              {"TZ": "Europe/Berlin", "LC_ALL": "tr_TR.UTF-8", "LANG": "C"}):
                    self.assertEqual(t.assay(*words, env=other, check=0).stdout, usual)


class Examples(unittest.TestCase):
    def test_each_example_plans_cleanly(self):
        with local() as t:
            for example in sorted((ROOT / "examples").glob("*.yaml")):
                with self.subTest(example.name):
                    done = t.assay("plan", example, check=0)
                    self.assertEqual(done.stderr, "")
                    done = t.assay("plan", example, "--cards", "H200,RTX 2080 Ti", "--format",
                                   "json", check=0)
                    self.assertTrue(json.loads(done.stdout))

    def test_run_that_is_over_has_all_its_results(self):
        # The end of 1,440 cells in one step was told before it was durable: the table was empty.
        # The stacks of this example are real ones, so on simulated cards all is unsupported.
        cards = FIXTURES / "nvml" / "rtx3090_gtx1080ti.json"
        with local(devices=cards) as t:
            done = t.assay("run", ROOT / "examples" / "cards-cnn.yaml", "--quiet")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("stack_missing", done.stderr)
            self.assertIn("1440 cells: 1440 unsupported", done.stdout)
            rows = t.results()
            self.assertEqual({(r["outcome"], r["reason"]) for r in rows},
                             {("unsupported", "stack_missing")})
            self.assertEqual(len(rows), 1440)

    def test_each_example_is_valid_by_the_published_schema(self):
        try:
            import jsonschema
            import yaml
        except ImportError:
            self.skipTest("python3-jsonschema and python3-yaml are not installed")
        with local() as t:
            schema = json.loads(t.assay("plan", "--schema", check=0).stdout)
        self.assertEqual(schema, json.loads((ROOT / "docs" / "matrix.schema.json").read_text()))
        for example in sorted((ROOT / "examples").glob("*.yaml")):
            jsonschema.validate(yaml.safe_load(example.read_text()), schema)
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate({"axes": {"model": "resnet5"}}, schema)

    def test_key_is_that_of_the_documentation_and_defaults_do_not_change_it(self):
        with local() as t:
            keys = set()
            for more in ("", ", lane: eager, mode: train, gpus: 1, accumulate: 1"):
                text = f"axes: {{model: resnet50, precision: amp-fp16, batch: 256{more}}}\n"
                rows = json.loads(
                    t.assay("plan", t.matrix(text), "--format", "json", check=0).stdout)
                keys.add(rows[0]["key"])
            self.assertEqual(keys, {"ae68f006a7872419"})


class Ends(unittest.TestCase):
    def test_merge_counts_one_attempt_as_one(self):
        with local() as t, local() as u:
            t.assay("run", t.matrix(TWO_CELLS.replace("[32, 64]", "32")), "--quiet", check=0)
            t.assay("export", "last", "-o", t.dir / "one.assay", check=0)
            for said in ("1 attempt new, 0 known before", "0 attempts new, 1 known before"):
                self.assertIn(said, u.assay("merge", t.dir / "one.assay", check=0).stdout)

    def test_nothing_ok_is_exit_3_with_the_error_last(self):
        with local("default:crash") as t:
            done = t.assay("run", t.matrix(TWO_CELLS), "--quiet")
            self.assertEqual(done.returncode, 3, (done.stdout, done.stderr))
            self.assertTrue(done.stderr.splitlines()[-1].startswith("assay: "), done.stderr)

    def test_no_coordinator_is_exit_3_and_bad_words_are_exit_2(self):
        with local() as t:
            done = t.assay("--coordinator", "127.0.0.1:1", "ls")
            self.assertEqual(done.returncode, 3, done.stderr)
            for words in ((), ("lss",), ("ls", "--fromat", "json"), ("results",),
                          ("results", "last", "--format", "xml"), ("show", "last", "0"),
                          ("rerun", "last"), ("export", "last"), ("plan",)):
                with self.subTest(words):
                    done = t.assay(*words)
                    self.assertEqual(done.returncode, 2, (done.stdout, done.stderr))
                    self.assertEqual(done.stdout, "")

    def test_no_escape_sequence_where_it_is_no_terminal(self):
        with local("batch=64:crash") as t:
            done = t.assay("run", t.matrix(TWO_CELLS))
            for words in (("ls",), ("show", "last"), ("results", "last"), ("agents",)):
                self.assertNotIn("\x1b", t.assay(*words, check=0).stdout)
            self.assertNotIn("\x1b", done.stdout + done.stderr)


class Settings(unittest.TestCase):
    def printed(self, t, *words, env=None):
        done = subprocess.run([str(t.bin / words[0]), *map(str, words[1:]), "--print-config"],
                              capture_output=True, text=True, env={**t.env, **(env or {})},
                              timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_flag_over_variable_over_file_over_default_in_each_program(self):
        with local() as t:
            t.state.mkdir(mode=0o700)
            file = t.state / "config.yaml"
            file.write_text("quiet: true\nlog-level: debug\nnode: from-file\n")
            t.env.pop("ASSAY_DEVICES")
            text = self.printed(t, "assay")
            self.assertIn(f"quiet: true  # {file}:1", text)
            self.assertIn("# ASSAY_STATE", text)
            self.assertIn("no-color: false  # default", text)
            for program in ("assay-coordinator", "assay-agent"):
                self.assertIn(f"log-level: debug  # {file}:2", self.printed(t, program))
                env = {"ASSAY_LOG_LEVEL": "warn"}
                self.assertIn("log-level: warn  # ASSAY_LOG_LEVEL", self.printed(t, program, env=env))
                self.assertIn("log-level: error  # --log-level",
                              self.printed(t, program, "--log-level", "error", env=env))
            self.assertIn(f'node: "from-file"  # {file}:3', self.printed(t, "assay-agent"))

    def test_file_of_the_state_directory_reaches_the_local_agent(self):
        with local() as t:
            t.state.mkdir(mode=0o700)
            t.env.pop("ASSAY_DEVICES")
            (t.state / "config.yaml").write_text(f"node: attic\ndevices: {ONE_CARD}\n")
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            self.assertEqual({r["node"] for r in t.results()}, {"attic"})

    def test_fault_of_the_file_is_a_line_with_its_place_in_each_program(self):
        with local() as t:
            t.state.mkdir(mode=0o700)
            file = t.state / "config.yaml"
            file.write_text("log-levl: info\n")
            for words in (("assay", "ls"), ("assay-coordinator", "--local"),
                          ("assay-agent", "--coordinator", "unix:/x")):
                done = subprocess.run([str(t.bin / words[0]), *words[1:]], capture_output=True,
                                      text=True, env=t.env, timeout=30)
                self.assertEqual(done.returncode, 2, done)
                self.assertEqual(done.stderr, f"{words[0]}: {file}:1:1: log-levl: unknown key; "
                                 "did you mean 'log-level'?\n")
            t.assay("version", check=0)


class Neighbours(unittest.TestCase):
    def test_gpu_of_another_coordinator_is_waited_for_with_a_sentence(self):
        # Case 10: two coordinators of one machine, one card.
        long = TWO_CELLS.replace("max_seconds: 0.2", "max_seconds: 60").replace(
            "min_seconds: 0.05", "min_seconds: 60")
        with local("default:realtime=1") as t, local() as u:
            u.env["ASSAY_LOCK_DIR"] = t.env["ASSAY_LOCK_DIR"]
            first = t.assay("run", t.matrix(long), "--detach", check=0).stdout.split()[1]
            wait_for(t.runners, 30, "a runner of the first")
            second = u.start("run", u.matrix(TWO_CELLS))
            said = []
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not any("gpu_busy" in line for line in said):
                said.append(second.stderr.readline())
            self.assertIn("waiting", said[-1])
            self.assertIn("GPU-", said[-1])
            self.assertEqual(u.processes("assay-simulate"), [])
            t.assay("cancel", first, check=0)
            began = time.monotonic()
            _, err = second.communicate(timeout=60)
            self.assertEqual(second.returncode, 0, err)
            self.assertLess(time.monotonic() - began, 40)


if __name__ == "__main__":
    main()
