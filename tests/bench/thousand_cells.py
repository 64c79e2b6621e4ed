#!/usr/bin/env python3
"""1,000 simulated cells through the real coordinator and agent: cells a second, and the CPU that
coordinator and agent spend on a cell. With --cells small it is a check of correctness (CI).

usage: thousand_cells.py BIN_DIR [--cells N] [--output FILE.json]
"""
import argparse
import json
import os
import pathlib
import platform
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, Local, cpu_seconds, programs  # noqa: E402


def machine(load):
    """What the figures depend on besides the programs."""
    model = next((line.partition(":")[2].strip()
                  for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "")
    return {"cpu_model": model, "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
            "kernel": platform.release().split("-")[0], "load_before": round(load, 2),
            "date": time.strftime("%Y-%m-%d", time.gmtime())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--output")
    args = parser.parse_args()
    repeat = 10
    batches = args.cells // repeat
    with Local(args.bin_dir, devices=FIXTURES / "nvml" / "rtx3090.json") as local:
        matrix = local.matrix(f"""
name: bench
axes:
  model: [resnet50]
  precision: [amp-fp16]
  batch: {{from: 1, to: {batches}, step: 1}}
repeat: {repeat}
stop: {{confidence: 0.05, min_seconds: 0.01, max_seconds: 0.1}}
""")
        local.assay("agents", check=0)  # coordinator and agent are up
        time.sleep(2)
        pids = {p: local.processes(p)[0][0] for p in ("assay-coordinator", "assay-agent")}
        before = {p: cpu_seconds(pid) for p, pid in pids.items()}
        began_load = os.getloadavg()[0]
        began = time.monotonic()
        local.assay("run", matrix, "--quiet", timeout=1800, check=0)
        seconds = time.monotonic() - began
        rows = local.results()
        assert len(rows) == batches * repeat and all(r["outcome"] == "ok" for r in rows), "cells lost"
        result = {
            "command": "tests/bench/thousand_cells.py BIN_DIR --cells " + str(args.cells),
            "machine": machine(began_load),
            "cells": len(rows),
            "seconds": seconds,
            "cells_per_second": len(rows) / seconds,
            "coordinator_cpu_ms_per_cell":
                (cpu_seconds(pids["assay-coordinator"]) - before["assay-coordinator"]) / len(rows) * 1e3,
            "agent_cpu_ms_per_cell":
                (cpu_seconds(pids["assay-agent"]) - before["assay-agent"]) / len(rows) * 1e3,
            **programs(args.bin_dir),
        }
    text = json.dumps(result, indent=2)
    print(text)
    if args.output:
        pathlib.Path(args.output).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
