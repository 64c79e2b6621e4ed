#!/usr/bin/env python3
"""Generates everything that is made of catalog/fields.yaml.

  generate_fields.py FIELDS --header H --source S       the field table of common/results
  generate_fields.py FIELDS --docs MD --schema JSON     docs/results.md's table, docs/results.schema.json
  generate_fields.py FIELDS --docs MD --schema JSON --check
                                                        writes nothing; exit 1 where they differ

A wrong entry of the list (unknown type, doubled name, bad spelling) is one line and exit 1.
"""

import argparse
import json
import re
import sys

import yaml

TYPES = {
    "text": "kText",
    "integer": "kInteger",
    "number": "kNumber",
    "flag": "kFlag",
    "list": "kList",
    "count": "kCount",
}
SOURCES = ("plan", "cell", "runner", "agent", "computed")
BEGIN = "<!-- fields: begin (generated from catalog/fields.yaml by cmake/generate_fields.py) -->"
END = "<!-- fields: end -->"


def load(path):
    with open(path, encoding="utf-8") as file:
        tree = yaml.safe_load(file)
    fields = tree["fields"]
    seen = set()
    for field in fields:
        name = field.get("name", "")
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            sys.exit(f"{path}: bad field name '{name}'")
        if name in seen:
            sys.exit(f"{path}: field '{name}' twice")
        seen.add(name)
        if field.get("type") not in TYPES:
            sys.exit(f"{path}: field '{name}' has type '{field.get('type')}', not {list(TYPES)}")
        if field.get("source") not in SOURCES:
            sys.exit(f"{path}: field '{name}' has source '{field.get('source')}', not {SOURCES}")
        if not field.get("doc"):
            sys.exit(f"{path}: field '{name}' has no doc")
        if set(field) - {"name", "type", "source", "doc"}:
            sys.exit(f"{path}: field '{name}' has unknown keys")
    return tree["schema"], fields


def pascal(name):
    return "k" + "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def cpp_string(text):
    return json.dumps(text, ensure_ascii=False)


def header(fields):
    lines = [
        "// Generated from catalog/fields.yaml by cmake/generate_fields.py; do not edit.",
        "#ifndef ASSAY_RESULTS_FIELDS_GEN_H_",
        "#define ASSAY_RESULTS_FIELDS_GEN_H_",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "",
        "namespace assay {",
        "",
        "// In the order of columns. The number is not stable: files and the store use the name.",
        "enum class Field : uint16_t {",
    ]
    lines += [f"  {pascal(field['name'])}," for field in fields]
    lines += [
        "};",
        "",
        f"inline constexpr size_t kFieldCount = {len(fields)};",
        "",
        "}  // namespace assay",
        "",
        "#endif  // ASSAY_RESULTS_FIELDS_GEN_H_",
        "",
    ]
    return "\n".join(lines)


def source(schema, fields):
    lines = [
        "// Generated from catalog/fields.yaml by cmake/generate_fields.py; do not edit.",
        "#include <array>",
        "",
        '#include "common/results/record.h"',
        '#include "common/version.h"',
        "",
        "namespace assay {",
        "",
        f'static_assert(kResultSchema == {schema}, "schema of catalog/fields.yaml");',
        "",
        "namespace {",
        "",
        "constexpr std::array<FieldInfo, kFieldCount> kFields = {{",
    ]
    for field in fields:
        kind = "FieldSource::k" + field["source"].capitalize()
        lines.append(
            f"    {{Field::{pascal(field['name'])}, {cpp_string(field['name'])}, "
            f"FieldType::{TYPES[field['type']]}, {kind},\n     {cpp_string(field['doc'])}}},"
        )
    lines += [
        "}};",
        "",
        "}  // namespace",
        "",
        "std::span<const FieldInfo> AllFields() { return kFields; }",
        "",
        "}  // namespace assay",
        "",
    ]
    return "\n".join(lines)


def markdown(fields):
    lines = [BEGIN, "| field | type | from | meaning |", "| --- | --- | --- | --- |"]
    for field in fields:
        doc = field["doc"].replace("|", "\\|")
        lines.append(f"| `{field['name']}` | {field['type']} | {field['source']} | {doc} |")
    lines.append(END)
    return "\n".join(lines)


def with_table(path, fields):
    """The page at `path` with the table between the markers made anew."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    begin, end = page.find(BEGIN), page.find(END)
    if begin < 0 or end < begin:
        sys.exit(f"{path}: the markers '{BEGIN}' and '{END}' are missing")
    return page[:begin] + markdown(fields) + page[end + len(END):]


def json_schema(schema, fields):
    properties = {}
    for field in fields:
        kind = {
            "text": {"type": ["string", "null"]},
            "integer": {"type": ["integer", "null"]},
            "number": {"type": ["number", "null"]},
            "flag": {"type": ["boolean", "null"]},
            "list": {"type": ["array", "null"], "items": {"type": "string"}},
            "count": {"anyOf": [{"type": ["integer", "null"]}, {"const": "max"}]},
        }[field["type"]]
        properties[field["name"]] = {**kind, "description": field["doc"]}
    tree = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Assay results, schema {schema}",
        "description": "What `assay results RUN --format json` writes: one object a cell; "
        "null is not known.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": properties,
            "required": [field["name"] for field in fields],
            "additionalProperties": False,
        },
    }
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def write(path, text):
    """Leaves an equal file alone, so that nothing is compiled again for nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fields")
    parser.add_argument("--header")
    parser.add_argument("--source")
    parser.add_argument("--docs", help="page with the field table between its markers")
    parser.add_argument("--schema", help="JSON Schema of the results")
    parser.add_argument("--check", action="store_true", help="compare --docs and --schema only")
    args = parser.parse_args()
    schema, fields = load(args.fields)

    outputs = []
    if args.header and not args.check:
        outputs.append((args.header, header(fields)))
    if args.source and not args.check:
        outputs.append((args.source, source(schema, fields)))
    if args.docs:
        outputs.append((args.docs, with_table(args.docs, fields)))
    if args.schema:
        outputs.append((args.schema, json_schema(schema, fields)))
    if not args.check:
        for path, text in outputs:
            write(path, text)
        return 0
    stale = []
    for path, text in outputs:
        try:
            with open(path, encoding="utf-8") as file:
                if file.read() != text:
                    stale.append(path)
        except FileNotFoundError:
            stale.append(path)
    for path in stale:
        print(f"{path} differs from {args.fields}: run cmake/generate_fields.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
