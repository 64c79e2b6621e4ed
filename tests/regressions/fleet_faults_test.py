#!/usr/bin/env python3
"""What a fleet met once: a slow link, and more agents than a login's descriptors.

usage: fleet_faults_test.py BIN_DIR [unittest arguments]
"""
import contextlib
import pathlib
import re
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cluster"))
from assay_local import ROOT, local, main, wait_for  # noqa: E402
from wire import Wire  # noqa: E402


@contextlib.contextmanager
def coordinator(t, *words, **options):
    """Yields (process, port)."""
    path = t.state_log("coordinator")
    with open(path, "ab") as log:
        child = subprocess.Popen([str(t.bin / "assay-coordinator"), "--state", str(t.state), "--listen",
                                  "127.0.0.1:0", *map(str, words)], env=t.env, cwd=t.dir, stdout=log,
                                 stderr=log, stdin=subprocess.DEVNULL, **options)
    try:
        found = wait_for(lambda: re.search(r"listens on \S*:(\d+)", path.read_text()), 30,
                         f"a listening coordinator: {path.read_text()}")
        yield child, int(found.group(1))
    finally:
        child.terminate()
        child.wait(30)


class SlowLink(unittest.TestCase):
    """A try of a connection was given the time of the back-off: 1 s for a command, half a second for
    the first of an agent. TLS over a link of some hundred milliseconds takes longer."""

    def test_commands_and_agents_come_through_with_tls(self):
        with local() as t:
            def certs(*words):
                t.assay("certs", *words, "--dir", t.dir / "certs", check=0)

            def tls(stem):
                folder = t.dir / "certs"
                return ["--tls-ca", folder / "ca.crt", "--tls-cert", folder / f"{stem}.crt", "--tls-key",
                        folder / f"{stem}.key"]
            certs("init")
            certs("coordinator", "--host", "127.0.0.1")
            certs("user", "ada", "--role", "admin")
            certs("agent", "n1")
            with coordinator(t, *tls("coordinator")) as (_, port):
                wire = Wire(port, delay=0.4)
                address = f"127.0.0.1:{wire.port}"
                done = t.assay("agents", "--coordinator", address, *tls("users/ada"))
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(t.state_log("n1"), "ab") as log:
                    agent = subprocess.Popen(
                        [str(t.bin / "assay-agent"), "--node", "n1", "--state", str(t.dir / "n1"),
                         "--coordinator", address, *map(str, tls("agents/n1"))],
                        env=t.env, cwd=t.dir, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
                wait_for(lambda: "session 1 with" in t.logs(), 30, "a session")
                self.assertNotIn("no session", t.state_log("n1").read_text())
                agent.terminate()
                agent.wait(30)
                wire.close()


class Descriptors(unittest.TestCase):
    """The soft limit of a login or a service is 1024, and 4,096 agents are admitted."""

    def test_the_coordinator_takes_what_it_may(self):
        def few():
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < 1024:
            self.skipTest(f"the hard limit here is {hard}")
        with local() as t, coordinator(t, preexec_fn=few) as (child, _):
            limits = pathlib.Path(f"/proc/{child.pid}/limits").read_text()
            soft = int(re.search(r"Max open files\s+(\d+)", limits).group(1))
            self.assertEqual(soft, min(hard, 8192))


class Heartbeat(unittest.TestCase):
    def test_values_that_make_no_sense_are_refused(self):
        with local() as t:
            for value in ("0.1", "601", "-1", "soon"):
                done = subprocess.run([str(t.bin / "assay-coordinator"), "--state", str(t.state),
                                       "--listen", "127.0.0.1:0", "--heartbeat", value], env=t.env,
                                      capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 2, done)
                self.assertRegex(done.stderr, "heartbeat")
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Units(unittest.TestCase):
    """The systemd units call the programs with options that they know."""

    def test_their_commands_are_understood(self):
        for program in ("coordinator", "agent"):
            unit = ROOT / program / "systemd" / f"assay-{program}.service"
            start = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.M).group(1).split()
            self.assertEqual(pathlib.Path(start[0]).name, f"assay-{program}")
            with local() as t:
                config = t.dir / "config.yaml"
                config.write_text("listen: 127.0.0.1:0\ncoordinator: 127.0.0.1:7070\n")
                words = [str(config) if word.startswith("/etc/") else word for word in start[1:]]
                done = subprocess.run([str(t.bin / f"assay-{program}"), *words, "--print-config"],
                                      env=t.env, capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("/var/lib/assay", done.stdout)


if __name__ == "__main__":
    main()
