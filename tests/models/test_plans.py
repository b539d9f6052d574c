"""Plans of models that are made of others, and of those that have none."""

from __future__ import annotations

import pytest

from clickbridge import ClickGraph, build_model
from clickbridge.engines.gpu import Gpu, SizeOfCard
from clickbridge.errors import NotSupported

COSTS = {"operations", "bytes", "memory", "seconds", "tile"}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("bm25+pls", {"bm25": "little", "pls": "block svd"}),
        ("walk+lsi-qd", {"walk": "little", "lsi-qd": "block svd"}),
        ("mart:bm25+ssi+pls", {"bm25": "little", "ssi": "not known", "pls": "block svd"}),
        ("robust:bm25+pls", {"bm25": "little", "pls": "block svd"}),
    ],
)
def test_a_model_of_others_has_the_plans_of_its_parts(
    small_graph: ClickGraph, spec: str, names: dict[str, str]
) -> None:
    found = build_model(spec, {"dim": 3}).plans(small_graph)
    assert {row["part"]: row["name"] for row in found} == names
    (alone,) = build_model(list(names)[-1], {"dim": 3}).plans(small_graph)
    assert found[-1] == {"part": list(names)[-1], **alone}
    for row in found:
        assert {*row} == {"part", "name", *COSTS}
        assert [row[name] is None for name in COSTS] == [row["name"] != "block svd"] * len(COSTS)


def test_every_plan_of_a_part(small_graph: ClickGraph) -> None:
    alone = build_model("rmls", {"dim": 3}).plans(small_graph)
    found = build_model("rmls+bm25", {"dim": 3}).plans(small_graph)
    assert found[:-1] == [{"part": "rmls", **plan} for plan in alone]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("given", "given costs little: it has no plan; rmls, pls"),
        ("ssi", "ssi has no plan of its cost; rmls, pls"),
        ("robust:bm25", "robust:bm25 has no plan of its cost; rmls, pls"),
        ("auto", "auto has no plan of its cost, which budget limits: ask for that of one model, such as model bm25"),
    ],
)
def test_no_plan(small_graph: ClickGraph, spec: str, line: str) -> None:
    with pytest.raises(NotSupported) as refused:
        build_model(spec).plans(small_graph)
    assert str(refused.value).startswith(line)


def test_the_size_of_a_card_is_enough_for_a_plan(small_graph: ClickGraph) -> None:
    """A card takes what is too large for it in tiles: nothing is refused."""
    model = build_model("pls", {"dim": 3})
    large, small = (model.plans(small_graph, Gpu(card=SizeOfCard(size)))[0] for size in (1 << 30, 100))
    assert 0 < float(small["memory"]) <= float(large["memory"])  # type: ignore[arg-type]
    assert build_model("rmls", {"dim": 3}).plans(small_graph, Gpu(memory=1 << 20, card=SizeOfCard(1 << 20)))
