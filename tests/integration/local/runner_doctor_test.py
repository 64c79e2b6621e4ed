"""`assay doctor --runner`: who keeps the protocol of runners, and who is told what is wrong; and the
example in Python with PyTorch, by a real run."""
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import ROOT, Local, bin_dir, local, main  # noqa: E402

EXAMPLE = ROOT / "examples" / "runners" / "pytorch"
REFERENCE = pathlib.Path(os.environ.get("ASSAY_REFERENCE", ROOT / ".deps/reference"))

# A runner of a few lines, in which BEHAVIOUR changes what is wrong: `info`, `hello`, `records` (the
# lines), `fields`, `end` (what it does at the end of a good cell). CARELESS is wrong wherever it does
# not spoil the good cell.
RUNNER = """#!{python} -IS
import json, os, select, signal, sys, threading, time
words = sys.argv[1:]
careless = bool(os.environ.get("CARELESS"))
info = {{"runner": "odd", "protocol": 1, "versions": {{"runner": "1"}}, "models": ["mine"],
        "modes": ["infer"], "precisions": ["fp32"], "lanes": ["eager"], "layouts": [],
        "arch_list": [], "device_kinds": ["cpu"], "max_world_size": 1, "simulated": False}}
def wrong(code=2):
    print("odd: wrong", file=sys.stderr)
    sys.exit(0 if careless else code)
def behave(place):
    exec(os.environ.get("BEHAVIOUR_" + place, ""), globals())
if "--stack-info" in words:
    behave("INFO")
    print(json.dumps(info)); sys.exit()
if "--version" in words:
    if not careless: print("odd 1")
    sys.exit()
if "--list" in words:
    print("another" if careless else "mine"); sys.exit()
if "--describe" in words:
    if words[1] != "mine": wrong()
    print(json.dumps({{"model": "mine", "parameters": None, "sample_unit": "img"}})); sys.exit()
if "--cell" not in words: wrong()
place = words[words.index("--cell") + 1]
try:
    cell = json.loads(sys.stdin.read() if place == "-" else open(place).read())
    spec = cell["spec"]
    assert cell["protocol"] == 1 and spec["batch"] > 0 and spec["batch"] % spec["accumulate"] == 0
    if careless: assert "key_of_a_later_version" not in cell
except Exception:
    wrong()
if "--lifeline" in words and not careless:
    def watch():
        while select.select([4], [], [], 2)[0] and os.read(4, 9): pass
        os._exit(143)
    threading.Thread(target=watch, daemon=True).start()
if careless: signal.signal(signal.SIGTERM, signal.SIG_IGN)
target = words[words.index("--records") + 1]
out = 3 if target == "fd:3" else os.open(target, os.O_WRONLY | os.O_CREAT)
def say(**record): os.write(out, json.dumps(record).encode() + b"\\n")
hello = {{"record": "hello", "protocol": 1, "runner": "odd", "uuid": cell["device"]["uuid"]}}
code, outcome, reason = 0, "ok", ""
if not careless:
    for key, value in (("model", "mine"), ("precision", "fp32"), ("lane", "eager")):
        if spec[key] != value: code, outcome, reason = 4, "unsupported", "value_not_in_stack"
    if spec["batch"] > 1000: code, outcome, reason = 3, "mem_limit", "out_of_memory"
elif spec["batch"] > 1000:
    code, outcome, reason = 1, "fail", "runner_error"
seconds = 0.0
behave("HELLO")
if hello: say(**hello)
if outcome == "ok":
    say(record="joined")
    behave("JOINED")
    say(record="phase", phase="measure")
    begin = time.monotonic()
    time.sleep(spec["stop"]["max_seconds"])
    seconds = time.monotonic() - begin
    say(record="progress", step=10)
    say(record="phase", phase="finish")
steps = 10
fields = {{"throughput": steps * spec["batch"] / (seconds or 1), "unit": "img/s", "steps": steps,
          "device_steps": steps, "samples": steps * spec["batch"], "seconds": seconds,
          "host_seconds": seconds, "stop_reason": "max_seconds", "world_size": 1, "method_version": 1}}
if careless: fields["own_figure"] = 1
behave("RESULT")
say(record="result", outcome=outcome, reason=reason, message="" if outcome == "ok" else "why",
    fields=fields if outcome == "ok" else {{}})
sys.exit(code)
"""
# What is wrong with the good cell, in place: which check says so, and a word of what it says.
FAULTS = (
    ("INFO", "info['protocol'] = 9", "stack-info", "protocol 9"),
    ("INFO", "del info['models']", "stack-info", "models"),
    ("INFO", "print('starting up')", "stack-info", "--stack-info"),
    ("HELLO", "hello = None", "records", "no hello"),
    ("HELLO", "hello['uuid'] = 'GPU-9'", "records", "GPU-9"),
    ("HELLO", "os.write(out, b'loading...\\n')", "cell", "loading..."),
    ("HELLO", "1 / 0", "cell", "ZeroDivisionError"),
    ("JOINED", "os.kill(os.getpid(), 9)", "cell", "SIGKILL"),
    ("JOINED", "time.sleep(60)", "cell", "still running after 4 s"),
    ("RESULT", "outcome = 'fail'", "cell", "came to fail"),
    ("RESULT", "code = 7", "cell", "exit code 7"),
    ("RESULT", "fields['device_steps'] -= 1", "figures", "counted on the device"),
    ("RESULT", "fields['seconds'] = fields['host_seconds'] = seconds * 3; fields['throughput'] /= 3",
     "figures", "the agent's"),
)


def report_of(t, program, *words):
    done = t.assay("doctor", "--runner", program, *words, "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == (1 if report["worst"] == "bad" else 0), done
    return {check["name"]: check for check in report["checks"]}


def by_state(checks, state):
    return {name for name, check in checks.items() if check["state"] == state}


class Runners(unittest.TestCase):
    def test_the_simulator_conforms(self):
        with local() as t:
            done = t.assay("doctor", "--runner", bin_dir() / "assay-simulate", check=0)
            self.assertIn(": 20 ok\n", done.stdout)

    def test_the_worked_example_of_the_page_conforms(self):
        page = (ROOT / "docs" / "runner-protocol.md").read_text()
        example = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        with local() as t:
            checks = report_of(t, t.own_stacks(example) / "runner")
            self.assertEqual(by_state(checks, "ok"), set(checks), checks)
            self.assertEqual(len(checks), 20)

    def test_a_model_of_ones_own_runs_and_travels(self):
        page = (ROOT / "docs" / "runner-protocol.md").read_text()
        with local(devices="cpu") as t, local() as elsewhere:
            folder = t.own_stacks(re.search(r"```python\n(.*?)```", page, re.S).group(1))
            (folder / "mine.json").write_text(json.dumps({"name": "mine-1.0", "program": "runner"}))
            t.assay("run", t.matrix("""
axes: {model: own/matmul_48, mode: infer, batch: 2}
repeat: 1
stop: {confidence: 0.01, min_seconds: 0.1, max_seconds: 0.3}
"""), "--quiet", check=0)
            t.assay("export", "last", "-o", t.dir / "mine.assay", check=0)
            elsewhere.assay("merge", t.dir / "mine.assay", check=0)
            for row in t.results() + elsewhere.results():
                self.assertEqual((row["model"], row["outcome"], row["verdict"], row["unit"]),
                                 ("own/matmul_48", "ok", "valid", "products/s"), row)

    def test_what_is_wrong_with_a_good_cell_is_named(self):
        with local() as t:
            folder = t.own_stacks(RUNNER.format(python=sys.executable))

            def checks_of(number):
                manifest = folder / f"odd{number}.json"
                manifest.write_text(json.dumps({"name": f"odd{number}", "program": "runner", "env": {
                    "BEHAVIOUR_" + FAULTS[number][0]: FAULTS[number][1]}}))
                return report_of(t, manifest, "--cell-seconds", "4")

            # They mostly wait.
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                reports = list(pool.map(checks_of, range(len(FAULTS))))
            for (_, behaviour, name, word), checks in zip(FAULTS, reports):
                with self.subTest(behaviour):
                    self.assertEqual(checks[name]["state"], "bad", checks)
                    self.assertIn(word, checks[name]["finding"])
                    self.assertTrue(checks[name]["remedy"])

    def test_each_of_many_faults_is_named_at_once(self):
        with local() as t:
            folder = t.own_stacks(RUNNER.format(python=sys.executable))
            (folder / "odd.json").write_text(json.dumps(
                {"name": "odd", "program": "runner", "env": {"CARELESS": "1"}}))
            checks = report_of(t, folder / "odd.json")
            self.assertEqual(by_state(checks, "bad"), {
                "list", "describe", "arguments", "by-hand", "unknown-model", "unknown-precision",
                "unknown-lane", "bad-cell", "memory", "sigterm", "lifeline-end", "lifeline-silence"})
            self.assertEqual(by_state(checks, "warning"), {"version", "fields"})
            self.assertIn("own_figure", checks["fields"]["finding"])
            self.assertEqual(t.processes(), [])

    def test_no_such_program_is_bad_input(self):
        with local() as t:
            (t.dir / "text").write_text("x")
            (t.dir / "broken.json").write_text("{")
            for path, word in (("/no/such/program", "no program"), (t.dir / "text", "chmod +x"),
                               (t.dir, "no program"), (t.dir / "broken.json", "not a JSON object")):
                done = t.assay("doctor", "--runner", path, check=2)
                self.assertIn(word, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


def example_stack():
    """The manifest of the example with the torch that tests compare with."""
    if not (REFERENCE / "site" / "torch").is_dir():
        raise unittest.SkipTest("no torch for Python: python3 cmake/fetch_reference.py fetches it")
    site = REFERENCE / "site"
    return {"name": "pytorch", "program": str(EXAMPLE / "runner.py"), "env": {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
        "LD_LIBRARY_PATH": f"{REFERENCE}/stub:{site}/nvidia/cu13/lib"}}


def run_example(case, lane, modes, **environment):
    stack = example_stack()
    stack["env"].update(environment)
    with Local(bin_dir(), devices="cpu") as t:
        (t.own_stacks() / "pytorch.json").write_text(json.dumps(stack))
        t.assay("run", t.matrix(f"""
axes: {{model: resnet50, mode: {modes}, precision: fp32, batch: 2, lane: {lane}, image: 64x64}}
repeat: 1
stop: {{confidence: 0.05, min_seconds: 0.2, max_seconds: 0.4}}
"""), "--quiet", check=0, timeout=280)
        for row in t.results():
            case.assertEqual((row["outcome"], row["verdict"], row["stack"], row["lane"]),
                             ("ok", "valid", "pytorch", lane), row)
            case.assertGreater(row["throughput"], 0)


class Example(unittest.TestCase):
    def test_it_trains_a_cell_of_a_run(self):
        run_example(self, "eager", "train")


class ExampleLong(unittest.TestCase):
    def test_it_compiles(self):
        # The torch of the reference has no headers, which inductor compiles with; LibTorch's has.
        headers = sorted(ROOT.glob(".deps/libtorch-2.11*/torch/include"))
        if not headers:
            self.skipTest("no headers of torch: cmake/fetch_libtorch.py fetches them")
        path = f"{headers[0]}:{headers[0]}/torch/csrc/api/include"
        with tempfile.TemporaryDirectory() as cache:
            run_example(self, "compile", "[train, infer]", CPLUS_INCLUDE_PATH=path,
                        TORCHINDUCTOR_CACHE_DIR=cache)

    def test_it_conforms(self):
        with local() as t:
            manifest = t.dir / "pytorch.json"
            manifest.write_text(json.dumps(example_stack()))
            checks = report_of(t, manifest)
            self.assertEqual(by_state(checks, "ok"), set(checks), checks)


if __name__ == "__main__":
    main()
