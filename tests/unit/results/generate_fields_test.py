"""The generator of the field table refuses a bad list and writes nothing. Argument: the generator."""

import os
import subprocess
import sys
import tempfile
import unittest

GENERATOR = sys.argv.pop(1)
GOOD = '{name: key, type: text, source: plan, doc: "Hash."}'


class GenerateFieldsTest(unittest.TestCase):
    def generate(self, *fields, extra=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "fields.yaml")
            header = os.path.join(folder, "fields.h")
            with open(path, "w", encoding="utf-8") as file:
                file.write("schema: 1\nfields:\n" + "".join(f"  - {field}\n" for field in fields))
            done = subprocess.run([sys.executable, GENERATOR, path, "--header", header, *extra],
                                  capture_output=True, text=True, check=False)
            text = None
            if os.path.exists(header):
                with open(header, encoding="utf-8") as file:
                    text = file.read()
            return done, text

    def refused(self, part, *fields):
        done, text = self.generate(*fields)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(part, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        self.assertIsNone(text)

    def test_names_become_enumerators(self):
        done, text = self.generate(
            GOOD, '{name: step_p50_ms, type: number, source: runner, doc: "Median."}')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  kKey,\n  kStepP50Ms,\n", text)
        self.assertIn("kFieldCount = 2", text)

    def test_doubled_name(self):
        self.refused("'key' twice", GOOD, GOOD)

    def test_unknown_type(self):
        self.refused("type 'float'", '{name: key, type: float, source: plan, doc: "x"}')

    def test_unknown_source(self):
        self.refused("source 'user'", '{name: key, type: text, source: user, doc: "x"}')

    def test_bad_name(self):
        self.refused("bad field name", '{name: Key-1, type: text, source: plan, doc: "x"}')

    def test_missing_doc(self):
        self.refused("no doc", "{name: key, type: text, source: plan}")

    def test_unknown_key(self):
        self.refused("unknown keys", '{name: key, type: text, source: plan, doc: x, units: s}')

    def test_stale_documents_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "results.md")
            schema = os.path.join(folder, "results.schema.json")
            with open(page, "w", encoding="utf-8") as file:
                file.write("# Results\n<!-- fields: begin (generated from catalog/fields.yaml by "
                           "cmake/generate_fields.py) -->\n<!-- fields: end -->\nafter\n")
            extra = ["--docs", page, "--schema", schema]
            self.assertEqual(self.generate(GOOD, extra=extra + ["--check"])[0].returncode, 1)
            self.assertEqual(self.generate(GOOD, extra=extra)[0].returncode, 0)
            self.assertEqual(self.generate(GOOD, extra=extra + ["--check"])[0].returncode, 0)
            with open(page, encoding="utf-8") as file:
                text = file.read()
            self.assertIn("| `key` | text | plan | Hash. |", text)
            self.assertTrue(text.endswith("<!-- fields: end -->\nafter\n"))


if __name__ == "__main__":
    unittest.main()
