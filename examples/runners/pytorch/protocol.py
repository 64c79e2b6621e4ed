"""Assay's protocol of runners, version 1 (docs/runner-protocol.md), with the standard library alone.

Nothing here knows PyTorch: a runner for another framework can take this file as it is.
"""

import json
import math
import os
import pathlib
import select
import sys
import threading
import time

PROTOCOL = 1
EXIT_CODES = {"ok": 0, "fail": 1, "mem_limit": 3, "unsupported": 4}
BAD_INPUT, LIFELINE = 2, 143


class BadInput(Exception):
    """What the caller got wrong: one sentence, exit code 2, no record."""


class Unsupported(Exception):
    """The cell is sound, but not for this runner. `reason` is a code of docs/architecture.md."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


class Options:
    """--cell FILE|- [--records fd:N|FILE|-] [--lifeline fd:N,SECONDS], or one word about itself."""

    def __init__(self, words):
        self.action, self.value = None, None
        self.records, self.lifeline = "-", None
        words = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
        while words:
            word = words.pop(0)
            if word in ("--stack-info", "--list", "--version"):
                self._act(word, None)
            elif word in ("--cell", "--describe", "--records", "--lifeline"):
                if not words or not words[0]:
                    raise BadInput(f"{word} needs a value")
                value = words.pop(0)
                if word == "--records":
                    self.records = value
                elif word == "--lifeline":
                    self.lifeline = _lifeline(value)
                else:
                    self._act(word, value)
            else:
                raise BadInput(f"unknown argument '{word}'")
        if self.action is None:
            raise BadInput("nothing to do: give --cell FILE, --stack-info, --list or --describe MODEL")

    def _act(self, word, value):
        if self.action not in (None, word):
            raise BadInput(f"give one of {self.action} and {word}, not both")
        self.action, self.value = word, value


def _descriptor(text):
    if not text.startswith("fd:") or not text[3:].isdigit():
        raise BadInput(f"'{text}' is not of the form fd:N")
    return int(text[3:])


def _lifeline(text):
    place, _, seconds = text.partition(",")
    try:
        length = float(seconds)
    except ValueError:
        length = 0.0
    if not 0 < length <= 86400:
        raise BadInput(f"--lifeline '{text}' is not of the form fd:N,SECONDS")
    return _descriptor(place), length


def read_cell(place):
    """The cell file as a dict, checked for what holds for every runner. Keys that are not known stay
    in it and hurt nobody: a later agent may say more."""
    try:
        text = sys.stdin.read() if place == "-" else pathlib.Path(place).read_text()
        cell = json.loads(text)
    except (OSError, ValueError) as error:
        raise BadInput(f"cell file {place}: {error}") from error
    if not isinstance(cell, dict) or not isinstance(cell.get("spec"), dict):
        raise BadInput(f"cell file {place}: the object 'spec' is missing")
    if cell.get("protocol", PROTOCOL) != PROTOCOL:
        raise BadInput(f"cell file {place}: protocol {cell['protocol']}, this runner speaks {PROTOCOL}")
    spec = {"mode": "train", "precision": "fp32", "batch": 1, "lane": "eager", "layout": "channels-last",
            "accumulate": 1, "image": "", "data": "synthetic", "scaling": "weak", **cell["spec"]}
    spec["stop"] = {"confidence": 0.01, "min_seconds": 5, "max_seconds": 60, **spec.get("stop", {})}
    cell = {"rank": 0, "world_size": 1, "seed": 1, "purpose": "measure", "trial_steps": 0, **cell,
            "spec": spec, "device": {"kind": "cpu", "uuid": "", "ordinal": 0, **cell.get("device", {})}}
    for holder, key in ((spec, "batch"), (spec, "accumulate"), (cell, "world_size"), (cell, "trial_steps")):
        if not isinstance(holder[key], int) or isinstance(holder[key], bool):
            raise BadInput(f"cell file {place}: {key} is not a whole number")
    stop = spec["stop"]
    if not all(isinstance(value, (int, float)) and math.isfinite(value) for value in
               (stop["confidence"], stop["min_seconds"], stop["max_seconds"])):
        raise BadInput(f"cell file {place}: spec.stop holds something that is not a number")
    if not isinstance(spec.get("model"), str) or not spec["model"]:
        raise BadInput(f"cell file {place}: spec.model is missing")
    if spec["batch"] < 0 or spec["accumulate"] < 1 or spec["batch"] % spec["accumulate"]:
        raise BadInput(f"cell file {place}: batch {spec['batch']} with accumulate {spec['accumulate']}: "
                       "the one must be 0 (max) or more, and the other divide it")
    if not 0 <= stop["min_seconds"] <= stop["max_seconds"] or not 0 < stop["max_seconds"] <= 604800:
        raise BadInput(f"cell file {place}: spec.stop needs 0 <= min_seconds <= max_seconds")
    return cell


class Records:
    """One JSON object a line, each line in one write. A reader that went away ends the process from
    within the next write: nobody wants what comes after."""

    def __init__(self, target):
        self._last_progress = -math.inf
        if target == "-":
            self._fd = sys.stdout.fileno()
        elif target.startswith("fd:"):
            self._fd = _descriptor(target)
        else:
            try:
                self._fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
            except OSError as error:
                raise BadInput(f"cannot write records to {target}: {error.strerror}") from error
        try:
            os.set_inheritable(self._fd, False)
        except OSError as error:
            raise BadInput(f"--records {target}: {error.strerror}") from error

    def hello(self, runner, version, uuid):
        self._write({"record": "hello", "protocol": PROTOCOL, "runner": runner, "version": version,
                     "pid": os.getpid(), "uuid": uuid})

    def joined(self):
        self._write({"record": "joined"})

    def phase(self, name):
        self._write({"record": "phase", "phase": name})

    def progress(self, step, throughput, seconds_left):
        now = time.monotonic()
        if now - self._last_progress >= 0.25:
            self._last_progress = now
            self._write({"record": "progress", "step": step, "throughput": throughput,
                         "seconds_left": seconds_left})

    def result(self, outcome, fields, reason="", message=""):
        self._write({"record": "result", "outcome": outcome, "reason": reason,
                     "message": " ".join(message.split())[:300], "fields": fields})
        return EXIT_CODES[outcome]

    def _write(self, record):
        # JSON has no NaN: what is not finite is not known, and that is null.
        clean = {key: None if isinstance(value, float) and not math.isfinite(value) else value
                 for key, value in record.get("fields", {}).items()}
        if "fields" in record:
            record = {**record, "fields": clean}
        os.write(self._fd, json.dumps(record).encode() + b"\n")


def watch_lifeline(fd, seconds):
    """Leaves with 143 at end of file or after `seconds` of silence, whatever the main thread does: a
    process that outlives its agent holds a GPU that others are given."""
    def watch():
        while True:
            ready, _, _ = select.select([fd], [], [], seconds)
            if not ready or not os.read(fd, 64):
                os._exit(LIFELINE)

    os.set_inheritable(fd, False)
    threading.Thread(target=watch, daemon=True).start()
