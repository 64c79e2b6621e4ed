#!/usr/bin/env python3
"""Names each test that was skipped, with its reason, out of CTest's JUnit file; also those inside a
program of many tests, which CTest counts as one that passed.

usage: skipped_tests.py CTEST.xml
"""
import collections
import re
import sys
import xml.etree.ElementTree as xml

INSIDE = re.compile(r"^\S+:\d+: Skipped\n(.*?)\n(?:.*\n)*?\[  SKIPPED \] (\S+)", re.MULTILINE)
# unittest: "skipped 'why'"; a script's own: "skipped: why".
PYTHON = re.compile(r"skipped[: ]+'?(.*?)'?$", re.MULTILINE | re.IGNORECASE)


def reasons(path):
    """Reason to the names of what was skipped for it."""
    found = collections.OrderedDict()
    for case in xml.parse(path).getroot().iter("testcase"):
        name, text = case.get("name"), case.findtext("system-out") or ""
        inside = INSIDE.findall(text)
        if case.find("skipped") is None:
            for why, test in inside:
                found.setdefault(why, []).append(f"{name}: {test}")
            continue
        whys = [why for why, _ in inside] or PYTHON.findall(text)
        found.setdefault(whys[0] if whys else "it gives no reason", []).append(name)
    return found


def main():
    found = reasons(sys.argv[1])
    if not found:
        return
    print(f"skipped, {sum(map(len, found.values()))} tests:")
    for why, names in found.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        print(f"  {', '.join(names[:3])}{more}: {why}")
    print()


if __name__ == "__main__":
    main()
