"""Real coordinator, agent and runners of one state directory, for tests; surely torn down.

    class Some(unittest.TestCase):
        def test_it(self):
            with local() as t:
                t.assay("run", t.matrix(SMALL), check=0)

    if __name__ == "__main__":
        main()  # usage: some_test.py BIN_DIR [unittest arguments]

Every process is found again by the state directory in its command line or environment, so nothing
outlives the `with`, whatever the test did to it. Only the standard library is used.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
ONE_CARD = FIXTURES / "nvml" / "rtx3090.json"
# Four cells of a simulated card, done in a second.
SMALL = """
name: small
axes:
  model: [resnet50]
  precision: [amp-fp16]
  batch: [32, 64]
repeat: 2
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
"""
# One cell for each of two batches; a runner that says nothing is given up soon.
TWO_CELLS = """
name: small
axes: {model: resnet50, precision: amp-fp16, batch: [32, 64]}
repeat: 1
stop: {confidence: 0.01, min_seconds: 0.05, max_seconds: 0.2}
limits: {cell_seconds: 300, no_step_seconds: 10}
"""
# CTest's code of a test that could not run (SKIP_RETURN_CODE).
SKIPPED = 77

_bin = None


def main():
    """Runs the test cases of the calling script. One that was skipped makes the whole of it show as
    skipped, with its reason: what did not run must not count as passed."""
    global _bin
    _bin = pathlib.Path(sys.argv.pop(1)).resolve()
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful() or not (result.testsRun or result.skipped):
        sys.exit(1)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(SKIPPED if result.skipped else 0)


def bin_dir():
    """Where the programs under test are; known once main() has begun."""
    return _bin


def hold_port():
    """(port, file): a TCP port that a program can listen on again and again, for as long as the file is
    open. Below those that the kernel gives to others, and held against other tests of this machine,
    since a port that is free now is somebody's as soon as its program is killed."""
    folder = pathlib.Path(tempfile.gettempdir()) / "assay-test-ports"
    folder.mkdir(mode=0o777, exist_ok=True)
    while True:
        port = random.SystemRandom().randrange(12000, 32000)
        held = open(folder / str(port), "a")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
            return port, held
        except OSError:
            held.close()


def sanitized():
    """Whether the programs under test are built with a sanitizer: slower, and larger in memory."""
    cache = bin_dir().parent / "CMakeCache.txt"
    return cache.exists() and re.search(r"^ASSAY_SANITIZE:\w+=.", cache.read_text(), re.M) is not None


def local(simulate=None, devices=ONE_CARD, **env):
    return Local(bin_dir(), devices=devices, simulate=simulate, extra_env=env)


class Local:
    def __init__(self, bin_dir, devices=None, simulate=None, extra_env=None):
        self.bin = pathlib.Path(bin_dir).resolve()
        self.devices = devices
        self.simulate = simulate
        self.extra_env = extra_env or {}

    def __enter__(self):
        # Short, since a Unix socket's path has 107 bytes.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="assay-t-"))
        self.state = self.dir / "state"
        (self.dir / "run").mkdir(mode=0o700)
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.dir),
            "XDG_RUNTIME_DIR": str(self.dir / "run"),
            "ASSAY_STATE": str(self.state),
            "ASSAY_LOCK_DIR": str(self.dir / "locks"),
            "LC_ALL": "C.UTF-8",
        }
        if self.devices:
            self.env["ASSAY_DEVICES"] = str(self.devices)
        if self.simulate:
            self.env["ASSAY_SIMULATE"] = self.simulate
        # What a sanitizer says of any program, daemons included, is read when all have ended.
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            self.env[name] = (f"log_path={self.dir}/sanitizer:log_exe_name=1:print_stacktrace=1:"
                              f"external_symbolizer_path={shutil.which('addr2line')}")
        known = ROOT / "tests" / "cluster" / "leaks_of_libraries.txt"
        self.env["LSAN_OPTIONS"] = f"suppressions={known}:print_suppressions=0"
        self.env.update(self.extra_env)
        return self

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + 5
            while self.processes() and time.monotonic() < deadline:
                for pid, _ in self.processes():
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        pass
                time.sleep(0.1)
        reports = "\n".join(path.name + "\n" + path.read_text(errors="replace")[:8000]
                            for path in sorted(self.dir.glob("sanitizer.*")))
        shutil.rmtree(self.dir, ignore_errors=True)
        if reports:
            raise AssertionError(reports)

    def runners(self):
        """As processes(), of the runners that have a cell (and not those asked what they can do)."""
        return [found for found in self.processes() if " --cell " in found[1] + " "]

    def processes(self, program=None):
        """(pid, command line) of every live process of this state directory."""
        found = []
        mark = str(self.dir).encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                line = pathlib.Path("/proc", entry, "cmdline").read_bytes()
                environ = pathlib.Path("/proc", entry, "environ").read_bytes()
                state = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if state in "ZX" or (mark not in line and mark not in environ):
                continue
            words = line.decode(errors="replace").split("\0")
            if program and pathlib.Path(words[0]).name != program:
                continue
            found.append((int(entry), " ".join(words).strip()))
        return found

    def own_stacks(self, runner=None):
        """A folder for manifests in place of the installed ones. `runner`: text of a program there of that name."""
        folder = self.dir / "stacks"
        folder.mkdir()
        self.env["ASSAY_STACKS"] = str(folder)
        if runner is not None:
            (folder / "runner").write_text(runner)
            (folder / "runner").chmod(0o755)
        return folder

    def assay(self, *words, timeout=120, check=None, env=None, stdout=subprocess.PIPE):
        done = subprocess.run([str(self.bin / "assay"), *map(str, words)], stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=timeout, cwd=self.dir,
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL)
        if check is not None and done.returncode != check:
            raise AssertionError(f"assay {' '.join(map(str, words))}: exit {done.returncode}, not "
                                 f"{check}\nstdout:\n{done.stdout}\nstderr:\n{done.stderr}\n"
                                 f"{self.logs()}")
        return done

    def start(self, *words):
        return subprocess.Popen([str(self.bin / "assay"), *map(str, words)], cwd=self.dir,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.env)

    def results(self, run="last"):
        return json.loads(self.assay("results", run, "--format", "json", check=0).stdout)

    def state_log(self, program):
        """Where a program that the test starts itself may write; `logs` shows it."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        return self.state / f"{program}.log"

    def matrix(self, text, name="m.yaml"):
        path = self.dir / name
        path.write_text(text)
        return path

    def logs(self):
        text = ""
        for log in sorted(self.state.rglob("*.log")) if self.state.exists() else []:
            text += f"== {log.relative_to(self.dir)}\n{log.read_text(errors='replace')[-3000:]}\n"
        return text

    def kill(self, program, number=signal.SIGKILL):
        """Signals every live process of that program; how many there were."""
        victims = self.processes(program)
        for pid, _ in victims:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        return len(victims)


def programs(bin_dir):
    """Of result files, which programs made them: their version, and what tells one build of it from
    another."""
    folder = pathlib.Path(bin_dir).resolve()
    said = subprocess.run([str(folder / "assay"), "version", "--format", "json"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return {"version": json.loads(said)["version"],
            "sha256": {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                       for name in ("assay", "assay-coordinator", "assay-agent", "assay-simulate")}}


def cpu_seconds(pid):
    fields = pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmRSS for {pid}")


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")
