#!/usr/bin/env python3
"""A fleet over mutual TLS, with the real programs: who may do what, and the plain words for what goes
wrong with certificates.

usage: tls_test.py BIN_DIR [unittest arguments]
"""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import SMALL, hold_port, main, wait_for  # noqa: E402
from tls_fleet import fleet  # noqa: E402

# Programs look at renewed files every 5 s; some room for a busy machine.
TAKEN = 40
# A run that is still going when the next command looks at it.
LONG = SMALL.replace("max_seconds: 0.2", "max_seconds: 60").replace("min_seconds: 0.05",
                                                                   "min_seconds: 60")


def needs_faketime(case):
    return unittest.skipUnless(shutil.which("faketime"), "faketime is not installed")(case)


class TlsCase(unittest.TestCase):
    def refused(self, done, *patterns, code=2):
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        for pattern in patterns:
            self.assertRegex(done.stderr, pattern)
        # One sentence, after what was warned of.
        lines = [line for line in done.stderr.splitlines() if "warning" not in line]
        self.assertEqual(len(lines), 1, done.stderr)


class MainPath(TlsCase):
    def test_a_run_goes_to_its_table(self):
        with fleet() as f:
            f.standard().coordinator()
            f.agent()
            f.says("n1", r"session \d+ with the coordinator began")
            done = f.user("sam", "run", f.t.matrix(SMALL), check=0)
            self.assertIn("img/s", done.stdout)
            agents = f.user("vera", "agents", check=0)
            self.assertIn("n1", agents.stdout)
            self.assertNotIn("insecure", agents.stderr)
            run = done.stdout.split()[1]
            self.assertRegex(f.log("coordinator"),
                             rf"action=submit run={run} user=sam role=submit "
                             r"address=ipv4:127\.0\.0\.1:\d+ result=ok")

    def test_settings_come_from_the_environment_too(self):
        with fleet() as f:
            f.standard().coordinator()
            ca, cert, key = f.tls("users/vera")[1::2]
            f.user("", "ls", tls=[], check=0,
                   env={"ASSAY_TLS_CA": ca, "ASSAY_TLS_CERT": cert, "ASSAY_TLS_KEY": key})

    def test_a_name_serves_as_well_as_an_address(self):
        with fleet() as f:
            f.standard().coordinator()
            f.user("vera", "ls", host="localhost", check=0)

    def test_local_mode_stays_plain_beside_tls_settings(self):
        with fleet() as f:
            f.standard()
            ca, cert, key = f.tls("users/vera")[1::2]
            f.t.assay("run", f.t.matrix(SMALL), check=0,
                      env={"ASSAY_TLS_CA": ca, "ASSAY_TLS_CERT": cert, "ASSAY_TLS_KEY": key})


class Roles(TlsCase):
    def test_each_role_may_what_it_may(self):
        with fleet("default:realtime=1") as f:
            f.standard().coordinator()
            f.agent()
            f.says("n1", "began")
            matrix = f.t.matrix(LONG)
            self.refused(f.user("vera", "run", matrix, "--detach"),
                         r"user vera \(view\) may not submit: that needs the role submit")
            first = f.t.dir / "first.yaml"
            first.write_text(LONG + "priority: 1\n")
            self.refused(f.user("sam", "run", first, "--detach"),
                         r"user sam \(submit\) may not submit a run of priority 1: "
                         "above 0 that needs the role admin")
            ahead = f.user("ada", "run", first, "--detach", check=0).stdout.split()[1]
            f.user("ada", "cancel", ahead, check=0)
            run = f.user("sam", "run", matrix, "--detach", check=0).stdout.split()[1]
            f.user("vera", "show", run, check=0)
            self.refused(f.user("vera", "cancel", run), "needs the role submit")
            self.refused(f.user("sid", "cancel", run),
                         rf"user sid \(submit\) may not cancel run {run} of user sam: "
                         "that needs the role admin")
            f.user("vera", "export", run, "-o", f.t.dir / "r.assay", check=0)
            self.refused(f.user("sam", "merge", f.t.dir / "r.assay"), "needs the role admin")
            f.user("sam", "cancel", run, check=0)
            self.refused(f.user("sid", "rerun", run, "--failed", "--detach"),
                         "may not rerun run .* of user sam")
            f.user("sam", "rerun", run, "--failed", "--detach", check=0)
            f.user("ada", "cancel", run, check=0)
            f.user("ada", "merge", f.t.dir / "r.assay", check=0)
            self.assertRegex(f.log("coordinator"), rf"action=cancel run={run} user=ada role=admin")
            self.assertRegex(f.log("coordinator"), r"refused at ipv4:\S+: user sid \(submit\)")

    def test_the_owner_of_a_run_is_known_after_a_restart(self):
        with fleet("default:realtime=1") as f:
            f.standard().coordinator()
            run = f.user("sam", "run", f.t.matrix(LONG), "--detach", check=0).stdout.split()[1]
            f.stop()
            (f.t.state / "coordinator.log").unlink()
            f.coordinator()
            self.refused(f.user("sid", "cancel", run), "of user sam")
            f.user("sam", "cancel", run, check=0)

    def test_an_agents_certificate_is_no_users(self):
        with fleet() as f:
            f.standard().coordinator()
            # The command looks at its own certificate first.
            self.refused(f.user("", "ls", tls=f.tls("agents/n1")), "is for the agent of n1",
                         "assay certs user")

    def test_a_users_certificate_is_no_agents(self):
        with fleet() as f:
            f.standard().coordinator()
            child = f.agent("n1", *f.tls("users/ada"))
            self.assertEqual(child.wait(30), 2)
            self.assertIn("is for user ada (admin)", f.log("n1"))

    def test_an_agent_is_only_the_node_of_its_certificate(self):
        with fleet() as f:
            f.standard().coordinator()
            child = f.agent("n1", node="n2")
            self.assertEqual(child.wait(30), 2)
            self.assertRegex(f.log("n1"), "is for node n1 and this node is n2.*--node n1")


class Refusals(TlsCase):
    def test_a_listening_address_elsewhere_wants_tls_or_insecure(self):
        with fleet() as f:
            child = f.start("coordinator", "--listen", "0.0.0.0:0")
            self.assertEqual(child.wait(30), 2)
            self.assertRegex(f.log("coordinator"), "--tls-ca.*--insecure")

    def test_dialling_elsewhere_wants_tls_or_insecure(self):
        with fleet() as f:
            self.refused(f.t.assay("ls", "--coordinator", "192.0.2.1:7070"),
                         "--tls-ca.*--insecure")
            child = f.start("n1", "--coordinator", "192.0.2.1:7070", "--node", "n1")
            self.assertEqual(child.wait(30), 2)
            self.assertRegex(f.log("n1"), "--tls-ca.*--insecure")

    def test_some_of_the_files_are_too_few(self):
        with fleet() as f:
            f.standard()
            self.refused(f.t.assay("ls", "--coordinator", "127.0.0.1:1", "--tls-ca",
                                   f.certs / "ca.crt"), "--tls-cert is missing")

    def test_plain_text_to_a_secure_coordinator(self):
        with fleet() as f:
            f.standard().coordinator()
            self.refused(f.user("", "ls", tls=[]), "takes TLS only", "--tls-ca")
            f.start("n1", "--coordinator", f"127.0.0.1:{f.port}", "--node", "n1")
            f.says("n1", "takes TLS only")

    def test_tls_to_a_plain_coordinator(self):
        with fleet() as f:
            f.standard().coordinator("--log-level", "info")
            self.refused(f.user("vera", "ls"), "speaks plain text")
            f.agent()
            f.says("n1", "speaks plain text")

    def test_another_name(self):
        with fleet() as f:
            f.standard()
            f.make("coordinator", "--renew", "--host", "gpu.example.com")
            f.coordinator()
            self.refused(f.user("vera", "ls"), r"is for another name \(gpu.example.com\)",
                         "--renew --host 127.0.0.1")
            f.agent()
            f.says("n1", "is for another name")

    def test_another_authority(self):
        with fleet() as f:
            f.standard().coordinator()
            mine, f.certs = f.certs, f.t.dir / "other"
            f.standard()
            self.refused(f.user("vera", "ls"), "was not signed by the authority in")
            f.agent()
            f.says("n1", "was not signed by the authority in")
            # Its own certificate and the authority do not fit.
            self.refused(f.user("", "ls", tls=f.tls("users/vera", ca=mine / "ca.crt")),
                         "users/vera.crt was not signed by")

    def test_a_certificate_that_the_coordinator_does_not_know(self):
        with fleet() as f:
            f.standard().coordinator()
            mine = f.certs
            f.certs = f.t.dir / "other"
            f.standard()
            # Both authorities here, one of them there.
            both = f.t.dir / "both.crt"
            both.write_text((mine / "ca.crt").read_text() + (f.certs / "ca.crt").read_text())
            self.refused(f.user("", "ls", tls=f.tls("users/vera", ca=both)),
                         "did not take the certificate")

    @needs_faketime
    def test_expired_and_not_yet_valid(self):
        with fleet() as f:
            f.make("init", "--days", "20000", when="2020-01-01 00:00:00")
            f.make("coordinator", "--host", "127.0.0.1", "--days", "30", when="2021-01-01 00:00:00")
            f.make("user", "vera", "--role", "view", "--days", "30", when="2021-01-01 00:00:00")
            f.make("agent", "n1", "--days", "30", when="2055-01-01 00:00:00")
            child = f.start("coordinator", "--listen", "127.0.0.1:0", *f.tls("coordinator"))
            self.assertEqual(child.wait(30), 2)
            self.assertIn("expired at 2021-01-31", f.log("coordinator"))
            f.port = 1
            self.refused(f.user("vera", "ls"), "expired at 2021-01-31", "--renew")
            child = f.agent()
            self.assertEqual(child.wait(30), 2)
            self.assertIn("is not valid before", f.log("n1"))

    @needs_faketime
    def test_a_certificate_that_lasts_for_ever_is_good(self):
        """Another authority may give one to the year 9999, which nanoseconds cannot hold."""
        with fleet() as f:
            f.standard().coordinator()
            stem = f.certs / "users" / "zoe"
            (f.t.dir / "ext").write_text("subjectAltName=URI:assay://user/zoe/admin\n"
                                         "extendedKeyUsage=clientAuth\n")
            for words in (["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-subj", "/CN=zoe", "-keyout", f"{stem}.key", "-out", f"{stem}.csr"],
                          ["x509", "-req", "-in", f"{stem}.csr", "-CA", f.certs / "ca.crt", "-CAkey",
                           f.certs / "ca.key", "-days", "2900000", "-extfile", f.t.dir / "ext",
                           "-out", f"{stem}.crt"]):
                subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
            f.user("zoe", "agents", check=0)
            f.user("zoe", "drain", "n7", check=2)  # as an admin, who may: there is no such node

    def test_a_coordinator_that_expires_while_it_runs(self):
        with fleet() as f:
            f.make("init", when="2020-01-01 00:00:00")
            f.make("coordinator", "--host", "127.0.0.1")
            f.make("user", "vera", "--role", "view")
            f.coordinator()
            f.user("vera", "ls", check=0)
            f.make("coordinator", "--renew", "--days", "30", when="2021-01-01 00:00:00")

            def told():
                return "expired at 2021-01-31" in f.user("vera", "ls").stderr
            wait_for(told, TAKEN, "the expired certificate is in use and told")

    def test_files_that_are_no_good_are_named(self):
        with fleet() as f:
            f.standard()
            f.port = 1
            ca, cert, key = f.tls("users/vera")[1::2]
            for tls, words in (((ca, "none.crt", key), "cannot read none.crt"),
                               ((ca, cert, f.certs / "users/sam.key"), "is not the key of"),
                               ((ca, key, key), "holds no certificate"),
                               ((key, cert, key), "holds no certificate")):
                done = f.user("", "ls", tls=["--tls-ca", tls[0], "--tls-cert", tls[1],
                                             "--tls-key", tls[2]])
                self.refused(done, words)

    def test_a_key_that_others_may_read_is_warned_of(self):
        with fleet() as f:
            f.standard().coordinator()
            os.chmod(f.certs / "users/vera.key", 0o644)
            self.assertIn("chmod 600", f.user("vera", "ls", check=0).stderr)

    def test_a_stranger_without_a_certificate_gets_nothing(self):
        with fleet() as f:
            f.standard().coordinator()
            done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{f.port}", "-alpn",
                                   "h2", "-CAfile", str(f.certs / "ca.crt")],
                                  input="PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", capture_output=True,
                                  text=True, timeout=30)
            self.assertNotIn("SETTINGS", done.stdout)
            f.user("vera", "ls", check=0)

    def test_garbage_on_the_port_does_no_harm(self):
        with fleet() as f:
            f.standard().coordinator()
            for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"a" * 4096,
                         os.urandom(4096)):
                with socket.create_connection(("127.0.0.1", f.port)) as peer:
                    with contextlib.suppress(OSError):
                        peer.sendall(data)
            f.user("vera", "ls", check=0)
            self.assertIsNone(f.children["coordinator"].poll())

    def test_nobody_at_the_port_is_still_said_as_such(self):
        with fleet() as f:
            f.standard()
            f.port, held = hold_port()
            self.addCleanup(held.close)
            self.refused(f.user("vera", "ls"), "no coordinator answers at", code=3)

    def test_an_agent_says_when_the_reason_has_become_another_one(self):
        with fleet() as f:
            f.standard()
            f.make("coordinator", "--renew", "--host", "gpu.example.com")
            f.port, held = hold_port()
            self.addCleanup(held.close)
            f.agent()
            f.says("n1", "no session with the coordinator")
            f.coordinator(listen=f"127.0.0.1:{f.port}")
            f.says("n1", "still no session with the coordinator: .* is for another name", 90)

    def test_a_state_directory_whose_coordinator_wants_tls_says_so_at_once(self):
        with fleet() as f:
            f.standard().coordinator()
            begun = time.monotonic()
            state = str(f.t.dir / "state-coordinator")
            self.refused(f.t.assay("ls", "--state", state), "takes TLS only")
            self.assertLess(time.monotonic() - begun, 20)
            f.t.assay("ls", "--state", state, *f.tls("users/vera"), check=0)

    def test_local_is_no_fleet(self):
        with fleet() as f:
            f.standard()
            for words in (f.tls("coordinator"), ["--insecure"]):
                child = f.start("coordinator", "--local", "--listen", "0.0.0.0:0", *words)
                self.assertEqual(child.wait(30), 2)
            self.assertIn("--local serves this machine alone", f.log("coordinator"))


class Renewal(TlsCase):
    def test_renewed_files_are_taken_without_a_restart(self):
        with fleet() as f:
            f.standard()
            f.make("coordinator", "--renew", "--host", "gpu.example.com")
            f.coordinator()
            self.refused(f.user("vera", "ls"), "is for another name")
            f.agent()
            f.says("n1", "is for another name")
            f.make("coordinator", "--renew", "--host", "127.0.0.1")
            wait_for(lambda: f.user("vera", "ls").returncode == 0, TAKEN, "the new one is in use")
            f.says("n1", r"session \d+ with the coordinator began", TAKEN)
            self.assertIsNone(f.children["coordinator"].poll())
            self.assertIsNone(f.children["n1"].poll())

    def test_an_agent_takes_its_own_renewed_certificate(self):
        with fleet() as f:
            f.standard().coordinator()
            f.agent()
            f.says("n1", "began")
            f.make("agent", "n1", "--renew", "--days", "300")
            time.sleep(7)  # the files are looked at every 5 s
            f.children["coordinator"].kill()
            f.children["coordinator"].wait()
            (f.t.state / "coordinator.log").unlink()
            port = f.port
            f.coordinator(listen=f"127.0.0.1:{port}")
            f.says("n1", r"session 2 with the coordinator began", TAKEN)

    @needs_faketime
    def test_an_agent_whose_certificate_ends_comes_back_with_the_renewed_one(self):
        with fleet() as f:
            f.make("init", when="2020-01-01 00:00:00")
            f.make("coordinator", "--host", "127.0.0.1")
            end = int(time.time()) + 25  # a certificate has whole seconds
            made = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(end - 24 * 3600))
            f.make("agent", "n1", "--days", "1", when=made)
            f.coordinator("--heartbeat", "1", *f.tls("coordinator"))
            f.agent()
            f.says("n1", r"session 1 with the coordinator began")
            f.says("n1", "the certificate of the agent of n1 expired", 60)
            self.assertGreaterEqual(time.time(), end)
            f.make("agent", "n1", "--renew", "--days", "300")
            f.says("n1", r"session 2 with the coordinator began", TAKEN)
            self.assertIsNone(f.children["n1"].poll())


class Insecure(TlsCase):
    def test_it_is_said_on_both_sides_and_where_the_fleet_is_listed(self):
        with fleet() as f:
            f.coordinator("--insecure", listen="0.0.0.0:0")
            self.assertIn("--insecure", f.log("coordinator"))
            f.start("n1", "--coordinator", f"0.0.0.0:{f.port}", "--node", "n1", "--insecure")
            f.says("n1", "--insecure: plain text")
            f.says("n1", "began")
            done = f.user("", "agents", tls=["--insecure"], host="0.0.0.0", check=0)
            self.assertIn("runs with --insecure", done.stderr)
            self.assertIn("plain text to", done.stderr)
            done = f.user("", "agents", "--format", "json", tls=[], check=0)
            self.assertIn('"insecure": true', done.stdout)
            f.user("", "run", f.t.matrix(SMALL), tls=[], check=0)

    def test_insecure_and_tls_contradict(self):
        with fleet() as f:
            f.standard()
            f.port = 1
            self.refused(f.user("vera", "ls", "--insecure"), "one or the other")


class Certs(TlsCase):
    def test_what_is_made_is_said_with_where_it_goes(self):
        with fleet() as f:
            done = f.make("init", "--name", "Lab")
            self.assertIn("ca.key", done.stdout)
            done = f.make("agent", "n7")
            self.assertIn("assay-agent --node n7", done.stdout)
            self.assertIn(str(f.certs / "agents/n7.key"), done.stdout)
            self.assertEqual(os.stat(f.certs / "agents/n7.key").st_mode & 0o777, 0o600)
            listed = f.make("list").stdout
            self.assertIn("authority Lab", listed)
            self.assertIn("the agent of n7", listed)

    def test_what_is_there_stays(self):
        with fleet() as f:
            f.make("init")
            key = (f.certs / "ca.key").read_text()
            self.refused(f.make("init", check=2), "--renew")
            f.make("agent", "n7")
            self.refused(f.make("agent", "n7", check=2), "--renew")
            f.make("init", "--renew")
            self.assertEqual((f.certs / "ca.key").read_text(), key)

    def test_bad_words_are_told(self):
        with fleet() as f:
            self.refused(f.make("agent", "n1", check=2), "assay certs init")
            f.make("init")
            self.refused(f.make("user", "al", check=2), "--role view, submit or admin")
            self.refused(f.make("user", "al", "--role", "root", check=2), "no role")
            self.refused(f.make("agent", "../n1", check=2), "cannot be used")
            self.refused(f.make("coordinator", check=2), "--host")
            self.refused(f.make("coordinator", "--host", "a:7070", check=2), "without port")
            self.refused(f.make("agent", "n1", "--days", "0x", check=2), "days")

    def test_another_tool_agrees(self):
        with fleet() as f:
            f.standard()
            for stem, purpose in (("coordinator", "sslserver"), ("users/vera", "sslclient")):
                done = subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", purpose,
                                       "-CAfile", str(f.certs / "ca.crt"),
                                       f"{f.certs / stem}.crt"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
