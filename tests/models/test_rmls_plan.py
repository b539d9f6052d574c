"""What the plans of RMLS cost, and which is taken or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from clickbridge import ClickGraph, Ray
from clickbridge.engines.local import Local
from clickbridge.errors import EngineError, NoRoom, NotSupported, SettingError
from clickbridge.models.lexical import BM25
from clickbridge.models.rmls import RMLS
from clickbridge.models.rmls_passes import Problem, _in_ball
from clickbridge.models.rmls_plan import CARD, PLANS, CardSize, Plan, Rates, Sizes, choose, plans
from clickbridge.models.study import Study
from clickbridge.numerics.qr import ROWS
from oracles.latent import random_clicks


def test_plans_without_running(small_graph: ClickGraph) -> None:
    found = RMLS(dim=3).plans(small_graph)
    assert {row["name"] for row in found} == set(PLANS)
    assert found[0]["name"] == RMLS(dim=3).fit(small_graph).report_["plan"]
    assert RMLS(dim=3, plan="factors").plans(small_graph)[0]["name"] == "factors"
    with pytest.raises(NotSupported, match="bm25 costs little: it has no plan"):
        BM25().plans(small_graph)
    with pytest.raises(EngineError, match="raise memory, or lower dim or density"):
        RMLS(dim=3).plans(small_graph, engine=Local(memory=1024))


def sizes(**changes: Any) -> Sizes:
    base: dict[str, Any] = {
        "n_queries": 94_022, "n_docs": 111_631, "n_x": 95_000, "n_y": 112_000, "nnz_x": 376_000, "nnz_r": 163_000,
        "nnz_y": 660_000, "nnz_w": 2_400_000, "links": 1_600_000, "images": 14_000_000,
        "linked": 2e8, "products": 4e6, "dim": 1000,
        "iterations": 10, "kept": 20, "decorrelate": False,
    }  # fmt: skip
    return Sizes(**base | changes)


def test_sparse_factors_win_where_w_is_sparse() -> None:
    rates = Rates(1e10, 1e11, 1e7)
    assert choose(sizes(), 8e9, rates=rates).name == "w-sparse"
    # A W of far more numbers than its factors is not formed.
    assert choose(sizes(nnz_w=400_000_000, products=5e9), 8e9, rates=rates).name == "factors"


def test_columns_are_tiled_when_memory_is_short() -> None:
    rates = Rates(1e10, 1e11, 1e7)
    wide = sizes(nnz_w=4_000_000_000, products=5e10)
    roomy, tight = (next(p for p in plans(wide, budget, rates=rates) if p.name == "factors") for budget in (16e9, 1e9))
    assert roomy.tile == 1000
    assert 16 <= tight.tile < 1000
    assert tight.memory <= 1e9
    with pytest.raises(EngineError, match="GiB at least"):
        choose(wide, 1e6, rates=rates)


HALF_YEAR: dict[str, Any] = {
    "n_queries": 6_372_254, "n_docs": 4_599_849, "n_x": 4_871_410, "n_y": 6_643_815, "nnz_x": 35_041_516,
    "nnz_r": 18_605_239, "nnz_y": 39_586_860, "nnz_w": 1_226_000_000, "links": 430_000_000, "images": 792_000_000,
    "linked": 7.4e10, "products": 2.4e9, "iterations": 3,
}  # fmt: skip


def test_w_is_not_formed_where_memory_does_not_hold_it() -> None:
    half_year = sizes(**HALF_YEAR, decorrelate=True)
    tight = choose(half_year, 9.7e9)
    assert tight.name == "images"
    assert tight.memory < 9.7e9
    with pytest.raises(EngineError, match="GiB at least"):
        choose(half_year, 9.7e9, home="ray")
    with pytest.raises(SettingError, match="plan=images is for engine local"):
        choose(half_year, 9.7e9, "images", home="ray")


def test_the_printed_algorithm_takes_a_plan_of_every_engine_where_one_fits() -> None:
    """Its bits are the same on all of them."""
    printed = sizes(**HALF_YEAR)
    assert plans(printed, 1e12)[-1].name == "images"
    for budget in (64e9, 1e12):
        assert choose(printed, budget) == choose(printed, budget, home="ray")
    assert choose(printed, 9.7e9).name == "images"


def plan_of(name: str, s: Sizes, budget: float, home: str = "local") -> Plan:
    return next(plan for plan in plans(s, budget, home) if plan.name == name)


def test_a_plan_that_is_asked_for_is_refused_where_it_does_not_fit() -> None:
    assert choose(sizes(), 8e9, "w-dense").name == "w-dense"
    with pytest.raises(NoRoom, match=r"needs .* GiB at least \(w-dense\) and may use 0.2: take plan=auto"):
        choose(sizes(), 0.2 * (1 << 30), "w-dense")


@pytest.mark.parametrize("name", ["w-sparse", "images", "factors"])
def test_a_dense_first_map_counts(name: str) -> None:
    half_year = sizes(**HALF_YEAR)
    first = 6_643_815 * 1000 * 4
    dense = replace(half_year, first=first)
    assert plan_of(name, dense, 1e12).memory >= plan_of(name, half_year, 1e12).memory + first
    assert plan_of("w-dense", dense, 1e12) == plan_of("w-dense", half_year, 1e12), "its maps are dense anyway"
    with pytest.raises(NoRoom):
        choose(dense, 20e9)
    if name == "images":  # so are the images of documents
        assert plan_of(name, dense, 1e12).memory >= first + 4_599_849 * 1000 * 4


@pytest.mark.parametrize(
    ("changes", "given", "dense"),
    [
        ({}, False, False),
        ({"start": "ball"}, False, True),
        ({"start": "svd"}, False, True),
        ({"shrink": "relative"}, False, True),
        ({"start": "ball"}, True, False),
    ],
)
def test_which_first_maps_are_dense(changes: dict[str, Any], given: bool, dense: bool) -> None:
    """An update starts from the sparse map that there is."""
    graph = random_clicks(2)
    model = RMLS(dim=4, views="word", fields="equal", language="none", **changes)
    study = Study(graph)
    _, features, (columns,) = model.learn_features(study, ["word"], model.choose(study))
    problem = Problem.of(features, *columns, 4, model.settings)
    start = problem.first(RMLS(dim=4).settings, study.engine) if given else None
    found = problem.sizes(model.settings, 3, study.engine, start)
    made = problem.first(model.settings, study.engine) if start is None else start
    assert isinstance(made, np.ndarray) == dense == (found.first_map > 0)
    if dense:
        assert isinstance(made, np.ndarray)
        assert found.first >= found.first_map == made.nbytes


def test_rows_in_the_ball_do_not_depend_on_blocks() -> None:
    n, dim = 3 * ROWS // 2, 5
    found = _in_ball(np.random.default_rng(1), n, dim, 0.7)
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((n, dim), dtype=np.float32)
    lengths = 0.7 * rng.random(n) ** (1 / dim) / np.maximum(np.linalg.norm(rows, axis=1), 1e-30)
    np.testing.assert_array_equal(found, rows * lengths.astype(np.float32)[:, None])


def test_omega_is_kept_side_by_side() -> None:
    """As `with_gram` does, and as it does not where W is dense or on another machine."""
    budget = 2.0 * (1 << 30)
    tall = sizes(n_x=100_000, n_y=1_000_000, decorrelate=True)
    plain = replace(tall, decorrelate=False)
    turning = 6.0 * 1000**2 * 8

    def kept(name: str, home: str = "local") -> float:
        return plan_of(name, tall, budget, home).memory - plan_of(name, plain, budget, home).memory - turning

    def products(name: str, budget: float, home: str = "local") -> float:
        """The work of half a pass as often as it is done, but for decorrelation."""
        more = 4.0 * 1_100_000 * 1000**2 + 2 * 20.0 * 1000**3
        one, two = (plan_of(name, s, budget, home).operations for s in (plain, tall))
        return two - one - 10 * more

    assert kept("w-sparse") == kept("images") == 100_000 * 1000 * 4
    assert kept("w-dense") == kept("w-sparse", "ray") == 0
    assert products("w-dense", budget) == products("w-sparse", 1e12) == 0
    assert products("w-sparse", 1e8) == products("w-sparse", 1e12, "ray") == 2 * products("w-sparse", budget) > 0


def test_cost_grows_with_the_work() -> None:
    rates = Rates(1e10, 1e11, 1e7)
    for name in PLANS:
        small, large = (
            next(p for p in plans(s, 1e12, rates=rates) if p.name == name)
            for s in (sizes(), sizes(dim=2000, iterations=20))
        )
        assert large.operations > small.operations
        assert large.seconds > small.seconds


def test_the_plan_follows_from_sizes_and_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy, or short of free memory, must not change the model."""
    times = iter(float(n) for n in range(1_000_000))
    monkeypatch.setattr("time.perf_counter", lambda: next(times))
    graph = random_clicks(2)
    found = [RMLS(dim=4).plans(graph, engine=Local(threads, 8 << 30)) for threads in (1, 2)]
    assert found[0] == found[1]


def test_a_card_works_on_dense_rows_and_waits_for_maps() -> None:
    made = {plan.name: plan for plan in plans(sizes(), 1e12, "gpu")}
    assert {*made} == {"w-sparse", "w-dense", "factors"}
    assert replace(made["w-dense"], name="w-sparse") == made["w-sparse"]
    at_least = 4.0 * (95_000 + 112_000) * 1000 / CARD.host  # both maps come to this machine once
    assert all(plan.seconds > at_least for plan in made.values())
    large = sizes(nnz_w=400_000_000, products=5e9)
    assert choose(large, 1e12, home="gpu").name == "factors"
    # Half a year, ten printed passes: 2.1 s were measured on a card, without what goes to and from it.
    half_year = sizes(
        n_queries=6_372_254, n_docs=4_599_849, n_x=4_871_410, n_y=6_643_815, nnz_x=35_041_516, nnz_r=18_605_239,
        nnz_y=39_586_860, nnz_w=10**9, products=10**9,
    )  # fmt: skip
    factors = next(plan for plan in plans(half_year, 1e12, "gpu") if plan.name == "factors")
    transfers = 4.0 * (4_871_410 + 6_643_815) * 1000 / CARD.host
    assert 1.8 < factors.seconds - transfers - CARD.start < 3.2


def test_a_card_that_is_too_small_needs_more_memory_of_this_machine() -> None:
    """By tiles, the sums and the new map wait here beside both maps."""
    printed = sizes()
    made = [{p.name: p for p in plans(printed, 1e12, "gpu", card=CardSize(card))} for card in (1e12, 1e8)]
    large, small = (found["factors"] for found in made)
    assert small.memory - large.memory == 2 * 4.0 * max(printed.n_x, printed.n_y) * printed.dim
    with pytest.raises(NoRoom, match="rmls needs"):
        choose(printed, large.memory, "factors", home="gpu", card=CardSize(1e8))
    assert choose(printed, large.memory, "factors", home="gpu", card=CardSize(1e12)) == large


def test_the_processor_decomposes_small_matrices_for_a_card() -> None:
    printed, ours = (
        next(p for p in plans(replace(sizes(), decorrelate=turned), 1e12, "gpu") if p.name == "factors")
        for turned in (False, True)
    )
    passes, dim = sizes().iterations, sizes().dim
    assert ours.seconds - printed.seconds > passes * 2 * 20.0 * dim**3 / CARD.small


def test_a_start_that_workers_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ray, "workers_here", 2)
    x = sparse.csr_array(sparse.random_array((3000, 60_000), density=0.001, rng=np.random.default_rng(0)))
    problem = Problem(x, sparse.eye_array(3000, format="csr"), x, 300)
    with pytest.raises(NoRoom, match=r"start=svd of rmls needs .* for 2 Ray workers .* or take start=random"):
        problem.sizes(RMLS(dim=300, start="svd").settings, 3, Ray(2, 60 << 20))
