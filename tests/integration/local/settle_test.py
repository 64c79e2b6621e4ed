#!/usr/bin/env python3
"""A card that warms under load, from the command line to the record: settled before its first cell, warm
for the next, measured by its sentinel. The card is captured, its heat follows its load by a formula, and the
load is a real process that takes its time.

usage: settle_test.py BIN_DIR [unittest arguments]
"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, SMALL, local, main, wait_for  # noqa: E402

HEAT = FIXTURES / "nvml" / "rtx3090_heat.json"


class Settle(unittest.TestCase):
    def test_a_cold_card_is_settled_once_and_its_sentinel_stands_in_every_record(self):
        with local("default:realtime=1", devices=HEAT) as t:
            t.assay("run", t.matrix(SMALL), "--quiet", check=0, timeout=300)
            rows = sorted(t.results(), key=lambda row: row["started_at"])
            self.assertEqual([r["outcome"] for r in rows], ["ok"] * 4)
            for row in rows:
                self.assertIs(row["settled"], True, row)
                # A window of a few steps of real time converges or does not, by chance.
                self.assertEqual(set(row["marks"]) - {"unconverged"}, {"simulated"})
                self.assertEqual(row["sentinel_series"], rows[0]["attempt"])
                self.assertEqual((row["sentinel_index"], row["drift_ratio"]), (1, None))
                self.assertGreater(row["sentinel_before"], 0)
                self.assertNotEqual(row["sentinel_before"], row["throughput"])
            first = rows[0]
            self.assertGreater(first["settle_seconds"], 30)
            self.assertLess(first["settle_seconds"], 120)
            # It is 31 at rest, and warmer where the first reading is late.
            self.assertLess(first["settle_begin_celsius"], 50)
            self.assertEqual(first["settle_end_celsius"], 67)
            self.assertLess(abs(first["settle_celsius_per_second"]), 1 / 30)
            self.assertEqual([r["settle_seconds"] for r in rows[1:]], [0] * 3)

    def test_cancelled_while_it_settles_it_leaves_no_process(self):
        with local("default:realtime=1", devices=HEAT) as t:
            run = t.assay("run", t.matrix(SMALL), "--detach", check=0).stdout.split()[1]
            wait_for(t.runners, 30, "the load's process")
            t.assay("cancel", run, check=0)
            wait_for(lambda: not t.processes("assay-simulate"), 20, "no runner alive")
            self.assertEqual({r["outcome"] for r in t.results()}, {"cancelled"})

    def test_cold_asks_for_none_of_it(self):
        with local(devices=HEAT) as t:
            t.assay("run", t.matrix(SMALL + "thermal: cold\n"), "--quiet", check=0)
            for row in t.results():
                self.assertEqual([row[f] for f in ("settled", "settle_seconds", "sentinel_series")],
                                 [None] * 3)


if __name__ == "__main__":
    main()
