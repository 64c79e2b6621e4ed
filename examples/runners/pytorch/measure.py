"""How a cell is measured: Assay's method (docs/method.md), over any function that does one step.

A timeline has the device's clock: begin(), end_step() behind each step, pending(), take() for the
length of the oldest step that was not read, window() in seconds, counted() steps, depth(seconds).
"""

import collections
import math
import statistics
import time

# Student's t, 0.975, for 4 to 29 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
T975 = [2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
        2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045]
PRIMING_STEPS = 2


def percentile(values, share):
    """Type 7 of Hyndman and Fan, as NumPy's default."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def interval_ratio(steps):
    """Half width of the 95 % interval over the mean by batch means: 5 to 30 batches of at least 20
    steps, a remainder left out at the front. None for fewer."""
    batches = min(30, len(steps) // 20)
    if batches < 5:
        return None
    size = len(steps) // batches
    steps = steps[len(steps) - size * batches:]
    means = [statistics.fmean(steps[i * size:(i + 1) * size]) for i in range(batches)]
    return T975[batches - 5] * statistics.stdev(means) / math.sqrt(batches) / statistics.fmean(means)


class Steady:
    """Warm-up is over when the medians of the last three windows agree within 2 %."""

    def __init__(self, stop):
        self.least = min(2.0, stop["min_seconds"])
        self.most = min(60.0, max(stop["max_seconds"], self.least))
        self.window = min(0.5, self.least / 4)
        self.seconds, self.steps, self.filling = 0.0, 0, []
        self.medians = collections.deque(maxlen=3)

    def add(self, seconds):
        """True when it is over."""
        self.seconds += seconds
        self.steps += 1
        self.filling.append(seconds)
        if sum(self.filling) >= self.window:
            self.medians.append(statistics.median(self.filling))
            self.filling = []
        agree = len(self.medians) == 3 and (max(self.medians) - min(self.medians) <=
                                            0.02 * statistics.median(self.medians))
        return self.seconds >= self.most or (agree and self.seconds >= self.least and self.steps >= 5)


class Stopping:
    """The interval is looked at at min_seconds and whenever the time has doubled."""

    def __init__(self, stop):
        self.stop, self.steps, self.seconds = stop, [], 0.0
        self.next_look = max(stop["min_seconds"], 1e-9)
        self.reason = None

    def add(self, seconds):
        self.steps.append(seconds)
        self.seconds += seconds
        if self.reason is None and self.seconds >= self.next_look:
            while self.next_look <= self.seconds:
                self.next_look *= 2
            self._look()
        if self.reason is None and self.seconds >= self.stop["max_seconds"]:
            self._look()
            self.reason = self.reason or "max_seconds"
        return self.reason is not None

    def _look(self):
        ratio = interval_ratio(self.steps)
        if ratio is not None and ratio <= self.stop["confidence"]:
            self.reason = "confidence"


def run_steps(step, timeline, taken):
    """Steps until `taken`, given each finished step's length, says it is enough; then drains."""
    depth, enough = timeline.depth(0.0), False

    def take():
        nonlocal depth, enough
        seconds = timeline.take()
        depth = timeline.depth(seconds)
        enough = taken(seconds) or enough

    while not enough:
        step()
        timeline.end_step()
        while timeline.pending() > depth:
            take()
    while timeline.pending():
        take()


def measure(step, timeline, stop, samples, records):
    """Warms up, measures one window, and returns the fields of the result that follow from it."""
    records.phase("warmup")
    start = time.monotonic()
    warm = 0
    for _ in range(PRIMING_STEPS):  # search for algorithms, compile: not for the steady test
        timeline.begin()
        step()
        timeline.end_step()
        warm += 1
        records.progress(warm, samples / max(timeline.take(), 1e-9), 0)
    steady = Steady(stop)
    timeline.begin()

    def warming(seconds):
        done = steady.add(seconds)
        records.progress(warm + steady.steps, samples / max(seconds, 1e-9), 0)
        return done

    run_steps(step, timeline, warming)
    warmup_seconds = time.monotonic() - start

    rule = Stopping(stop)

    def measuring(seconds):
        done = rule.add(seconds)
        records.progress(len(rule.steps), samples * len(rule.steps) / rule.seconds,
                         max(0.0, stop["max_seconds"] - rule.seconds))
        return done

    records.phase("measure")
    timeline.begin()
    host = time.monotonic()
    run_steps(step, timeline, measuring)
    timeline.synchronize()
    host_seconds = time.monotonic() - host
    seconds = timeline.window()
    records.phase("finish")
    count = len(rule.steps)
    return {
        "throughput": samples * count / seconds, "steps": count, "device_steps": timeline.counted(),
        "samples": samples * count, "seconds": seconds, "host_seconds": host_seconds,
        "warmup_seconds": warmup_seconds, "warmup_steps": warm + steady.steps, "stop_reason": rule.reason,
        "ci95_ratio": interval_ratio(rule.steps),
        "cv_ratio": statistics.stdev(rule.steps) / statistics.fmean(rule.steps) if count > 1 else None,
        **{f"step_p{share}_ms": 1e3 * percentile(rule.steps, share / 100) for share in (50, 95, 99)}}
