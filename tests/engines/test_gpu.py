"""The GPU engine where there is no card: what it says, the arithmetic of its kernels, and its tiles."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from scipy import sparse

from clickbridge.engines import emulation
from clickbridge.engines.emulation import LONG_ROW, Emulation
from clickbridge.engines.gpu import Gpu
from clickbridge.engines.local import Local
from clickbridge.errors import EngineError, SettingError
from clickbridge.numerics.rmls import ABSOLUTE, DENSITY, RELATIVE, FactoredRows, FormedRows, Shrinkage, half_iteration
from clickbridge.numerics.rows import sparse_rows
from clickbridge.numerics.svd import MatrixOperator, randomised_svd
from oracles.strict_card import StrictCard

ALONE = """
import sys
for name in ("numba", "duckdb", "pyarrow", "orjson", "threadpoolctl", "typer", "ray"):
    sys.modules[name] = None
import clickbridge.engines.gpu
print("numba" in sys.modules and sys.modules["numba"] is None)
"""


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def random_csr(seed: int, rows: int, columns: int, density: float = 0.3) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(
        sparse.random_array((rows, columns), density=density, rng=rng, dtype=np.float32, format="csr")
    )


def test_it_imports_with_numpy_scipy_and_cupy_alone() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_it_says_why_no_card_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineError, match="the GPU cannot be used: CuPy is not installed"):
        Gpu()


def test_settings_out_of_range() -> None:
    for wrong in ({"store": "int8"}, {"threads": -1}, {"memory": -1}):
        with pytest.raises(SettingError):
            Gpu(card=Emulation(), **wrong)  # type: ignore[arg-type]


def test_bf16_is_rounded_to_the_nearest_even() -> None:
    exact = np.array([0.0, -0.0, 1.0, -2.5, 2.0**100, 2.0**-100], np.float32)
    np.testing.assert_array_equal(emulation.from_bf16(emulation.to_bf16(exact)), exact)
    # 8 bits of a mantissa: 1 + 1/256 is half way between 1 and 1 + 1/128, and 1 is the even one.
    given = np.array([1 + 1 / 256, 1 + 3 / 256, 1 + 1 / 256 + 1e-6], np.float32)
    np.testing.assert_array_equal(
        emulation.from_bf16(emulation.to_bf16(given)), np.array([1, 1 + 4 / 256, 1 + 2 / 256], np.float32)
    )
    values = normal(0, 10_000)
    rounded = emulation.from_bf16(emulation.to_bf16(values))
    assert (np.abs(rounded - values) <= np.abs(values) / 256).all()


@pytest.mark.parametrize("bf16", [False, True])
def test_gather_is_the_product(bf16: bool) -> None:
    """With a row that is long enough to be summed by segments."""
    a = sparse.csr_array(sparse.vstack([random_csr(0, 20, 900, 0.02), random_csr(1, 1, 900, 0.95)]))
    assert np.diff(a.indptr).max() > LONG_ROW
    block = normal(2, 900, 7)
    given = emulation.to_bf16(block) if bf16 else block
    found = emulation.gather(a, given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, a.astype(np.float64) @ emulation.as_numbers(given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("store", ["float32", "bfloat16"])
@pytest.mark.parametrize("decorrelate", [0.0, 0.8])
@pytest.mark.parametrize("mode", [ABSOLUTE, RELATIVE, DENSITY])
@pytest.mark.parametrize("memory", [1 << 30, 3000])
def test_half_an_iteration_is_that_of_one_machine(mode: int, decorrelate: float, store: str, memory: int) -> None:
    a, middle, b = random_csr(0, 50, 20), random_csr(1, 20, 30), random_csr(2, 30, 12)
    how = Shrinkage(mode, {ABSOLUTE: 0.1, RELATIVE: 0.5, DENSITY: 4}[mode], 2.0, 0.5, decorrelate)
    maps = normal(3, 12, 8)
    w = sparse.csr_array((a @ middle @ b).astype(np.float32))
    for rows in (FactoredRows(a, middle, b, 8), FormedRows(w)):
        expected = half_iteration(rows, maps, how, keep_dense=True)
        engine = Gpu(store=store, card=Emulation(memory))
        found = engine.half(rows, engine.hold(maps), how, True)
        made = engine.fetch(found.maps)
        tolerance = 0.05 if store == "bfloat16" and memory > 3000 else 1e-4
        gap = np.linalg.norm(made - expected.maps) / np.linalg.norm(expected.maps)
        assert gap < tolerance
        np.testing.assert_allclose(found.alignment, expected.alignment, rtol=tolerance, atol=tolerance)


def test_a_matrix_goes_with_its_owner() -> None:
    engine = Gpu(card=Emulation())
    a = random_csr(0, 20, 10)
    engine.times(a, normal(1, 10, 2))
    assert len(engine._matrices) == 1
    del a
    assert not engine._matrices


def test_threads_start_once_and_end_with_close() -> None:
    with Gpu(threads=2, card=Emulation()) as engine:
        used = [{*engine.map(lambda _: threading.current_thread(), range(9))} for _ in range(3)]
        assert len(set.union(*used)) <= 2
    assert not {*threading.enumerate()} & set.union(*used)


# --- a card that is too small ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2000, 1500), (1500, 2000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("memory", [1 << 30, 200_000, 100_000])
def test_a_decomposition_takes_no_more_than_the_card_has(memory: int, dtype: Any, shape: tuple[int, int]) -> None:
    """A block has 60,000 to 160,000 bytes, a matrix 48,000 or 60,000."""
    a = random_csr(0, *shape, density=0.001)
    card = StrictCard(memory, bounded=True)
    found = randomised_svd(MatrixOperator(a, dtype, Gpu(1, card=card)), 4, oversample=6, dtype=dtype)
    assert found.u.nbytes < card.most <= memory
    expected = randomised_svd(MatrixOperator(a, dtype, Local(1)), 4, oversample=6, dtype=dtype)
    np.testing.assert_allclose(found.s, expected.s, rtol=1e-4)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-2)


@pytest.mark.parametrize("k", [5, 40])
def test_many_queries_take_no_more_than_the_card_has(k: int) -> None:
    """The queries alone have 640,000 bytes."""
    queries, images = normal(0, 20_000, 8), normal(1, 500, 8)
    card = StrictCard(500_000, bounded=True)
    items, scores = Gpu(1, card=card).top_k(queries, images, k)
    with Local(1) as here:
        expected = here.top_k(queries, images, k)
    np.testing.assert_allclose(scores, expected[1], rtol=1e-4, atol=1e-5)
    assert (items == expected[0]).mean() > 0.999
    assert items.dtype == np.int32
    assert card.most <= card.memory


def test_memory_that_this_process_keeps_for_later_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy keeps what was freed: a second engine of a process has as much of the card as the first one."""
    cupy = MagicMock()
    cupy.cuda.runtime.CUDARuntimeError = RuntimeError
    cupy.cuda.runtime.memGetInfo.return_value = (20_000, 100_000)
    cupy.get_default_memory_pool.return_value.total_bytes.return_value = 70_000
    cupy.get_default_memory_pool.return_value.used_bytes.return_value = 0
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert Gpu().card_memory == 81_000


def test_blocks_together_take_no_more_than_the_card_has() -> None:
    """Three blocks of 40,000 bytes each."""
    card = StrictCard(110_000, bounded=True)
    engine, blocks = Gpu(1, card=card), [normal(i, 500, 20) for i in range(3)]
    held, together = [engine.hold(block.copy()) for block in blocks], np.hstack(blocks)
    assert [card.holds(one.array) for one in held] == [True, True, False]
    np.testing.assert_array_equal(engine.fetch(engine.joined(held)), together)
    matrices = [normal(9 + i, 20, 5) for i in range(3)]
    np.testing.assert_allclose(engine.fetch(engine.mixed(held, matrices)), together @ np.vstack(matrices), atol=1e-4)
    np.testing.assert_allclose(engine.cross(held, held[2]), together.T @ blocks[2], atol=1e-3)
    expected = np.linalg.norm(blocks[0] - 0.5 * blocks[2], axis=0)
    np.testing.assert_allclose(engine.lengths(held[0], held[2], 0.5), expected, rtol=1e-5)
    for one, block in zip(held, blocks, strict=True):
        np.testing.assert_array_equal(engine.extremes(one), [block.max(axis=0), block.min(axis=0)])
        np.testing.assert_allclose(engine.fetch(engine.scaled(one, np.arange(20))), block * np.arange(20), rtol=1e-6)
    assert card.most <= card.memory


@pytest.mark.parametrize("store", ["float32", "bfloat16"])
@pytest.mark.parametrize("decorrelate", [0.0, 0.8])
@pytest.mark.parametrize("memory", [1 << 30, 120_000, 60_000])
def test_passes_take_no_more_than_the_card_has(memory: int, decorrelate: float, store: str) -> None:
    """Maps of 32 columns have 76,800 and 51,200 bytes."""
    w, how = random_csr(0, 600, 400, 0.01), Shrinkage(DENSITY, 8, 1.0, 0.5, decorrelate)
    there, back, first = FormedRows(w), FormedRows(sparse.csr_array(w.T)), normal(1, 400, 32)
    card = StrictCard(memory, bounded=True)
    engine, made = Gpu(1, store=store, card=card), []
    for on in (engine, Local(1)):
        maps: Any = on.hold(sparse_rows(first))
        for rows in (there, back, there):
            maps = on.half(rows, maps, how, True).maps
            survey = on.survey(maps, True)
            maps = on.scaled(maps, 1 / survey.longest)
        made.append(np.asarray(on.fetch(maps)))
    assert card.most <= memory
    gap = np.linalg.norm(made[0] - made[1]) / np.linalg.norm(made[1])
    assert gap < (0.1 if store == "bfloat16" else 1e-3)
