#!/usr/bin/env python3
"""Odd names, locales, clocks and terminals through the whole path. Cases 12, 53 and 55.

usage: odd_places_test.py BIN_DIR [unittest arguments]
"""
import csv
import fcntl
import glob
import io
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, SMALL, hold_port, local, main, sanitized, wait_for  # noqa: E402

ODD_NAMES = FIXTURES / "nvml" / "odd_names.json"

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Names(unittest.TestCase):
    def test_odd_names_come_through_whole(self):
        # Case 12: a quote, comma, newline, em dash, bytes that are no UTF-8, nothing, 96 characters.
        with local(devices=ODD_NAMES) as t:
            t.assay("run", t.matrix(SMALL.replace("[32, 64]", "[32]").replace("repeat: 2",
                                                                              "repeat: 1")), check=0)
            names = [d["raw_name"] for d in json.loads(
                t.assay("agents", "--format", "json", check=0).stdout)["agents"][0]["devices"]]
            rows = t.results()
            self.assertTrue(rows)
            self.assertEqual({r["outcome"] for r in rows}, {"ok"})
            self.assertEqual(len({r["card"] for r in rows}), len(rows), "two products as one card")
            self.assertEqual(len(rows), len(set(names)))
            table = list(csv.DictReader(io.StringIO(
                t.assay("results", "last", "--format", "csv", check=0).stdout)))
            self.assertEqual([r["card"] or "" for r in rows], [r["card"] for r in table])
            for words in (("results", "last"), ("show", "last"), ("agents",), ("show", "last", "1")):
                text = t.assay(*words, check=0).stdout
                self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f]", words)
            # A table's row is one line whatever the name holds.
            self.assertEqual(len([line for line in t.assay("results", "last").stdout.splitlines()
                                  if " ok" in line and "cells:" not in line]), len(rows))


def german(directory):
    """A locale with a decimal comma, made here, since few machines have it."""
    done = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive",
                           str(directory / "de_DE.UTF-8")], capture_output=True, text=True)
    if not (directory / "de_DE.UTF-8" / "LC_NUMERIC").exists():
        raise unittest.SkipTest(f"localedef makes no de_DE.UTF-8: {done.stderr.strip()[:200]}")
    return {"LOCPATH": str(directory), "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}


class Places(unittest.TestCase):
    def whole_path(self, t):
        t.assay("run", t.matrix(SMALL), check=0)
        rows = t.results()
        self.assertEqual([r["outcome"] for r in rows], ["ok"] * 4)
        table = list(csv.DictReader(io.StringIO(
            t.assay("results", "last", "--format", "csv", check=0).stdout)))
        for row, text in zip(rows, table):
            self.assertGreater(row["seconds"], 0)
            self.assertEqual(float(text["throughput"]), row["throughput"])
            self.assertRegex(row["started_at"], TIME)
            self.assertEqual(text["started_at"], row["started_at"])
        t.assay("show", "last", 1, check=0)
        return rows

    def test_german_locale(self):
        if not shutil.which("localedef"):
            self.skipTest("localedef is not installed")
        with local() as t:
            t.env.update(german(t.dir))
            self.whole_path(t)

    def test_c_locale(self):
        with local(LC_ALL="C", LANG="C") as t:
            self.whole_path(t)

    def test_times_are_utc_in_kathmandu_and_berlin(self):
        for zone in ("Asia/Kathmandu", "Europe/Berlin"):
            with self.subTest(zone), local(TZ=zone) as t:
                row = self.whole_path(t)[0]
                began = time.strptime(row["started_at"][:19], "%Y-%m-%dT%H:%M:%S")
                self.assertLess(abs(time.mktime(began) - time.mktime(time.gmtime())), 300)

    def test_wall_clock_that_jumps_back_and_forth_in_mid_run(self):
        # Case 55. faketime reads the offset from a file again and again.
        found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not found:
            self.skipTest("libfaketime is not installed")
        if sanitized():
            self.skipTest("a sanitizer must be the first library loaded, and so must libfaketime")
        with local("default:slow=0.5") as t:
            offset = t.dir / "offset"
            offset.write_text("+0\n")
            t.env.update({"LD_PRELOAD": found[0], "FAKETIME_TIMESTAMP_FILE": str(offset),
                          "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                          "DONT_FAKE_MONOTONIC": "1"})
            run = t.assay("run", t.matrix(SMALL), "--detach", check=0).stdout.split()[1]
            for text in ("+3600\n", "-7200\n", "+0\n", "+90000\n"):
                time.sleep(0.7)
                offset.write_text(text)
            t.assay("watch", run, check=0, timeout=60)
            for row in t.results(run):
                self.assertEqual(row["outcome"], "ok", row)
                self.assertIn("attempt 1 on", t.assay("show", run, row["cell"], check=0).stdout)
                self.assertTrue(0 < row["seconds"] < 60, row)
            agents = json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"]
            self.assertEqual([a["state"] for a in agents], ["up"])

    def test_agent_whose_clock_is_an_hour_ahead_works_and_is_warned_of(self):
        # Case 55.
        found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        if not found:
            self.skipTest("libfaketime is not installed")
        if sanitized():
            self.skipTest("a sanitizer must be the first library loaded, and so must libfaketime")
        ahead = {"LD_PRELOAD": found[0], "FAKETIME": "+3600s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                 "DONT_FAKE_MONOTONIC": "1"}
        with local() as t:
            port, held = hold_port()
            t.env["ASSAY_COORDINATOR"] = f"127.0.0.1:{port}"
            words = {"coordinator": ["--listen", f"127.0.0.1:{port}", "--heartbeat", "1"],
                     "agent": ["--state", str(t.dir / "agent"), "--node", "n1"]}
            for name in ("coordinator", "agent"):
                with open(t.state_log(name), "ab") as log:
                    subprocess.Popen([str(t.bin / f"assay-{name}"), *words[name]], stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log, cwd=t.dir,
                                     env={**t.env, **(ahead if name == "agent" else {})})
            wait_for(lambda: "s ahead of the coordinator's" in t.assay("agents").stderr, 30, "a warning")
            t.assay("run", t.matrix(SMALL), check=0)
            self.assertTrue(all(0 < row["seconds"] < 60 for row in t.results()), t.results())
            held.close()


class Terminal(unittest.TestCase):
    """Under a pseudo-terminal, as a person sees it."""

    def session(self, t, *words, columns=80, rows=24, keys=None, env=None):
        """(exit code, all that was written); `keys`: (seconds, bytes typed)."""
        pid, fd = pty.fork()
        if pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(t.dir)
                os.execve(str(t.bin / "assay"), ["assay", *map(str, words)],
                          {**t.env, "TERM": "xterm-256color", **(env or {})})
            finally:
                os._exit(127)
        text = b""
        deadline = time.monotonic() + 60
        began = time.monotonic()
        while time.monotonic() < deadline:
            if keys and time.monotonic() - began > keys[0]:
                os.write(fd, keys[1])
                keys = None
            if select.select([fd], [], [], 0.1)[0]:
                try:
                    got = os.read(fd, 65536)
                except OSError:
                    break
                if not got:
                    break
                text += got
        else:
            os.kill(pid, signal.SIGKILL)
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode()

    def screen(self, text):
        """What stands on the terminal at the end."""
        lines, row = [""], 0
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n]|[^\r\n\x1b]+", text):
            if part == "\r":
                continue
            if part == "\n":
                row += 1
                if row == len(lines):
                    lines.append("")
            elif part.startswith("\x1b["):
                if part.endswith("A"):
                    row -= int(part[2:-1])
                elif part == "\x1b[J":
                    lines = lines[:row] + [""]
            else:
                lines[row] += part
        return lines

    def test_block_is_drawn_and_taken_away_again(self):
        with local("default:realtime=1") as t:
            t.matrix(SMALL.replace("min_seconds: 0.05, max_seconds: 0.2",
                                   "min_seconds: 1, max_seconds: 1.5"))
            code, text = self.session(t, "run", "m.yaml")
            self.assertEqual(code, 0, text)
            self.assertIn("resnet50 train amp-fp16 b32 eager on RTX 3090", text)
            self.assertRegex(text, r"step \d+, [\d.,]+ img/s")
            self.assertRegex(text, r"1/4 cells")
            self.assertNotIn("0/0", text)
            self.assertEqual(text.count("\x1b[?25l"), text.count("\x1b[?25h"))
            lines = self.screen(text)
            self.assertRegex(lines[0], r"^run [0-9A-HJKMNP-TV-Z]{26}$")
            self.assertNotIn("cells done", "\n".join(lines))
            self.assertFalse([line for line in lines if line.startswith(("[", ">"))], lines)
            for line in lines:
                self.assertLessEqual(len(line), 80, line)

    def test_no_color(self):
        with local("default:slow=0.3") as t:
            t.matrix(SMALL)
            code, text = self.session(t, "run", "m.yaml", env={"NO_COLOR": "1"})
            self.assertEqual(code, 0, text)
            self.assertNotRegex(text, r"\x1b\[[0-9;]*m")
            code, text = self.session(t, "results", "last", env={"NO_COLOR": "1"})
            self.assertNotIn("\x1b", text)

    def test_narrow_terminal(self):
        with local("default:slow=0.3") as t:
            t.matrix(SMALL)
            code, text = self.session(t, "run", "m.yaml", columns=40, rows=6)
            self.assertEqual(code, 0, text)
            for drawn in re.split(r"\x1b\[J", text)[1:-1]:
                block = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).replace("\r", "")
                for line in block.splitlines():
                    self.assertLess(len(line), 40, line)

    def test_a_stop_takes_the_block_away(self):
        # In a session without a shell nobody stops, but the handler does all the rest.
        with local("default:realtime=1") as t:
            t.matrix(SMALL.replace("min_seconds: 0.05, max_seconds: 0.2",
                                   "min_seconds: 1, max_seconds: 1.5"))
            code, text = self.session(t, "run", "m.yaml", keys=(2, b"\x1a"))
            self.assertEqual(code, 0, text)
            self.assertIn("^Z", text)
            lines = self.screen(text)
            self.assertFalse([line for line in lines if line.startswith(("[", ">"))], lines)
            self.assertEqual(sum("cells" in line for line in lines), 1, lines)

    def test_ctrl_c_typed_at_the_terminal(self):
        with local("default:realtime=1") as t:
            t.matrix(SMALL.replace("min_seconds: 0.05, max_seconds: 0.2",
                                   "min_seconds: 20, max_seconds: 30"))
            code, text = self.session(t, "run", "m.yaml", keys=(2, b"\x03"))
            self.assertEqual(code, 130, text)
            self.assertIn("cancelling; waiting until every process is gone", text)
            self.assertTrue(text.count("\x1b[?25h") >= 1)
            self.assertEqual(t.processes("assay-simulate"), [])


if __name__ == "__main__":
    main()
