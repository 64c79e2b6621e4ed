"""A fleet over mutual TLS on 127.0.0.1, of the real programs, for a test to bring up and surely stop."""
import contextlib
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import local, wait_for  # noqa: E402


class Fleet:
    """A coordinator on a port of 127.0.0.1, agents and users with certificates of one authority."""

    def __init__(self, t):
        self.t = t
        self.certs = t.dir / "certs"
        self.port = None
        self.children = {}
        t.state.mkdir(mode=0o700, exist_ok=True)
        t.env["ASSAY_LOG_LEVEL"] = "info"

    def make(self, *words, check=0, certs=None, when=None):
        words = ["certs", *words, "--dir", str(certs or self.certs)]
        command = [str(self.t.bin / "assay"), *map(str, words)]
        env = dict(self.t.env)
        if when:
            command = ["faketime", when, *command]
            # The sanitizer's library would have to come before faketime's.
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=self.t.dir)
        if check is not None and done.returncode != check:
            raise AssertionError(f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def standard(self):
        self.make("init")
        self.make("coordinator", "--host", "127.0.0.1", "--host", "localhost")
        self.make("agent", "n1")
        for name, role in (("vera", "view"), ("sam", "submit"), ("sid", "submit"),
                           ("ada", "admin")):
            self.make("user", name, "--role", role)
        return self

    def tls(self, stem, ca=None):
        return ["--tls-ca", str(ca or self.certs / "ca.crt"), "--tls-cert",
                f"{self.certs / stem}.crt", "--tls-key", f"{self.certs / stem}.key"]

    def start(self, name, *words, env=None):
        log = open(self.t.state / f"{name}.log", "a")
        program = "assay-coordinator" if name.startswith("coordinator") else "assay-agent"
        state = self.t.dir / f"state-{name}"
        child = subprocess.Popen([str(self.t.bin / program), "--state", str(state), *words],
                                 stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                 env={**self.t.env, **(env or {})}, cwd=self.t.dir)
        log.close()
        self.children[name] = child
        return child

    def log(self, name):
        return (self.t.state / f"{name}.log").read_text(errors="replace")

    def says(self, name, pattern, seconds=30):
        def found():
            return re.search(pattern, self.log(name))
        try:
            return wait_for(found, seconds, pattern)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.t.logs()}") from None

    def coordinator(self, *words, listen="127.0.0.1:0"):
        words = words or self.tls("coordinator")
        self.start("coordinator", "--listen", listen, *words)
        self.port = int(self.says("coordinator", r"listens on \S*:(\d+)").group(1))
        return self

    def agent(self, name="n1", *words, node=None, **options):
        return self.start(name, "--coordinator", f"127.0.0.1:{self.port}", "--node", node or name,
                          *(words or self.tls(f"agents/{name}")), **options)

    def user(self, who, *words, host="127.0.0.1", tls=None, **options):
        return self.t.assay("--coordinator", f"{host}:{self.port}",
                            *(self.tls(f"users/{who}") if tls is None else tls), *words, **options)

    def stop(self):
        for child in self.children.values():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in self.children.values():
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextlib.contextmanager
def fleet(simulate=None):
    with local(simulate) as t:
        f = Fleet(t)
        try:
            yield f
        finally:
            f.stop()
