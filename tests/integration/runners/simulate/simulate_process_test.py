#!/usr/bin/env python3
"""assay-simulate as a process: exit codes, each misbehaviour on command, and a gang over TCP.

usage: simulate_process_test.py PROGRAM [unittest arguments]
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

PROGRAM = None


def cell(**over):
    value = {"protocol": 1, "attempt": "a", "run": "r", "cell": 1,
             "spec": {"model": "resnet50", "precision": "amp-fp16", "batch": 64,
                      "stop": {"confidence": 0.01, "min_seconds": 0.05, "max_seconds": 0.2}},
             "device": {"kind": "simulated", "uuid": "GPU-1", "card": "RTX 3090"}, "seed": 1}
    value.update(over)
    return value


def start(rules="", pass_fds=(), preexec=None, **over):
    child = subprocess.Popen([PROGRAM, "--cell", "-"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "ASSAY_SIMULATE": rules}, pass_fds=pass_fds,
                             preexec_fn=preexec)
    child.stdin.write(json.dumps(cell(**over)).encode())
    child.stdin.close()
    child.stdin = None
    return child


def finish(child):
    out, err = child.communicate(timeout=30)
    return child.returncode, out, err.decode()


def records(out):
    return [json.loads(line) for line in out.splitlines()]


def children_of(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(name))
    return found


class LargestBatch(unittest.TestCase):
    """batch: max: each trial and the measurement are processes of their own."""

    def spec(self, **over):
        return {"spec": {"model": "resnet50", "precision": "amp-fp16", "batch": 0,
                         "stop": {"confidence": 0.01, "min_seconds": 0.05, "max_seconds": 0.2},
                         **over}}

    def outcome_of(self, batch):
        spec = {**self.spec()["spec"], "batch": batch}
        return records(finish(start(spec=spec))[1])[-1]["outcome"]

    def test_is_measured_and_its_neighbours_agree(self):
        code, out, err = finish(start(**self.spec()))
        self.assertEqual(code, 0, err)
        lines = records(out)
        fields = lines[-1]["fields"]
        batch = fields["largest_batch"]
        self.assertIs(fields["largest_batch_proven"], True)
        self.assertEqual(fields["largest_batch_limit"], batch + (8 if batch >= 64 else 1))
        self.assertLess(fields["largest_batch_trials"], 8)
        self.assertEqual(fields["samples"], batch * fields["steps"])
        self.assertEqual(self.outcome_of(batch), "ok")
        self.assertEqual(self.outcome_of(fields["largest_batch_limit"]), "mem_limit")
        kinds = [r["record"] for r in lines]
        self.assertEqual((kinds.count("hello"), kinds.count("joined"), kinds.count("result")),
                         (1, 1, 1))
        phases = [r["phase"] for r in lines if r["record"] == "phase"]
        self.assertEqual([p for p in phases if p in ("warmup", "measure", "finish")],
                         ["warmup", "measure", "finish"])
        self.assertFalse([k for k in fields if k.startswith("trial_")])

    def test_several_ranks_are_unsupported(self):
        code, out, _ = finish(start(world_size=2, endpoint="127.0.0.1:1", **self.spec()))
        self.assertEqual((code, records(out)[-1]["reason"]), (4, "value_not_in_stack"))

    def test_a_trial_that_crashes_is_what_the_cell_comes_to(self):
        code, out, _ = finish(start("batch=16:crash=11", **self.spec()))
        result = records(out)[-1]
        self.assertEqual((code, result["outcome"], result["reason"]), (1, "fail", "crash"))
        self.assertIn("batch 16", result["message"])
        self.assertIn("signal 11", result["message"])

    def test_records_that_a_trial_breaks_are_a_failure(self):
        code, out, _ = finish(start("batch=16:garbage", **self.spec()))
        self.assertEqual((code, records(out)[-1]["outcome"]), (1, "fail"))

    def test_a_trial_ends_with_its_parent(self):
        parent = start("batch=8:hang", **self.spec())
        deadline = time.monotonic() + 20
        while not (trials := children_of(parent.pid)) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(len(trials), 1)
        parent.kill()
        parent.communicate()
        while os.path.exists(f"/proc/{trials[0]}") and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertFalse(os.path.exists(f"/proc/{trials[0]}"), "the trial outlived its parent")


class Behaviours(unittest.TestCase):
    def run_cell(self, rules="", **over):
        return finish(start(rules, **over))

    def test_a_cell_ends_with_one_result_and_exit_0(self):
        code, out, _ = self.run_cell()
        lines = records(out)
        self.assertEqual(code, 0)
        self.assertEqual([r["record"] for r in lines].count("result"), 1)
        self.assertEqual(lines[-1]["outcome"], "ok")
        self.assertEqual(lines[0]["record"], "hello")
        self.assertIn({"record": "joined"}, lines)
        self.assertEqual([r["phase"] for r in lines if r["record"] == "phase"],
                         ["load", "setup", "warmup", "measure", "finish"])

    def test_crash_is_a_signal(self):
        self.assertEqual(self.run_cell("default:crash")[0], -signal.SIGSEGV)
        self.assertEqual(self.run_cell("default:crash=9")[0], -signal.SIGKILL)

    def test_exit_codes_without_a_result(self):
        for rules, expected in (("default:no_result", 0), ("default:exit=7", 7)):
            code, out, _ = self.run_cell(rules)
            self.assertEqual(code, expected)
            self.assertNotIn("result", [r["record"] for r in records(out)])

    def test_out_of_memory_and_errors_are_results_with_their_codes(self):
        self.assertEqual(self.run_cell("default:oom")[0], 3)
        code, out, _ = self.run_cell("default:error")
        self.assertEqual((code, records(out)[-1]["reason"]), (1, "runner_error"))
        code, out, _ = self.run_cell("default:non_finite_loss")
        self.assertEqual((code, records(out)[-1]["reason"]), (1, "non_finite_loss"))
        self.assertIsNone(records(out)[-1]["fields"]["loss_last"])

    def test_garbage_huge_lines_and_floods(self):
        code, out, _ = self.run_cell("default:garbage")
        self.assertEqual(code, 0)
        self.assertIn(b"\xff\xfe", out)
        self.assertGreater(max(map(len, self.run_cell("default:huge_line")[1].splitlines())),
                           1 << 20)
        self.assertGreaterEqual(len(self.run_cell("default:flood")[1]), 4 << 20)

    def test_closed_records_have_no_result(self):
        code, out, _ = self.run_cell("default:close_records")
        self.assertEqual(code, 0)
        self.assertNotIn("result", [r["record"] for r in records(out)])

    def test_slow_takes_real_seconds(self):
        began = time.monotonic()
        self.assertEqual(self.run_cell("default:slow=0.6")[0], 0)
        self.assertGreaterEqual(time.monotonic() - began, 0.6)

    def test_real_time_takes_as_long_as_it_says(self):
        code, out, _ = self.run_cell("default:realtime=1")
        self.assertEqual(code, 0)
        self.assertIn("progress", [r["record"] for r in records(out)])

    def wait_for(self, child, record):
        for line in child.stdout:
            if json.loads(line).get("phase", "") == record:
                return
        self.fail(f"no {record}")

    def test_hang_ends_by_term_unless_it_is_ignored(self):
        child = start("default:hang")
        self.wait_for(child, "measure")
        child.terminate()
        self.assertEqual(finish(child)[0], -signal.SIGTERM)
        child = start("default:hang_ignore_term")
        self.wait_for(child, "measure")
        child.terminate()
        with self.assertRaises(subprocess.TimeoutExpired):
            child.wait(timeout=0.3)
        child.kill()
        self.assertEqual(finish(child)[0], -signal.SIGKILL)

    def test_hang_before_join_never_joins(self):
        child = start("default:hang_before_join")
        self.wait_for(child, "load")
        child.kill()
        _, out, _ = finish(child)
        self.assertEqual(out, b"")

    def test_a_grandchild_outlives_its_parent(self):
        read_end, write_end = os.pipe()
        child = start("default:grandchild", pass_fds=(write_end,))
        os.close(write_end)
        self.assertEqual(child.wait(timeout=30), 0)
        # The grandchild holds the pipe: no end of file until it is gone.
        os.set_blocking(read_end, False)
        with self.assertRaises(BlockingIOError):
            os.read(read_end, 1)
        mark = os.readlink(f"/proc/self/fd/{read_end}")
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                held = [os.readlink(f"/proc/{entry}/fd/{fd}")
                        for fd in os.listdir(f"/proc/{entry}/fd")]
            except OSError:
                continue
            if mark in held and int(entry) != os.getpid():
                os.kill(int(entry), signal.SIGKILL)
        child.stdout.close()
        child.stderr.close()
        os.close(read_end)

    def test_bad_input_is_one_sentence_and_exit_2(self):
        for rules, over in (("default:bogus", {}), ("", {"protocol": 9}), ("", {"world_size": 0})):
            code, _, err = self.run_cell(rules, **over)
            self.assertEqual(code, 2)
            self.assertEqual(len(err.strip().splitlines()), 1, err)

    def test_unsupported_is_exit_4(self):
        over = cell()
        over["spec"]["model"] = "resnet51"
        self.assertEqual(self.run_cell(spec=over["spec"])[0], 4)


class Gangs(unittest.TestCase):
    def listener(self):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        return listening, "127.0.0.1:%d" % listening.getsockname()[1]

    def ranks(self, world, rules, listening, endpoint):
        fd = listening.fileno()
        children = []
        for rank in range(world):
            over = dict(rank=rank, local_rank=rank, world_size=world, endpoint=endpoint)
            if rank == 0:
                children.append(start(rules, pass_fds=(fd, 5),
                                      preexec=lambda: os.dup2(fd, 5, inheritable=True), **over))
            else:
                children.append(start(rules, **over))
        return children

    def test_three_ranks_join_and_agree(self):
        listening, endpoint = self.listener()
        # As the agents' test connect: says nothing and leaves.
        socket.create_connection(listening.getsockname()).close()
        children = self.ranks(3, "", listening, endpoint)
        results = []
        for child in children:
            code, out, err = finish(child)
            self.assertEqual(code, 0, err)
            results.append(records(out)[-1]["fields"])
        listening.close()
        self.assertEqual({r["world_size"] for r in results}, {3})
        self.assertEqual(len({r["steps"] for r in results}), 1)
        self.assertEqual(results[0]["samples"], results[0]["steps"] * 3 * 64)

    def test_rank_0_binds_the_endpoint_where_it_was_given_no_socket(self):
        listening, endpoint = self.listener()
        listening.close()
        children = [start(rank=r, local_rank=r, world_size=2, endpoint=endpoint) for r in (0, 1)]
        self.assertEqual([finish(c)[0] for c in children], [0, 0])

    def test_one_rank_out_of_memory_leaves_the_others_waiting(self):
        # Case 2: what a real collective does; ending the gang is the agent's duty.
        listening, endpoint = self.listener()
        children = self.ranks(2, "rank=1:oom", listening, endpoint)
        self.assertEqual(finish(children[1])[0], 3)
        with self.assertRaises(subprocess.TimeoutExpired):
            children[0].wait(timeout=0.3)
        children[0].kill()
        finish(children[0])
        listening.close()


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
