"""A saved model in a process that has imported nothing but `clickbridge`: all that it is made of is found, and it
answers as it did."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from clickbridge import ClickGraph
from clickbridge.models.model import Model
from contract.specs import SPECS

QUERIES = ["old river", "stream", "never heard of"]
# One child for each model, so that no model finds what another has imported.
PROGRAM = """
import json, os, sys
import clickbridge

heavy = {"duckdb", "pyarrow", "lightgbm", "sklearn", "matplotlib"}
for spec, folder, queries, ids in json.load(sys.stdin):
    if os.fork() == 0:
        model = clickbridge.load(folder)
        print(json.dumps([
            spec,
            [model.score(query, ids).tobytes().hex() for query in queries],
            sorted(heavy & {*sys.modules}),
        ]), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print(json.dumps([spec, None, None]), flush=True)
"""


def test_every_saved_model_answers_in_a_fresh_process(
    large_graph: ClickGraph, tuned: Callable[[str], Model], saved: Callable[[str], Path]
) -> None:
    ids = large_graph.doc_ids
    jobs = [[spec, str(saved(spec)), QUERIES, ids] for spec in SPECS]
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=json.dumps(jobs), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {spec: (scores, heavy) for spec, scores, heavy in map(json.loads, done.stdout.splitlines())}
    assert list(found) == SPECS
    for spec, (scores, heavy) in found.items():
        assert scores == [tuned(spec).score(query, ids).tobytes().hex() for query in QUERIES], (spec, done.stderr)
        assert not heavy, f"{spec} needs none of {heavy} to answer"
