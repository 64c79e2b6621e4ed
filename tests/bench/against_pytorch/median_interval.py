"""The median of a few values, and an interval for it that assumes nothing of their distribution."""

import math
import statistics


def median_interval(values, confidence=0.95):
    """(median, low, high, coverage): the interval between two order statistics, as near to each other as
    hold the median of the population with at least `confidence`; between the extremes where even those do
    not (five values: 93.75 %). The number of values below the median is binomial with p = 1/2 (David and
    Nagaraja, "Order Statistics", 2003, 7.1)."""
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        return None

    def coverage(rank):  # of [rank-th smallest, rank-th largest], rank from 1
        return 1 - 2 * sum(math.comb(n, i) for i in range(rank)) / 2**n

    rank = 1
    while 2 * (rank + 1) <= n and coverage(rank + 1) >= confidence:
        rank += 1
    return statistics.median(ordered), ordered[rank - 1], ordered[n - rank], coverage(rank)


def coefficient_of_variation(values):
    return statistics.stdev(values) / statistics.mean(values)
