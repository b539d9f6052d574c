"""Query expansion, a baseline of Wu et al. 2011 (Section 7.2): BM25 with words added to the query.

The added words are the title of the document clicked most for the query. For a query without clicks, they are the
words of the most similar known query (cosine of words and character n-grams). An added word counts
`expansion_weight` times as much as a typed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from clickbridge.engines.base import Engine
from clickbridge.errors import SettingError
from clickbridge.graph.clickgraph import ClickGraph
from clickbridge.graph.hold_back import MIN_USABLE, few_held
from clickbridge.graph.notes import said_by
from clickbridge.graph.responses import kept_pairs
from clickbridge.io.values import stored
from clickbridge.models.ascent import labelled
from clickbridge.models.candidates import Query, without_gaps
from clickbridge.models.change import Change
from clickbridge.models.fitted import Array, Choices, Fitted
from clickbridge.models.latent_features import below, texts_of
from clickbridge.models.lexical import BM25, BM25Settings, FittedLexical, LexicalChoices, LexicalSettings
from clickbridge.models.study import Study
from clickbridge.numerics.row import Row, as_matrix
from clickbridge.search.index import SparseIndex
from clickbridge.settings import setting, settings
from clickbridge.types import OPAQUE, text_of_key
from clickbridge.views.stack import ViewStack
from clickbridge.views.view import Source, unit_rows

DEFAULT, GRID = 0.2, (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@settings
class ExpansionSettings(BM25Settings):
    printed: ClassVar[Mapping[str, Any]] = {**BM25Settings.printed, "expansion_weight": "1"}

    min_clicks: int = setting(1, "minimum clicks of a query-document pair; pairs with fewer are left out", 1, 1e9)
    expansion_weight: str = setting(
        "auto",
        "weight of the added words; 1 is as much as typed ones; auto chooses it on held-back clicks",
    )


@stored
@dataclass(frozen=True, kw_only=True)
class ExpansionChoices(LexicalChoices):
    weight: float
    """What an added word counts of a typed one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedExpansion(FittedLexical):
    """BM25 with a longer query: the query map is that of the typed words plus a share of that of the added words."""

    choices: ExpansionChoices
    added: list[str]
    """For each known query the title of its most clicked document; empty where it has none."""
    q_views: ViewStack
    query_rows: sparse.csr_array
    """Known queries as unit rows of these views."""

    def check_stored(self) -> None:
        super().check_stored()
        n = len(self.queries)
        if len(self.added) != n or self.query_rows.shape != (n, self.q_views.width):
            raise ValueError("known queries do not fit together")

    @property
    def weight(self) -> float:
        return self.choices.weight

    @cached_property
    def _known(self) -> SparseIndex:
        return SparseIndex(self.query_rows)

    def warm(self) -> None:
        super().warm()
        self._known.search(self.q_views.row("a", {}), 1)  # what a new query needs

    # --- maps ------------------------------------------------------------------------------------

    def added_words(self, query: Query) -> str:
        """The words that expansion adds to a query; empty if there are none to add."""
        number = self.queries.number(query.key)
        if number >= 0 and self.added[number]:
            return self.added[number]
        row = self.q_views.row(text_of_key(query.key), {}).unit()
        near = self._known.search(row, 2)[0].tolist() if row else []
        # The query itself may be known but without clicks; it has nothing to add.
        others = [self.queries.keys[other] for other in near if other != number]
        return text_of_key(others[0]) if others else ""

    def image(self, query: Query) -> Row:
        typed = super().image(query)
        if not self.weight:
            return typed
        return added_up(typed, self.text_image(self.added_words(query)).scaled(self.weight))

    def map_keys(self, queries: Sequence[Query]) -> sparse.csr_array:
        return as_matrix([self.image(query) for query in queries], self.images.shape[1])

    # --- updates and report ----------------------------------------------------------------------

    def updated(self, change: Change, engine: Engine) -> Self:
        """Updates BM25. A query that is new in the update gets no words of a clicked title, only those of similar
        queries."""
        after = super().updated(change, engine)
        fresh = texts_of(after.queries.keys[len(self.added) :])
        rows = unit_rows(self.q_views.transform(Source({"query": fresh}, len(fresh))))
        # The new value has not been asked anything yet, so nothing hangs on the old rows.
        return after._with(added=[*self.added, *[""] * len(fresh)], query_rows=below(self.query_rows, rows))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "weights": {"added words": self.weight}}


class Expansion(BM25):
    """BM25 with words added to the query: those of the title clicked most for it, or else of the most similar query.

    Query expansion, the baseline of 11R. How much the added words count is chosen on held-back clicks.

    Examples
    --------
    >>> from clickbridge import Expansion, example_graph
    >>> model = Expansion().fit(example_graph())
    >>> model.rerank("where to sleep", ["slice", "hotels", "rooms"]).doc_ids
    ['rooms', 'hotels', 'slice']
    """

    name = "expansion"
    about = "BM25 with the query expanded by what was clicked or asked before"
    paper = "11R 7.2"
    light = False
    Settings: ClassVar[type[LexicalSettings]] = ExpansionSettings
    fitted_type: ClassVar[type[Fitted]] = FittedExpansion

    def choose(self, study: Study) -> ExpansionChoices:
        """Field weights on the query as typed, then the weight of added words."""
        s: ExpansionSettings = self.settings
        given = None if s.expansion_weight == "auto" else parse_weight(s.expansion_weight)
        lexical = super().choose(study)
        choices = ExpansionChoices(field_weights=lexical.field_weights, notes=lexical.notes, weight=given or 0.0)
        if given is not None:
            return choices
        weight, note = self._choose_weight(study, choices)
        return replace(choices, weight=weight, notes=(*choices.notes, said_by(self.name, note)))

    def _choose_weight(self, study: Study, choices: ExpansionChoices) -> tuple[float, str]:
        """nDCG@5 on held-back lists, with titles that were clicked in the rest."""
        study.progress(f"{self.name}: choosing the weight of added words on held-back clicks")
        held, rest = study.hold_back(seed=self.settings.seed)
        fitted = self._learn(study, choices, rest.graph)
        lists = labelled(study, held.lists([fitted]))
        if len(lists) < MIN_USABLE:
            return DEFAULT, few_held(len(lists), follows=f"added words count {DEFAULT}")
        # The score is linear in the weight: two weights give it for all.
        whole = fitted._with(choices=replace(choices, weight=1.0))
        typed, full = (without_gaps(model.scores(lists.candidates)) for model in (fitted, whole))
        values = [lists.ndcg(typed + weight * (full - typed)) for weight in GRID]
        best = int(np.argmax(values))
        found = f"(nDCG@5 {values[best]:.3f} on {len(lists)} held-back lists)"
        return GRID[best], f"added words count {GRID[best]} {found}"

    def learn(self, study: Study, choices: Choices) -> FittedExpansion:
        assert isinstance(choices, ExpansionChoices)
        return self._learn(study, choices, study.graph)

    def _learn(self, study: Study, choices: ExpansionChoices, clicks: ClickGraph) -> FittedExpansion:
        """`clicks` is the study's GRAPH, or the part that was not held back: the same queries with fewer clicks."""
        lexical, s = super().learn(study, choices), self.settings
        known = study.clicked()
        counted = clicks.matrix(rows="queries")
        if s.min_clicks > 1:
            keep, _ = kept_pairs(study.graph.pairs, s.min_clicks)
            counted = sparse.csr_array(counted.multiply(study.graph.matrix(rows="queries", values=keep)))
        best = most_clicked(counted)[known.clicked.numbers]
        titles = study.catalogue.titles
        added = [
            titles[doc] if doc >= 0 and not key.startswith(OPAQUE) else ""
            for doc, key in zip(best.tolist(), known.queries.keys, strict=True)
        ]
        source = Source({"query": texts_of(known.queries.keys)}, len(known.queries))
        q_views, rows = ViewStack.fit(["word", "char"], source, s.language, s.stop_words)
        same = {f.name: getattr(lexical, f.name) for f in fields(lexical) if f.init}
        return FittedExpansion(**same, added=added, q_views=q_views, query_rows=unit_rows(rows))


def parse_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = -1.0
    if not 0 <= weight < np.inf:
        raise SettingError(f"expansion_weight must be auto or a number from 0; got {text!r}")
    return weight


def most_clicked(clicks: sparse.csr_array) -> Array:
    """The column of each row's largest entry, the first one if several are equal; -1 for an empty row."""
    lengths = np.diff(clicks.indptr)
    order = np.lexsort((-clicks.data, np.repeat(np.arange(len(lengths)), lengths)))
    out = np.full(len(lengths), -1, dtype=np.int64)
    out[lengths > 0] = clicks.indices[order[clicks.indptr[:-1][lengths > 0]]]
    return out


def added_up(one: Row, two: Row) -> Row:
    if not one or not two:
        return one or two
    columns, place = np.unique(np.concatenate([one.columns, two.columns]), return_inverse=True)
    values = np.bincount(place, np.concatenate([one.values, two.values]), len(columns))
    return Row(columns, values.astype(np.float32))
