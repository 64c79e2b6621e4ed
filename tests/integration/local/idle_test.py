#!/usr/bin/env python3
"""An idle coordinator and agent cost at most 0.2 % of a core and 64 MiB each over 60 s.

usage: idle_test.py BIN_DIR [SECONDS]
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, Local, cpu_seconds, resident_bytes, wait_for  # noqa: E402


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 60
    with Local(sys.argv[1], devices=FIXTURES / "nvml" / "rtx3090.json",
               extra_env={"ASSAY_IDLE_EXIT": "3600"}) as local:
        local.assay("agents", check=0)
        pids = {}
        for program in ("assay-coordinator", "assay-agent"):
            pids[program] = wait_for(lambda p=program: local.processes(p), 10, program)[0][0]
        time.sleep(3)  # start-up is over
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        began = time.monotonic()
        time.sleep(seconds)
        span = time.monotonic() - began
        bad = False
        for name, pid in pids.items():
            used = (cpu_seconds(pid) - before[name]) / span
            memory = resident_bytes(pid) / 2**20
            print(f"{name}: {used * 100:.3f} % of a core, {memory:.1f} MiB over {span:.0f} s")
            bad |= used > 0.002 or memory > 64
        return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
