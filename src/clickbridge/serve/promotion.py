"""Retrains a model in the background and promotes it if it is not worse: `serve --update-every 1h` runs this in a
separate process.

The latest fifth of the new pages is the test set. A candidate learns the other pages. If it ranks the test pages at
least as well as the live model, a model that has learned all pages replaces the live one. The old model is kept as
`MODEL.previous`, for a rollback. After a rollback nothing is promoted until someone updates the model by hand.

People click what the live model shows first, so the comparison favours the live model.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from clickbridge.errors import ClickbridgeError
from clickbridge.io.artifact import kept_for_writing
from clickbridge.models.candidates import Labelled
from clickbridge.models.fitted import Fitted
from clickbridge.models.model_folder import KIND, load, save
from clickbridge.online.online import Online
from clickbridge.serve.config import Config
from clickbridge.serve.events import Event
from clickbridge.serve.folding import fold, learned
from clickbridge.serve.served import taken_in
from clickbridge.serve.store import Store
from clickbridge.types import ResultList

JURY = 0.2
"""The share of new pages, the latest ones, that are used as the test set."""
FEWEST = 20
"""The fewest pages in the test set."""


@dataclass(frozen=True)
class Verdict:
    """The result for a candidate: `promoted`, `worse`, `too few`, `nothing new` or `rolled back`."""

    outcome: str
    pages: int = 0
    live: float | None = None
    candidate: float | None = None
    """nDCG@5 on the test pages."""


def previous_of(path: Path) -> Path:
    """The folder of the previous model."""
    return path.with_name(path.name + ".previous")


def retrain(path: Path, store: Store) -> Verdict:
    """Learns new events in the background, and puts the new model in place if it is not worse."""
    with kept_for_writing(path, KIND):
        model = load(path)
        if isinstance(model, Online):  # it has already learned the events: save the model that answers
            return Verdict("promoted" if fold(path, store).pages else "nothing new")
        before, last = taken_in(model.fitted.applied, store.id), store.last()
        if was_rolled_back(path, before, store):
            return Verdict("rolled back")
        pages = list(store.pages_after(before, last))
        jury = judged(pages)
        if not pages:
            return Verdict("nothing new")
        if len(jury) < FEWEST:
            return Verdict("too few", len(jury))
        live = model.fitted
        first = {page.event_id for page in jury}
        candidate = learned(load(path), [page for page in pages if page.event_id not in first], store, last)
        scores = [quality(fitted, jury) for fitted in (live, candidate.fitted)]
        if scores[1] < scores[0]:
            return Verdict("worse", len(jury), *scores)
        final = learned(model, pages, store, last)
        save(live, previous_of(path))
        save(final.fitted, path)
        return Verdict("promoted", len(jury), *scores)


def judged(pages: list[Event]) -> list[Event]:
    """The latest pages that have both clicked and unclicked results."""
    usable = [p for p in pages if p.results and p.query and 0 < len({*p.clicks} & {*p.results}) < len(p.results)]
    return usable[len(usable) - round(JURY * len(usable)) :] if round(JURY * len(usable)) else []


def quality(fitted: Fitted, jury: list[Event]) -> float:
    """The mean nDCG@5 of the test pages in the model's order."""
    lists = [
        ResultList(p.event_id, p.query, list(p.results or ()), [float(d in p.clicks) for d in p.results or ()])
        for p in jury
    ]
    labelled = Labelled(lists, fitted.catalogue, fitted.queries)
    return labelled.ndcg(fitted.scores(labelled.candidates))


def was_rolled_back(path: Path, read_up_to: int, store: Store) -> bool:
    """Whether the model was rolled back: the previous one had read more events than the present one."""
    previous = previous_of(path)
    return previous.exists() and taken_in(load(previous).fitted.applied, store.id) > read_up_to


def roll_back(path: Path) -> None:
    """Swaps the previous model and the present one. A second call reverses this."""
    previous = previous_of(path)
    with kept_for_writing(path, KIND):
        old, now = load(previous).fitted, load(path).fitted
        save(now, previous)
        save(old, path)


def main() -> None:
    """Retrains one model of the service, which is configured by the environment. Prints the result."""
    config = Config.from_environment()
    try:
        with closing(Store(config.store)) as store:
            verdict = asdict(retrain(Path(config.models[sys.argv[1]]), store))
    except ClickbridgeError as error:
        verdict = {"outcome": "refused", "error": str(error)}
    sys.stdout.buffer.write(orjson.dumps(verdict))


if __name__ == "__main__":
    main()
