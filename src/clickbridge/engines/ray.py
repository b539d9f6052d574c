"""Learning on a Ray cluster. The rows of matrices, blocks and maps are divided into shards, one for each worker.

A shard is an object in Ray's store, and work on it is a task that prefers the node of the shard. Results stay where
they were computed, and workers read each other's shards. Between `hold` and `fetch`, no block or map passes through the
driver: only Gram matrices, triangular factors and sums, which are as small as the latent space. If a worker or a node
is lost, Ray runs its tasks again elsewhere. Tasks depend only on their arguments, so the result is the same.

This is the only file that imports ray. The work of the workers is in shards.py.
"""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy import sparse

from clickbridge.engines import shards
from clickbridge.engines.base import Array, Item, Result
from clickbridge.engines.local import Local
from clickbridge.errors import ClickbridgeError, EngineError, SettingError, shown
from clickbridge.numerics import qr
from clickbridge.numerics.nearest import ROWS, SCORES
from clickbridge.numerics.rmls import FactoredRows, FormedRows, Half, Shrinkage, added, decorrelation
from clickbridge.numerics.rows import Maps, Survey

LEAST_STORE, STORE_SHARE = 80 << 20, 0.3
RETRIES = 8
"""How often a task is run again if its worker or node was lost."""
ADDRESS = re.compile(r"ray://(?:\[[\da-fA-F:.]+\]|[^\s/?#@:\[\]]+):(\d{1,5})")


@dataclass(frozen=True, eq=False)
class Sharded:
    """A block or a map, divided by rows: part i has the rows from bounds[i] to bounds[i + 1]."""

    parts: list[Any]
    bounds: list[int]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.bounds[-1], self.width


Rows = Sharded | Array


class Ray:
    """Learns and searches on a Ray cluster: `model.fit(graph, engine=Ray(address="ray://10.0.0.5:10001"))`.

    Needs the extra `[ray]`. The cluster is started or joined when there is work. `close()`, or the end of a `with`
    block, leaves it.

    Parameters
    ----------
    threads : int
        The number of workers on this machine, if there is no address. 0 means one for each core.
    memory : int
        Bytes for working arrays of each worker. 0 means half of this machine's memory.
    address : str
        `ray://HOST:PORT` joins a cluster through its client port. Each node is a worker with all its cores. If it is
        empty, the workers run on this machine.

    Examples
    --------
    >>> from clickbridge import Ray
    >>> Ray(threads=2, memory=1 << 30)
    Ray(threads=2, memory=1073741824, address='')
    """

    name = "ray"
    narrow = True
    _joined: ClassVar[str] = ""
    """The address that this process joined last. Ray has one cluster in a process."""

    def __init__(self, threads: int = 0, memory: int = 0, address: str = "") -> None:
        found = ADDRESS.fullmatch(address)
        if address and not (found and 0 < int(found[1]) < 1 << 16):
            raise SettingError(
                f"the address of a Ray cluster is ray://HOST:PORT, such as ray://10.0.0.5:10001; got {shown(address)}"
            )
        here = Local(threads, memory)
        self.threads, self.memory, self.address = here.threads, here.memory, address
        self._here = here
        self._ray: Any = None
        self._nodes: list[str] = []
        self._shards: dict[tuple[Any, ...], Any] = {}

    def __repr__(self) -> str:
        return f"Ray(threads={self.threads}, memory={self.memory}, address={self.address!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Ray, (self.threads, self.memory, self.address)

    # --- the cluster -----------------------------------------------------------------------------

    def _cluster(self) -> Any:
        """Ray, started or joined when it is first needed."""
        if self._ray is None:
            ray = _imported()
            self._own = not ray.is_initialized()
            if self._own:
                self._start(ray)
            elif self.address not in ("", Ray._joined):
                raise EngineError(
                    f"this process works on another Ray cluster than {self.address}, and can work on one at a time: "
                    "close the engine of the other first"
                )
            alive = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
            if not alive:
                if self._own:
                    ray.shutdown()
                raise EngineError(f"the cluster at {self.address or 'this machine'} has no node with a free CPU")
            cores = [int(node["Resources"]["CPU"]) for node in alive]
            names = [str(node["NodeID"]) for node in alive]
            # On one machine there is a worker for each thread; on a cluster one for each node, with all of its cores.
            self._nodes = names if self.address or len(names) > 1 else names * self.threads
            self._cores = min(cores) if len(set(self._nodes)) > 1 else max(cores[0] // len(self._nodes), 1)
            self._ray = ray  # last: what failed is tried again
        return self._ray

    def _start(self, ray: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        Ray._joined = self.address
        try:
            if self.address:
                with catch_warnings():
                    simplefilter("ignore")  # of a time-out; the error says it too
                    ray.init(self.address, **quiet)
                return
            store = max(int(self.memory * STORE_SHARE), LEAST_STORE)
            # "local" starts a new cluster, even if another one runs on this machine.
            own = {"num_cpus": self.threads, "object_store_memory": store, "include_dashboard": False}
            ray.init("local", **own, **quiet)
        except Exception as error:  # any network error
            where = self.address or "this machine"
            raise EngineError(
                f"no Ray cluster at {where} ({_first_line(error)}): check the address, that it runs, and RAY_AUTH_MODE "
                "where it asks for a token, or use --engine local"
            ) from error

    @property
    def workers(self) -> int:
        self._cluster()
        return len(self._nodes)

    @property
    def workers_here(self) -> int:
        """The number of workers, if this machine has all of them; 0 on a cluster. Starts nothing."""
        ray = sys.modules.get("ray")
        if not self.address and ray is not None and ray.is_initialized():
            self._cluster()
            return len(self._nodes) if len({*self._nodes}) == 1 else 0
        return 0 if self.address else self.threads

    def _run(self, work: Callable[..., Any], place: int, *given: Any, returns: int = 1) -> Any:
        """Starts a task on the node of the shard `place`, or elsewhere if that node is lost."""
        ray = self._cluster()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = NodeAffinitySchedulingStrategy(self._nodes[place % len(self._nodes)], soft=True)
        task = ray.remote(work).options(
            num_cpus=self._cores, num_returns=returns, max_retries=RETRIES, scheduling_strategy=node
        )
        return task.remote(self._cores, *given)

    def _each(self, work: Callable[..., Any], held: Sharded, *given: Any) -> list[Any]:
        return [self._run(work, i, part, *given) for i, part in enumerate(held.parts)]

    def _get(self, refs: Any) -> Any:
        """The results of tasks. An error of clickbridge, of a disk or of memory in a worker is raised here as the same
        error; a loss that Ray cannot make good is an error of one line."""
        ray = self._cluster()
        try:
            return ray.get(refs)
        except (ray.exceptions.RayError, ConnectionError) as error:
            cause: BaseException = error
            while isinstance(cause, ray.exceptions.RayTaskError):
                cause = cause.cause
            if isinstance(cause, ClickbridgeError | OSError | MemoryError) and cause is not error:
                raise cause from None
            if not isinstance(cause, ray.exceptions.RayError | ConnectionError):
                raise
            why = _first_line(cause).rstrip(".")
            raise EngineError(f"Ray gave up ({why}): see to its nodes and their memory") from error

    def close(self) -> None:
        """Leaves the cluster. If it was started here, it ends."""
        self._here.close()
        self._shards.clear()
        if self._ray is not None and self._own:
            self._ray.shutdown()
        self._ray = None

    def __enter__(self) -> Ray:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def at_work(self) -> AbstractContextManager[object]:
        return self._here.at_work()

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self._here.map(work, items)

    # --- what is held ----------------------------------------------------------------------------

    def hold(self, array: Sharded | Maps | sparse.csr_array) -> Sharded:
        if isinstance(array, Sharded):
            return array
        bounds = shards.even_bounds(len(array) if isinstance(array, np.ndarray) else array.shape[0], self.workers)
        bounds = bounds if len(bounds) > 1 else [0, 0]
        put = self._cluster().put
        return Sharded([put(part) for part in shards.split(array, bounds)], bounds, array.shape[1])

    def fetch(self, held: Sharded | Maps | sparse.csr_array) -> Maps | sparse.csr_array:
        return self._fetched(held) if isinstance(held, Sharded) else held

    def _fetched(self, held: Sharded) -> Any:
        found = shards.whole(tuple(self._get(held.parts)))
        # Even a single shard belongs to Ray and is read-only.
        return found.copy() if isinstance(found, np.ndarray) and not found.flags.writeable else found

    def _shared(self, of: Any, make: Callable[[], Any], *more: Any) -> Any:
        """Objects in the store for a matrix, or for the rows of a product. They are created once, and kept as long as
        the original exists here."""
        key = (id(of), *more)
        if key not in self._shards:
            self._shards[key] = make()
            weakref.finalize(of, self._shards.pop, key, None)
        return self._shards[key]

    def _sent(self, value: Any) -> Any:
        """A value in the store. A value that will be used again, such as a model for many lists, is sent once."""
        put = self._cluster().put
        lives = getattr(type(value), "__weakrefoffset__", 0) != 0
        return self._shared(value, lambda: put(value), "sent") if lives else put(value)

    def _matrix(self, a: sparse.csr_array) -> tuple[list[Any], list[shards.Blocks], list[int]]:
        def make() -> tuple[list[Any], list[shards.Blocks], list[int]]:
            blocks = shards.cut(a.indptr, self.workers) or [[(0, 0)]]
            bounds = shards.bounds_of(blocks)
            put = self._cluster().put
            return [put(shards.rows_between(a, *ends)) for ends in pairwise(bounds)], blocks, bounds

        return self._shared(a, make)

    # --- blocks ----------------------------------------------------------------------------------

    def times(self, a: sparse.csr_array, block: Rows) -> Rows:
        if a.shape[1] != block.shape[0]:
            raise ValueError(f"shapes {a.shape} and {block.shape} do not fit")
        if not isinstance(block, Sharded):
            return self._fetched(self._times(a, self.hold(block)))
        return self._times(a, block)

    def _times(self, a: sparse.csr_array, block: Sharded) -> Sharded:
        parts, _, bounds = self._matrix(a)
        made = [self._run(shards.times, i, part, *block.parts) for i, part in enumerate(parts)]
        return Sharded(made, bounds, block.width)

    def gram(self, block: Rows) -> Array:
        return reduce(add, self._get(self._each(shards.gram, self.hold(block))))

    def orthonormal(self, block: Rows) -> tuple[Rows, Array]:
        # Tall-skinny QR: factor each shard, then the stacked triangular factors here, and multiply the shards by it.
        held = self.hold(block)
        made = [self._run(shards.factored, i, part, returns=2) for i, part in enumerate(held.parts)]
        triangles = self._get([r for _, r in made])
        q, r = qr.orthonormal(np.concatenate(triangles), self._here)
        turns = np.split(q, np.cumsum([len(t) for t in triangles])[:-1])
        parts = [self._run(shards.combined, i, own, turns[i]) for i, (own, _) in enumerate(made)]
        out = Sharded(parts, held.bounds, q.shape[1])
        return out if isinstance(block, Sharded) else self._fetched(out), r

    def combined(self, block: Rows, matrix: Array) -> Sharded:
        held = self.hold(block)
        return Sharded(self._each(shards.combined, held, self._cluster().put(matrix)), held.bounds, matrix.shape[1])

    def cross(self, blocks: Sequence[Rows], block: Rows) -> Array:
        _, parts = self._beside(shards.cross, [block, *blocks])
        return reduce(add, self._get(parts))

    def joined(self, blocks: Sequence[Rows]) -> Sharded:
        bounds, parts = self._beside(shards.side_by_side, blocks)
        return Sharded(parts, bounds, sum(block.shape[1] for block in blocks))

    def mixed(self, blocks: Sequence[Rows], matrices: Sequence[Array]) -> Sharded:
        bounds, parts = self._beside(shards.mixed, blocks, self._cluster().put(list(matrices)))
        return Sharded(parts, bounds, matrices[0].shape[1])

    def _beside(self, work: Callable[..., Any], blocks: Sequence[Rows], *given: Any) -> tuple[list[int], list[Any]]:
        """Runs `work` on the same rows of several blocks."""
        first, *others = [self.hold(block) for block in blocks]
        held = [first, *(self._cut_as(first, other) for other in others)]
        rows = zip(*(block.parts for block in held), strict=True)
        return first.bounds, [self._run(work, i, *given, *parts) for i, parts in enumerate(rows)]

    def _cut_as(self, pattern: Sharded, block: Sharded) -> Sharded:
        """A block in the shards of another one. Products have the shards of their matrix, with equal non-zeros; what
        was put here has equal rows."""
        if block.bounds == pattern.bounds:
            return block
        parts = []
        for i, (start, stop) in enumerate(pairwise(pattern.bounds)):
            own = [n for n, (a, b) in enumerate(pairwise(block.bounds)) if a < stop and start < b] or [0]
            first = block.bounds[own[0]]
            parts.append(self._run(shards.between, i, start - first, stop - first, *(block.parts[n] for n in own)))
        return Sharded(parts, pattern.bounds, block.width)

    def scaled(self, block: Sharded | Maps, factors: Array | float) -> Sharded:
        held = self.hold(block)
        return Sharded(self._each(shards.scaled, held, factors), held.bounds, held.width)

    def lengths(self, block: Rows, minus: Rows | None = None, factors: Array | float = 1.0) -> Array:
        held = self.hold(block)
        others: list[tuple[Any, ...]] = [()] * len(held.parts)
        if minus is not None:
            others = [(part,) for part in self._cut_as(held, self.hold(minus)).parts]
        sums = [
            self._run(shards.squares, i, factors, part, *other)
            for i, (part, other) in enumerate(zip(held.parts, others, strict=True))
        ]
        return np.sqrt(reduce(add, self._get(sums)))

    def extremes(self, block: Rows) -> tuple[Array, Array]:
        found = self._get(self._each(shards.extremes, self.hold(block)))
        return np.max([high for high, _ in found], axis=0), np.min([low for _, low in found], axis=0)

    def survey(self, maps: Sharded | Maps, gram: bool) -> Survey:
        return reduce(add, self._get(self._each(shards.survey, self.hold(maps), gram)))

    # --- RMLS ------------------------------------------------------------------------------------

    def half(self, rows: FormedRows | FactoredRows, maps: Sharded | Maps, how: Shrinkage, keep_dense: bool) -> Half:
        held, width = self.hold(maps), maps.shape[1]
        if not rows.blocks:
            nothing = np.zeros((0, width), np.float32)
            return Half(nothing, np.zeros(width))
        found = self._factored(rows, held) if isinstance(rows, FactoredRows) else self._formed(rows, held)
        shares, bounds, given = found
        turn = None
        if how.decorrelate:
            grams = [self._run(shards.omega_gram, i, s, width, *given(i)) for i, s in enumerate(shares)]
            turn = self._cluster().put(decorrelation(reduce(add, self._get(grams)), how.decorrelate))
        made = [
            self._run(shards.new_rows, i, s, width, how, turn, keep_dense, *given(i), returns=2)
            for i, s in enumerate(shares)
        ]
        alignments = [a for part in self._get([sums for _, sums in made]) for a in part]
        out = Sharded([part for part, _ in made], bounds, width)
        return Half(out if isinstance(maps, Sharded) else self._fetched(out), added(alignments, width))  # type: ignore[arg-type]

    def _formed(self, rows: FormedRows, held: Sharded) -> Any:
        """The rows of W of each worker, and the whole map for all."""

        def make() -> tuple[list[Any], list[int]]:
            parts, bounds = shards.cut(rows.chain[0].indptr, self.workers), [0]
            put = []
            for blocks in parts:
                bounds.append(blocks[-1][1])
                own = shards.rows_between(rows.chain[0], bounds[-2], bounds[-1])
                put.append(self._cluster().put(shards.Share(blocks, own)))
            return put, bounds

        shares, bounds = self._shared(rows, make)
        return shares, bounds, lambda i: held.parts

    def _factored(self, rows: FactoredRows, held: Sharded) -> Any:
        """Rows of W L, computed through the factors by tiles of columns. They stay with their shards."""
        tiles = []
        for start, stop in rows.tiles(held.width):
            columns = Sharded(self._each(shards.columns, held, start, stop), held.bounds, stop - start)
            tiles.append(rows.through(columns, self))
        _, blocks, bounds = self._matrix(rows.chain[-1])
        return [shards.Share(own) for own in blocks], bounds, lambda i: [tile.parts[i] for tile in tiles]

    # --- search, and other work by rows ------------------------------------------------------------

    def top_k(self, queries: Array, images: Array, k: int, hidden: Array | None = None) -> tuple[Array, Array]:
        # Each worker finds the best of its shard of images. The best of all are selected here.
        k = min(k, len(images))
        if not len(queries) or not k:
            return self._here.top_k(queries, images, k, hidden)
        tile = max(SCORES // min(len(queries), ROWS), 1)  # as on one machine: the last bits of scores depend on it
        bounds = shards.even_bounds(len(images), self.workers, tile)

        def make() -> list[Any]:
            return [self._cluster().put(part) for part in shards.split(images, bounds)]

        parts, asked = self._shared(images, make, *bounds), self._cluster().put(queries)
        found = [
            self._run(shards.top_k, i, a, part, None if hidden is None else hidden[a:b], asked, k, returns=2)
            for i, (part, (a, b)) in enumerate(zip(parts, pairwise(bounds), strict=True))
        ]
        return shards.best_of([tuple(self._get(list(pair))) for pair in found], k)

    def by_rows(self, work: Callable[..., Result], n_rows: int, *shared: object) -> list[Result]:
        bounds = shards.even_bounds(n_rows, self.workers, 1)
        put = [self._sent(value) for value in shared]
        tasks = [self._run(shards.rows_done, i, work, *ends, *put) for i, ends in enumerate(pairwise(bounds))]
        return self._get(tasks)

    def exchange(
        self,
        split: Callable[[Item, int], tuple[object, ...]],
        items: list[Item],
        merge: Callable[..., Result],
        *shared: object,
    ) -> tuple[list[object], list[Result]]:
        n = self.workers
        made = [self._run(shards.pieces, i, split, item, n, returns=n + 1) for i, item in enumerate(items)]
        merged = [
            self._run(shards.merged, number, merge, number, *shared, *(one[1 + number] for one in made))
            for number in range(n)
        ]
        return self._get([one[0] for one in made]), self._get(merged)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _imported() -> Any:
    # Ray sends usage statistics by default, prints errors of tasks whose results nobody waits for any more, and warns
    # about a future change in signal handling.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise EngineError("--engine ray needs Ray: pip install 'clickbridge[ray]'") from error
    return ray
