#!/usr/bin/env python3
"""From dispatch to the first measured step, split into process start, library load, device set-up
and warm-up, over a results file of `assay results --format json`. Medians over fresh processes.

usage: start_split.py RESULTS.json [--output FILE.json]
"""
import argparse
import json
import pathlib
import statistics
import sys

PARTS = ("process_start_seconds", "library_load_seconds", "device_setup_seconds", "warmup_seconds")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--output")
    args = parser.parse_args()
    rows = [r for r in json.loads(pathlib.Path(args.results).read_text()) if r["outcome"] == "ok"]
    if not rows:
        print("start_split: no cell with outcome ok", file=sys.stderr)
        return 1
    result = {"cells": len(rows)}
    for part in PARTS:
        values = [r[part] for r in rows if r[part] is not None]
        result[part + "_median"] = statistics.median(values) if values else None
        result[part + "_max"] = max(values) if values else None
    text = json.dumps(result, indent=2)
    print(text)
    if args.output:
        pathlib.Path(args.output).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
