#!/usr/bin/env python3
"""docs/cases.md names tests that exist, and each of its cases has one or a later piece of work.

usage: cases_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
known = set()
for path in (root / "tests").rglob("*"):
    if path.suffix == ".cc":
        known.update(".".join(m) for m in
                     re.findall(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", path.read_text()))
    elif path.suffix == ".py":
        known.update(re.findall(r"^\s+def (test_\w+)\(", path.read_text(), re.M))
faults = []
numbers = []
for line in (root / "docs" / "cases.md").read_text().splitlines():
    row = re.fullmatch(r"\| (\d+) \| (.+) \| (.+) \|", line)
    if not row:
        continue
    numbers.append(int(row[1]))
    named = re.findall(r"`([^`]+)`", row[3])
    faults += [f"case {row[1]}: there is no test {name}" for name in named if name not in known]
    if not named and "later: " not in row[3]:
        faults.append(f"case {row[1]}: neither a test nor the later piece of work")
if len(numbers) < 40 or numbers != sorted(set(numbers)):
    faults.append(f"the table has the cases {numbers}")
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
