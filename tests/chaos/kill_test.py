#!/usr/bin/env python3
"""kill -9 of coordinator or agent at any moment, then the same command again: the run goes on, no
finished cell is repeated, each cell ends in exactly one state, nothing stays behind.

usage: kill_test.py BIN_DIR FIRST_SEED COUNT
A failing seed is printed; it gives the same schedule again.
"""
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import FIXTURES, Local, wait_for  # noqa: E402

MATRIX = """
name: chaos
axes:
  model: [resnet50]
  precision: [fp32, amp-fp16]
  batch: [32, 64, 128]
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""
CELLS = 12


def schedule(bin_dir, seed):
    rng = random.Random(seed)
    kills = rng.choice([1, 1, 2, 2, 3])
    with Local(bin_dir, devices=FIXTURES / "nvml" / "rtx3090.json",
               simulate="default:realtime=1") as local:
        matrix = local.matrix(MATRIX)
        first = local.start("run", matrix, "--quiet")
        before = {}
        done = 0
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.2))
            victim = rng.choice(["assay-coordinator", "assay-agent"])
            # What is acknowledged now must stand, with the same attempt, at the end.
            if rng.random() < 0.5 and local.processes("assay-coordinator"):
                shown = local.assay("results", "last", "--format", "json")
                if shown.returncode == 0:
                    import json
                    for row in json.loads(shown.stdout):
                        if row["outcome"] is not None:
                            before[row["cell"]] = (row["outcome"], row["attempt"])
            done += local.kill(victim)
        first.kill()
        first.wait()
        again = local.assay("run", matrix, timeout=120)
        rows = local.results()
        assert len(rows) == CELLS, f"{len(rows)} rows"
        assert sorted(r["cell"] for r in rows) == list(range(1, CELLS + 1)), "a cell twice or never"
        # A cell is given up as lost only after its third attempt: with fewer kills none may be.
        bad = [r for r in rows if r["outcome"] != "ok" and not (done >= 3 and r["outcome"] == "lost")]
        assert not bad, f"not ok: {[(r['cell'], r['outcome'], r['message']) for r in bad]}\n{local.logs()}"
        expected = 0 if all(r["outcome"] == "ok" for r in rows) else 1
        assert again.returncode == expected, (again.returncode, again.stdout, again.stderr, local.logs())
        runs = json_runs(local)
        assert len(runs) == 1, f"the same command made another run: {runs}"
        for cell, (outcome, attempt) in before.items():
            row = rows[cell - 1]
            assert (row["outcome"], row["attempt"]) == (outcome, attempt), \
                f"cell {cell} was finished by {attempt} and is now {row['attempt']}"
        assert len({r["attempt"] for r in rows}) == CELLS
        wait_for(lambda: not local.processes("assay-simulate"), 10, "no runner alive")


def json_runs(local):
    import json
    return json.loads(local.assay("ls", "--format", "json", check=0).stdout)["runs"]


def main():
    bin_dir, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    failed = []
    for seed in range(first, first + count):
        try:
            schedule(bin_dir, seed)
        except AssertionError as error:
            failed.append(seed)
            print(f"seed {seed}: {error}", flush=True)
    print(f"{count} schedules, {len(failed)} failed{': ' + str(failed) if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
