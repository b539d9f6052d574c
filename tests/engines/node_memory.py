"""What each node of a Ray cluster on this machine has in memory while it works: its object store, and its workers."""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from typing import Any, Self

import ray
from ray._private.internal_api import node_stats

ANONYMOUS = re.compile(r"RssAnon:\s+(\d+) kB")
PARENT = re.compile(r"PPid:\s+(\d+)")


class NodeMemory:
    """Peaks between entering and leaving, node by node in the cluster's order: bytes in the store, and by how much the
    memory that workers share with nobody grew."""

    def __init__(self, cluster: Any) -> None:
        addresses = {node["NodeID"]: (node["NodeManagerAddress"], node["NodeManagerPort"]) for node in ray.nodes()}
        self.nodes = [
            (addresses[node.node_id], node.all_processes["raylet"][0].process.pid) for node in cluster.list_all_nodes()
        ]
        self.store = [0] * len(self.nodes)
        self.begun = [own_memory(raylet) for _, raylet in self.nodes]
        self.workers = list(self.begun)
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._watch.join()

    @property
    def grown(self) -> list[int]:
        return [peak - begun for peak, begun in zip(self.workers, self.begun, strict=True)]

    def _look(self) -> None:
        while not self._done.wait(0.05):
            for i, (address, raylet) in enumerate(self.nodes):
                used = node_stats(*address, include_memory_info=False).store_stats.object_store_bytes_used
                self.store[i] = max(self.store[i], int(used))
                self.workers[i] = max(self.workers[i], own_memory(raylet))


def own_memory(raylet: int) -> int:
    """Bytes of a node's workers that are no shared memory."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            text = status.read_text()
            parent, own = PARENT.search(text), ANONYMOUS.search(text)
            if parent and own and int(parent[1]) == raylet and _is_worker(status.parent):
                total += int(own[1]) << 10
    return total


def _is_worker(process: Path) -> bool:
    return (process / "cmdline").read_bytes().startswith(b"ray::")
