"""Memory of a process that answers one different query after another: `python -m campaigns.growth [SPEC [QUERIES]]`.

What a model remembers of queries is bounded: after the memos are full, the resident set stays where it is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from campaigns.data import WORDS, graph_of, pages
from clickbridge import build_model


def resident() -> int:
    """Bytes of memory that the process holds now."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def queries(count: int) -> Iterator[str]:
    """Five words each, none twice."""
    for number in Random(0).sample(range(len(WORDS) ** 5), count):
        yield " ".join(WORDS[number // len(WORDS) ** place % len(WORDS)] for place in range(5))


def main() -> None:
    spec = sys.argv[1] if len(sys.argv) > 1 else "robust-bm25"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    model = build_model(spec).fit(graph_of(pages(400)))
    print("| queries | resident, MB |\n|---|---|")
    for number, query in enumerate(queries(count), 1):
        model.rank(query, 10)
        if number % (count // 10) == 0 or number in (1, count // 100):
            print(f"| {number:,} | {resident() / 1e6:.1f} |", flush=True)
    print(f"{time.process_time():.0f} s of CPU")


if __name__ == "__main__":
    main()
