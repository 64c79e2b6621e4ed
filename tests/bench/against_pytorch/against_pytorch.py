#!/usr/bin/env python3
"""assay-train beside PyTorch in Python on one device: is C++ as fast, in both lanes?

  against_pytorch.py --bin DIR [--pairs 5] [--batch 64 256] [--mode train infer] [--lane eager graph]
                     [--model resnet50] [--precision amp-fp16] [--seconds 1.5] [--image 224x224] [--device cuda|cpu]
                     [--cores 0-7] [--python PYTHON] [--output FILE.json] [--require]
  against_pytorch.py --bin DIR --repeat-cv 10 [--lane eager] [--mode train] [--batch 256] ...

A pair is the same cell file given to assay-train and to python_side.py, each in a fresh process with the
same cores and environment, one after the other: A B A B. Each round does every combination once, so that a
drift of the machine meets all alike. Every pair is printed as one JSON line as soon as it is there, and
none is dropped: where a side fails, the pair has no ratio, the summary counts it, and the exit code is 1.

The summary gives, for each combination, the median of ours over theirs and the interval between two order
statistics (median_interval.py); for lane graph also the ratio of our graph to their eager figure of the
same round. With --repeat-cv N it is N fresh processes of assay-train, all listed, and their
coefficient of variation. --require makes the goals of the summary part of the exit code.

--limit SECONDS begins no round that would not end in time, going by the longest so far; rounds that were
asked for and not made are said and are exit code 1. --earlier FILE.json... (--output of such a run on
the same machine) puts the pairs of those runs before its own into the summary: that is how they are
made up for.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from median_interval import coefficient_of_variation, median_interval  # noqa: E402

LEAST_MEDIAN, LEAST_LOW, LEAST_GRAPH_AT_64, MOST_CV = 1.00, 0.98, 1.6, 0.007


def cores_of(text):
    if not text:
        return sorted(os.sched_getaffinity(0))
    cores = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores.update(range(int(first), int(last or first) + 1))
    return sorted(cores)


def cell_of(options, mode, batch, lane):
    return {"spec": {"model": options.model, "mode": mode, "precision": options.precision, "batch": batch,
                     "lane": lane, "image": options.image, "thermal": "cold",
                     "stop": {"confidence": 0, "min_seconds": options.seconds,
                              "max_seconds": options.seconds}},
            "device": {"kind": options.device, "ordinal": 0}, "seed": 1}


def run(options, command, cell):
    """The last JSON line that a process prints; what it said where there is none."""
    try:
        done = subprocess.run(command, input=json.dumps(cell), capture_output=True, text=True,
                              timeout=300,
                              preexec_fn=lambda: os.sched_setaffinity(0, options.cores))
    except subprocess.TimeoutExpired:
        return {"error": "no end within 300 s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"error": done.stderr.strip()[-500:] or f"exit code {done.returncode}"}
    return json.loads(lines[-1])


def ours(options, cell):
    record = run(options, [str(options.bin / "assay-train"), "--cell", "-"], cell)
    if record.get("outcome") != "ok":
        return {"throughput": None, "error": record.get("error") or record.get("message")}
    return record["fields"]


def theirs(options, cell):
    side = run(options, [options.python, str(HERE / "python_side.py")], cell)
    return side if side.get("throughput") else {"throughput": None, **side}


def text_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        return None


def circumstances(options):
    smi = "name,driver_version,clocks.sm,temperature.gpu,power.limit,uuid"
    root = str(HERE.parent.parent.parent) + os.sep  # a result file names no folder of somebody's machine
    return {"command": " ".join(word.removeprefix(root) for word in sys.argv), "commit": options.commit
            or text_of(["git", "-C", str(HERE), "rev-parse", "HEAD"]),
            "started_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "gpu": {"fields": smi, "values": text_of(["nvidia-smi", "--query-gpu=" + smi,
                                                     "--format=csv,noheader"])}
            if shutil.which("nvidia-smi") else None,
            "cpu": platform.processor() or platform.machine(), "cores": options.cores,
            "load_average": os.getloadavg(), "kernel": platform.release().split("-")[0],
            "assay": json.loads(text_of([str(options.bin / "assay-train"), "--stack-info"]) or "{}")
            .get("versions")}


def summary_of(pairs, options):
    rows = []
    for mode in options.mode:
        for batch in options.batch:
            for lane in options.lane:
                mine = [p for p in pairs if (p["mode"], p["batch"], p["lane"]) == (mode, batch, lane)]
                rows.append(row_of(f"{lane} over python {lane}", mode, batch, mine,
                                   [p["ratio"] for p in mine], LEAST_MEDIAN, LEAST_LOW))
            if {"eager", "graph"} <= set(options.lane):
                mine = [p for p in pairs if (p["mode"], p["batch"], p["lane"]) == (mode, batch, "graph")]
                eager = {p["round"]: p["pytorch"] for p in pairs
                         if (p["mode"], p["batch"], p["lane"]) == (mode, batch, "eager")}
                goal = LEAST_GRAPH_AT_64 if (batch, mode) == (64, "train") else None
                rows.append(row_of("graph over python eager", mode, batch, mine,
                                   [p["assay"] / eager[p["round"]] if p["assay"]
                                    and eager.get(p["round"]) else None for p in mine], goal, None))
    return rows


def row_of(what, mode, batch, mine, ratios, least_median, least_low):
    known = [r for r in ratios if r is not None]
    row = {"what": what, "mode": mode, "batch": batch, "pairs": len(mine),
           "without_ratio": len(ratios) - len(known), "median_ratio": None, "interval": None,
           "coverage": None, "goal": {"median": least_median, "low": least_low}, "met": None}
    if known:
        median, low, high, coverage = median_interval(known)
        row.update(median_ratio=median, interval=[low, high], coverage=coverage)
    if least_median is not None:
        row["met"] = bool(known) and len(known) == len(ratios) and median >= least_median and (
            least_low is None or low >= least_low)
    return row


def earlier_pairs(options):
    pairs = []
    for file in options.earlier:
        rounds = max((p["round"] for p in pairs), default=0)
        # Files from before there was a choice name no model.
        pairs += [{**p, "round": p["round"] + rounds} for p in json.loads(file.read_text())["pairs"]
                  if p.get("model", "resnet50") == options.model]
    return pairs


def compare(options):
    pairs = earlier_pairs(options)
    before = max((p["round"] for p in pairs), default=0)
    start, longest, made = time.monotonic(), 0, 0
    while made < options.pairs:
        begin = time.monotonic()
        if options.limit and begin - start + longest > options.limit:
            break
        made += 1
        number = before + made
        for mode in options.mode:
            for batch in options.batch:
                for lane in options.lane:
                    cell = cell_of(options, mode, batch, lane)
                    a, b = ours(options, cell), theirs(options, cell)
                    pair = {"round": number, "mode": mode, "batch": batch, "lane": lane,
                            "model": options.model, "precision": options.precision, "assay": a["throughput"],
                            "pytorch": b["throughput"],
                            "ratio": a["throughput"] / b["throughput"]
                            if a["throughput"] and b["throughput"] else None,
                            "assay_fields": a, "pytorch_fields": b}
                    print(json.dumps(pair), flush=True)
                    pairs.append(pair)
        longest = max(longest, time.monotonic() - begin)
    summary = summary_of(pairs, options)
    for row in summary:
        interval = "no ratio" if row["interval"] is None else (
            f"{row['median_ratio']:.4f}  [{row['interval'][0]:.4f}, {row['interval'][1]:.4f}] "
            f"{row['coverage']:.2%}")
        met = {None: "", True: "  met", False: "  NOT MET"}[row["met"]]
        lost = f"  {row['without_ratio']} without a ratio" if row["without_ratio"] else ""
        sys.stderr.write(f"{row['what']:26} {row['mode']:6}{row['batch']:5}  n={row['pairs']}  "
                         f"{interval}{lost}{met}\n")
    if made < options.pairs:
        sys.stderr.write(f"{made} rounds of {options.pairs} in {options.limit:g} s\n")
    failed = made < options.pairs or any(p["ratio"] is None for p in pairs)
    rounds = {"asked": options.pairs, "made": made, "earlier": before}
    return {"rounds": rounds, "pairs": pairs, "summary": summary}, failed, all(r["met"] is not False for r in summary)


def repeat(options):
    rows, good, failed = [], True, False
    for mode in options.mode:
        for batch in options.batch:
            for lane in options.lane:
                processes = []
                for _ in range(options.repeat_cv):
                    processes.append(ours(options, cell_of(options, mode, batch, lane)))
                    print(json.dumps({"mode": mode, "batch": batch, "lane": lane,
                                      "assay": processes[-1]["throughput"]}), flush=True)
                values = [p["throughput"] for p in processes]
                whole = None not in values and len(values) > 1
                cv = coefficient_of_variation(values) if whole else None
                rows.append({"mode": mode, "batch": batch, "lane": lane, "throughputs": values,
                             "cv": cv, "goal": MOST_CV, "met": cv is not None and cv < MOST_CV,
                             "processes": processes})
                failed |= None in values
                good &= rows[-1]["met"]
                sys.stderr.write(f"{lane:6} {mode:6}{batch:5}  "
                                 + " ".join("-" if v is None else f"{v:.0f}" for v in values)
                                 + ("  no cv\n" if cv is None else f"  cv {cv:.3%}\n"))
    return {"repeats": rows}, failed, good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--limit", type=float, help="seconds for all rounds")
    parser.add_argument("--earlier", type=pathlib.Path, nargs="+", default=[])
    parser.add_argument("--batch", type=int, nargs="+")
    parser.add_argument("--mode", nargs="+", choices=["train", "infer"])
    parser.add_argument("--lane", nargs="+", choices=["eager", "graph"])
    parser.add_argument("--precision", default="amp-fp16")
    parser.add_argument("--seconds", type=float, help="of the window, and at most of the warm-up")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--image", default="", help="the model's own where it is not given")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--cores", type=cores_of, default=cores_of(""))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--commit", help="where this is no working copy")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--repeat-cv", type=int, default=0)
    parser.add_argument("--require", action="store_true")
    options = parser.parse_args()
    alone = options.repeat_cv > 0
    options.batch = options.batch or ([256] if alone else [64, 256])
    options.mode = options.mode or (["train"] if alone else ["train", "infer"])
    options.lane = options.lane or (["eager"] if alone else ["eager", "graph"])
    options.seconds = options.seconds or (5 if alone else 1.5)
    result = circumstances(options)
    figures, failed, good = repeat(options) if alone else compare(options)
    result.update(figures)
    result["ended_at"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(1 if failed or (options.require and not good) else 0)


if __name__ == "__main__":
    main()
