"""assay-train as a process: command line, records, exit codes, memory and signals, on the CPU.

Run one by name: ASSAY_BUILD=build/release python3 runner_process_test.py RunnerProcess.test_NAME
"""

import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
BUILD = os.environ.get("ASSAY_BUILD", "build/release")
PROGRAM = os.path.join(BUILD, "bin", "assay-train")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def cell(**changes):
    spec = {"model": "resnet50", "mode": "train", "precision": "fp32", "batch": 1,
            "image": "32x32", "stop": {"min_seconds": 0.2, "max_seconds": 0.6}}
    spec.update(changes)
    return {"protocol": 1, "attempt": "01J", "cell": 1, "spec": spec, "device": {"kind": "cpu"}}


def run(content, program=PROGRAM, **more):
    text = content if isinstance(content, str) else json.dumps(content)
    return subprocess.run([program, "--cell", "-"], input=text, capture_output=True, text=True,
                          timeout=240, env=ENVIRONMENT, **more)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def result(done):
    last = records(done.stdout)[-1]
    assert last["record"] == "result", last
    return last


class RunnerProcess(unittest.TestCase):
    def test_bad_cell_file_exits_2(self):
        for text in ["", "{", "[1]", '{"spec":{"batch":"many"}}', '{"protocol":99}']:
            done = run(text)
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def test_describe_says_what_resnet50_is(self):
        self.assertIn("resnet50", subprocess.check_output([PROGRAM, "--list"], text=True).split())
        said = json.loads(subprocess.check_output([PROGRAM, "--describe", "resnet50"], text=True))
        self.assertEqual(said["parameters"], 25557032)
        self.assertEqual(said["sample_unit"], "img")
        self.assertEqual(said["flops_per_sample"], 8178368512)
        self.assertEqual(said["train_flops_per_sample"], 24299077632)
        unknown = subprocess.run([PROGRAM, "--describe", "resnet51"], capture_output=True)
        self.assertEqual(unknown.returncode, 2)

    def test_catalogue_says_of_every_model_what_the_runner_says(self):
        """`assay plan` reads the catalogue alone: parameters and FLOPs are the runner's."""
        catalogue = (ROOT / "catalog/workloads.yaml").read_text(encoding="utf-8")
        for model in subprocess.check_output([PROGRAM, "--list"], text=True).split():
            said = json.loads(subprocess.check_output([PROGRAM, "--describe", model], text=True))
            entry = catalogue.split(f"  - name: {model}\n")[1].split("  - name: ")[0]
            self.assertIn(f"    parameters: {said['parameters']}\n", entry)
            self.assertIn(f"    flops_per_sample: {{train: {said['train_flops_per_sample']}, "
                          f"infer: {said['flops_per_sample']}}}\n", entry)
            self.assertIn(f"    sample_unit: {said['sample_unit']}\n", entry)

    def test_every_model_runs_a_small_cell(self):
        """Of the large ones one step, as a trial of `batch: max` takes it; whole cells are a long test."""
        for changes, steps in [(dict(model="resnet50_v1"), 0), (dict(model="resnext101_32x4d"), 0),
                               (dict(model="se_resnext101_32x4d", mode="infer"), 0),
                               (dict(model="swin_l", image="", mode="infer"), 1),
                               (dict(model="gpt2_medium", image="1x16", mode="infer"), 1)]:
            said = result(run({**cell(**changes), "trial_steps": steps}))
            self.assertEqual(said["outcome"], "ok", said)
            described = json.loads(subprocess.check_output([PROGRAM, "--describe", changes["model"]],
                                                           text=True))
            self.assertEqual(said["fields"]["parameters"], described["parameters"])
            if steps == 0:
                self.assertGreater(said["fields"]["throughput"], 0)

    def test_large_models_measure_in_both_modes_and_precisions(self):
        for model, image, layout in [("swin_l", "", "contiguous"), ("swin_l", "", "channels-last"),
                                     ("gpt2_medium", "1x32", "contiguous")]:
            for mode, precision in [("train", "fp32"), ("infer", "amp-bf16")]:
                done = run(cell(model=model, image=image, layout=layout, mode=mode, precision=precision,
                                batch=2, accumulate=2))
                self.assertEqual(result(done)["outcome"], "ok", done.stdout + done.stderr)
                self.assertGreater(result(done)["fields"]["throughput"], 0)

    def test_sizes_that_a_model_does_not_take_are_a_sentence(self):
        for model, image in [("swin_l", "256x256"), ("gpt2_medium", "1x1025")]:
            said = result(run(cell(model=model, image=image)))
            self.assertEqual((said["outcome"], said["reason"]), ("unsupported", "value_not_in_stack"))
            self.assertIn("is not HEIGHTxWIDTH from", said["message"])

    def test_stack_info_is_complete(self):
        said = json.loads(subprocess.check_output([PROGRAM, "--stack-info"], text=True))
        self.assertEqual(said["runner"], "assay-train")
        self.assertEqual(said["max_world_size"], 1)
        self.assertFalse(said["simulated"])
        self.assertIn("cpu", said["device_kinds"])
        self.assertRegex(said["versions"]["libtorch"], r"^\d+\.\d+\.\d+")
        stacks = os.path.join(BUILD, "share", "assay", "stacks")
        manifests = [f for f in os.listdir(stacks) if f.startswith("libtorch-")]
        with open(os.path.join(stacks, manifests[0]), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertTrue(os.path.samefile(os.path.join(stacks, manifest["program"]), PROGRAM))

    def test_progress_and_records_follow_the_protocol(self):
        content = cell()
        content["spawned_at_boot_ns"] = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        done = run(content)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = records(done.stdout)
        self.assertEqual(seen[0]["record"], "hello")
        self.assertEqual([r["record"] for r in seen].count("joined"), 1)
        self.assertEqual([r["phase"] for r in seen if r["record"] == "phase"],
                         ["load", "setup", "warmup", "measure", "finish"])
        self.assertTrue(any(r["record"] == "progress" for r in seen))
        fields = seen[-1]["fields"]
        self.assertEqual(fields["steps"], fields["device_steps"])
        self.assertEqual(fields["parameters"], 25557032)
        self.assertAlmostEqual(fields["host_seconds"] / fields["seconds"], 1, delta=0.02)
        for name in ["process_start_seconds", "library_load_seconds", "device_setup_seconds",
                     "warmup_seconds"]:
            self.assertGreater(fields[name], 0, name)
        for name in ["allocated_peak_bytes", "reserved_peak_bytes", "cuda_version"]:
            self.assertIsNone(fields[name], name)
        self.assertIs(fields["allow_tf32_matmul"], False)
        self.assertLess(abs(fields["loss_first"]), 20)

    def test_every_cpu_precision_and_mode_measures(self):
        for precision in ["fp32", "amp-bf16"]:
            for mode in ["train", "infer"]:
                done = run(cell(precision=precision, mode=mode, batch=2, accumulate=2))
                self.assertEqual(result(done)["outcome"], "ok", done.stdout + done.stderr)
                self.assertGreater(result(done)["fields"]["throughput"], 0)

    def test_a_detector_trains_and_says_what_it_proposed(self):
        done = run(cell(model="fasterrcnn_resnet50_fpn", image="64x64",
                        stop={"min_seconds": 0.05, "max_seconds": 0.1}))
        self.assertEqual(result(done)["outcome"], "ok", done.stderr)
        fields = result(done)["fields"]
        self.assertGreater(fields["proposals_per_image"], 0)
        self.assertNotIn("detections_per_image", fields)
        self.assertLess(abs(fields["loss_first"]), 20)

    def test_image_and_layout_are_taken(self):
        done = run(cell(layout="contiguous", image="48x64", mode="infer"))
        self.assertEqual(result(done)["outcome"], "ok", done.stderr)

    def test_unsupported_cells_exit_4(self):
        for changes, reason in [({"precision": "tf32"}, "unsupported_precision"),
                                ({"precision": "amp-fp16"}, "unsupported_precision"),
                                ({"lane": "graph"}, "lane_not_in_stack"),
                                ({"model": "resnet51"}, "model_not_in_stack")]:
            done = run(cell(**changes))
            self.assertEqual(done.returncode, 4, changes)
            self.assertEqual(result(done)["reason"], reason)
            self.assertEqual(result(done)["outcome"], "unsupported")

    def test_out_of_memory_spares_the_next_cell(self):
        """Case 1: ok, mem_limit, ok; one process a cell, so nothing is held over."""
        first = run(cell())
        second = run(cell(batch=1000000, image="224x224"))
        third = run(cell())
        self.assertEqual([result(d)["outcome"] for d in (first, second, third)],
                         ["ok", "mem_limit", "ok"])
        self.assertEqual([d.returncode for d in (first, second, third)], [0, 3, 0])
        self.assertEqual(result(second)["reason"], "out_of_memory")
        self.assertIn("asked for", result(second)["message"])

    def test_small_address_space_is_mem_limit(self):
        """Runs out in a step, not when data is made."""
        limit = 3 << 30
        done = run(cell(batch=256, image="96x96"),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(done.returncode, 3, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertEqual(result(done)["outcome"], "mem_limit")
        self.assertIn("warmup", [r.get("phase") for r in records(done.stdout)])

    def test_largest_batch_is_what_trains_beside_one_that_does_not(self):
        """batch: max under a limit on memory, and both sides of it by themselves.

        What one process can have differs from another's by megabytes, here a few samples: so the border
        itself is the search's word, in one granule where it calls it proven, and what is tried by itself is a
        quarter below and a quarter above it."""
        # A trial has a lifeline, whose thread has a stack: megabytes, that is, samples.
        listening, feeding = os.pipe()
        self.addCleanup(lambda: (os.close(listening), os.close(feeding)))

        def outcome(batch, limit):
            # As many steps as the search's own processes take.
            return result(under(limit, {**cell(batch=batch), "trial_steps": 20}))["outcome"]

        def under(limit, content):
            return subprocess.run(
                [PROGRAM, "--cell", "-", "--lifeline", f"fd:{listening},600"], text=True,
                input=json.dumps(content), capture_output=True, timeout=240, env=ENVIRONMENT,
                pass_fds=(listening,),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

        limit = 384 << 20  # of LibTorch itself, which differs between versions
        while outcome(2, limit) != "ok":
            limit += 32 << 20
            self.assertLess(limit, 4 << 30)
        fields = result(under(limit, cell(batch=0)))["fields"]
        largest, limiting = fields["largest_batch"], fields["largest_batch_limit"]
        self.assertGreaterEqual(largest, 1)
        self.assertGreater(limiting, largest)
        if fields["largest_batch_proven"]:
            self.assertEqual(limiting, largest + 1)
        self.assertEqual(fields["samples"], fields["steps"] * fields["largest_batch"])
        self.assertEqual(outcome(max(1, largest * 3 // 4), limit), "ok")
        self.assertEqual(outcome(limiting * 5 // 4 + 1, limit), "mem_limit")

    def start(self, content):
        child = subprocess.Popen([PROGRAM, "--cell", "-"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(lambda: (child.kill(), child.wait(), child.stdout.close()))
        child.stdin.write(json.dumps(content))
        child.stdin.close()
        return child

    def test_sigterm_ends_it(self):
        child = self.start(cell(stop={"min_seconds": 60, "max_seconds": 60}))
        for line in child.stdout:
            if json.loads(line)["record"] == "progress":
                break
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(timeout=10), -signal.SIGTERM)

    def test_slowed_process_gives_a_lower_figure(self):
        """The window is time that passes, not time that this process was given. Held against this process's
        clock, and not against another cell's figure, which a busy machine lowers as well."""
        child = self.start(cell(stop={"min_seconds": 2, "max_seconds": 3, "confidence": 0}))
        over = threading.Event()

        def stop_and_go():
            while not over.wait(0.05):
                child.send_signal(signal.SIGSTOP)
                time.sleep(0.05)
                child.send_signal(signal.SIGCONT)

        thread = threading.Thread(target=stop_and_go)
        thread.start()
        begun = {}
        try:
            for line in child.stdout:
                record = json.loads(line)
                if record["record"] == "phase":
                    begun[record["phase"]] = time.monotonic()
        finally:
            over.set()
            thread.join()
            child.wait()
        fields, passed = record["fields"], begun["finish"] - begun["measure"]
        self.assertGreater(passed, 1.9)
        self.assertAlmostEqual(fields["seconds"] / passed, 1, delta=0.2)
        self.assertAlmostEqual(fields["throughput"] * fields["seconds"] / fields["samples"], 1, places=6)

    def test_library_that_is_missing_is_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "bin"))
            program = shutil.copy(PROGRAM, os.path.join(folder, "bin", "assay-train"))
            done = run(cell(), program=program)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(result(done)["reason"], "runner_error")
            self.assertIn("libassay-train.so", result(done)["message"])


if __name__ == "__main__":
    unittest.main()
