import numpy as np
import pytest
from scipy import stats

from skmargin.experiments._statistics import cliques, friedman, ranks, verdict


@pytest.mark.parametrize("statistic", ["paired", "welch"])
def test_verdict_is_that_of_scipys_test(statistic):
    rng = np.random.default_rng(0)
    seen = set()
    for shift in (-1.0, -0.4, 0.0, 0.4, 1.0):
        a, b = rng.normal(shift, 1, 12), rng.normal(0, 1, 12)
        p = stats.ttest_rel(a, b).pvalue if statistic == "paired" else stats.ttest_ind(a, b, equal_var=False).pvalue
        expected = int(np.sign(a.mean() - b.mean())) if p < 0.05 else 0
        assert verdict(a, b, statistic) == expected
        assert verdict(b, a, statistic) == -expected
        seen.add(expected)
    assert len(seen) > 1


def test_verdict_without_spread():
    assert verdict([0.5, 0.6], [0.5, 0.6]) == 0
    assert verdict([0.6, 0.7], [0.5, 0.6]) == 1  # the same gain every time
    assert verdict([0.9], [0.1]) == 0  # one division says nothing


def test_ranks_share_places_and_keep_gaps():
    found = ranks(np.array([[0.9, 0.8, 0.9], [0.1, np.nan, 0.2]]))
    np.testing.assert_array_equal(found, [[1.5, 3, 1.5], [2, np.nan, 1]])


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_demsars_table(k, q):
    n = 20
    found = friedman(np.random.default_rng(0).random((n, k)))
    assert found.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * n)), rel=1e-3)
    assert found.mean_ranks.sum() == pytest.approx(k * (k + 1) / 2)


def test_cliques_are_the_longest_intervals():
    assert cliques(np.array([1.0, 1.5, 2.4, 4.0]), 1.0) == [(1.0, 1.5), (1.5, 2.4)]
    assert cliques(np.array([1.0, 3.0]), 1.0) == []
