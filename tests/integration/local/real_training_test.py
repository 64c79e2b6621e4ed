#!/usr/bin/env python3
"""The whole path with the real training runner on the CPU: coordinator, agent, assay-train, store and
command line. Case 1 of what goes wrong for real users, among others.

usage: real_training_test.py BIN_DIR [unittest arguments]
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import Local, bin_dir, main  # noqa: E402

# Of each measured cell; what a CPU has not is below.
KNOWN = """throughput unit step_p50_ms step_p95_ms step_p99_ms cv_ratio steps device_steps samples
seconds host_seconds warmup_seconds warmup_steps stop_reason skipped_steps loss_first loss_last
process_start_seconds library_load_seconds device_setup_seconds device_used_bytes device_total_bytes
cpu_model threads runner_version libtorch_version stack_digest agent_version world_size parameters
allow_tf32_matmul allow_tf32_cudnn cudnn_benchmark deterministic reduced_precision_reduction seed
data_batches method_version started_at attempt node outcome verdict simulated""".split()
UNKNOWN_ON_A_CPU = """allocated_peak_bytes reserved_peak_bytes cuda_version cudnn_version nccl_version
driver_version power_mean_watts energy_joules energy_per_sample_joules sm_clock_mean_hertz transport
gpu_busy_ratio message reason loss_scale""".split()

STOP = "stop: {confidence: 0.01, min_seconds: 0.2, max_seconds: 0.5}\n"


def local():
    # One thread, so that two tests at a time do not wait for each other's.
    return Local(bin_dir(), devices="cpu", extra_env={"OMP_NUM_THREADS": "1"})


class RealTraining(unittest.TestCase):
    def test_small_matrix_is_trained_stored_and_told(self):
        with local() as t:
            done = t.assay("run", t.matrix(
                "name: real\naxes:\n  model: resnet50\n  precision: [fp32, amp-bf16]\n"
                "  image: [32, 64]\n  batch: [2]\nrepeat: 1\n" + STOP), check=0, timeout=300)
            self.assertIn("img/s", done.stdout)
            rows = t.results()
            self.assertEqual([(r["precision"], r["image"]) for r in rows],
                             [("fp32", "32x32"), ("fp32", "64x64"), ("amp-bf16", "32x32"),
                              ("amp-bf16", "64x64")])
            for row in rows:
                self.assertEqual(row["outcome"], "ok", row)
                # A busy machine may fit one step into the window, which has no spread.
                known = [n for n in KNOWN if n != "cv_ratio" or row["steps"] > 1]
                self.assertEqual([n for n in known if row[n] is None], [], row)
                self.assertEqual([n for n in UNKNOWN_ON_A_CPU if row[n] is not None], [], row)
                self.assertEqual(row["verdict"], "valid", row)
                self.assertIs(row["simulated"], False)
                self.assertNotIn("simulated", row["marks"])
                self.assertEqual(row["steps"], row["device_steps"])
                self.assertEqual(row["samples"], 2 * row["steps"])
                self.assertAlmostEqual(row["host_seconds"] / row["seconds"], 1, delta=0.02)
                self.assertAlmostEqual(row["throughput"], row["samples"] / row["seconds"], places=6)
                self.assertEqual((row["threads"], row["parameters"]), (1, 25557032))
                self.assertEqual((row["unit"], row["data_batches"]), ("img/s", 8))
                self.assertIs(row["allow_tf32_matmul"], False)
                self.assertLess(abs(row["loss_first"]), 20)
                # Weights, their gradients and their momenta at least.
                self.assertGreater(row["device_used_bytes"], 3 * 4 * 25557032)

    def test_case_1_out_of_memory_spares_the_cells_around_it(self):
        with local() as t:
            peaks = []
            for batch, outcome in [(2, "ok"), (100000000, "mem_limit"), (2, "ok")]:
                t.assay("run", t.matrix(
                    f"axes:\n  model: resnet50\n  image: 32\n  batch: [{batch}]\nrepeat: 1\n"
                    + STOP), "--new", timeout=300)
                row, = t.results()
                self.assertEqual(row["outcome"], outcome, row)
                if outcome == "ok":
                    peaks.append(row["device_used_bytes"])
                    continue
                self.assertEqual(row["reason"], "out_of_memory")
                # 10^8 images of 3 x 32 x 32 fp32 values; one line that says so, the rest in the log.
                self.assertEqual(row["message"], "1.12 TiB more were asked for than the host's memory "
                                 "has left: use a smaller batch, or accumulate")
                self.assertIn("DefaultCPUAllocator", t.assay("show", "last", "1", check=0).stdout)
            self.assertAlmostEqual(peaks[0] / peaks[1], 1, delta=0.1)

    def test_one_matrix_goes_on_behind_a_batch_that_does_not_fit(self):
        with local() as t:
            done = t.assay("run", t.matrix(
                "axes:\n  model: resnet50\n  image: 32\n  batch: [2, 100000000, 4]\nrepeat: 1\n"
                + STOP), check=0, timeout=300)
            self.assertEqual([r["outcome"] for r in t.results()], ["ok", "mem_limit", "ok"])
            self.assertIn("mem_limit", done.stdout)

    def test_what_this_stack_lacks_is_unsupported_and_costs_no_step(self):
        with local() as t:
            t.assay("run", t.matrix(
                "matrices:\n"
                "  a: {axes: {model: resnet50, image: 32, lane: [eager, graph], batch: [2]}}\n"
                "  b: {axes: {model: resnet50, image: 32, precision: tf32, batch: [2]}}\n"
                "  c: {axes: {model: own/absent, batch: [2]}}\n"
                "repeat: 1\n" + STOP), timeout=300)
            self.assertEqual(
                [(r["outcome"], r["reason"]) for r in t.results()],
                [("ok", None), ("unsupported", "lane_not_in_stack"),
                 ("unsupported", "unsupported_precision"), ("unsupported", "model_not_in_stack")])
            for row in t.results()[1:]:
                self.assertIsNone(row["throughput"])
                self.assertTrue(row["message"])

    def test_reproduced_by_hand_a_cell_has_the_same_fields(self):
        with local() as t:
            t.assay("run", t.matrix("axes:\n  model: resnet50\n  image: 32\n  batch: [2]\nrepeat: 1\n"
                                    + STOP), check=0, timeout=300)
            row, = t.results()
            said = t.assay("reproduce", "last", row["cell"], check=0).stdout
            done = subprocess.run(["bash", "-c", said], capture_output=True, text=True, cwd=t.dir,
                                  env=t.env, timeout=120)
            result = json.loads(done.stdout.splitlines()[-1])
            self.assertEqual((result["record"], result["outcome"]), ("result", "ok"), (said, done))
            fields = result["fields"]
            # By hand nobody tells when the process was started.
            fields.setdefault("process_start_seconds", row["process_start_seconds"])
            self.assertEqual([n for n in fields if n not in row], [])
            # As above of one step in the window.
            known = [n for n in KNOWN if n != "cv_ratio" or fields["steps"] > 1]
            self.assertEqual([n for n in known if row[n] is not None and n in fields
                              and fields[n] is None], [])
            for name in ["parameters", "seed", "unit", "threads", "world_size", "libtorch_version",
                         "runner_version", "data_batches", "method_version", "allow_tf32_matmul",
                         "loss_first"]:
                if name == "loss_first":  # same seed, same weights, same images
                    self.assertAlmostEqual(fields[name], row[name], places=4)
                else:
                    self.assertEqual(fields[name], row[name], name)


if __name__ == "__main__":
    main()
