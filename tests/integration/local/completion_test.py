#!/usr/bin/env python3
"""Shell completion as a real bash carries it out: the function that `complete -F` names is called
with the words of a line, as readline does.

usage: completion_test.py BIN_DIR [unittest arguments]
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import SMALL, bin_dir, local, main  # noqa: E402

# Words as readline would split them, in "$@"; the last is the one that is completed.
CALL = """
set -u
source <(assay completion bash)
[[ $(complete -p assay) == 'complete -F _assay assay' ]] || exit 3
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_assay assay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""


def path_with_assay(t):
    return f"{t.bin}:{t.env['PATH']}"


def offered(t, *words):
    done = subprocess.run(["bash", "--norc", "-c", CALL, "bash", "assay", *words], cwd=t.dir,
                          env={**t.env, "PATH": path_with_assay(t)}, capture_output=True, text=True,
                          timeout=60)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{words}: exit {done.returncode}: {done.stderr}")
    return done.stdout.splitlines()


def commands_of(help_text):
    part = help_text.split("Subcommands:\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^  ([a-z]+) ", part, re.M)


def options_of(help_text):
    part = help_text.split("Options:\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^  (?:-\w,)?(--[a-z-]+)", part, re.M)


class Bash(unittest.TestCase):
    def test_every_command_and_option_of_the_help_is_offered(self):
        with local() as t:
            commands = commands_of(t.assay("--help", check=0).stdout)
            self.assertGreater(len(commands), 15)
            self.assertEqual(sorted(offered(t, "")), sorted(commands))
            for command in commands:
                text = t.assay(command, "--help", check=0).stdout
                with self.subTest(command):
                    self.assertLessEqual(set(options_of(text)), set(offered(t, command, "--")))
                    self.assertIn("--state", offered(t, command, "--st"))
            for inner in commands_of(t.assay("certs", "--help", check=0).stdout):
                self.assertIn(inner, offered(t, "certs", ""))
                text = t.assay("certs", inner, "--help", check=0).stdout
                self.assertLessEqual(set(options_of(text)), set(offered(t, "certs", inner, "--")))

    def test_words_are_completed_by_their_beginning(self):
        with local() as t:
            self.assertEqual(offered(t, "dr"), ["drain"])
            self.assertEqual(offered(t, "--quiet", "--state", "x", "dr"), ["drain"])
            self.assertEqual(offered(t, "run", "--sli"), ["--slice", "--slice-id"])
            self.assertEqual(offered(t, "drain", "--w"), ["--wait"])
            self.assertEqual(offered(t, "nothing-like-it"), [])

    def test_values_that_are_words(self):
        with local() as t:
            self.assertEqual(offered(t, "results", "last", "--format", ""), ["table", "json", "csv"])
            self.assertEqual(offered(t, "ls", "--format", "j"), ["json"])
            # As bash splits --format=c and --label a=b.
            self.assertEqual(offered(t, "run", "m.yaml", "--format", "=", "c"), ["csv"])
            self.assertEqual(offered(t, "run", "--format", "="), ["table", "json", "csv"])
            self.assertEqual(offered(t, "run", "--label", "a", "=", "b", "--det"), ["--detach"])
            # Where = does not split words, the whole word is replaced.
            self.assertEqual(offered(t, "run", "--format=c"), ["--format=csv"])
            self.assertEqual(offered(t, "completion", "f"), ["fish"])
            self.assertEqual(offered(t, "certs", "user", "ada", "--role", "a"), ["admin"])

    def test_files_and_folders(self):
        with local() as t:
            t.matrix(SMALL, "my matrix.yaml")
            (t.dir / "my folder").mkdir()
            self.assertEqual(sorted(offered(t, "run", "my")), ["my folder", "my matrix.yaml"])
            self.assertEqual(offered(t, "--state", "my"), ["my folder"])
            self.assertEqual(sorted(offered(t, "merge", "one.assay", "my")),
                             ["my folder", "my matrix.yaml"])
            self.assertEqual(offered(t, "export", "last", "-o", "my m"), ["my matrix.yaml"])

    def test_ids_of_runs_come_from_the_coordinator(self):
        with local() as t:
            # A label that looks like what is searched for, and one that a shell would carry out.
            t.assay("run", t.matrix(SMALL), "--label", "id=$(touch pwned)", "--label",
                    "id2=`touch pwned`", check=0)
            t.assay("run", t.matrix(SMALL), "--new", check=0)
            ids = [r["id"] for r in json.loads(t.assay("ls", "--format", "json").stdout)["runs"]]
            for command in ("watch", "show", "results", "cancel", "rerun", "export", "reproduce"):
                self.assertEqual(offered(t, command, ""), ["last", *ids], command)
            self.assertEqual(offered(t, "show", ids[0]), [ids[0]])
            # The second argument is a cell's number.
            self.assertEqual(offered(t, "show", "last", ""), [])
            self.assertFalse((t.dir / "pwned").exists())

    def test_the_coordinator_that_the_line_names_is_asked(self):
        with local() as t, local() as other:
            other.assay("run", other.matrix(SMALL), check=0)
            run = other.results()[0]
            ids = [r["id"] for r in json.loads(other.assay("ls", "--format", "json").stdout)["runs"]]
            self.assertEqual(offered(t, "--state", str(other.state), "show", ""), ["last", *ids])
            self.assertEqual(offered(t, "show", "--state", "=", str(other.state), ""),
                             ["last", *ids])
            self.assertEqual(offered(t, "show", ""), ["last"])
            self.assertTrue(run)

    def test_names_of_nodes(self):
        with local(ASSAY_NODE="node7") as t:
            t.assay("agents", check=0)
            self.assertEqual(offered(t, "drain", ""), ["node7"])
            self.assertEqual(offered(t, "undrain", "no"), ["node7"])

    def test_a_coordinator_that_is_away_offers_nothing_and_says_nothing(self):
        with local() as t:
            self.assertEqual(offered(t, "--coordinator", "unix:/nonexistent/c.sock", "show", ""),
                             ["last"])


class OtherShells(unittest.TestCase):
    def test_scripts_are_what_their_shell_reads(self):
        with local() as t:
            for shell in ("bash", "zsh", "fish"):
                script = t.dir / f"assay.{shell}"
                script.write_text(t.assay("completion", shell, check=0).stdout)
                for word in ("drain", "undrain", "--slice-id" if shell != "fish" else "-l slice-id"):
                    self.assertIn(word, script.read_text(), shell)
                if program := shutil.which(shell):
                    done = subprocess.run([program, "-n", script], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_another_shell_is_refused(self):
        with local() as t:
            done = t.assay("completion", "tcsh")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, "assay: SHELL is bash, zsh or fish, not 'tcsh'\n")
            # Neither a state directory nor a home is needed.
            env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
            done = subprocess.run([bin_dir() / "assay", "completion", "bash"], env=env,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
