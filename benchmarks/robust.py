"""Does Robust BM25 beat BM25, query expansion and the pairwise kernel, and what does a query cost?

The paper's Table 5 (AP, nDCG@1, 3, 5) on data that has clicks or is given simulated ones; the time of a query with
200 preferences, training included, next to a general solver on the same problems; and how often preferences
contradict judgments.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from clickbridge import ClickGraph, build_model
from clickbridge.evaluate.significance import paired
from clickbridge.io.lists import read_lists
from clickbridge.io.trec import read_qrels
from clickbridge.log.documents import read_docs
from clickbridge.log.preference import PAGE_RULES, contradicted, order_effect, preferences
from clickbridge.log.readers import read_log
from clickbridge.measures import evaluate_run, parse_measures
from clickbridge.models.model import Model
from clickbridge.simulate.clicks import clicks_on_page
from clickbridge.simulate.demo import KeywordEngine, write_demo
from clickbridge.types import Document, Impression, ResultList

SPECS = ("bm25", "expansion", "pairwise", "robust-bm25")
MEASURES = parse_measures("AP,nDCG@1,nDCG@3,nDCG@5")
Sets = dict[str, list[ResultList]]


def table(title: str, fits: list[tuple[ClickGraph, Sets]], specs: tuple[str, ...]) -> None:
    """One row a model and set of lists; several fits (folds) are pooled."""
    values: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    seconds = dict.fromkeys(specs, 0.0)
    for fold, (graph, sets) in enumerate(fits):
        for spec in specs:
            start = time.process_time()
            model = build_model(spec).fit(graph)
            seconds[spec] += time.process_time() - start
            print(f"  {'; '.join(n for n in model.notes_ if n.startswith(model.spec.split('+')[0]))}")
            for name, lists in sets.items():
                found = values.setdefault((name, spec), {m.name: {} for m in MEASURES})
                for measure, per_query in measured(model, lists).items():
                    found[measure].update({f"{fold} {query}": v for query, v in per_query.items()})
    print(
        f"\n{title}\n{'lists':>8} {'model':>12} "
        + " ".join(f"{m.name:>7}" for m in MEASURES)
        + "  n, p of nDCG@5, CPU s"
    )
    for (name, spec), found in values.items():
        means = " ".join(f"{np.mean(list(v.values())):7.4f}" for v in found.values())
        versus = paired(found["nDCG@5"], values[name, "bm25"]["nDCG@5"])
        p = (
            ""
            if spec == "bm25"
            else f"{versus.difference:+.4f} p {versus.p_value:.2g} {versus.wins}/{versus.ties}/{versus.losses}"
        )
        print(f"{name:>8} {spec:>12} {means}  {len(found['AP'])}, {p}, {seconds[spec]:.0f}")


def measured(model: Model, lists: list[ResultList]) -> dict[str, dict[str, float]]:
    ranked = zip(lists, model.rerank_lists(lists), strict=True)
    grades = {r.query_id: dict(zip(r.results, r.labels or (), strict=True)) for r in lists}
    return evaluate_run({r.query_id: ranking.doc_ids for r, ranking in ranked}, grades, MEASURES)


# --- data ------------------------------------------------------------------------------------------------------------


def msrd(data: Path) -> list[tuple[ClickGraph, Sets]]:
    log, docs = data / "msrd/train.log.jsonl.gz", data / "msrd/docs.jsonl.gz"
    graph = ClickGraph.build(read_log(str(log)), read_docs(str(docs)))
    return [(graph, {"unseen": read_lists(str(data / "msrd/dev.lists.jsonl.gz"))})]


def demo(data: Path) -> list[tuple[ClickGraph, Sets]]:
    """Simulated clicks on the standard library's documentation; half of the phrasings are never searched."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_demo(home)
        graph = ClickGraph.build(read_log(str(home / "log.jsonl.gz")), read_docs(str(home / "docs.jsonl.gz")))
        return [(graph, {kind: read_lists(str(home / f"{kind}.lists.jsonl")) for kind in ("seen", "unseen")})]


def nfcorpus(data: Path, searches: int = 3, page: int = 10, pool: int = 30) -> list[tuple[ClickGraph, Sets]]:
    """Simulated clicks: each training query is searched three times. A page holds what a keyword engine finds and,
    from other sources, some judged documents; users click by a position-based model."""
    rng = np.random.default_rng(0)
    folder = data / "nfcorpus"
    docs = list(read_docs(str(folder / "docs.jsonl.gz")))
    engine = KeywordEngine(docs)
    parts = {
        p: (_queries(folder / f"queries.{p}.tsv.gz"), read_qrels(folder / f"qrels.{p}.txt.gz"))
        for p in ("train", "dev")
    }
    log: list[Impression] = []
    queries, grades = parts["train"]
    for query_id, text in queries.items():
        judged = grades.get(query_id, {})
        for _ in range(searches if judged else 0):
            some = rng.permutation(sorted(judged))[: page // 3].tolist()
            shown = list(dict.fromkeys([*engine.search(text, page - len(some)), *some]))
            shown = [shown[i] for i in rng.permutation(len(shown))]
            likes = clicks_on_page([min(int(judged.get(d, 0)), 2) for d in shown], rng)
            log.append(Impression(text, shown, [d for d, on in zip(shown, likes, strict=True) if on]))
    graph = ClickGraph.build(log, docs)
    sets: Sets = {"seen": [], "unseen": []}
    for part, kind in (("train", "seen"), ("dev", "unseen")):
        queries, grades = parts[part]
        for query_id, text in list(queries.items())[:325]:
            judged = grades.get(query_id, {})
            results = sorted({*engine.search(text, pool), *rng.permutation(sorted(judged))[:pool].tolist()})
            labels = [float(judged.get(d, 0)) for d in results]
            if any(labels):
                sets[kind].append(ResultList(query_id, text, results, labels))
    return [(graph, sets)]


def _queries(path: Path) -> dict[str, str]:
    with gzip.open(path, "rt", encoding="utf8") as f:
        return dict(line.rstrip("\n").split("\t", 1) for line in f)


def trec_sessions(data: Path, folds: int = 5) -> list[tuple[ClickGraph, Sets]]:
    """Learn from the other sessions' clicks, re-rank what a session was shown, judge by its topic."""
    path = data / "trec_session_2012"
    with gzip.open(path / "sessions.xml.gz") as f:
        topic_of = {s.get("num") or "": s.find("topic").get("num") or "" for s in ElementTree.parse(f).iter("session")}  # type: ignore[union-attr]
    grades = read_qrels(path / "qrels.txt.gz")
    records = list(read_log(str(path / "sessions.xml.gz"), format="trec-session"))
    docs = {r.doc_id: r for r in records if isinstance(r, Document)}
    pages = [r for r in records if isinstance(r, Impression) and r.results]
    out = []
    for fold in range(folds):
        test = [p for p in pages if _session(p) % folds == fold]
        graph = ClickGraph.build([p for p in pages if _session(p) % folds != fold], docs.values())
        lists = []
        for number, page in enumerate(test):
            judged = grades.get(topic_of[str(_session(page))], {})
            labels = [max(float(judged.get(d, 0)), 0.0) for d in page.results or ()]
            if any(labels):
                lists.append(ResultList(str(number), page.query, list(page.results or ()), labels))
        out.append((graph, {"sessions": lists}))
    return out


def _session(page: Impression) -> int:
    return int((page.user or "").removeprefix("session "))


# --- time ------------------------------------------------------------------------------------------------------------


def speed(data: Path, n: int = 200) -> None:
    """CPU time of one query on msrd, its model trained anew, and of the dual alone against clarabel."""
    from clickbridge.numerics.boxqp import coordinate_ascent_dual
    from clickbridge.skernel import neighbourhood

    ((graph, sets),) = msrd(data)
    given = {"query_kernel": "word:0.8,char:0.2", "doc_kernel": "base", "rho": "1", "epsilon": "0.1", "ridge": "1"}
    model: Any = build_model("robust-bm25", {**given, "prior": "0", "n_neighbours": "50"}).fit(graph)
    lists = sets["unseen"][: n + 5]
    problems: list[tuple[Any, ...]] = []
    learn = neighbourhood.learn_preferences

    def watched(gram: Any, better: Any, worse: Any, *rest: Any, **named: Any) -> Any:
        problems.append((gram, better, worse))
        return learn(gram, better, worse, *rest, **named)

    times = []
    for number, result in enumerate(lists):
        start = time.process_time()
        model.score_lists([result])
        if number >= 5:  # the first ones compile and fill caches
            times.append(1000 * (time.process_time() - start))
    fitted = model.fitted
    near = [fitted.neighbourhood(fitted.query(result.query)) for result in lists]
    pairs = [len(found.better) for found in near if found is not None]
    print(f"\nmsrd, {n} queries, median {np.median(pairs):.0f} preferences, training included: "
          f"median {np.median(times):.2f} ms, p99 {np.quantile(times, 0.99):.2f} ms of CPU")  # fmt: skip
    neighbourhood.learn_preferences = watched  # type: ignore[assignment]
    for found in near[:n]:
        if found is not None:
            fitted.trained(found)
    neighbourhood.learn_preferences = learn
    if find_spec("clarabel") is None:
        print("the general solver is left out: it needs clarabel")
        return
    rows = []
    for gram, better, worse in problems[:50]:
        start = time.process_time()
        *_, passes, primal, _ = coordinate_ascent_dual(gram, better, worse, np.ones(len(better)), tolerance=1e-2)
        middle = time.process_time()
        value = _clarabel(gram, better, worse)
        rows.append((middle - start, time.process_time() - middle, passes, (primal - value) / value))
    ours, theirs, passes, off = (np.array(column) for column in zip(*rows, strict=True))
    print(f"the dual alone, 50 problems: ours {1000 * np.median(ours):.2f} ms ({np.median(passes):.0f} passes, "
          f"{np.median(off):.1e} of the objective above the optimum), clarabel {1000 * np.median(theirs):.1f} ms: "
          f"{np.median(theirs / ours):.0f} times")  # fmt: skip


def _clarabel(gram: Any, better: Any, worse: Any) -> float:
    """The optimum of (15) by an interior-point solver, in the form that is best for it: f at the points as variables
    would be singular, so W itself."""
    import clarabel
    from scipy import sparse

    m = len(better)
    rows = gram[better] - gram[worse]
    w = rows[:, better] - rows[:, worse]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = 1e-2
    sides = sparse.vstack([sparse.eye(m), -sparse.eye(m)], format="csc")
    limits = np.concatenate([np.ones(m), np.zeros(m)])
    cone = [clarabel.NonnegativeConeT(2 * m)]
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(w)), -np.ones(m), sides, limits, cone, settings)
    return -float(solver.solve().obj_val)


# --- kernels of queries ----------------------------------------------------------------------------------------------

KERNELS = ("word:0.8,char:0.2", "latent:0.0001,word:0.8,char:0.2", "latent:0.2,word:0.65,char:0.15",
           "latent:0.5,word:0.5", "latent:1")  # fmt: skip


def kernels(data: Path, n: int = 900) -> None:
    """nDCG@5 on held-back training lists of msrd by k_Q, everything else fixed; a trace of latent shows what it costs
    that half of the log gives no preferences."""
    ((graph, _),) = msrd(data)
    held = graph.hold_back(seed=0)
    given = {"family": "product", "doc_kernel": "base", "rho": "1", "epsilon": "0.1", "ridge": "1", "prior": "0.3"}
    lists: list[ResultList] = []
    print(f"\nmsrd, {n} held-back training lists, by {held.by}")
    for kernel in KERNELS:
        model: Any = build_model("robust-bm25", {**given, "n_neighbours": "50", "query_kernel": kernel}).fit(held.graph)
        if not lists:
            found = held.lists([lambda queries, k, ranker=model: [r.doc_ids for r in ranker.rank_many(queries, k)]])
            chosen = np.random.default_rng(0).choice(len(found), min(n, len(found)), replace=False)
            lists = [found[i] for i in np.sort(chosen)]
        start = time.process_time()
        values = measured(model, lists)["nDCG@5"]
        each = 1000 * (time.process_time() - start) / len(lists)
        print(f"{kernel:>32} {np.mean(list(values.values())):.4f}  {each:.1f} ms of CPU a query")


# --- preferences against judgments -----------------------------------------------------------------------------------


def judged_preferences(data: Path) -> None:
    print("\npreferences against judgments\n     data        rule  order effect    pairs  judged  contradict")
    for name, graph, grades in _judged_graphs(data):
        for rule in PAGE_RULES:
            found = preferences(graph.impressions, rule=rule)
            share = contradicted(found, grades)
            effect = order_effect(graph.impressions)  # type: ignore[arg-type]
            print(f"{name:>9} {rule:>11} {effect:13.2f} {len(found):8,} {share['judged']:7.0f} {share['share']:11.1%}")


def _judged_graphs(data: Path) -> Iterator[tuple[str, ClickGraph, dict[tuple[int, int], float]]]:
    folder = data / "clara2"
    graph = ClickGraph.build(read_log(str(folder / "log.jsonl.gz")))
    yield "clara2", graph, _numbers(graph, read_qrels(folder / "qrels.dev.txt.gz"))
    path = data / "trec_session_2012"
    with gzip.open(path / "sessions.xml.gz") as f:
        sessions = list(ElementTree.parse(f).iter("session"))
    qrels = read_qrels(path / "qrels.txt.gz")
    graph = ClickGraph.build(read_log(str(path / "sessions.xml.gz"), format="trec-session"))
    grades = {}
    for session in sessions:
        judged = qrels.get(session.find("topic").get("num") or "", {})  # type: ignore[union-attr]
        for interaction in session.iter("interaction"):
            query = graph.query_idx(interaction.findtext("query") or "")
            for doc_id, grade in judged.items():
                doc = graph.doc_idx(doc_id)
                if query is not None and doc is not None:
                    grades[query, doc] = float(grade)
    yield "sessions", graph, grades


def _numbers(graph: ClickGraph, qrels: dict[str, dict[str, float]]) -> dict[tuple[int, int], float]:
    out = {}
    for query_id, judged in qrels.items():
        query = graph.query_idx("", query_id)
        for doc_id, grade in judged.items():
            doc = graph.doc_idx(doc_id)
            if query is not None and doc is not None:
                out[query, doc] = float(grade)
    return out


SETS = {"msrd": msrd, "demo": demo, "nfcorpus": nfcorpus, "sessions": trec_sessions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(os.environ.get("CLICKBRIDGE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default, help="folder of the data sets")
    parser.add_argument("--sets", default=",".join(SETS), help=f"comma-separated, of {', '.join(SETS)}; empty for none")
    parser.add_argument("--models", default=",".join(SPECS))
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--no-preferences", action="store_true")
    parser.add_argument("--kernels", action="store_true", help="compare weights of k_Q on held-back lists of msrd")
    asked = parser.parse_args()
    for name in filter(None, asked.sets.split(",")):
        table(name, SETS[name](asked.data), tuple(asked.models.split(",")))
    if not asked.no_speed:
        speed(asked.data)
    if asked.kernels:
        kernels(asked.data)
    if not asked.no_preferences:
        judged_preferences(asked.data)


if __name__ == "__main__":
    main()
