#!/usr/bin/env python3
"""What tests/cluster/netns.py says of itself: hosts, faults, and nothing left of a killed test.

usage: netns_test.py BIN_DIR [unittest arguments]
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
import netns  # noqa: E402
from assay_local import main, wait_for  # noqa: E402

ECHO = """
import socket
server = socket.create_server(("0.0.0.0", 7000))
print("listens", flush=True)
while True:
    peer, _ = server.accept()
    peer.settimeout(5)
    try:
        peer.sendall(peer.recv(1))
    except OSError:
        pass
    peer.close()
"""
ASK = """
import socket, sys, time
begun = time.monotonic()
with socket.create_connection((sys.argv[1], 7000), 1.5) as peer:
    peer.sendall(b"x")
    assert peer.recv(1) == b"x"
print(time.monotonic() - begun)
"""


@contextlib.contextmanager
def network(hosts="ab"):
    folder = tempfile.mkdtemp(prefix="assay-t-")
    try:
        with netns.Network(folder, list(hosts), seed=1) as net:
            server = subprocess.Popen(net["a"].command([sys.executable, "-c", ECHO]),
                                      stdout=subprocess.PIPE, text=True)
            server.stdout.readline()
            yield net
            server.kill()
            server.communicate()
    finally:
        shutil.rmtree(folder)


def ask(net, host, address):
    """Seconds for one answer of host a; nothing where there is none."""
    done = subprocess.run(net[host].command([sys.executable, "-c", ASK, address]),
                          capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


class Network(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if reason := netns.refusal():
            raise unittest.SkipTest(reason)

    def test_a_cable_is_cut_and_healed(self):
        with network() as net:
            self.assertLess(ask(net, "b", net["a"].address), 1)
            net.cut("b")
            self.assertIsNone(ask(net, "b", net["a"].address))
            net.heal("b")
            self.assertIsNotNone(ask(net, "b", net["a"].address))

    def test_each_direction_is_lost_by_itself(self):
        with network("abc") as net:
            for sender, receiver in (("b", "a"), ("a", "b")):
                net.deafen(sender, receiver)
                self.assertIsNone(ask(net, "b", net["a"].address))
                self.assertIsNotNone(ask(net, "c", net["a"].address))
                net.hear(sender, receiver)
                self.assertIsNotNone(ask(net, "b", net["a"].address))

    def test_the_router_delays_and_loses(self):
        with network() as net:
            self.assertLess(ask(net, "b", net["a"].slow_address), 0.2)
            net.slow(0.1, 0)
            # The connection and the answer: two round trips.
            self.assertGreater(ask(net, "b", net["a"].slow_address), 0.4)
            self.assertLess(ask(net, "b", net["a"].address), 0.2)
            net.slow(0, 1)
            self.assertIsNone(ask(net, "b", net["a"].slow_address))
            net.slow(0, 0)
            net.slow_cut("b", "a")
            self.assertIsNone(ask(net, "b", net["a"].slow_address))
            self.assertGreater(net.counts()["lost"], 0)

    def test_hosts_have_machine_ids_of_their_own(self):
        with network() as net:
            if not netns.has_machine_id():
                self.skipTest("this machine has none")
            ids = {subprocess.run(net[host].command(["cat", "/etc/machine-id"]), capture_output=True,
                                  text=True, check=True).stdout for host in "ab"}
            self.assertEqual(len(ids), 2)

    def test_what_a_killed_test_leaves_is_removed_by_the_next(self):
        folder = tempfile.mkdtemp(prefix="assay-t-")
        script = (f"import sys; sys.path.insert(0, {str(netns.ROUTER.parent)!r}); import netns, time, "
                  f"subprocess\nwith netns.Network({folder!r}, ['a', 'b']) as net:\n"
                  "  subprocess.Popen(net['a'].command(['sleep', '100']))\n"
                  "  print('up', flush=True); time.sleep(100)")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "up\n")
        mine = f"{netns.PREFIX}-{child.pid}-"
        host = f"{mine}a"
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        self.assertTrue([name for name in netns.namespaces() if name.startswith(mine)])
        pids = netns.run("ip", "netns", "pids", host).stdout.split()
        self.assertTrue(pids)
        with network():
            self.assertEqual([n for n in netns.namespaces() if n.startswith(mine)], [])
            wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 5, "its processes")
            # One that lives is left alone.
            self.assertTrue([n for n in netns.namespaces() if f"-{os.getpid()}-" in n])
        self.assertEqual([n for n in netns.namespaces() if f"-{os.getpid()}-" in n], [])
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
