"""Hosts as network namespaces of this machine, joined by veth pairs and a bridge; surely torn down.

    with Network(local.dir, ["a", "b", "c"]) as net:
        net["b"].start(["assay-agent", ...], env, log)
        net.cut("b"); net.heal("b")                # the cable, without a FIN
        net.deafen("b", "a"); net.hear("b", "a")   # b's packets to a go nowhere, a's reach b
        net.slow(0.2, 0.05)                        # what goes over the slow addresses

Every host has two addresses: `address` over the bridge, and `slow_address` over a router in user
space (packet_router.py) that delays and drops IP packets by a seed, since netem is not in every
kernel. Each has a machine id of its own. Names carry the pid of the test; the next Network removes
what a killed one left, and a namespace takes its devices and bridge along.

Needs root, iproute2 and /dev/net/tun; refusal() says why it cannot be. Only the standard library.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

PREFIX = "assay-t"
ROUTER = pathlib.Path(__file__).resolve().parent / "packet_router.py"
# A MAC address that nobody has: what is sent to it is flooded by the bridge and dropped by all.
NOBODY = "02:00:00:00:00:fe"


def run(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done


def refusal():
    """Why no network can be made here, or nothing."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "ip (iproute2) is not installed"
    name = f"{PREFIX}-{os.getpid()}-try"
    tried = run("ip", "netns", "add", name, check=False)
    if tried.returncode != 0:
        return f"no network namespace: {tried.stderr.strip()}"
    wire = run("ip", "-n", name, "link", "add", "x", "type", "veth", "peer", "name", "y", check=False)
    bridge = run("ip", "-n", name, "link", "add", "z", "type", "bridge", check=False)
    run("ip", "netns", "del", name, check=False)
    for what, done in (("veth", wire), ("bridge", bridge)):
        if done.returncode != 0:
            return f"this kernel makes no {what}: {done.stderr.strip()}"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


def namespaces():
    return [line.split()[0] for line in run("ip", "netns", "list").stdout.splitlines() if line]


def remove(name):
    """A namespace of ours and every process in it."""
    for _ in range(50):
        pids = run("ip", "netns", "pids", name, check=False).stdout.split()
        if not pids:
            break
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)
    run("ip", "netns", "del", name, check=False)


def remove_leftovers():
    """What tests left that are no more."""
    for name in namespaces():
        found = re.fullmatch(PREFIX + r"-(\d+)-\w+", name)
        if found and not pathlib.Path("/proc", found.group(1)).exists():
            remove(name)


class Host:
    def __init__(self, network, name, number):
        self.name = name
        self.namespace = f"{PREFIX}-{os.getpid()}-{name}"
        self.address = f"10.77.0.{number}"
        self.slow_address = f"10.78.0.{number}"
        self.mac = f"02:00:00:00:00:{number:02x}"
        self.machine_id = network.dir / f"machine-id-{name}"
        self.machine_id.write_text(f"{number:032x}\n")

    def ip(self, *words):
        run("ip", "-n", self.namespace, *words)

    def command(self, words, tmpfs=None):
        """`words` as a command on this host; its process is that of the command itself. `tmpfs`:
        (folder, size) of a small disk of its own, seen by it alone (disk_of finds it)."""
        script = f'mount --bind "{self.machine_id}" /etc/machine-id\n' if has_machine_id() else ""
        if tmpfs:
            script += f'mount -t tmpfs -o size={tmpfs[1]} tmpfs "{tmpfs[0]}"\n'
        # `ip netns exec` gives it mounts of its own.
        return ["ip", "netns", "exec", self.namespace, "sh", "-ec", script + 'exec "$@"', "sh",
                *map(str, words)]

    def start(self, words, env, log, tmpfs=None):
        with open(log, "ab") as out:
            return subprocess.Popen(self.command(words, tmpfs), env=env, stdin=subprocess.DEVNULL,
                                    stdout=out, stderr=out, start_new_session=True)

    def pids(self):
        return [int(pid) for pid in
                run("ip", "netns", "pids", self.namespace, check=False).stdout.split()]


def has_machine_id():
    return os.path.exists("/etc/machine-id")


def disk_of(pid, path):
    """A path as the process `pid` sees it."""
    return pathlib.Path(f"/proc/{pid}/root{path}")


class Network:
    def __init__(self, folder, hosts, seed=0):
        self.dir = pathlib.Path(folder)
        self.seed = seed
        self.switch = f"{PREFIX}-{os.getpid()}-switch"
        self.hosts = {}
        self.names = list(hosts)
        self.router = None

    def __enter__(self):
        remove_leftovers()
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __getitem__(self, name):
        return self.hosts[name]

    def _build(self):
        run("ip", "netns", "add", self.switch)
        run("ip", "-n", self.switch, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "br0", "up")
        for number, name in enumerate(self.names, 1):
            host = self.hosts[name] = Host(self, name, number)
            run("ip", "netns", "add", host.namespace)
            run("ip", "-n", self.switch, "link", "add", f"to-{name}", "type", "veth", "peer", "name",
                "eth0", "address", host.mac, "netns", host.namespace)
            run("ip", "-n", self.switch, "link", "set", f"to-{name}", "master", "br0", "up")
            host.ip("link", "set", "lo", "up")
            host.ip("addr", "add", f"{host.address}/24", "dev", "eth0")
            host.ip("link", "set", "eth0", "up")
        self.router = subprocess.Popen(
            [sys.executable, str(ROUTER), str(self.seed),
             *(f"{host.namespace}={host.slow_address}" for host in self.hosts.values())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.router.stdout.readline().strip() != "ready":
            raise RuntimeError("the router of packets did not start")

    def __exit__(self, *_):
        if self.router:
            self.router.kill()
            self.router.communicate()
        for host in self.hosts.values():
            remove(host.namespace)
        remove(self.switch)

    # --- faults

    def cut(self, name):
        """The cable is out: neither side hears of it by a packet."""
        run("ip", "-n", self.switch, "link", "set", f"to-{name}", "down")

    def heal(self, name):
        run("ip", "-n", self.switch, "link", "set", f"to-{name}", "up")

    def deafen(self, sender, receiver):
        """What `sender` sends to `receiver` is lost on the way; the other direction works."""
        self[sender].ip("neigh", "replace", self[receiver].address, "lladdr", NOBODY, "dev", "eth0",
                        "nud", "permanent")

    def hear(self, sender, receiver):
        self[sender].ip("neigh", "replace", self[receiver].address, "lladdr", self[receiver].mac,
                        "dev", "eth0", "nud", "reachable")

    def slow(self, delay, loss):
        """Of every packet over the slow addresses: seconds on its way, and how many are lost."""
        self._tell({"delay": delay, "loss": loss})

    def slow_cut(self, sender, receiver, is_cut=True):
        self._tell({"cut": [self[sender].slow_address, self[receiver].slow_address],
                    "is_cut": is_cut})

    def counts(self):
        """Packets of the router: {"passed": n, "lost": n}."""
        return self._tell({"counts": True})

    def _tell(self, order):
        self.router.stdin.write(json.dumps(order) + "\n")
        self.router.stdin.flush()
        return json.loads(self.router.stdout.readline())
