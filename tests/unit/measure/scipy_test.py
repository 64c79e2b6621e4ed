"""Compares common/measure with SciPy on seeded random figures. Argument: measure_statistics_dump."""

import random
import subprocess
import sys

try:
    import numpy
    import scipy.stats
except ImportError as error:
    print(f"skipped: {error}; install scipy for {sys.executable} to run this test")
    sys.exit(77)


def text(values):
    return " ".join(repr(float(value)) for value in values)


def welch_ratio(values, base):
    top, bottom = numpy.log(values), numpy.log(base)
    # Welch and Satterthwaite's degrees of freedom; SciPy itself gives the interval from 1.11 on only.
    parts = [scipy.stats.sem(top) ** 2, scipy.stats.sem(bottom) ** 2]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(top) - 1) + parts[1] ** 2 / (len(bottom) - 1))
    low, high = scipy.stats.t.interval(0.95, freedom, top.mean() - bottom.mean(), sum(parts) ** 0.5)
    return [numpy.exp(top.mean() - bottom.mean()), numpy.exp(low), numpy.exp(high)]


def main():
    rng = random.Random(20260101)
    lines, wanted = [], []
    for dof in (1, 1.37, 2, 3, 4.5, 5, 9, 19, 29, 120, 1000.5, 1e6):
        for p in (0.025, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9999):
            lines.append(f"t {p} {dof}")
            wanted.append([scipy.stats.t.ppf(p, dof)])
    for _ in range(50):
        values = [rng.lognormvariate(6, 0.02) for _ in range(rng.randint(2, 9))]
        base = [rng.lognormvariate(5, 0.05) for _ in range(rng.randint(2, 9))]
        low, high = scipy.stats.t.interval(
            0.95, len(values) - 1, numpy.mean(values), scipy.stats.sem(values))
        lines.append("mean " + text(values))
        wanted.append([numpy.mean(values), numpy.std(values, ddof=1), low, high])
        lines.append(f"ratio {len(values)} {text(values)} {text(base)}")
        wanted.append(welch_ratio(values, base))
        percent = rng.uniform(0, 100)
        lines.append(f"percentile {percent} {text(values)}")
        wanted.append([numpy.percentile(values, percent)])
        lines.append("mad " + text(values))
        wanted.append([1.4826 * scipy.stats.median_abs_deviation(values)])

    output = subprocess.run([sys.argv[1]], input="\n".join(lines) + "\n", capture_output=True,
                            text=True, check=True).stdout.splitlines()
    assert len(output) == len(wanted), (len(output), len(wanted))
    wrong = 0
    for line, got, want in zip(lines, output, wanted):
        if not numpy.allclose([float(x) for x in got.split()], want, rtol=1e-8, atol=1e-12):
            wrong += 1
            print(f"{line}: got {got}, SciPy says {want}")
    print(f"{len(lines)} figures compared with SciPy {scipy.__version__}, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
