#!/usr/bin/env python3
"""`assay compare` over a real coordinator, two simulated cards and their stored results.

usage: compare_test.py BIN_DIR [unittest arguments]
"""
import csv
import io
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, ROOT, local, main  # noqa: E402

TWO_CARDS = FIXTURES / "nvml" / "rtx3090_gtx1080ti.json"
# Of batch 64 and fp32 the 11 GiB of a GTX 1080 Ti are too few.
MATRIX = """
name: cards
axes: {model: resnet50, precision: [fp32, amp-fp16], batch: [32, 64]}
repeat: 2
thermal: cold
baseline: GTX 1080 Ti
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""


class Compare(unittest.TestCase):
    def test_two_cards_from_stored_results(self):
        with local(devices=TWO_CARDS) as t:
            t.assay("run", t.matrix(MATRIX), "--quiet", check=0)
            said = t.assay("compare", "--format", "json", check=0).stdout
            made = json.loads(said)
            self.assertEqual(made["baseline"], "GTX 1080 Ti")
            ratios = {(row["card"], row["precision"]): row for row in made["cards"]}
            fp32 = ratios["RTX 3090", "fp32"]
            # Equal batch: 32, the largest that both cards completed. The ratio is of the geometric
            # means of what `results` prints.
            self.assertEqual(fp32["per_workload"][0]["batch"], 32)
            rates = {}
            for row in t.results():
                if row["precision"] == "fp32" and row["batch"] == 32:
                    rates.setdefault(row["card"], []).append(row["throughput"])
            wanted = ((rates["RTX 3090"][0] * rates["RTX 3090"][1])
                      / (rates["GTX 1080 Ti"][0] * rates["GTX 1080 Ti"][1])) ** 0.5
            self.assertAlmostEqual(fp32["geomean"], wanted, places=9)
            self.assertEqual(fp32["verdict"], "indicative")  # one GPU of each card
            self.assertIn("simulated", fp32["marks"])
            self.assertEqual(ratios["RTX 3090", "amp-fp16"]["per_workload"][0]["batch"], 64)
            self.assertIn({"card": "GTX 1080 Ti", "workload": "resnet50 train fp32 eager",
                           "reason": "mem_limit", "cells": 2}, made["left_out"])

            # The same bytes in every locale, and a table that a person and a program can read.
            for form in ("table", "md", "csv", "json"):
                german = t.assay("compare", "--format", form, check=0,
                                 env={"LC_ALL": "de_DE.UTF-8"}).stdout
                self.assertEqual(german, t.assay("compare", "--format", form, check=0).stdout)
            self.assertIn("1/1", t.assay("compare", check=0).stdout)
            text = t.assay("compare", "--format", "csv", check=0).stdout
            self.assertEqual(len(list(csv.DictReader(io.StringIO(text)))), 8)

    def test_published_figures_need_no_coordinator(self):
        with local() as t:
            folder = ROOT / "catalog" / "published"
            made = json.loads(t.assay("compare", "--published", folder / "articles.csv", "--baseline",
                                      "NVIDIA GeForce GTX 1080 Ti", "--where", "model=swin_l",
                                      "--format", "json", check=0).stdout)
            ratios = {row["card"]: row["geomean"] for row in made["cards"]}
            self.assertAlmostEqual(ratios["RTX 4070 Ti"], (38.5 / 18.7 * 65.8 / 32.4) ** 0.5, places=12)
            self.assertFalse(t.processes("assay-coordinator"))
            bad = t.dir / "bad.csv"
            bad.write_text("card,model,metric,value,unit\na,m,throughput,ten,img/s\n")
            self.assertIn("line 2", t.assay("compare", "--published", bad, check=2).stderr)
            self.assertIn("nowhere.csv",
                          t.assay("compare", "--published", "nowhere.csv", check=2).stderr)

    def test_refusals_and_the_gate(self):
        with local(devices=TWO_CARDS) as t:
            self.assertIn("no run", t.assay("compare", check=2).stderr)
            t.assay("run", t.matrix(MATRIX), "--quiet", check=0)
            self.assertIn("there is no card 'V100'",
                          t.assay("compare", "--baseline", "V100", check=2).stderr)
            self.assertIn("did you mean 'lane'",
                          t.assay("compare", "--where", "lnae=eager", check=2).stderr)
            self.assertIn("only run", t.assay("compare", "--by", "run", check=3).stderr)
            self.assertIn("batch: max", t.assay("compare", "--score", "largest", check=3).stderr)
            # The same matrix once more, where batch 64 does not fit any longer.
            t.kill("assay-coordinator", 15)
            t.env["ASSAY_SIMULATE"] = "batch=64:oom"
            t.assay("run", t.matrix(MATRIX), "--new", "--quiet", check=0)
            runs = [run["id"] for run in
                    json.loads(t.assay("ls", "--format", "json", check=0).stdout)["runs"]]
            gate = t.assay("compare", runs[1], runs[0], "--by", "run", check=1)
            self.assertIn("lacks batch 64", gate.stdout)
            self.assertIn("slower than " + runs[1], gate.stderr)
            # The other way round nothing has become worse.
            t.assay("compare", runs[0], runs[1], "--by", "run", check=0)


if __name__ == "__main__":
    main()
