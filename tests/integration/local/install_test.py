#!/usr/bin/env python3
"""An installed folder runs after it was moved, and its training runner finds LibTorch by the rule of
docs/architecture.md.

usage: install_test.py BIN_DIR [unittest arguments]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, Local, bin_dir, main  # noqa: E402


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="assay-i-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        done = subprocess.run(["cmake", "--install", str(bin_dir().parent), "--prefix",
                               str(folder / "made")], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "made").rename(folder / "moved")
        cls.moved = folder / "moved"
        cls.folder = folder

    def test_moved_folder_runs_a_matrix_with_its_own_stacks(self):
        with Local(self.moved / "bin", devices=FIXTURES / "nvml" / "rtx3090.json") as t:
            t.assay("run", t.matrix(
                "axes:\n  model: resnet50\n  precision: amp-fp16\n  batch: [32]\nrepeat: 1\n"
                "stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}\n"), check=0)
            row, = t.results()
            self.assertEqual((row["outcome"], row["simulated"]), ("ok", True))

    def train(self, *words, **environment):
        done = subprocess.run([str(self.moved / "bin" / "assay-train"), *words], capture_output=True,
                              text=True, timeout=120,
                              env={"PATH": os.environ["PATH"], **environment})
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def models(self, **environment):
        code, said, error = self.train("--list", **environment)
        self.assertEqual(code, 0, error)
        return said.splitlines()

    def test_libtorch_is_found_where_it_was_else_by_assay_libtorch_else_a_sentence_says_so(self):
        library = self.moved / "lib" / "libassay-train.so"
        if not library.exists():
            self.skipTest("this build has no training runner")
        self.assertIn("resnet50", self.models())
        # As on another machine: the path that was written at build time leads nowhere.
        said = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True).stdout
        path = re.search(r"\((?:RPATH|RUNPATH)\).*\[(.*?)\]", said)[1]
        torch = pathlib.Path(path.split(":")[0]).parent
        content = library.read_bytes()
        self.assertEqual(content.count(path.encode()), 1)
        library.write_bytes(content.replace(path.encode(), b"/nowhere".ljust(len(path), b"x")))

        code, out, error = self.train("--list")
        self.assertNotEqual(code, 0)
        self.assertEqual(len(error.splitlines()), 1, error)
        self.assertIn("set ASSAY_LIBTORCH", error)
        self.assertIn("resnet50", self.models(ASSAY_LIBTORCH=str(torch)))

        older = self.folder / "older"
        older.mkdir(exist_ok=True)
        (older / "version.py").write_text("__version__ = '1.13.1+cu117'\n")
        code, out, error = self.train("--list", ASSAY_LIBTORCH=str(older))
        self.assertNotEqual(code, 0)
        self.assertIn("is 1.13.1, and assay-train was built with", error)


if __name__ == "__main__":
    main()
