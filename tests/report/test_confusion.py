"""Confusions without a table of all pairs (report/_confusion.py), and reports of very many classes."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, top_k_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from skmargin import CrammerSingerSVC
from skmargin.report import summarize_dataset, summarize_model
from skmargin.report._confusion import MAX_MATRIX, N_PAIRS, Confusion, top_accuracy


@pytest.mark.parametrize("k", [2, 3, 60])
def test_counts_are_those_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    code = rng.integers(k, size=500)
    guess = np.where(rng.random(500) < 0.7, code, rng.integers(k, size=500))
    table = confusion_matrix(code, guess, labels=np.arange(k))
    found = Confusion(code, guess, k)
    assert_array_equal(found.support, table.sum(axis=1))
    assert_array_equal(found.predicted, table.sum(axis=0))
    assert_array_equal(found.hits, table.diagonal())
    assert found.macro_f1() == pytest.approx(f1_score(code, guess, average="macro"))
    chosen = found.most_confused()
    errors = table.sum(axis=0) + table.sum(axis=1) - 2 * table.diagonal()
    assert len(chosen) == min(k, MAX_MATRIX)
    assert errors[chosen].min() >= np.delete(errors, chosen).max(initial=0)
    assert_array_equal(found.matrix(chosen), table[np.ix_(chosen, chosen)])
    place = rng.permutation(k)
    pairs = found.worst_pairs(place)
    np.fill_diagonal(table, 0)
    assert [n for *_, n in pairs] == sorted(table[table > 0], reverse=True)[:N_PAIRS]
    back = np.argsort(place)
    assert all(table[back[i], back[j]] == n for i, j, n in pairs)


def words(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(k, size=n - k)])
    at = np.where(rng.random((n, 8)) < 0.4, rng.integers(d, size=(n, 8)), rng.integers(d, size=(k, 8))[y])
    X = sparse.coo_array((np.ones(8 * n), (np.repeat(np.arange(n), 8), at.ravel())), (n, d)).tocsr()
    return sparse.csr_array(X), y


def test_top_accuracy_is_that_of_scikit_learn():
    X, y = words(400, 100, 30)
    for last in (LogisticRegression(), CrammerSingerSVC(tol=1e-2)):
        model = make_pipeline(MaxAbsScaler(), last).fit(X[:300], y[:300])
        expected = top_k_accuracy_score(y[300:], model.decision_function(X[300:]), k=5, labels=np.arange(30))
        assert top_accuracy(model, X[300:], y[300:]) == pytest.approx(expected)
    assert top_accuracy(model[-1].fit(X, y % 5), X, y % 5) is None  # there are only five


def test_a_report_of_very_many_classes_has_the_worst_pairs_and_stays_small():
    k = 1100
    X, y = words(3000, 800, k)
    model = CrammerSingerSVC(tol=1e-1).fit(X[:2200], y[:2200])
    dataset = summarize_dataset("words", X, y)
    result = summarize_model("machine", model, X[2200:], y[2200:], dataset)
    assert result.confusion is None and result.pairwise is None and not result.weights
    wrong = model.predict(X[2200:]) != y[2200:]
    assert 0 < len(result.worst_pairs) <= N_PAIRS
    assert sum(n for *_, n in result.worst_pairs) <= wrong.sum()
    top = np.argsort(-model.decision_function(X[2200:]), axis=1)[:, :5]
    assert result.top5 == pytest.approx(np.mean((model.classes_[top] == y[2200:, None]).any(axis=1)))
    assert len(result.hardest) > 0 and result.statistics["test"]["n_samples"] == 800
    assert len(json.dumps(vars(result), default=vars)) < 200_000
