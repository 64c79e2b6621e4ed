#!/usr/bin/env python3
import pathlib
import random
import statistics
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from median_interval import coefficient_of_variation, median_interval  # noqa: E402


class MedianInterval(unittest.TestCase):
    def test_five_values_give_their_extremes_and_say_what_that_is_worth(self):
        self.assertEqual(median_interval([5, 1, 4, 2, 3]), (3, 1, 5, 0.9375))

    def test_ranks_are_those_of_the_binomial_distribution(self):
        # Tables of the sign test: at 5 % and n = 10 the second smallest and largest, at 20 the sixth.
        self.assertEqual(median_interval(range(1, 11))[1:3], (2, 9))
        self.assertEqual(median_interval(range(1, 21))[1:3], (6, 15))

    def test_it_holds_the_median_as_often_as_it_says(self):
        draws = random.Random(3)
        for n in (5, 9):
            held = 0
            for _ in range(4000):
                _, low, high, coverage = median_interval([draws.expovariate(1) for _ in range(n)])
                held += low <= 0.6931 <= high
            self.assertAlmostEqual(held / 4000, coverage, delta=0.012)

    def test_one_value_and_none(self):
        self.assertEqual(median_interval([2.0])[:3], (2.0, 2.0, 2.0))
        self.assertIsNone(median_interval([]))

    def test_coefficient_of_variation_is_of_the_sample(self):
        self.assertAlmostEqual(coefficient_of_variation([9, 10, 11]), 0.1)
        self.assertEqual(statistics.stdev([9, 10, 11]), 1)


if __name__ == "__main__":
    unittest.main()
