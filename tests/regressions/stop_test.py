#!/usr/bin/env python3
"""How a run ends when somebody or something ends `assay run`.

usage: stop_test.py BIN_DIR [unittest arguments]
"""
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import local, main, wait_for  # noqa: E402

# Minutes.
LONG = """
name: long
axes: {model: resnet50, precision: amp-fp16, batch: [32, 64]}
repeat: 1
stop: {confidence: 0.01, min_seconds: 60, max_seconds: 60}
"""


def state_of_last(t):
    return t.assay("ls", check=0).stdout


class Stops(unittest.TestCase):
    def begin(self, t):
        run = t.start("run", t.matrix(LONG))
        wait_for(t.runners, 30, "a runner")
        return run

    def end(self, t, run, code):
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, code, (out, err, t.logs()))
        self.assertEqual(t.runners(), [])
        return out, err

    def test_sigterm_cancels_the_run(self):
        with local("default:realtime=1") as t:
            run = self.begin(t)
            run.terminate()
            run.terminate()
            out, err = self.end(t, run, 143)
            self.assertIn("cancelled", out)
            self.assertIn("was cancelled", err.splitlines()[-1])
            self.assertIn("cancelled", state_of_last(t))

    def test_hang_up_leaves_the_run_going(self):
        with local("default:realtime=1") as t:
            run = self.begin(t)
            run.send_signal(signal.SIGHUP)
            _, err = run.communicate(timeout=20)
            self.assertEqual(run.returncode, -signal.SIGHUP)
            self.assertIn("goes on", err)
            self.assertTrue(t.runners())
            self.assertIn("running", state_of_last(t))
            t.assay("cancel", "last", check=0)

    def test_ctrl_c_after_the_coordinator_was_killed_cancels_the_run(self):
        for wait in (0, 0.5):
            with self.subTest(wait), local("default:realtime=1") as t:
                run = self.begin(t)
                self.assertEqual(t.kill("assay-coordinator"), 1)
                time.sleep(wait)
                run.send_signal(signal.SIGINT)
                out, _ = self.end(t, run, 130)
                self.assertIn("cancelled", out)
                self.assertIn("cancelled", state_of_last(t))

    def test_sigterm_to_every_process_at_once_cancels_the_run(self):
        # What a batch system does to a job step.
        with local("default:realtime=1") as t:
            run = self.begin(t)
            for pid, _ in t.processes():
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
            out, _ = self.end(t, run, 143)
            self.assertIn("cancelled", out)
            self.assertIn("cancelled", state_of_last(t))


if __name__ == "__main__":
    main()
