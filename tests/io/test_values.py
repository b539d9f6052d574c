"""Values into artifacts and back: every kind, nested as they come, and nothing made that is not marked."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clickbridge.errors import ArtifactError
from clickbridge.io import values
from clickbridge.io.artifact import Artifact, ArtifactWriter, open_artifact
from clickbridge.io.values import SMALL, STORED, read_value, stored, write_value
from clickbridge.views.word import Vocabulary

Written = Callable[[Any], Artifact]


@stored
@dataclass(frozen=True)
class Leaf:
    name: str
    weights: Any
    length: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.weights))


@stored
@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...]
    by_name: dict[str, Any]
    parent: Any = None


@stored
class Counts(dict[str, int]):
    """Says itself what it is made of."""

    def to_stored(self) -> Any:
        return {"keys": list(self), "counts": np.array(list(self.values()), dtype=np.int64)}

    @classmethod
    def from_stored(cls, value: Any) -> Counts:
        return cls(zip(value["keys"], value["counts"].tolist(), strict=True))


@dataclass(frozen=True)
class Unmarked:
    name: str


class Pair(NamedTuple):
    one: int
    two: int


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    home, names = tmp_path_factory.mktemp("values"), iter(range(10**9))

    def write(value: Any) -> Artifact:
        path = home / str(next(names))
        with ArtifactWriter(path, "value") as writer:
            writer.commit(value=write_value(writer, "value", value))
        return open_artifact(path, "value")

    return write


def read(artifact: Artifact) -> Any:
    return read_value(artifact, artifact.manifest["value"])


def assert_same(found: Any, expected: Any) -> None:
    """Equal, of the same types, all the way down."""
    if sparse.issparse(expected):
        assert isinstance(found, sparse.csr_array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
    elif isinstance(expected, np.ndarray):
        assert type(found) is np.ndarray
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, float) and math.isnan(expected):
        assert isinstance(found, float)
        assert math.isnan(found)
    elif isinstance(expected, dict):
        assert type(found) is type(expected)
        assert list(found) == list(expected), "in the same order"
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list | tuple):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif hasattr(expected, "__dataclass_fields__"):
        assert type(found) is type(expected)
        for part in fields(expected):
            assert_same(getattr(found, part.name), getattr(expected, part.name))
    else:
        assert type(found) is type(expected)
        assert found == expected


ARRAYS = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.array([1.5, np.nan, -np.inf], dtype=np.float32),
    np.array([True, False]),
    np.array(7.0),
    np.empty((0, 3)),
    np.array(["", "two", "drei"]),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(10)[::3],
]
MATRICES = [
    sparse.csr_array(np.array([[0, 1.5], [2, 0]], dtype=np.float32)),
    sparse.csr_array((0, 4)),
    sparse.csr_array((3, 0), dtype=np.float32),
    sparse.csc_array(np.eye(3)),
    sparse.coo_array(np.array([[0, 1], [0, 2]])),
]


@pytest.mark.parametrize("value", [*ARRAYS, *MATRICES], ids=lambda v: f"{type(v).__name__} {v.dtype} {v.shape}")
def test_arrays_and_matrices(value: Any, written: Written) -> None:
    assert_same(read(written(value)), value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.float32(0.5), 0.5), (np.int64(-3), -3), (np.bool_(True), True), (np.str_("a"), "a")],
)
def test_numbers_of_numpy_become_plain_ones(value: Any, expected: Any, written: Written) -> None:
    assert_same(read(written(value)), expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, (1.0, -math.inf), {"a": math.nan}, np.float32("nan")])
def test_numbers_that_json_does_not_know(value: Any, written: Written) -> None:
    assert_same(read(written(value)), float(value) if isinstance(value, np.generic) else value)


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text("aé\n\x00\x1f€𝄞")
)
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.builds(Tree, st.just(()), st.dictionaries(st.text("ab./ "), inner, max_size=2), inner)
    ),
    max_leaves=12,
)


@given(value=nested)
def test_plain_values_in_any_nesting(value: Any, written: Written) -> None:
    assert_same(read(written(value)), value)


@pytest.mark.parametrize("n", [0, 1, SMALL, SMALL + 1, 500])
@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_texts_of_any_length(n: int, kind: Any, written: Written) -> None:
    """Long ones go into files of their own. An end of line, an empty text and letters of several bytes survive."""
    value = kind(["", "a\nb", "ß", "€\x00", "𝄞"][i % 5] * (i % 3) for i in range(n))
    artifact = written(value)
    assert_same(read(artifact), value)
    assert bool(artifact.manifest["files"]) == (n > SMALL)


def test_values_within_values(written: Written) -> None:
    leaf = Leaf("a", np.arange(3.0))
    tree = Tree((leaf, Leaf("b", np.empty(0))), {"../x": MATRICES[0], "y": [leaf, {"z": (np.arange(2),)}]}, leaf)
    again = read(written(Tree((leaf,), {"inner": tree}, parent=Tree((), {}))))
    assert_same(again, Tree((leaf,), {"inner": tree}, parent=Tree((), {})))
    assert again.leaves[0].length == 3, "what follows from fields is worked out anew, not written"


def test_a_class_may_say_itself_what_it_is_made_of(written: Written) -> None:
    for value in (Counts(a=1, b=2), Counts(), Vocabulary({"river": 0, "stone": 1})):
        assert_same(read(written({"counts": value})), {"counts": value})


def test_a_tuple_with_names_is_read_as_a_plain_one(written: Written) -> None:
    assert_same(read(written(Pair(1, 2))), (1, 2))


def test_arrays_are_mapped_and_not_copied(written: Written) -> None:
    found = read(written(np.arange(1000)))
    assert isinstance(found.base, np.memmap)
    assert not found.flags.writeable


def test_writing_leaves_the_value_as_it_is(written: Written) -> None:
    """A fitted model may be saved while threads rank with it: an unsorted matrix is not sorted in place."""
    parts: Any = (np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2]))
    matrix = sparse.csr_array(parts, shape=(1, 2))
    again = read(written(matrix))
    assert matrix.indices.tolist() == [1, 0]
    assert again.indices.tolist() == [0, 1]
    assert again.toarray().tolist() == matrix.toarray().tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize(
    "value", [b"x", {1, 2}, 1j, object(), len, int, Unmarked("a"), {"a": [Unmarked("b")]}, {1: "a"}, {"a": {("b",): 1}}]
)
def test_what_cannot_be_stored_is_refused(value: Any, tmp_path: Path) -> None:
    refused = pytest.raises(TypeError, match=r"value.*(cannot be stored|only texts can be keys)")
    with refused, ArtifactWriter(tmp_path / "a", "value") as writer:
        writer.commit(value=write_value(writer, "value", value))
    assert not list(tmp_path.iterdir())


def test_an_array_of_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"), ArtifactWriter(tmp_path / "a", "value") as writer:
        write_value(writer, "value", np.array([None]))


# --- reading what somebody else wrote ----------------------------------------------------------------

ABSENT = "xml.sax.expatreader"
"""A module of the standard library that nothing here imports."""


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "Unmarked", "value": {"name": {"plain": "a"}}},
        {"kind": f"{ABSENT}:ExpatParser", "value": {}},
        {"kind": f"{ABSENT}.ExpatParser", "value": {}},
        {"kind": "os.system", "value": {"command": {"plain": "true"}}},
        {"kind": "__import__", "value": {"name": {"plain": ABSENT}}},
        {"kind": ["Leaf"], "value": {}},
        {"kind": None, "value": {}},
        {"kind": "Leaf"},
        {"kind": "Leaf", "value": {"name": {"plain": "a"}}},
        {"kind": "Leaf", "value": {"name": {"plain": "a"}, "weights": {"plain": 3}}},
        {"kind": "Leaf", "value": {"name": {"plain": "a"}, "weights": {"list": [], "tuple": False}, "more": {}}},
        {"kind": "Leaf", "value": {"__class__": {"plain": "a"}}},
        {"kind": "Counts", "value": {"plain": 3}},
        {"kind": "Counts", "value": {"map": {}}},
        {"map": [1]},
        {"list": 3, "tuple": True},
        {"list": [{}], "tuple": True},
        {"list": []},
        {"number": "many"},
        {"number": None},
        {"array": "no such array"},
        {"array": None},
        {"sparse": "value"},
        {"texts": "value", "tuple": False},
        {},
        [],
        "plain",
        3,
        None,
    ],
)
def test_trees_that_nobody_wrote_are_refused(tree: Any, written: Written) -> None:
    artifact = written(np.arange(3))
    for whole in (tree, {"list": [{"plain": 1}, tree], "tuple": True}, {"map": {"a": tree}}):
        with pytest.raises(ArtifactError, match=r"build it again"):
            read_value(artifact, whole)
    assert ABSENT not in sys.modules, "a file must never say what is imported"


def test_a_tree_without_end_is_refused(written: Written) -> None:
    tree: Any = {"plain": 1}
    for _ in range(100_000):
        tree = {"list": [tree], "tuple": False}
    with pytest.raises(ArtifactError, match="build it again"):
        read_value(written(1), tree)


def test_one_name_is_one_class() -> None:
    """A second class of that name would take the place of the first in every file."""
    other = type("Leaf", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match=r"a stored class Leaf is there already, in .*test_values: choose another name"):
        stored(other)
    assert STORED["Leaf"] is Leaf
    assert stored(Leaf) is Leaf


def test_a_class_made_again_takes_the_place_of_its_older_self(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a cell of a notebook is run twice."""
    monkeypatch.setattr(values, "STORED", dict(STORED))

    def define() -> Any:
        @stored
        @dataclass(frozen=True)
        class Mine:
            n: int

        return Mine

    first, second = define(), define()
    assert type(read(written(second(3)))) is second
    with pytest.raises(TypeError, match="a Mine cannot be stored"):
        written(first(3))
