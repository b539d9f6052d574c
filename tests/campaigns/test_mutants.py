"""Mutation testing itself: what is changed, which tests are tried, and that a change which never ends is noticed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaigns.mutants import Room
from campaigns.mutations import mutant, places

SOURCE = """
LIMIT = 5

def half(values: list[int] | None = None) -> float:
    if not values or len(values) > LIMIT:
        raise ValueError("at most " + str(5))
    return sum(values) / 2
"""


def test_every_change_is_one_of_the_meaning() -> None:
    tree = ast.parse(SOURCE)
    told = [mutant(tree, number)[1].partition(": ")[2] for number in range(len(places(tree)))]
    assert told == [
        "5 -> 6",
        "not values or len(values) > LIMIT -> not values and len(values) > LIMIT",
        "not values -> not not values",
        "len(values) > LIMIT -> len(values) >= LIMIT",
        "return sum(values) / 2 -> return None",
        "sum(values) / 2 -> sum(values) * 2",
        "2 -> 3",
    ]
    for number in range(len(told)):
        assert ast.unparse(mutant(tree, number)[0]) != ast.unparse(tree)


def test_tests_that_come_to_a_place_are_tried_the_quickest_first() -> None:
    lines = {2: [""], 4: [""], 5: ["slow", "quick"], 7: ["slow"]}
    room = Room("graph", {"half.py": lines}, {"slow": 2.0, "quick": 0.1, "other": 0.5})
    nodes = [node for node, _ in places(ast.parse(SOURCE))]
    assert [room.of(Path("half.py"), node) for node in nodes] == [
        ["quick", "slow"], *[["quick", "slow"]] * 3, *[["slow"]] * 3
    ]  # fmt: skip
    assert room.of(Path("unseen.py"), nodes[0]) == []


ENDLESS = """
import sys
from pathlib import Path
import hypothesis, pytest
from campaigns import mutants
from campaigns.children import Child
root = Path(sys.argv[1])
child = Child(lambda: mutants._tried(root, root, ["tests/test_it.py"], 2), root / "err")
print(mutants.how(mutants.ended(child, 1.0)))
"""


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("while True: pass", "does not end"),
        ("import time; time.sleep(10**6)", "does not end"),
        ("import subprocess; subprocess.run(['sleep', '1000000'])", "does not end"),
        ("assert False", "noticed"),
        ("pass", "survived"),
    ],
)
def test_what_computes_or_waits_for_ever_is_noticed(body: str, how: str, tmp_path: Path) -> None:
    """In a process of its own: its forks would have all that tests have loaded."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    line = [sys.executable, "-P", "-c", ENDLESS, str(tmp_path)]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{how}\n"
