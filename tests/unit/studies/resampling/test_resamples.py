"""Resamples: what is drawn, and what the record of a fit holds."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mixedgm as mg
from mixedgm.base.parallel import seeds
from mixedgm.fit.fitting import fit_design
from mixedgm.fit.options import Options
from mixedgm.studies.resampling.bootstrap import prepared
from mixedgm.studies.resampling.replicates import Replicates
from mixedgm.studies.resampling.resamples import (
    HeldGraph,
    ResamplingPlan,
    estimate_record,
    fitted_record,
    resample,
)
from mixedgm.table.encode import apply
from tests.support.people import people
from tests.support.problems import SCORED, draw

LAM = 0.12


def plan_for(table, kind="nonparametric", weights=None, clusters=None, **options) -> ResamplingPlan:
    model = mg.MixedGraphicalModel(lam=LAM, tol=1e-8, **options).fit(table, sample_weight=weights)
    design = apply(table, model.schema_, sample_weight=weights)
    given = Options(lam=LAM, tol=1e-8, n_jobs=1, **options)
    return ResamplingPlan("key", design, given, model.params_, kind, clusters)


def rows_of(plan: ResamplingPlan, design) -> Counter:
    """How often each row of the whole table is in a resample."""
    return Counter(dict(zip(design.kept.tolist(), design.weights.tolist(), strict=True)))


SEEDS = seeds(11, 5)


def test_rows_are_drawn_with_replacement_and_folded() -> None:
    plan = plan_for(people(80))
    for seed in SEEDS:
        drawn = plan.draw(seed, 0.0)
        expected = Counter(np.random.default_rng(seed).integers(80, size=80).tolist())
        assert rows_of(plan, drawn) == expected
        assert drawn.n_rows == len(expected) < 80
        np.testing.assert_array_equal(drawn.numbers, plan.design.numbers[drawn.kept])
        np.testing.assert_array_equal(drawn.codes, plan.design.codes[drawn.kept])


def test_a_record_holds_nothing_but_its_numbers() -> None:
    """A view would keep the parameters of all pairs alive, for every resample."""
    record = resample(plan_for(people(80)), (SEEDS[0], 0.0))
    assert all(part.base is None for part in record.values())


@pytest.mark.parametrize("share", [0.05, 0.5, 0.75])
def test_dropped_cases_are_the_stated_share(share: float) -> None:
    plan = plan_for(people(80), kind="case-dropping")
    found = [plan.draw(seed, share) for seed in SEEDS]
    assert {design.n_rows for design in found} == {round((1 - share) * 80)}
    assert {float(w) for design in found for w in design.weights} == {1.0}
    assert len({tuple(design.kept) for design in found}) == len(SEEDS)


def test_clusters_stay_whole() -> None:
    clusters = np.arange(80) // 7
    whole = Counter(clusters.tolist())
    for kind, share in (("nonparametric", 0.0), ("case-dropping", 0.5)):
        plan = plan_for(people(80), kind=kind, clusters=clusters)
        assert plan.n_units == 12
        for seed in SEEDS:
            drawn = plan.draw(seed, share)
            counts = rows_of(plan, drawn)
            times = {c: {counts[r] for r in np.flatnonzero(clusters == c)} for c in whole}
            assert all(len(each) == 1 for each in times.values())
            total = sum(next(iter(each)) for each in times.values())
            assert total == (12 if kind == "nonparametric" else 6)


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_whole_weights_count_identical_rows() -> None:
    weights = np.arange(80) % 4 + 1.0
    for kind, share, total in (("nonparametric", 0.0, 200), ("case-dropping", 0.25, 150)):
        plan = plan_for(people(80), kind=kind, weights=weights)
        assert plan.n_units == 200
        found = [plan.draw(seed, share) for seed in SEEDS]
        assert {design.total_weight for design in found} == {float(total)}
        if kind == "case-dropping":
            assert all((design.weights <= weights[design.kept]).all() for design in found)


@pytest.mark.filterwarnings("ignore:sample_weight sums")
def test_other_weights_come_along_with_their_rows() -> None:
    weights = 0.5 + np.arange(80) / 40
    plan = plan_for(people(80), weights=weights)
    for seed in SEEDS:
        drawn = plan.draw(seed, 0.0)
        times = np.bincount(np.random.default_rng(seed).integers(80, size=80), minlength=80)
        np.testing.assert_allclose(drawn.weights, (times * weights)[drawn.kept])


# -- records ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("refit", [False, True])
def test_a_record_is_the_fit_of_the_rows_as_a_table_of_its_own(refit: bool) -> None:
    """The resample written out row by row and fitted from scratch, through the front door."""
    table = people(150)
    plan = plan_for(table, refit=refit)
    for seed in SEEDS[:3]:
        record = resample(plan, (seed, 0.0))
        rows = np.random.default_rng(seed).integers(150, size=150)
        alone = mg.MixedGraphicalModel(lam=LAM, tol=1e-8, refit=refit, transforms=None).fit(
            table.iloc[rows]
        )
        expected = estimate_record(plan, alone.fitted_)
        np.testing.assert_array_equal(record["pairs"], expected["pairs"])
        for name in ("values", "node_terms", "scales"):
            np.testing.assert_allclose(record[name], expected[name], atol=2e-5, err_msg=name)
        assert record["account"][1] <= 1e-8
        assert record["account"][2] == 1.0


def test_a_record_names_pairs_and_holds_their_parameters() -> None:
    table = people(150)
    plan = plan_for(table)
    model = mg.MixedGraphicalModel(lam=LAM, tol=1e-8).fit(table)
    record = fitted_record(plan, plan.design)
    names = [node.name for node in model.schema_.nodes]
    pairs = [frozenset(names[end] for end in plan.declared.pairs[k]) for k in record["pairs"]]
    assert set(pairs) == {frozenset((edge.source, edge.target)) for edge in model.edges_}
    blocks = [model.fitted_.params.block(*plan.declared.pairs[k]).ravel() for k in record["pairs"]]
    np.testing.assert_allclose(record["values"], np.concatenate(blocks), atol=1e-6)


def test_a_plan_travels_light_and_arrives_once() -> None:
    plan = plan_for(people(80))
    size = len(pickle.dumps(plan))
    assert plan.neighbour.memory is not None
    assert len(pickle.dumps(plan)) == size, "what it has computed stays behind"
    first = pickle.loads(pickle.dumps(plan))
    assert pickle.loads(pickle.dumps(plan)) is first
    other = replace(plan, key="other")
    assert pickle.loads(pickle.dumps(other)) is not first
    np.testing.assert_array_equal(
        resample(first, (SEEDS[0], 0.0))["values"], resample(plan, (SEEDS[0], 0.0))["values"]
    )


# -- ordinal columns and counts --------------------------------------------------------------------


def test_resamples_of_all_kinds_are_fits_of_their_own() -> None:
    """From the whole table's estimate and curvature, or alone: the same optimum."""
    table = draw(5, 150, 2, (4, 5, 14, 14, 3), scored=SCORED)
    table.Y[table.Y[:, 0] == 3, 0] = 2
    table.Y[0, 0] = 3  # in no row of about every third resample
    options = Options(lam=LAM, tol=1e-8)
    fitted = fit_design(table.design, options)
    plan = ResamplingPlan("key", table.design, options, fitted.params, "nonparametric")
    records = [resample(plan, (seed, 0.0)) for seed in seeds(7, 6)]
    for seed, record in zip(seeds(7, 6), records, strict=True):
        alone = estimate_record(
            plan, fit_design(plan.draw(seed, 0.0), options, reference=plan.reference)
        )
        np.testing.assert_array_equal(record["pairs"], alone["pairs"])
        np.testing.assert_allclose(record["values"], alone["values"], atol=1e-4)
        np.testing.assert_allclose(record["node_terms"], alone["node_terms"], atol=1e-3)
    every = Replicates.gather(plan.declared, records)
    lacks = [3 not in plan.draw(seed, 0.0).codes[:, 0] for seed in seeds(7, 6)]
    assert 0 < sum(lacks) < 6
    expected = np.zeros((6, 7), dtype=bool)
    expected[:, 2] = lacks
    np.testing.assert_array_equal(every.lacking(plan.reference.observed), expected)
    assert (every.has_sign == (every.ends[:, 1] < 6)).all()


@pytest.mark.filterwarnings("ignore::mixedgm.TableWarning")
def test_a_resample_with_a_constant_column_is_completed_under_the_graph_that_is_held():
    """Its layout is shorter than that of the whole table, so that groups have other numbers."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(60, 6)).cumsum(axis=1)
    numbers[:, 0] = np.arange(60) == 7
    numbers[rng.random(60) < 0.4, 2] = np.nan
    rows = pd.DataFrame(numbers, columns=list("abcdef"))
    model = mg.MixedGraphicalModel(lam=0.1, missing="model", types={"a": "continuous"}).fit(rows)
    _, plan = prepared(model, rows)
    wanted = [(1, 2), (2, 3), (3, 4)]
    layout = plan.whole_by_pairs.layout
    groups = layout.numbers_of(np.array([(*pair, -1) for pair in wanted]))
    plan = replace(plan, held=HeldGraph.of(plan.whole_by_pairs, groups, "graph"))
    drawn = [plan.draw(seed, 0.0) for seed in seeds(0, 8)]
    constant = [rows for rows in drawn if np.ptp(rows.numbers[:, 0]) == 0.0]
    assert constant
    for resampled in [*constant[:1], next(r for r in drawn if np.ptp(r.numbers[:, 0]) > 0.0)]:
        edges = np.argwhere(np.triu(plan.completed(resampled).params.coef, 1))
        assert [tuple(pair) for pair in edges.tolist()] == wanted
