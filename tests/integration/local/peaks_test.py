#!/usr/bin/env python3
"""Ceilings and utilisation through the programs: a processor has none, and cells of a real H200 (the committed
run) are held against peaks that are merged beside them.

usage: peaks_test.py BIN_DIR [unittest arguments]
"""
import hashlib
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cluster"))
from assay_local import local, main  # noqa: E402

H200_RUN = ROOT / "docs" / "results" / "h200" / "resnet50.assay"
FLOPS, BYTES = 24299077632, 120e6


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path, rows):
    """An .assay file of `rows`, with an end line that fits them."""
    kinds = [row.get("kind") for row in rows]
    body = "".join(json.dumps(row) + "\n" for row in rows if row.get("kind") != "end")
    end = {"kind": "end", **{kind + "s": kinds.count(kind) for kind in ("spec", "cell", "attempt")},
           "sha256": hashlib.sha256(body.encode()).hexdigest()}
    path.write_text(body + json.dumps(end) + "\n")
    return path


def with_work(rows):
    """The run as a runner of today writes it: with what a sample is."""
    for row in rows:
        if row.get("kind") == "attempt" and row["row"]["outcome"] == "ok":
            row["row"]["record"].update(flops_per_sample=FLOPS, operator_bytes_per_sample=BYTES)
    return rows


def peaks_like(rows, model, precision, rate, letter):
    """A run of one cell of mode peak on the same card, made of the first cell of `rows` that is ok."""
    def renamed(value):
        if isinstance(value, dict):
            return {key: renamed(part) for key, part in value.items()}
        if isinstance(value, list):
            return [renamed(part) for part in value]
        ids = isinstance(value, str) and re.fullmatch("01[0-9A-Z]{24}", value)
        return value[:-1] + letter if ids else value

    def first(kind, fits=lambda row: True):
        return next(r for r in rows if r.get("kind", "head") == kind and fits(r.get("row")))

    ok = first("cell", lambda row: row["outcome"] == "ok")
    counted = first("attempt", lambda row: row["id"] == ok["row"]["counted_attempt"])
    head, run, spec, cell, attempt = map(renamed, (first("head"), first("run"), first("spec"), ok, counted))
    run["row"].update(cells=1, specs=1, repeat=1, name="peaks", digest=64 * letter.lower())
    canonical = {"mode": "peak", "model": model} | ({"precision": precision} if precision != "fp32" else {})
    text = "".join(f"{name}={value}\n" for name, value in canonical.items())  # docs/matrix.md, Key
    spec["row"].update(model=model, mode="peak", precision=precision, batch=1, image="", layout="",
                       lane="eager", key=hashlib.sha256(text.encode()).hexdigest()[:16], index=0)
    cell["row"].update(spec_index=0, cell=1, repeat=1)
    attempt["row"].update(runner="assay-peaks", stack="peaks", cell=1)
    record = attempt["row"]["record"]
    record.update(model=model, mode="peak", precision=precision, throughput=rate, seconds=5.0,
                  host_seconds=5.0, samples=round(5 * rate), unit="GFLOP/s", stack="peaks")
    record.pop("window_seconds", None)  # by the agent's clock, of the cell that this was
    return [head, run, spec, cell, attempt]


class Peaks(unittest.TestCase):
    def test_a_processor_has_no_ceilings_and_says_so(self):
        with local(devices="cpu") as t:
            t.assay("run", ROOT / "examples" / "peaks.yaml", "--quiet", check=3)
            rows = t.results()
            self.assertEqual({row["outcome"] for row in rows}, {"unsupported"})
            by_model = {row["model"]: row for row in rows if row["precision"] == "fp32"}
            self.assertEqual(by_model["copy"]["reason"], "unsupported_arch")
            self.assertIn("peaks has no code for a cpu", by_model["copy"]["message"])

    def test_cells_are_held_against_the_peaks_of_their_card(self):
        rows = with_work(rows_of(H200_RUN))
        with local() as t:
            t.assay("merge", write(t.dir / "run.assay", rows), check=0)
            run = rows[0]["run"]
            before = t.results(run)
            self.assertEqual({row["mfu_ratio"] for row in before}, {None})
            t.assay("merge", write(t.dir / "gemm.assay",
                                   peaks_like(rows, "gemm", "amp-fp16", 640000, "A")), check=0)
            t.assay("merge", write(t.dir / "tf32.assay",
                                   peaks_like(rows, "gemm", "tf32", 340000, "B")), check=0)
            t.assay("merge", write(t.dir / "copy.assay",
                                   peaks_like(rows, "copy", "fp32", 4200, "C")), check=0)
            measured = [row for row in t.results(run) if row["outcome"] == "ok"]
            self.assertEqual(len(measured), sum(row["outcome"] == "ok" for row in before))
            self.assertGreater(len(measured), 0)
            for row in measured:
                self.assertEqual(row["peak_flops_per_second"], 640e12)
                self.assertEqual(row["peak_copy_bytes_per_second"], 4.2e12)
                self.assertAlmostEqual(row["mfu_ratio"], row["throughput"] * FLOPS / 640e12)
                self.assertAlmostEqual(row["bandwidth_ratio"], row["throughput"] * BYTES / 4.2e12)
            self.assertIn("mfu_ratio", t.assay("show", run, measured[0]["cell"], check=0).stdout)


if __name__ == "__main__":
    main()
