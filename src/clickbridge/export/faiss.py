"""FAISS: an `IndexFlatIP` for every dense block, whose rows are listed in `doc_ids.txt`; sparse blocks as SciPy files.

FAISS has only dense vectors. A sum with a sparse part is added up outside of it, as `search.py` in the folder shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from clickbridge.errors import MissingPart
from clickbridge.export.maps import Maps, as_row, as_vector
from clickbridge.export.recipe import Recipe, any_query
from clickbridge.export.source import SHOWN, Request, Source
from clickbridge.wording import count_of

ROWS_AT_ONCE = 10_000
SCRIPT = '''"""Search with what is in this folder: `python search.py` prints the first sample and its results."""

import json
from pathlib import Path

import faiss
import numpy as np
from scipy import sparse

HERE = Path(__file__).parent
DENSE, SPARSE = DENSE_NAMES, SPARSE_NAMES
DOC_IDS = (HERE / "doc_ids.txt").read_text(encoding="utf8").split("\\n")[:-1]
INDEXES = {name: faiss.read_index(str(HERE / f"{name}.faiss")) for name in DENSE}
MATRICES = {name: sparse.load_npz(HERE / f"{name}.npz") for name in SPARSE}


def search(numbers: dict, k: int = 10) -> list[tuple[str, float]]:
    """`numbers` are those of a query, as in expected.json."""
    total, found = np.zeros(len(DOC_IDS)), np.zeros(len(DOC_IDS), dtype=bool)
    for name, index in INDEXES.items():
        asked = np.array([numbers[name]], dtype=np.float32)
        if asked.any():
            # Of one block alone the k best would do; a sum needs all.
            scores, items = index.search(asked, index.ntotal if len(DENSE) + len(SPARSE) > 1 else k)
            there = items[0] >= 0
            total[items[0][there]] += scores[0][there]
            found[items[0][there]] = True
    for name, matrix in MATRICES.items():
        asked = np.zeros(matrix.shape[1], dtype=np.float32)
        asked[numbers[name]["indices"]] = numbers[name]["values"]
        scores = matrix @ asked
        total += scores
        found |= scores != 0
    best = sorted(np.flatnonzero(found), key=lambda i: -total[i])[:k]
    return [(DOC_IDS[i], float(total[i])) for i in best]


if __name__ == "__main__":
    sample = json.loads((HERE / "expected.json").read_text())[0]
    print(sample["query"])
    for doc_id, score in search(sample["request"]):
        print(f"{score:10.4f}  {doc_id}")
'''


def numbers(maps: Maps, query: str) -> dict[str, Any]:
    """A query's numbers by block, in the form that `search.py` needs."""
    out: dict[str, Any] = {}
    for block, values in zip(maps.blocks, maps.query(query), strict=True):
        if block.is_sparse:
            row = as_row(values)
            out[block.name] = {"indices": row.columns, "values": row.values}
        else:
            out[block.name] = as_vector(values, block.width)
    return out


def write(source: Source, folder: Path) -> None:
    try:
        import faiss
    except ImportError:
        raise MissingPart("export --to faiss needs FAISS: pip install 'clickbridge[ann]'") from None
    maps = source.maps
    kept = np.fromiter(maps.documents(), dtype=np.int64)
    for block in maps.blocks:
        if block.is_sparse:
            sparse.save_npz(folder / f"{block.name}.npz", sparse.csr_array(block.images)[kept])
            continue
        index = faiss.IndexIDMap(faiss.IndexFlatIP(block.width))
        there = np.flatnonzero(block.found[kept])
        for start in range(0, len(there), ROWS_AT_ONCE):
            some = there[start : start + ROWS_AT_ONCE]
            index.add_with_ids(np.ascontiguousarray(block.images[kept[some]], dtype=np.float32), some)
        faiss.write_index(index, str(folder / f"{block.name}.faiss"))
    (folder / "doc_ids.txt").write_text("".join(f"{maps.doc_ids[i]}\n" for i in kept.tolist()), encoding="utf8")
    dense = [block.name for block in maps.blocks if not block.is_sparse]
    others = [block.name for block in maps.blocks if block.is_sparse]
    script = SCRIPT.replace("DENSE_NAMES", repr(dense)).replace("SPARSE_NAMES", repr(others))
    (folder / "search.py").write_text(script, encoding="utf8")
    source.write_samples(folder, lambda query: Request(numbers(maps, query)), query_file=False)
    Recipe(
        f"{source.fitted.spec} in FAISS",
        f"{count_of(len(kept), 'document')} of the model `{source.fitted.spec}`.",
        {
            **{f"{name}.faiss": "dense vectors (`IndexFlatIP` with ids: places in doc_ids.txt)" for name in dense},
            **{f"{name}.npz": "a sparse matrix, one row per document, as SciPy saves it" for name in others},
            "doc_ids.txt": "the documents' ids, one per line",
            "search.py": f"a search of {SHOWN} results with all of these",
            "expected.json": "queries with their numbers, and the first ten results of each",
        },
        [("Install and search.", "pip install faiss-cpu scipy\npython search.py")],
        "Scores are ours but for the rounding of 32-bit sums. FAISS holds dense vectors; sparse parts are added by "
        "SciPy.",
        "Run with faiss-cpu by the tests.",
        [any_query(source.fitted.spec).replace("TARGET", "faiss")],
    ).write(folder)


def request(source: Source, query: str, k: int) -> dict[str, Any]:
    return numbers(source.maps, query)
