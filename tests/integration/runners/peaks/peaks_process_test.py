#!/usr/bin/env python3
"""assay-peaks as a process, on a CUDA driver and a cuBLAS that a test library stands in for.

  peaks_process_test.py ASSAY_PEAKS FOLDER_OF_LIBCUDA_AND_LIBCUBLAS
"""

import json
import os
import subprocess
import sys
import unittest

PROGRAM, LIBRARIES = sys.argv[1:3]
UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def run(model, fault="", precision="fp32", libraries=LIBRARIES, uuid=UUID, kind="cuda"):
    cell = {"spec": {"model": model, "mode": "peak", "precision": precision,
                     "stop": {"confidence": 0.5, "min_seconds": 0.2, "max_seconds": 1}},
            "device": {"kind": kind, "uuid": uuid}}
    done = subprocess.run([PROGRAM, "--cell", "-"], input=json.dumps(cell), capture_output=True,
                          text=True, timeout=120,
                          env={**os.environ, "LD_LIBRARY_PATH": libraries, "FAKE_CUDA": fault,
                               "ASSAY_CUBLAS": LIBRARIES})
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, records, records[-1]


class Peaks(unittest.TestCase):
    def test_copies_are_measured(self):
        for model in ("copy", "host_to_device", "device_to_host"):
            code, records, result = run(model)
            self.assertEqual(result["outcome"], "ok", result)
            self.assertEqual(code, 0)
            fields = result["fields"]
            self.assertEqual(fields["unit"], "GB/s")
            self.assertEqual(fields["steps"], fields["device_steps"])
            self.assertRegex(fields["peak_shape"], "^[0-9]+ B$")
            self.assertEqual(fields["cublas_version"], "13.1.0")
            self.assertEqual(fields["cuda_version"], "13.0")
            self.assertAlmostEqual(fields["throughput"] * fields["seconds"] / fields["samples"], 1, 9)
            per_step = fields["samples"] / fields["steps"]
            self.assertEqual(per_step % (2 if model == "copy" else 1), 0)
            phases = [r["phase"] for r in records if r["record"] == "phase"]
            self.assertEqual(list(dict.fromkeys(phases)),
                             ["load", "setup", "warmup", "measure", "finish"])
            self.assertEqual(sum(r["record"] == "joined" for r in records), 1)

    def test_a_product_that_is_not_computed_is_no_figure(self):
        code, _, result = run("gemm")
        self.assertEqual(result["outcome"], "fail")
        self.assertIn("computes wrong results", result["message"])
        self.assertEqual(code, 1)

    def test_a_copy_that_leaves_bytes_out_is_no_figure(self):
        _, _, result = run("host_to_device", "lossy")
        self.assertEqual(result["outcome"], "fail")

    def test_steps_come_from_the_devices_own_count(self):
        _, _, result = run("copy", "miscount")
        self.assertEqual(result["fields"]["device_steps"], 2 * result["fields"]["steps"])

    def test_memory_that_is_full_is_mem_limit(self):
        code, _, result = run("copy", "full")
        self.assertEqual((code, result["outcome"], result["reason"]), (3, "mem_limit", "out_of_memory"))

    def test_what_the_card_lacks_is_unsupported(self):
        code, _, result = run("gemm", precision="amp-bf16")  # the card here has 7.5
        self.assertEqual((code, result["outcome"]), (4, "unsupported"))
        self.assertEqual(result["reason"], "unsupported_precision")

    def test_an_unknown_uuid_is_not_another_card(self):
        _, _, result = run("copy", uuid="GPU-00000000-0000-0000-0000-000000000000")
        self.assertEqual(result["outcome"], "fail")
        self.assertIn("no CUDA device has the UUID", result["message"])

    def test_a_processor_is_unsupported(self):
        code, _, result = run("gemm", kind="cpu", uuid="")
        self.assertEqual((code, result["outcome"], result["reason"]),
                         (4, "unsupported", "unsupported_arch"))

    def test_stack_info_names_cuda_where_there_is_a_driver(self):
        def info(**more):
            return subprocess.run([PROGRAM, "--stack-info"], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, "LD_LIBRARY_PATH": LIBRARIES,
                                       "ASSAY_CUBLAS": LIBRARIES, **more})
        said = json.loads(info().stdout)
        self.assertEqual(said["versions"]["cuda"], "13.0")
        self.assertEqual(said["device_kinds"], ["gpu"])
        self.assertIn("no CUDA-capable device", json.loads(info(FAKE_CUDA="no_device").stdout)["problem"])
        without = info(ASSAY_CUBLAS="/nowhere")
        self.assertEqual(without.returncode, 1)
        self.assertIn("cuBLAS was not found in ASSAY_CUBLAS=/nowhere", without.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
