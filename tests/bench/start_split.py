#!/usr/bin/env python3
"""From dispatch to the first measured step, split into dispatch, process start, library load, device
set-up and warm-up. Medians over fresh processes.

usage: start_split.py RESULTS.json [--output FILE.json]     of `assay results --format json`
       start_split.py --measure BIN_DIR [--cells N] [--output FILE.json]     on this machine's CPU

Dispatch is from the coordinator's choice of a node, whose time the attempt's id holds, to the agent's
spawn: offer, answer, start. Both are wall clocks of one machine, so it is null over several nodes, where
they may differ. Warm-up follows the stop rule of the cell and is no property of the system.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import Local  # noqa: E402

PARTS = ("process_start_seconds", "library_load_seconds", "device_setup_seconds", "warmup_seconds")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def dispatch_seconds(row):
    milliseconds = 0
    for character in row["attempt"][:10]:
        milliseconds = milliseconds * 32 + CROCKFORD.index(character)
    started = datetime.datetime.fromisoformat(row["started_at"].replace("Z", "+00:00"))
    return started.timestamp() - milliseconds / 1000


def split(rows):
    rows = [r for r in rows if r["outcome"] == "ok"]
    result = {"cells": len(rows)}
    local = len({r["node"] for r in rows}) == 1
    columns = {"dispatch_seconds": [dispatch_seconds(r) for r in rows] if local else []}
    for part in PARTS:
        columns[part] = [r[part] for r in rows if r[part] is not None]
    for part, values in columns.items():
        result[part + "_median"] = round(statistics.median(values), 6) if values else None
        result[part + "_max"] = round(max(values), 6) if values else None
    medians = [result[p + "_median"] for p in columns]
    result["sum_of_medians_seconds"] = None if None in medians else round(sum(medians), 6)
    return result


def measure(bin_dir, cells):
    with Local(bin_dir, devices="cpu") as local:
        local.assay("agents", check=0)  # coordinator and agent are up
        load = os.getloadavg()[0]
        local.assay("run", local.matrix(
            "name: start\naxes:\n  model: resnet50\n  image: 64\n  batch: [4]\n"
            f"repeat: {cells}\nstop: {{confidence: 0.05, min_seconds: 0.5, max_seconds: 1}}\n"),
            "--quiet", timeout=60 * cells, check=0)
        rows = local.results()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    machine = {"cpu_model": rows[0]["cpu_model"], "cores": len(os.sched_getaffinity(0)),
               "memory_gib": round(memory / 2**30, 1), "kernel": platform.release().split("-")[0],
               "load_average_before": round(load, 2), "threads": rows[0]["threads"],
               "libtorch_version": rows[0]["libtorch_version"], "device": "cpu",
               "model": "resnet50 fp32 train, batch 4, 64x64",
               "date": datetime.date.today().isoformat()}
    return rows, machine


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("results", nargs="?")
    parser.add_argument("--measure", metavar="BIN_DIR")
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--output")
    args = parser.parse_args()
    if bool(args.results) == bool(args.measure):
        parser.error("give either RESULTS.json or --measure BIN_DIR")
    machine = {}
    if args.measure:
        rows, machine = measure(args.measure, args.cells)
    else:
        rows = json.loads(pathlib.Path(args.results).read_text())
    result = {**({"machine": machine} if machine else {}), **split(rows)}
    if result["cells"] == 0:
        print("start_split: no cell with outcome ok", file=sys.stderr)
        return 1
    text = json.dumps(result, indent=2)
    print(text)
    if args.output:
        pathlib.Path(args.output).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
