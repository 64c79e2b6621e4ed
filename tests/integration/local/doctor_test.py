"""`assay doctor`: here, and through the agent of a node, with the real programs."""
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "cluster"))
from assay_local import FIXTURES, Local, bin_dir, local, main, wait_for  # noqa: E402

ALWAYS = {"driver", "mpirun", "interfaces", "ports", "state-dir", "disk", "shared-memory",
          "device-locks", "clock", "open-files", "locked-memory", "processors", "governor"}


def report_of(t, *words, env=None):
    done = t.assay("doctor", *words, "--format", "json", env=env)
    report = json.loads(done.stdout)
    worst = report["worst"]
    assert done.returncode == (1 if worst == "bad" else 0), (done.returncode, worst)
    return report


def named(report, name):
    found = [check for check in report["checks"] if check["name"] == name]
    assert len(found) == 1, (name, report)
    return found[0]


class Here(unittest.TestCase):
    def test_every_check_is_there_and_starts_nothing_that_stays(self):
        with local() as t:
            report = report_of(t)
            names = {check["name"] for check in report["checks"]}
            self.assertLessEqual(ALWAYS, names)
            self.assertIn("card RTX 3090", names)
            for check in report["checks"]:
                self.assertIn(check["state"], ("ok", "unknown", "warning", "bad"))
                self.assertTrue(check["finding"])
            self.assertEqual(named(report, "state-dir")["state"] in ("ok", "warning"), True)
            self.assertFalse(t.state.exists())
            self.assertEqual(t.processes(), [])

    def test_a_sick_driver_is_bad_and_the_exit_code_is_one(self):
        with local(devices=FIXTURES / "nvml" / "driver_mismatch.json") as t:
            driver = named(report_of(t), "driver")
            self.assertEqual((driver["state"], driver["remedy"]), ("bad", "sudo reboot"))
            done = t.assay("doctor", check=1)
            self.assertTrue(done.stdout.startswith("bad "), done.stdout)
            self.assertIn("type: sudo reboot", done.stdout)

    def test_a_card_with_a_pending_remap_is_a_warning(self):
        with local(devices=FIXTURES / "nvml" / "remap_pending.json") as t:
            self.assertEqual(named(report_of(t), "memory-errors")["state"], "warning")

    def test_a_stack_that_does_not_start_is_bad(self):
        with local() as t:
            stacks = t.dir / "stacks"
            stacks.mkdir()
            (stacks / "s.json").write_text('{"name": "s", "program": "/no/such/program"}')
            stack = named(report_of(t, env={"ASSAY_STACKS": str(stacks)}), "stack s")
            self.assertEqual(stack["state"], "bad")
            self.assertEqual(stack["remedy"], "/no/such/program --stack-info")

    def test_a_state_directory_that_cannot_be_is_bad(self):
        with local() as t:
            (t.dir / "file").write_text("x")
            report = report_of(t, "--state", t.dir / "file" / "below")
            self.assertEqual(named(report, "state-dir")["state"], "bad")
            report = report_of(t, env={"ASSAY_STATE": "", "HOME": "", "XDG_STATE_HOME": ""})
            self.assertIn("no state directory", named(report, "state-dir")["finding"])

    def test_names_with_control_bytes_do_not_reach_the_terminal(self):
        with local(devices=FIXTURES / "nvml" / "odd_names.json") as t:
            stacks = t.dir / "st\x1b[31macks"
            stacks.mkdir()
            (stacks / "a\x1b]0;x\x07.json").write_text("{")
            done = t.assay("doctor", env={"ASSAY_STACKS": str(stacks)})
            self.assertNotIn("\x1b", done.stdout + done.stderr)
            self.assertNotIn("\x07", done.stdout + done.stderr)
            self.assertIn(".json", done.stdout)

    def test_a_file_that_is_no_capture_is_one_sentence(self):
        with local() as t:
            (t.dir / "bad.json").write_text("{")
            done = t.assay("doctor", check=2, env={"ASSAY_DEVICES": str(t.dir / "bad.json")})
            self.assertIn("is not a captured NVML", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_program_of_a_stack_that_hangs_is_given_up_alone(self):
        with local() as t:
            stacks = t.dir / "stacks"
            stacks.mkdir()
            (t.dir / "hang.sh").write_text("#!/bin/sh\nexec sleep 600\n")
            (t.dir / "hang.sh").chmod(0o755)
            (stacks / "s.json").write_text('{"name": "s", "program": "../hang.sh"}')
            report = report_of(t, env={"ASSAY_STACKS": str(stacks)})
            self.assertIn("did not answer", named(report, "stack s")["finding"])
            self.assertEqual(named(report, "clock")["name"], "clock")
            self.assertEqual(t.processes(), [])

    def test_it_fits_a_terminal(self):
        with local() as t:
            master, slave = pty.openpty()
            subprocess.run(["stty", "cols", "80", "rows", "24"], stdin=slave, check=True)
            child = subprocess.Popen([str(t.bin / "assay"), "doctor", "--no-color"], stdout=slave,
                                     stdin=subprocess.DEVNULL, stderr=slave, env=t.env, cwd=t.dir)
            os.close(slave)
            text = b""
            while True:
                try:
                    ready, _, _ = select.select([master], [], [], 60)
                    piece = os.read(master, 65536) if ready else b""
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            child.wait(60)
            os.close(master)
            lines = text.decode().replace("\r\n", "\n").splitlines()
            for line in lines:
                # What is to be typed is never broken.
                self.assertTrue(len(line) <= 80 or line.lstrip().startswith("type: "), line)
            self.assertRegex(lines[-1], r"^\S+: (\d+ \w+, )*\d+ ok$")


class There(unittest.TestCase):
    def node(self, t):
        return json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"][0]["node"]

    def test_the_agent_checks_its_node(self):
        with local() as t:
            node = self.node(t)
            report = report_of(t, "--node", node)
            self.assertEqual(report["node"], node)
            self.assertLessEqual(ALWAYS, {check["name"] for check in report["checks"]})
            self.assertIn(str(t.state / "agent"), named(report, "state-dir")["finding"])
            done = t.assay("doctor", "--node", node)
            self.assertIn(f"\n{node}: ", done.stdout)

    def test_an_unknown_node_is_bad_input_and_one_whose_agent_is_gone_is_three(self):
        with local() as t:
            self.assertIn("there is no node nobody",
                          t.assay("doctor", "--node", "nobody", check=2).stderr)
            node = self.node(t)
            # Stopped, so that the coordinator cannot start another.
            t.kill("assay-agent", 19)
            begun = time.monotonic()
            done = t.assay("doctor", "--node", node, check=3, timeout=200)
            self.assertIn(node, done.stderr)
            self.assertLess(time.monotonic() - begun, 150)

    def test_a_drained_node_is_asked_as_soon_as_its_agent_is_there(self):
        # A drain is known before the agent: the first command after a restart must wait for it.
        with local() as t:
            node = self.node(t)
            t.assay("drain", node, check=0)
            for program in ("assay-coordinator", "assay-agent"):
                t.kill(program)
            wait_for(lambda: not t.processes(), 20, "no process left")
            self.assertEqual(report_of(t, "--node", node)["node"], node)

    def test_no_coordinator_is_three(self):
        with local() as t:
            done = t.assay("doctor", "--node", "n1", "--coordinator", f"unix:{t.dir}/none.sock",
                           check=3)
            self.assertEqual(done.stdout, "")
            self.assertTrue(done.stderr)

    def test_several_ask_at_once_and_heartbeats_go_on(self):
        with local() as t:
            node = self.node(t)
            asking = [t.start("doctor", "--node", node, "--format", "json") for _ in range(6)]
            reports = [json.loads(child.communicate(timeout=120)[0]) for child in asking]
            self.assertEqual({report["node"] for report in reports}, {node})
            agents = json.loads(t.assay("agents", "--format", "json", check=0).stdout)["agents"]
            self.assertEqual([agent["state"] for agent in agents], ["up"])

    def test_beside_a_cell_no_program_is_started(self):
        long_cell = """
name: long
axes: {model: [resnet50], precision: [amp-fp16], batch: [32]}
repeat: 1
stop: {confidence: 0.0001, min_seconds: 60, max_seconds: 60}
"""
        with local("default:realtime=1") as t:
            t.assay("run", t.matrix(long_cell), "--detach", check=0)
            wait_for(t.runners, 60, "a runner")
            node = self.node(t)
            stacks = named(report_of(t, "--node", node), "stacks")
            self.assertEqual(stacks["state"], "unknown")
            self.assertIn("a cell is measured", stacks["finding"])
            self.assertTrue(t.runners())
            t.assay("cancel", "last")


if __name__ == "__main__":
    main()
