#!/usr/bin/env python3
"""One agent offers two LibTorch versions as values of the axis `stack`; one run measures both.

usage: two_stacks_test.py BIN_DIR OTHER_MANIFEST
OTHER_MANIFEST is what cmake/add_stack.sh makes; without it the test is skipped.
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import Local, bin_dir, main  # noqa: E402

OTHER = pathlib.Path(sys.argv.pop(2))


def build_id(stack):
    """Of the libtorch_cpu.so that the runner of a manifest is linked with, by binutils."""
    runner = pathlib.Path(stack["program"]).parent.parent / "lib" / "libassay-train.so"
    loaded = subprocess.run(["ldd", str(runner)], capture_output=True, text=True, check=True).stdout
    library = re.search(r"libtorch_cpu\.so => (\S+)", loaded)[1]
    notes = subprocess.run(["readelf", "-nW", library], capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


class TwoStacks(unittest.TestCase):
    @unittest.skipUnless(OTHER.exists(), f"no second stack: cmake/add_stack.sh makes {OTHER.name}")
    def test_one_run_measures_both_and_says_by_hash_what_was_loaded(self):
        with Local(bin_dir(), devices="cpu", extra_env={"OMP_NUM_THREADS": "1"}) as t:
            own = next((bin_dir().parent / "share/assay/stacks").glob("libtorch-2.11*.json"))
            stacks = {}
            (t.dir / "stacks").mkdir()
            for manifest in (own, OTHER):
                stack = json.loads(manifest.read_text())
                stack["program"] = str((manifest.parent / stack["program"]).resolve())
                stacks[stack["name"]] = stack
                (t.dir / "stacks" / manifest.name).write_text(json.dumps(stack))
            t.env["ASSAY_STACKS"] = str(t.dir / "stacks")
            t.assay("run", t.matrix(
                f"axes:\n  model: resnet50\n  stack: [{', '.join(stacks)}]\n  image: 32\n  batch: [2]\n"
                "repeat: 2\nstop: {confidence: 0.01, min_seconds: 0.2, max_seconds: 0.5}\n"),
                check=0, timeout=300)
            rows = t.results()
            self.assertEqual(sorted(r["stack"] for r in rows), sorted(2 * list(stacks)))
            for row in rows:
                self.assertEqual((row["outcome"], row["verdict"]), ("ok", "valid"), row)
                version = row["stack"].removeprefix("libtorch-")
                self.assertEqual(row["libtorch_version"].split("+")[0], version)
                self.assertEqual(row["libtorch_build_id"], build_id(stacks[row["stack"]]))
            self.assertEqual(len({r["libtorch_build_id"] for r in rows}), 2)
            agents = json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"]
            offered = json.dumps(agents)
            for name in stacks:
                self.assertIn(name, offered)


if __name__ == "__main__":
    main()
