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


def interval(difference, variances, freedoms, workloads=1):
    """Of a mean of `workloads` differences of logarithms, by Welch and Satterthwaite over all parts."""
    total = sum(variances)
    # SciPy itself gives Welch's interval from 1.11 on only.
    freedom = total ** 2 / sum(v ** 2 / f for v, f in zip(variances, freedoms))
    low, high = scipy.stats.t.interval(0.95, freedom, difference, total ** 0.5 / workloads)
    return [numpy.exp(difference), numpy.exp(low), numpy.exp(high)]


def welch_ratio(values, base):
    top, bottom = numpy.log(values), numpy.log(base)
    return interval(top.mean() - bottom.mean(),
                    [scipy.stats.sem(top) ** 2, scipy.stats.sem(bottom) ** 2],
                    [len(top) - 1, len(bottom) - 1])


def ratio_of_medians(values, base):
    top, bottom = numpy.log(values), numpy.log(base)
    wider = [numpy.pi / 2 if len(side) > 2 else 1 for side in (top, bottom)]
    return interval(numpy.median(top) - numpy.median(bottom),
                    [wider[0] * scipy.stats.sem(top) ** 2, wider[1] * scipy.stats.sem(bottom) ** 2],
                    [len(top) - 1, len(bottom) - 1])


def geometric_mean(workloads):
    ratios = [scipy.stats.gmean(values) / scipy.stats.gmean(base) for values, base in workloads]
    sides = [numpy.log(side) for pair in workloads for side in pair]
    return interval(numpy.log(scipy.stats.gmean(ratios)),
                    [scipy.stats.sem(side) ** 2 for side in sides],
                    [len(side) - 1 for side in sides], len(workloads))


def batch_means(steps):
    size = max(20, len(steps) // 30)
    batches = min(len(steps) // size, 30)
    means = numpy.reshape(steps[len(steps) - batches * size:], (batches, size)).mean(axis=1)
    half = scipy.stats.sem(means) * scipy.stats.t.ppf(0.975, batches - 1)
    return [means.mean(), half / means.mean()]


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
        lines.append(f"medians {len(values)} {text(values)} {text(base)}")
        wanted.append(ratio_of_medians(values, base))
        nodes = values + base
        lines.append("deviations " + text(nodes))
        wanted.append((numpy.array(nodes) - numpy.median(nodes))
                      / (1.4826 * scipy.stats.median_abs_deviation(nodes)))
        workloads = [[[rng.lognormvariate(5, 0.03) for _ in range(rng.randint(2, 5))]
                      for _ in range(2)] for _ in range(rng.randint(1, 6))]
        lines.append(f"geomean {len(workloads)} "
                     + " ".join(f"{len(side)} {text(side)}" for pair in workloads for side in pair))
        wanted.append(geometric_mean(workloads))
        steps = [rng.lognormvariate(-2, 0.1) for _ in range(rng.randint(100, 900))]
        lines.append("batches " + text(steps))
        wanted.append(batch_means(steps))

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
