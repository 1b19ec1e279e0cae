import numpy as np
import pytest
from scipy import stats

from skmargin.experiments._statistics import cliques, friedman, mean, ranks, verdict


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("statistic", ["paired", "welch"])
def test_verdict_is_that_of_scipys_test(statistic, size):
    rng = np.random.default_rng(0)
    seen = set()
    for shift in np.linspace(-2, 2, 150):
        a, b = rng.normal(shift, 1, 6), rng.normal(0, 2, 6 if statistic == "paired" else 4)
        p = stats.ttest_rel(a, b).pvalue if statistic == "paired" else stats.ttest_ind(a, b, equal_var=False).pvalue
        expected = int(np.sign(a.mean() - b.mean())) if p < 0.05 else 0
        assert verdict(size * a, size * b, statistic) == expected
        assert verdict(size * b, size * a, statistic) == -expected
        seen.add(expected)
    assert len(seen) == 3


def test_verdict_without_spread():
    assert verdict([0.5, 0.6], [0.5, 0.6]) == 0
    assert verdict([0.6, 0.7], [0.5, 0.6]) == 1  # the same gain every time
    assert verdict([0.5, 0.6], [0.500001, 0.600001]) == 0  # the last digit of the results file
    assert verdict([0.9], [0.1]) == 0  # one division says nothing
    assert verdict([0.9, 0.8], [0.1], "welch") == verdict([0.1], [0.9, 0.8], "welch") == 0


def test_ranks_share_places_and_keep_gaps():
    found = ranks(np.array([[0.9, 0.8, 0.9], [0.1, np.nan, 0.2]]))
    np.testing.assert_array_equal(found, [[1.5, 3, 1.5], [2, np.nan, 1]])
    np.testing.assert_array_equal(ranks(np.array([[0.1 + 0.2, 0.3]])), [[1.5, 1.5]])  # but for rounding the same


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_difference_is_that_of_demsars_table(k, q):
    n = 20
    found = friedman(np.random.default_rng(0).random((n, k)))
    assert found.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * n)), rel=1e-3)
    assert found.mean_ranks.sum() == pytest.approx(k * (k + 1) / 2)


@pytest.mark.parametrize(("n", "k"), [(20, 3), (8, 5)])
def test_friedmans_test_is_that_of_scipy(n, k):
    means = np.random.default_rng(n).random((n, k)) + 0.1 * np.arange(k)
    assert friedman(means).p_value == pytest.approx(stats.friedmanchisquare(*means.T).pvalue)
    assert np.isnan(friedman(means[:1]).p_value) and np.isnan(friedman(means[:, :2]).p_value)


def test_mean_is_that_of_what_is_there():
    assert mean(np.array([1.0, np.nan, 4.0])) == 2.5
    assert np.isnan(mean(np.array([np.nan])))


def test_cliques_are_the_longest_intervals():
    assert cliques(np.array([1.0, 1.5, 2.4, 4.0]), 1.0) == [(1.0, 1.5), (1.5, 2.4)]
    assert cliques(np.array([1.0, 1.4, 1.9]), 1.0) == [(1.0, 1.9)]  # none inside another
    assert cliques(np.array([1.0, 3.0]), 1.0) == []
    assert cliques(np.array([1.0, 2.0]), 1.0) == [(1.0, 2.0)]  # not by more
