"""Re-ranks judged lists with a fitted model and measures the result.

    evaluate(model, lists, measures="nDCG@1,nDCG@3,nDCG@5,AP", qrels=None) -> Evaluation

The model does not see the labels. `compare` does the same for many models, with significance tests. The package has the
same name as its main function, and can be called like it.

Parameters
----------
model : Model, Fitted, object or function
    A fitted model, or its fitted value; or your own model: an object with a method `score(query, doc_ids)`, or a
    function with the same arguments, that returns one score for each document.
lists : sequence of ResultList, str, Path or data frame
    Lists with labels: objects, a LISTS file, or a frame (see `read_lists`).
measures : str or sequence of str
    The measures, such as "nDCG@10, MAP, MRR, P_5, recall_10".
qrels : mapping of str to mapping of str to float, str or Path, optional
    Judgments, as `read_qrels` gives them, or their file, in place of the labels. A relevant document that is not in the
    list counts as missed, as in `clickbridge evaluate`.

Returns
-------
Evaluation
    The means with 95% intervals, and the values of every query.

Examples
--------
>>> from clickbridge import BM25, ClickGraph, Document, PairCount, ResultList, evaluate
>>> graph = ClickGraph.build([PairCount("ny pizza", "d2")], [Document("d1", {"title": "New York"}),
...                                                          Document("d2", {"title": "Pizza"})])
>>> found = evaluate(BM25().fit(graph), [ResultList("1", "pizza", ["d1", "d2"], [0, 1])], "nDCG@1, MRR")
>>> found["nDCG@1"], found.coverage
(1.0, 'answers 1 of 1')
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clickbridge.evaluate.judged import Qrels
    from clickbridge.evaluate.own import Score, Scorer
    from clickbridge.evaluate.single import Evaluation
    from clickbridge.frames import Frame
    from clickbridge.models.fitted import Fitted
    from clickbridge.models.model import Model
    from clickbridge.types import ResultList


class _Package(ModuleType):
    """The function and the package have the same name. This class makes the package callable."""

    def __call__(
        self,
        model: Model | Fitted | Scorer | Score,
        lists: Sequence[ResultList] | str | Path | Frame,
        measures: str | Sequence[str] = "nDCG@1,nDCG@3,nDCG@5,AP",
        *,
        qrels: Qrels | None = None,
    ) -> Evaluation:
        """Re-ranks judged lists with a fitted model and measures the result: `help(clickbridge.evaluate)` says how."""
        from clickbridge.evaluate.single import evaluate

        return evaluate(model, lists, measures, qrels=qrels)


sys.modules[__name__].__class__ = _Package
