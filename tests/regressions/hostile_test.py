#!/usr/bin/env python3
"""What files, runners and disks may do to the real programs: one sentence, the right exit code, and
nothing that crashes.

usage: hostile_test.py BIN_DIR [unittest arguments]
"""
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import socket
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import TWO_CELLS, local, main, sanitized, wait_for  # noqa: E402




def one_line(test, done, code, *parts):
    test.assertEqual(done.returncode, code, (done.stdout, done.stderr))
    lines = done.stderr.strip().splitlines()
    test.assertEqual(len(lines), 1, done.stderr)
    for part in parts:
        test.assertIn(part, lines[0])


def alias_bomb():
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    for i in range(1, 10):
        lines.append(f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * 10) + "]")
    return "\n".join(lines).encode()


class Matrices(unittest.TestCase):
    def test_hostile_matrix_is_one_line_exit_2_and_small_memory(self):
        # Case 49.
        model = b"axes:\n  model: resnet50\n"
        files = {
            "octal": (model + b"  batch: 064\n", ":3:10: axes.batch: '064'"),
            "yes word": (b"axes:\n  model: no\n", ":2:10: axes.model: 'no'"),
            "exponent": (model + b"  batch: 1e3\n", ":3:10: axes.batch: '1e3'"),
            "deep": (b"[" * 100_000, "nested deeper"),
            "deep maps": (b"{a: " * 100_000, "nested deeper"),
            "circular": (b"&x [*x]\n", ":1:5: [0]: "),
            "bomb": (alias_bomb(), "aliases counted"),
            "nul": (model + b"\0\n", ":3:1: (file): a NUL byte"),
            "two documents": (model + b"---\n" + model, ":3:1: (file): a second document"),
            "doubled": (model + model, ":3:1: axes: this key is given twice"),
            "unknown key": (model + b"limit: 3\n", ":3:1: limit: unknown key; did you mean 'limits'?"),
            "unknown value": (b"axes:\n  model: resnet5\n", "did you mean 'resnet50'?"),
            "tab": (b"axes:\n\tmodel: resnet50\n", ":2:1: (file): a tab"),
            "not text": (model + b"name: \xff\n", ":3:7: (file): byte 0xFF"),
            "many cells": (model + b"  batch: {from: 1, to: 9999, step: 1}\n", "--yes"),
            "empty": (b"", "empty"),
        }
        with local() as t:
            for name, (text, part) in files.items():
                with self.subTest(name):
                    path = t.dir / "m.yaml"
                    path.write_bytes(text)
                    one_line(self, t.assay("plan", path), 2, part)
            huge = t.dir / "huge.yaml"
            with open(huge, "wb") as file:
                file.truncate(1 << 30)
            one_line(self, t.assay("plan", huge), 2, "larger than")
            one_line(self, t.assay("plan", "/dev/zero"), 2, "larger than")
            self.assertFalse(t.state.exists())
        if not sanitized():
            most_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            self.assertLess(most_kib, 64 << 10)


class StateDirectories(unittest.TestCase):
    def test_store_that_is_not_ours_is_one_line_exit_2(self):
        # What SQLite alone finds out, in the coordinator, is as good a sentence as the rest.
        head = b"SQLite format 3\0"
        versions = "create table schema_version (version)"
        cases = {  # the bytes of the file, or what a database is made by
            "garbage": (b"garbage" * 1000, "move the file away"),
            "head": (head, "move the file away"),
            "head and zeros": (head + bytes(5000), "move the file away"),
            "head and text": (head + b"x" * 5000, "move the file away"),
            "other tables": (["create table bookmarks (url)"], "tables that are not Assay's"),
            "version under 1": ([versions, "insert into schema_version values (-3)"],
                                "move the file away"),
            "no other table": ([versions, "insert into schema_version values (6)"],
                               "no such table"),
        }
        for name, (content, part) in cases.items():
            with self.subTest(name), local() as t:
                t.state.mkdir(mode=0o700)
                path = t.state / "results.db"
                if isinstance(content, bytes):
                    path.write_bytes(content)
                else:
                    with contextlib.closing(sqlite3.connect(path)) as store:
                        for statement in content:
                            store.execute(statement)
                        store.commit()
                for words in (("ls",), ("run", t.matrix(TWO_CELLS))):
                    one_line(self, t.assay(*words), 2, part, str(path))
                if isinstance(content, bytes):
                    self.assertEqual(path.read_bytes(), content)
                self.assertEqual(t.processes(), [])

    def test_what_is_no_file_is_one_line_with_place_and_remedy(self):
        def folder(path):
            path.mkdir()

        def listener(path):
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))

        def nowhere(path):
            path.symlink_to("/nowhere/at/all")

        names = ("lock", "endpoint.json", "results.db", "results.db-wal", "coordinator.log",
                 "config.yaml")
        for name in names:
            for make in (folder, listener, os.mkfifo, nowhere):
                with self.subTest(name=name, make=make.__name__), local() as t:
                    t.state.mkdir(mode=0o700)
                    path = t.state / name
                    make(path)
                    for words in (("ls",), ("run", t.matrix(TWO_CELLS), "--quiet")):
                        one_line(self, t.assay(*words, timeout=20), 2, f"{path} is a ",
                                 "move it away")
                    done = subprocess.run([t.bin / "assay-coordinator", "--local"], timeout=20,
                                          capture_output=True, text=True, env=t.env)
                    one_line(self, done, 2, f"{path} is a ", "move it away")

    def test_store_of_a_newer_version_is_left_alone(self):
        with local() as t:
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            t.kill("assay-coordinator", 15)
            wait_for(lambda: not t.processes(), 20, "no process left")
            store = sqlite3.connect(t.state / "results.db")
            store.execute("update schema_version set version = 99")
            store.commit()
            store.close()
            one_line(self, t.assay("ls"), 2, "version 99", "results.db")

    def test_garbage_in_endpoint_and_spool_hinders_nothing(self):
        garbage = ("garbage", "{}", '{"address":5,"pid":"x"}', "[" * 100_000,
                   '{"address":"unix:/nowhere","pid":1,"version":"0.1.0"}')
        with local(ASSAY_IDLE_EXIT="1") as t:
            spool = t.state / "agent" / "spool"
            spool.mkdir(parents=True, mode=0o700)
            (spool / "01ARZ3NDEKTSV4RRFFQ69G5FAV.pb").write_bytes(b"\xff" * 100)
            (spool / "x.json").write_text("{")
            (spool / "folder").mkdir()
            for text in garbage:
                with self.subTest(text[:20]):
                    (t.state / "endpoint.json").write_text(text)
                    self.assertEqual(t.assay("ls", check=0).stdout, "")
                    wait_for(lambda: not t.processes("assay-coordinator"), 30, "idle exit")
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)

    def test_state_that_cannot_be_written_is_exit_2(self):
        with local() as t:
            for state in ("/proc/assay", "/dev/null/state"):
                for words in (("ls",), ("run", t.matrix(TWO_CELLS))):
                    one_line(self, t.assay("--state", state, *words), 2, "cannot create")
                for program in (("assay-coordinator", "--local"),
                                ("assay-agent", "--coordinator", "unix:/x")):
                    done = subprocess.run([t.bin / program[0], *program[1:], "--state", state],
                                          capture_output=True, text=True, env=t.env, timeout=30)
                    one_line(self, done, 2, "cannot create")
            t.state.write_text("a file")
            one_line(self, t.assay("ls"), 2, "not a folder")

    def test_full_disk_keeps_what_was_acknowledged(self):
        if os.geteuid() != 0:
            self.skipTest("a file system of its own needs root")
        with local() as t:
            small = t.dir / "small"
            small.mkdir()
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "none", small],
                                     stderr=subprocess.DEVNULL)
            if mounted.returncode != 0:
                self.skipTest("mounting is not allowed here")
            try:
                t.state = small / "state"
                t.env["ASSAY_STATE"] = str(t.state)
                t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
                before = t.results()
                first = json.loads(t.assay("ls", "--format", "json", check=0).stdout)["runs"][0]["id"]
                with open(small / "fill", "wb", buffering=0) as fill:
                    for size in (1 << 20, 4096, 1):
                        try:
                            while fill.write(b"x" * size) == size:
                                pass
                        except OSError:
                            pass
                full = t.assay("run", t.dir / "m.yaml", "--new", timeout=100)
                self.assertIn(full.returncode, (1, 2, 3), (full.stdout, full.stderr))
                self.assertRegex(full.stderr, "(?i)no space|full")
                # A coordinator that starts now may not be able to say where it listens, and is
                # found; and the store has no room for the index of its log, and does without.
                t.kill("assay-coordinator", 15)
                wait_for(lambda: not t.processes("assay-coordinator"), 30, "no coordinator left")
                read = t.assay("results", first, "--format", "json", check=0)
                self.assertEqual(json.loads(read.stdout), before)
                (small / "fill").unlink()
                t.kill("assay-coordinator", 15)
                wait_for(lambda: not t.processes(), 30, "no process left")
                t.assay("run", t.dir / "m.yaml", "--new", "--quiet", timeout=100, check=0)
                runs = json.loads(t.assay("ls", "--format", "json", check=0).stdout)["runs"]
                self.assertEqual(t.results(runs[-1]["id"]), before)
            finally:
                for program in ("assay", "assay-coordinator", "assay-agent", "assay-simulate"):
                    t.kill(program)
                wait_for(lambda: not t.processes(), 30, "no process left")
                subprocess.run(["umount", "-l", small], check=False)


class Files(unittest.TestCase):
    def test_foreign_and_changed_files_are_not_merged(self):
        with local() as t:
            t.assay("run", t.matrix(TWO_CELLS), "--quiet", check=0)
            good = t.dir / "good.assay"
            t.assay("export", "last", "-o", good, check=0)
            lines = good.read_text().splitlines(True)
            whole = "".join(lines)

            def summed(body):
                end = json.loads(lines[-1])
                end["sha256"] = hashlib.sha256("".join(body).encode()).hexdigest()
                return "".join(body) + json.dumps(end, separators=(",", ":")) + "\n"

            newer = lines[0].replace('"result_schema":1', '"result_schema":7')
            cases = {
                "empty": ("", "the file is empty"),
                "zip": ("PK\x03\x04 no line", "not an .assay file"),
                "json": ('{"a":1}\n', "not the head of an .assay file"),
                "deep": ("[" * 200_000 + "\n", "not the head of an .assay file"),
                "newer file": (whole.replace('"assay_file":1', '"assay_file":2'), "version 2"),
                "newer results": (summed([newer] + lines[1:-1]), "schema 7"),
                "changed": (whole.replace('"small"', '"smalk"'), "check sum"),
                "cut": (whole[:-20], "cut"),
                "bad row": (summed([row.replace('"cell":1,', '"cell":-1,') for row in lines[:-1]]),
                            "'cell' is out of range"),
            }
            bad = t.dir / "bad.assay"
            with local() as u:
                for name, (text, part) in cases.items():
                    with self.subTest(name):
                        bad.write_text(text)
                        one_line(self, u.assay("merge", bad), 2, "was not merged", part)
                listed = u.assay("ls", "--format", "json", check=0).stdout
                self.assertEqual(json.loads(listed), {"runs": []})


class AgentThatCannotStart(unittest.TestCase):
    def test_why_stands_in_the_end_of_the_run(self):
        # Takes the minute that a run waits for its first agent.
        with local() as t:
            t.state.mkdir(mode=0o700)
            (t.state / "agent").write_text("no folder")
            done = t.assay("run", t.matrix(TWO_CELLS), timeout=120)
            self.assertEqual(done.returncode, 3, done.stderr)
            lines = done.stderr.strip().splitlines()
            self.assertIn("nothing was measured: no agent", lines[-1])
            self.assertTrue(any(str(t.state / "agent") in line for line in lines), done.stderr)


class Runners(unittest.TestCase):
    def test_runner_that_floods_every_channel_harms_nothing(self):
        # Case 47's kind: a line over 1 MiB, megabytes on standard output, bytes that are no record.
        for action, outcome in (("huge_line", "fail"), ("flood", "ok"), ("garbage", "fail"),
                                ("close_records", "fail")):
            with self.subTest(action), local(f"batch=64:{action}") as t:
                done = t.assay("run", t.matrix(TWO_CELLS))
                self.assertEqual(done.returncode, 0 if outcome == "ok" else 1, done.stderr)
                rows = {r["batch"]: r for r in t.results()}
                self.assertEqual((rows[32]["outcome"], rows[64]["outcome"]), ("ok", outcome))
                if outcome == "fail":
                    self.assertEqual(rows[64]["reason"], "bad_output")
                    self.assertLess(len(rows[64]["message"]), 500)
                    self.assertTrue(rows[64]["message"].isprintable())
                    self.assertEqual(done.stderr.rstrip().splitlines()[-1][:11], "assay: cell")


if __name__ == "__main__":
    main()
