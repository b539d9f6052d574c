"""How fast is the GPU engine, and does it compute what its emulation says? `python benchmarks/gpu.py` on a machine with
a card; NumPy, SciPy and CuPy are enough. Times are CUDA events; matrices have the sizes and mean degrees of Table 1 of
Wu, Lu and Li (2013), with Zipf words."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from clickbridge.engines import emulation
from clickbridge.engines.emulation import Emulation
from clickbridge.engines.gpu import Gpu
from clickbridge.engines.on_card import Held, packed
from clickbridge.numerics.rmls import ABSOLUTE, DENSITY, RELATIVE, FactoredRows, Shrinkage
from clickbridge.numerics.svd import ProductOperator, randomised_svd

# queries, documents, words, documents clicked a query, words a query, words a document
SIZES = {
    "one-week": (94_022, 111_631, 101_904, 1.74, 2.26, 4.44),
    "half-year": (6_372_254, 4_599_849, 271_561, 2.92, 2.58, 4.56),
}


def drawn(rng: np.random.Generator, n_rows: int, n_columns: int, mean: float, zipf: bool) -> sparse.csr_array:
    """Rows of `mean` entries, at least one; columns evenly, or as words are."""
    counts = 1 + rng.poisson(mean - 1, n_rows)
    if zipf:
        columns = np.exp(rng.random(counts.sum()) * np.log(n_columns / 10 + 1)) * 10 - 10
    else:
        columns = rng.random(counts.sum()) * n_columns
    columns = np.minimum(columns.astype(np.int32), n_columns - 1)
    values = rng.random(len(columns), dtype=np.float32) + np.float32(0.1)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return sparse.csr_array((values, columns, indptr), shape=(n_rows, n_columns))


def matrices(size: str, scale: float = 1.0) -> tuple[sparse.csr_array, sparse.csr_array, sparse.csr_array]:
    """X (words and clicked documents), R, Y (words and clicking queries)."""
    queries, docs, words, clicked, per_query, per_doc = SIZES[size]
    queries, docs, words = (max(int(n * scale), 100) for n in (queries, docs, words))
    rng = np.random.default_rng(0)
    r = drawn(rng, queries, docs, clicked, False)
    x = sparse.hstack([drawn(rng, queries, words, per_query, True), r], format="csr")
    y = sparse.hstack([drawn(rng, docs, words, per_doc, True), r.T.tocsr()], format="csr")
    return tuple(sparse.csr_array(m) for m in (x, r, y))  # type: ignore[return-value]


def timed(cupy: Any, work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds between two CUDA events, and what came out."""
    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    first.record()
    found = work()
    last.record()
    last.synchronize()
    return cupy.cuda.get_elapsed_time(first, last) / 1000, found


def copy_bandwidth(cupy: Any) -> float:
    source = cupy.random.random(1 << 30, dtype=cupy.float32)
    target = cupy.empty_like(source)
    seconds = [timed(cupy, lambda: cupy.copyto(target, source))[0] for _ in range(10)]
    return 2 * source.nbytes / statistics.median(seconds)


def parity(engine: Any) -> None:
    """Every kernel against its emulation."""
    rng = np.random.default_rng(1)
    card, cupy = engine._card, engine._xp
    a = sparse.csr_array(sparse.random_array((300, 700), density=0.02, rng=rng, format="csr", dtype=np.float32))
    a = sparse.csr_array(sparse.vstack([a, sparse.csr_array(rng.standard_normal((3, 700)).astype(np.float32))]))
    for width in (1, 6, 50, 1000, 1050, 5000):
        block = rng.standard_normal((700, width)).astype(np.float32)
        for dtype in ("float32", "bfloat16", "float64"):
            wide = block.astype(np.float64) if dtype == "float64" else block
            given = emulation.to_bf16(block) if dtype == "bfloat16" else wide
            out = cupy.full((303, width), 7, given.dtype)
            numbers = np.float64 if dtype == "float64" else np.float32
            got = card.get(card.gather(card.matrix(a, numbers), cupy.asarray(given), out))
            raw = emulation.gather(a, given)
            expected = emulation.to_bf16(raw) if dtype == "bfloat16" else raw
            same = float((got == expected).mean())
            off = np.linalg.norm(emulation.as_numbers(got) - emulation.as_numbers(expected)) / np.linalg.norm(raw)
            print(f"gather         {dtype:9} width {width:5}: {same:8.4%} of the bits' values equal, off {off:.1e}")
            assert off < (2e-3 if dtype == "bfloat16" else 1e-6 if dtype == "float32" else 1e-14)
            if dtype == "float64":
                continue
            for mode, value in ((ABSOLUTE, 0.5), (RELATIVE, 1.0), (DENSITY, max(width // 20, 1))):
                how = (mode, float(value), 2.0, 0.5)
                out = cupy.full((303, width), 7, given.dtype)
                alignment = card.get(card.gather_shrink(card.matrix(a, np.float32), cupy.asarray(given), out, *how))
                want, aligned = emulation.shrink(raw, raw, *how)
                made = emulation.as_numbers(card.get(out))
                off = np.linalg.norm(made - want) / max(np.linalg.norm(want), 1e-30)
                gap = np.linalg.norm(alignment - aligned) / max(np.linalg.norm(aligned), 1e-30)
                assert off < (5e-3 if dtype == "bfloat16" else 1e-5), (dtype, width, mode, off)
                assert gap < 1e-4, (dtype, width, mode, gap)
    x, r, y = matrices("one-week", 0.02)
    rows = FactoredRows(sparse.csr_array(x.T), r, y, 64)
    maps = rng.standard_normal((y.shape[1], 64)).astype(np.float32)
    for how in (Shrinkage(RELATIVE, 0.5), Shrinkage(DENSITY, 4, 1.0, 0.5, 0.8)):
        one, two = (e.half(rows, maps, how, True) for e in (engine, Gpu(card=Emulation())))
        print(f"half           {how}: off {np.linalg.norm(one.maps - two.maps) / np.linalg.norm(two.maps):.1e}")


PRINTED = Shrinkage(RELATIVE, 1.0)
"""The papers' algorithm."""
DEFAULT = Shrinkage(DENSITY, 20.0, 1.0, 0.5, 0.8)
"""What `fit` does: columns decorrelated, the 20 largest of 1,000 numbers kept of every row."""


def rmls(engine: Any, bandwidth: float, scale: float, how: Shrinkage, dim: int = 1000, passes: int = 10) -> None:
    """Ten passes at half-year size, by the factors."""
    cupy = engine._xp
    started = time.perf_counter()
    x, r, y = matrices("half-year", scale)
    queries = FactoredRows(sparse.csr_array(x.T), r, y, dim)
    docs = FactoredRows(sparse.csr_array(y.T), sparse.csr_array(r.T), x, dim)
    seconds = time.perf_counter() - started
    print(f"rmls: X {x.shape} {x.nnz:,}, R {r.nnz:,}, Y {y.shape} {y.nnz:,}; made in {seconds:.0f} s", flush=True)
    size = 2 if engine.store == "bfloat16" else 4
    for rows in (queries, docs):
        for a in rows.chain:
            engine._matrix(a, np.float32)
    start = cupy.random.default_rng(0).standard_normal((y.shape[1], dim), dtype=cupy.float32)
    if size == 2:
        start = packed(cupy, start)
    held = {"l_y": Held(start), "l_x": None}
    del start

    def one() -> float:
        held["l_x"] = None
        held["l_x"] = engine.half(queries, held["l_y"], how, True).maps
        held["l_y"] = None
        made = engine.half(docs, held["l_x"], how, True)
        held["l_y"] = made.maps
        return float(made.alignment.sum())

    one()
    seconds, trace = timed(cupy, lambda: [one() for _ in range(passes)])
    gathered = 2 * (x.nnz + r.nnz + y.nnz) * dim * size
    written = sum(a.shape[0] for rows in (queries, docs) for a in rows.chain) * dim * size
    moved = passes * (gathered + written)
    which = "printed" if how is PRINTED else "default"
    print(
        f"rmls {engine.store}, {which}: {passes} passes, d = {dim}: {seconds:.3f} s, "
        f"{moved / seconds / 1e12:.2f} TB/s of rows, {moved / seconds / bandwidth:.0%} of copy "
        f"({bandwidth / 1e12:.2f} TB/s); objective {trace[0]:.6g} to {trace[-1]:.6g}",
        flush=True,
    )


def pls(engine: Any, dim: int = 1000) -> None:
    x, r, y = matrices("one-week")
    operator = ProductOperator(x, r, y, np.float32, engine)
    randomised_svd(operator, 16)
    for _ in range(3):
        started = time.perf_counter()
        with engine.at_work():
            seconds, found = timed(engine._xp, lambda: randomised_svd(operator, dim))
        print(
            f"pls one-week d = {dim}: {seconds:.2f} s (events), {time.perf_counter() - started:.2f} s (clock, with the "
            f"random start and the maps fetched); residual {found.residual:.1e}, s {found.s[0]:.4g} to "
            f"{found.s[-1]:.4g}",
            flush=True,
        )


def planned(engine: Any) -> None:
    """What `fit --plan` says of decompositions of several sizes, and what they take; needs the whole package."""
    from clickbridge.models.rmls_plan import CARD
    from clickbridge.models.svd_plan import Factors, svd_plan

    for size, scale in (("one-week", 0.1), ("one-week", 1.0), ("half-year", 0.1), ("half-year", 0.4)):
        x, r, y = matrices(size, scale)
        operator = ProductOperator(x, r, y, np.float32, engine)
        for dim in (100, 300, 1000):
            plan = svd_plan([Factors.of(x, r, y, dim)], 4, engine.card_memory, CARD, basis=False)
            work = partial(randomised_svd, operator, dim)
            taken = [timed(engine._xp, work)[0] for _ in range(3)]
            print(
                f"plan {size} {scale:g}, d = {dim}: {plan.seconds:.2f} s by the plan, {min(taken):.2f} to "
                f"{max(taken):.2f} s ({plan.operations:.2e} operations, {plan.bytes:.2e} bytes)",
                flush=True,
            )
        engine.close()


def tiled(scale: float, gib: float) -> None:
    """RMLS and PLS with so much of the card that their blocks go through it by tiles."""
    engine = Gpu()
    engine._card.memory = int(gib * (1 << 30))
    x, r, y = matrices("one-week", scale)
    operator = ProductOperator(x, r, y, np.float32, engine)
    seconds, found = timed(engine._xp, lambda: randomised_svd(operator, 1000))
    print(
        f"pls by tiles, one-week {scale:g} on {gib:g} GiB: {seconds:.2f} s, residual {found.residual:.1e}", flush=True
    )
    x, r, y = matrices("half-year", 0.1 * scale)
    rows = FactoredRows(sparse.csr_array(x.T), r, y, 1000)
    start = engine.hold(np.random.default_rng(0).standard_normal((y.shape[1], 1000)).astype(np.float32))
    for how, name in ((PRINTED, "printed"), (DEFAULT, "default")):
        seconds, _ = timed(engine._xp, partial(engine.half, rows, start, how, True))
        print(
            f"rmls by tiles, half-year {0.1 * scale:g} on {gib:g} GiB, {name}: half a pass {seconds:.2f} s", flush=True
        )
    engine.close()


def top(engine: Any, n_images: int, dim: int = 1000, n_queries: int = 10_000, k: int = 10) -> None:
    cupy = engine._xp
    rng = cupy.random.default_rng(0)
    images = Held(rng.standard_normal((n_images, dim), dtype=cupy.float32))
    queries = Held(rng.standard_normal((n_queries, dim), dtype=cupy.float32))
    engine.top_k(Held(queries.array[:64]), Held(images.array[:5000]), k)
    seconds, (items, scores) = timed(cupy, lambda: engine.top_k(queries, images, k))
    some = cupy.asnumpy(queries.array[:20].astype(cupy.float64) @ images.array[: n_images // 4].T.astype(cupy.float64))
    inside = items[:20] < n_images // 4
    rows = np.nonzero(inside)[0]
    off = np.abs(some[rows, items[:20][inside]] - scores[:20][inside]).max()
    missed = sum(int((some[i] > scores[i, -1] + 1e-3).sum()) - int(inside[i].sum()) for i in range(20))
    print(
        f"top-{k} of {n_queries:,} queries over {n_images:,} images, d = {dim}: {seconds:.2f} s, "
        f"{2 * n_queries * n_images * dim / seconds / 1e12:.0f} Tflop/s; scores off {off:.1e}, missed {max(missed, 0)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the half-year sizes")
    parser.add_argument("parts", nargs="*", default=["parity", "pls", "top", "rmls", "rmls-bf16"])
    wanted = parser.parse_args()
    engine = Gpu()
    bandwidth = copy_bandwidth(engine._xp)
    print(f"{engine._card.name}, {engine._card.memory / 2**30:.0f} GiB, copy {bandwidth / 1e12:.2f} TB/s", flush=True)
    engine._xp.get_default_memory_pool().free_all_blocks()
    work: dict[str, Callable[[], None]] = {
        "parity": lambda: parity(engine),
        "pls": lambda: pls(engine),
        "top": lambda: top(engine, int(4_599_849 * wanted.scale)),
        "rmls": lambda: rmls(engine, bandwidth, wanted.scale, PRINTED),
        "rmls-default": lambda: rmls(engine, bandwidth, wanted.scale, DEFAULT),
        "rmls-bf16": lambda: rmls(Gpu(store="bfloat16"), bandwidth, wanted.scale, PRINTED),
        "plan": lambda: planned(engine),
        "tiles": lambda: tiled(wanted.scale, 1.0),
    }
    for part in wanted.parts:
        work[part]()
        engine.close()
        engine._xp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
