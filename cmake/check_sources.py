#!/usr/bin/env python3
"""Checks of the source text that no build makes: every header compiles by itself, and clang's
thread-safety analysis finds nothing. Reads compile_commands.json of a build folder.

usage: check_sources.py BUILD_DIR [--jobs N] [--tidy] [--skip DIR]...
Exit 1 with the compiler's words where something fails.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
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


def check(job):
    label, command, text = job
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return label, done.returncode, (done.stdout + done.stderr).strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tidy", action="store_true")
    parser.add_argument("--skip", action="append", default=[])
    args = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    entries = json.loads((pathlib.Path(args.build) / "compile_commands.json").read_text())
    sources, folder_flags = {}, {}
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if not path.is_relative_to(root):
            continue
        relative = path.relative_to(root)
        if relative.parts[0] not in OURS or any(str(relative).startswith(s) for s in args.skip):
            continue
        sources[relative] = (flags_of(entry), entry["directory"])
        folder_flags.setdefault(relative.parts[0], flags_of(entry))
    # A header takes the flags of a source of its folder, else of its top folder's first source.
    by_folder = {}
    for relative, (flags, _) in sources.items():
        by_folder.setdefault(relative.parent, flags)
    common = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wthread-safety", "-Werror",
              "-fsyntax-only"]
    jobs = []
    for relative, (flags, directory) in sorted(sources.items()):
        if args.tidy:
            command = ["clang-tidy-19", "-quiet", "-p", args.build, str(root / relative)]
        else:
            command = [CLANG, *flags, *common, str(root / relative)]
        jobs.append((str(relative), command, None))
    if not args.tidy:
        for top in OURS:
            for header in sorted((root / top).rglob("*.h")):
                relative = header.relative_to(root)
                if any(str(relative).startswith(s) for s in args.skip):
                    continue
                flags = by_folder.get(relative.parent) or folder_flags.get(relative.parts[0])
                if flags is None:
                    continue
                command = [CLANG, *flags, *common, "-Wno-unused", "-x", "c++", "-"]
                jobs.append((f"{relative} (by itself)", command, f'#include "{relative}"\n'))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for label, code, text in pool.map(check, jobs):
            if code != 0:
                failed += 1
                print(f"{label}:\n{text}\n")
    print(f"{len(jobs)} checks, {failed} failed")
    return 1 if failed or not jobs else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    sys.exit(main())
