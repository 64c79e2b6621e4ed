#!/usr/bin/env python3
"""Checks of the source text that no build makes: every header compiles by itself, and clang's
thread-safety analysis finds nothing. Reads compile_commands.json of a build folder.

The sources of one folder with the same flags are compiled as one file, as the sanitized builds do,
since most of the time goes into headers; where that fails, each by itself. A header that a source includes first is proven by the build
to compile by itself and is not tried again.

usage: check_sources.py BUILD_DIR [--jobs N] [--tidy] [--skip PREFIX]... [--only PREFIX]...
Exit 1 with the compiler's words where something fails.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

CLANG = "clang++-19"
OURS = ("common", "coordinator", "agent", "cli", "launch", "runners")


def flags_of(entry):
    """Include paths and definitions of one compile command; the rest is the compiler's own."""
    words = shlex.split(entry["command"]) if "command" in entry else entry["arguments"]
    out, i = [], 0
    while i < len(words):
        word = words[i]
        if word in ("-I", "-isystem", "-D"):
            out += [word, words[i + 1]]
            i += 1
        elif word.startswith(("-I", "-isystem", "-D", "-std=")):
            out.append(word)
        i += 1
    return out


def first_include(path):
    """What a source includes first, or None."""
    match = re.search(r'^#include\s+(["<][^">]+)', path.read_text(errors="replace"), re.M)
    return match.group(1)[1:] if match and match.group(1)[0] == '"' else None


def source_jobs(sources, root, tidy, build, common):
    """One job a folder and set of flags; with clang-tidy, which looks at main files, one a source."""
    if tidy:
        return [(str(relative), ["clang-tidy-19", "-quiet", "-p", build, str(root / relative)], None)
                for relative in sorted(sources)]
    groups = {}
    for relative, (flags, _) in sorted(sources.items()):
        groups.setdefault((relative.parent, tuple(flags)), []).append(relative)
    return [([str(member) for member in members], [CLANG, *flags, *common, "-x", "c++", "-"],
             "".join(f'#include "{root / member}"\n' for member in members))
            for (_, flags), members in groups.items()]


def header_jobs(sources, root, skip, common):
    # A header takes the flags of a source of its folder, else of its top folder's first source.
    by_folder, by_top = {}, {}
    for relative, (flags, _) in sorted(sources.items()):
        by_folder.setdefault(relative.parent, flags)
        by_top.setdefault(relative.parts[0], flags)
    proven = {first_include(root / relative) for relative in sources}
    jobs = []
    for top in OURS:
        for header in sorted((root / top).rglob("*.h")):
            relative = header.relative_to(root)
            flags = by_folder.get(relative.parent) or by_top.get(top)
            if flags is None or str(relative) in proven or str(relative).startswith(skip):
                continue
            jobs.append((f"{relative} (by itself)",
                         [CLANG, *flags, *common, "-Wno-unused", "-x", "c++", "-"],
                         f'#include "{relative}"\n'))
    return jobs


class Passed:
    """What passed before and whose command and files are as they were: it is not compiled again.
    Kept in the build folder, one file a check: a line with time and size for each file that was read."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, command, text):
        return self.folder / hashlib.sha256(repr((command, text)).encode()).hexdigest()

    @staticmethod
    def state(name):
        info = os.stat(name)
        return f"{info.st_mtime_ns} {info.st_size} {name}"

    def holds(self, path):
        try:
            lines = path.read_text().splitlines()
            return bool(lines) and all(self.state(line.split(" ", 2)[2]) == line for line in lines)
        except (OSError, IndexError):
            return False

    def keep(self, path, dependencies):
        """`dependencies`: Make's rule as the compiler wrote it."""
        names = dependencies.replace("\\\n", " ").split(": ", 1)[-1].split()
        path.write_text("\n".join(self.state(name) for name in names if name != "-"))


def check(job, passed=None):
    """(label, exit code, output) of a job; for a group that fails, of its members that do."""
    label, command, text = job
    if passed is not None and text is not None:
        stamp = passed.path(command, text)
        if passed.holds(stamp) or (isinstance(label, list) and all(
                passed.holds(passed.path(command, line)) for line in text.splitlines(keepends=True))):
            return str(label), 0, ""
        rule = stamp.with_suffix(".d")
        done = subprocess.run([*command, "-MD", "-MF", str(rule)], input=text, capture_output=True,
                              text=True)
        if done.returncode == 0 and rule.exists():
            passed.keep(stamp, rule.read_text())
        rule.unlink(missing_ok=True)
    else:
        done = subprocess.run(command, input=text, capture_output=True, text=True)
    if isinstance(label, list):
        # Two programs of one folder may define the same name; that is no fault.
        if done.returncode != 0 and len(label) > 1:
            lines = text.splitlines(keepends=True)
            parts = [check((name, command, line), passed) for name, line in zip(label, lines)]
            bad = [part for part in parts if part[1] != 0]
            return ", ".join(p[0] for p in bad), len(bad), "\n".join(p[2] for p in bad)
        label = label[0]
    return label, done.returncode, (done.stdout + done.stderr).strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tidy", action="store_true")
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--only", action="append", default=[])
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    entries = json.loads((pathlib.Path(args.build) / "compile_commands.json").read_text())
    skip, wanted = tuple(args.skip), tuple(args.only)
    sources = {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(root):
            continue
        relative = path.relative_to(root)
        if relative.parts[0] in OURS and not str(relative).startswith(skip):
            sources[relative] = (flags_of(entry), entry["directory"])
    common = ["-Wthread-safety", "-Werror=thread-safety",
              "-fsyntax-only"]
    jobs = source_jobs({r: s for r, s in sources.items() if not wanted or str(r).startswith(wanted)},
                       root, args.tidy, args.build, common)
    if not args.tidy and not wanted:
        jobs += header_jobs(sources, root, skip, common)
    failed = 0
    passed = Passed(pathlib.Path(args.build) / "checks")
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for label, code, text in pool.map(lambda job: check(job, passed), jobs):
            if code != 0:
                failed += 1
                print(f"{label}:\n{text}\n")
    print(f"{len(jobs)} checks, {failed} failed")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main())
