#!/usr/bin/env python3
"""assay-peaks as a process, on a CUDA driver and a cuBLAS that a test library stands in for.

  peaks_process_test.py ASSAY_PEAKS FOLDER_OF_LIBCUDA_AND_LIBCUBLAS
"""

import json
import os
import socket
import subprocess
import sys
import unittest

PROGRAM, LIBRARIES = sys.argv[1:3]
UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def cell_of(model, precision="fp32", uuid=UUID, kind="cuda"):
    return {"spec": {"model": model, "mode": "peak", "precision": precision,
                     "stop": {"confidence": 0.5, "min_seconds": 0.2, "max_seconds": 1}},
            "device": {"kind": kind, "uuid": uuid}}


def environment(fault):
    return {**os.environ, "LD_LIBRARY_PATH": LIBRARIES, "FAKE_CUDA": fault, "ASSAY_CUBLAS": LIBRARIES}


def run(model, fault="", **cell):
    done = subprocess.run([PROGRAM, "--cell", "-"], input=json.dumps(cell_of(model, **cell)),
                          capture_output=True, text=True, timeout=120, env=environment(fault))
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
            # The library's 10 GB/s, and read plus write on the device.
            self.assertAlmostEqual(fields["throughput"] / (20 if model == "copy" else 10), 1, 5)
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

    def pair(self, fault=""):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{free.getsockname()[1]}"
        ranks = []
        for rank in (0, 1):
            cell = {**cell_of("peer"), "rank": rank, "local_rank": rank, "world_size": 2,
                    "endpoint": endpoint}
            ranks.append(subprocess.Popen([PROGRAM, "--cell", "-"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True, env=environment(fault)))
            ranks[-1].stdin.write(json.dumps(cell))
            ranks[-1].stdin.close()
        said = [[json.loads(line) for line in rank.stdout] for rank in ranks]
        for rank in ranks:
            rank.stdout.close()
            rank.wait(timeout=120)
        return said

    def test_two_ranks_measure_what_passes_between_their_gpus(self):
        zero, one = self.pair()
        self.assertEqual(zero[-1]["outcome"], "ok", zero[-1])
        self.assertEqual(one[-1]["outcome"], "ok", one[-1])
        for field in ("throughput", "samples", "seconds", "steps", "device_steps"):
            self.assertEqual(zero[-1]["fields"][field], one[-1]["fields"][field])
        self.assertEqual(zero[-1]["fields"]["world_size"], 2)
        self.assertAlmostEqual(zero[-1]["fields"]["throughput"] / 10, 1, 5)
        self.assertTrue(any(r["record"] == "progress" for r in one))
        for said in (zero, one):
            self.assertEqual(sum(r["record"] == "joined" for r in said), 1)

    def test_gpus_with_no_way_to_each_other_are_unsupported(self):
        zero, one = self.pair("no_peer")
        self.assertEqual(zero[-1]["outcome"], "unsupported", zero[-1])
        self.assertIn("cannot read the other's memory", zero[-1]["message"])
        self.assertEqual(one[-1]["outcome"], "fail")

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
