"""Parts on the workers of a cluster: order, sums in a tree, errors."""

from concurrent.futures import CancelledError

import numpy as np
import pytest
from distributed import Client

from mixedgm.base.parts.cluster import ClusterParts


@pytest.fixture(scope="module")
def client():
    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
    with Client(n_workers=2, **options) as client:
        yield client


def test_errors_of_parts_are_those_of_the_caller(client):
    parts = ClusterParts(client, client.map(float, [1.0, 0.0]))
    with pytest.raises(ZeroDivisionError):
        list(parts.map(reciprocal))
    assert parts.total(as_sums, 10.0) == (1.0, 20.0)
    large = np.zeros(10**5)
    assert parts.total(with_size, large) == (2 * 10**5,)
    assert len(parts.only([1])) == 1
    assert ClusterParts(client, []).total(as_sums, 1.0) == ()


def reciprocal(value):
    return 1.0 / value


def as_sums(value, more):
    return value, more


def with_size(value, array):
    return (len(array),)


def test_parts_keep_their_order_and_sums_their_tree(client):
    values = np.random.default_rng(0).normal(size=70)
    parts = ClusterParts(client, client.map(float, values.tolist(), pure=False))
    assert list(parts.map(float)) == values.tolist()
    by_eight = values.copy()
    while len(by_eight) > 1:
        by_eight = np.array([sum(by_eight[at : at + 8]) for at in range(0, len(by_eight), 8)])
    assert parts.total(as_sums, 0.0)[0] == by_eight[0]
    assert parts.combined(max, float) == values.max()
    assert list(parts.replaced(abs).map(float, each=None)) == np.abs(values).tolist()
    assert len(parts) == 0


class Forgetful:
    """A cluster that has lost what tasks need, so many times."""

    def __init__(self, n_losses):
        self.n_losses = n_losses

    def submit(self, function, *given, pure):
        return function, *given

    def gather(self, futures):
        self.n_losses -= 1
        if self.n_losses >= 0:
            raise CancelledError("lost with its worker")
        return [function(*given) for function, *given in futures]


def test_tasks_whose_arguments_are_lost_are_sent_again():
    assert list(ClusterParts(Forgetful(2), [1.0, 4.0]).map(reciprocal)) == [1.0, 0.25]
    with pytest.raises(CancelledError):
        list(ClusterParts(Forgetful(3), [1.0]).map(reciprocal))
